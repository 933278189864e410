"""Interception CAs that are not in force any more: retired by a rotation, or revoked because nobody may trust them.

One file beside the CA's key, `ca.former`, holds their certificates and nothing secret:
`{"version": 1, "certificates": [{"pem", "sha256", "revoked", "at", "reason"}]}`. It says what is to be taken out of
trust stores, and what is never served again, whatever a backup brings back.
"""

from __future__ import annotations

import datetime as dt
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import orjson
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization

from gateway.errors import SetupError
from gateway.files import private_folder, replace_file

FILE: Final = "ca.former"
MAX_REASON: Final = 200  # characters
_VERSION: Final = 1


@dataclass(frozen=True, slots=True)
class Former:
    """A CA's certificate that was in force. `at` is an RFC 3339 instant, `reason` what the operator said."""

    certificate: x509.Certificate
    revoked: bool
    at: str
    reason: str = ""

    @property
    def sha256(self) -> str:
        """Of the certificate, in hex."""
        return fingerprint(self.certificate)

    def row(self) -> dict[str, str | bool]:
        """As it stands in the file, without the certificate itself."""
        return {"sha256": self.sha256, "revoked": self.revoked, "at": self.at, "reason": self.reason}


def fingerprint(certificate: x509.Certificate) -> str:
    """SHA-256 of a certificate in hex."""
    return certificate.fingerprint(hashes.SHA256()).hex()


def pem_of(certificate: x509.Certificate) -> bytes:
    """A certificate as text."""
    return certificate.public_bytes(serialization.Encoding.PEM)


def read_former(path: Path) -> tuple[Former, ...]:
    """What the file says, oldest first; SetupError (`ca.former_unreadable`) where it does not hold what it should.

    A file that cannot be read is not an empty one: what it revoked is not known.
    """
    try:
        document = orjson.loads(path.read_bytes())
        return tuple(
            Former(
                x509.load_pem_x509_certificate(str(each["pem"]).encode("ascii")),
                bool(each["revoked"]),
                str(each["at"]),
                str(each["reason"]),
            )
            for each in {_VERSION: document["certificates"]}[
                document["version"]
            ]  # of this version, or KeyError
        )
    except FileNotFoundError:
        return ()
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise SetupError(
            "ca.former_unreadable",
            f"{path} cannot be read: which CAs were revoked is not known",
            hint="put it back from a backup; remove it only if no CA of this installation was ever revoked",
        ) from error


def add_former(path: Path, certificate: x509.Certificate, *, now: dt.datetime, reason: str | None) -> None:
    """Note a certificate as retired, or with a reason as revoked; on disk when this returns.

    What is revoked stays so, also where the same certificate is retired later.
    """
    known = list(read_former(path))
    name = fingerprint(certificate)
    if any(each.sha256 == name and (each.revoked or reason is None) for each in known):
        return
    at = now.astimezone(dt.UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    kept = [each for each in known if each.sha256 != name]
    kept.append(Former(certificate, reason is not None, at, (reason or "")[:MAX_REASON]))
    rows = [{"pem": pem_of(each.certificate).decode("ascii"), **each.row()} for each in kept]
    content = orjson.dumps({"version": _VERSION, "certificates": rows}, option=orjson.OPT_INDENT_2)
    private_folder(path.parent)
    replace_file(path, (content, b"\n"))


class Revocations:
    """Whether a CA was revoked, read anew whenever the file changes: a gateway stops with the next handshake."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._seen: tuple[int, int, int] | None = None
        self._names: frozenset[str] = frozenset()

    def include(self, name: str) -> bool:
        """Whether the certificate of this fingerprint was revoked; SetupError where the file cannot be read."""
        try:
            found = self._path.stat()
            mark = (found.st_mtime_ns, found.st_size, found.st_ino)
        except FileNotFoundError:
            mark = (0, 0, 0)
        except OSError:
            mark = (0, 0, -1)
        if mark != self._seen:
            self._names = frozenset(each.sha256 for each in read_former(self._path) if each.revoked)
            self._seen = mark
        return name in self._names
