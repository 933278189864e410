"""Trust stores of this machine and this user: what commands put a certificate there, and take it out again.

Every change is a command that can be shown before it is run, and run by somebody else. A store is changed only to what
it should hold: certificates in force are added, former ones of this installation are removed, nothing else is touched.
"""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Protocol

from cryptography import x509

from gateway.errors import SetupError
from gateway.proxy.former import fingerprint

STORES: Final = ("system", "nss")
PREFIX: Final = "model-egress-gateway-"
_TIMEOUT_S: Final = 120
_SBIN: Final = "/usr/local/sbin:/usr/sbin:/sbin"  # not on the path of users, but where these commands are

ANCHORS: Final = (
    ("/usr/local/share/ca-certificates", ("update-ca-certificates",)),  # Debian, Ubuntu, Alpine
    ("/etc/pki/ca-trust/source/anchors", ("update-ca-trust", "extract")),  # Fedora, RHEL
    ("/etc/pki/trust/anchors", ("update-ca-certificates",)),  # openSUSE
    ("/etc/ca-certificates/trust-source/anchors", ("update-ca-trust",)),  # Arch
)
"""Folders of certificates that an administrator added, and what is run after a change."""

_PROFILES: Final = (
    ".pki/nssdb",  # Chromium and what is built on it
    ".mozilla/firefox/*",
    "snap/firefox/common/.mozilla/firefox/*",
    ".var/app/org.mozilla.firefox/.mozilla/firefox/*",
)


def name_of(certificate: x509.Certificate) -> str:
    """The name under which a certificate of ours stands in a store."""
    return PREFIX + fingerprint(certificate)[:16]


@dataclass(frozen=True, slots=True)
class Step:
    """One change to a store: what it does, and the command that does it."""

    store: str
    says: str
    argv: tuple[str, ...]

    @property
    def shell(self) -> str:
        """The command as it is typed."""
        return shlex.join(self.argv)

    def run(self) -> None:
        """Make the change; SetupError (`ca.store_failed`) where the command cannot be run or fails."""
        path = f"{os.environ.get('PATH', os.defpath)}:{_SBIN}"
        try:
            done = subprocess.run(  # noqa: S603 - one of the commands above
                self.argv,
                capture_output=True,
                check=False,
                timeout=_TIMEOUT_S,
                stdin=subprocess.DEVNULL,
                env={**os.environ, "PATH": path},
            )
        except (OSError, subprocess.TimeoutExpired) as error:
            raise SetupError("ca.store_failed", f"{self.argv[0]} cannot be run", hint=self.shell) from error
        if done.returncode:
            said = done.stderr.decode(errors="replace").strip().splitlines()
            why = f": {said[-1]}" if said else ""
            raise SetupError(
                "ca.store_failed", f"{self.argv[0]} failed ({done.returncode}){why}", hint=self.shell
            )


class TrustStore(Protocol):
    """A place where programs look for the CAs that they trust."""

    def changes(self, wanted: Sequence[tuple[str, Path]], unwanted: Sequence[str]) -> Iterator[Step]:
        """What is to be done so that the store holds `wanted` (name and file) and none of the names `unwanted`."""
        ...

    def problem(self) -> str:
        """Why this user cannot change it; empty where they can."""
        ...


@dataclass(frozen=True, slots=True)
class SystemStore:
    """The store of the operating system: one file a certificate in `folder`, then `refresh`."""

    folder: Path
    refresh: tuple[str, ...]

    def changes(self, wanted: Sequence[tuple[str, Path]], unwanted: Sequence[str]) -> Iterator[Step]:
        """See TrustStore."""
        changed = False
        for name, file in wanted:
            place = self.folder / f"{name}.crt"
            if not place.exists() or place.read_bytes() != file.read_bytes():
                changed = True
                yield Step("system", f"trust {name}", ("install", "-m", "0644", str(file), str(place)))
        for name in unwanted:
            place = self.folder / f"{name}.crt"
            if place.exists():
                changed = True
                yield Step("system", f"no longer trust {name}", ("rm", "-f", str(place)))
        if changed:
            yield Step("system", "bring the store up to date", self.refresh)

    def problem(self) -> str:
        """See TrustStore."""
        return "" if os.access(self.folder, os.W_OK) else f"{self.folder} can be changed by root only"


@dataclass(frozen=True, slots=True)
class NssStore:
    """A database of NSS, which Firefox and Chromium keep for each profile."""

    folder: Path

    @property
    def _database(self) -> tuple[str, ...]:
        return ("certutil", "-d", f"sql:{self.folder}")

    def changes(self, wanted: Sequence[tuple[str, Path]], unwanted: Sequence[str]) -> Iterator[Step]:
        """See TrustStore."""
        for name, file in wanted:
            if not self._holds(name):
                argv = (*self._database, "-A", "-t", "C,,", "-n", name, "-i", str(file))
                yield Step("nss", f"trust {name} in {self.folder}", argv)
        for name in unwanted:
            if self._holds(name):
                argv = (*self._database, "-D", "-n", name)
                yield Step("nss", f"no longer trust {name} in {self.folder}", argv)

    def _holds(self, name: str) -> bool:
        done = subprocess.run(  # noqa: S603 - certutil, with a name that we make
            (*self._database, "-L", "-n", name), capture_output=True, check=False, timeout=_TIMEOUT_S
        )
        return done.returncode == 0

    def problem(self) -> str:
        """See TrustStore."""
        return "" if os.access(self.folder, os.W_OK) else f"{self.folder} cannot be written by this user"


def system_store() -> SystemStore | None:
    """The store of this machine; None where it is of a kind that is not known."""
    path = f"{os.environ.get('PATH', os.defpath)}:{_SBIN}"
    for folder, refresh in ANCHORS:
        if Path(folder).is_dir() and shutil.which(refresh[0], path=path):
            return SystemStore(Path(folder), refresh)
    return None


def nss_stores(home: Path) -> list[NssStore]:
    """The databases of a user's browsers."""
    found = [path for pattern in _PROFILES for path in sorted(home.glob(pattern))]
    return [NssStore(path) for path in found if (path / "cert9.db").is_file()]


def stores(kinds: Sequence[str], home: Path) -> list[TrustStore]:
    """The stores of these kinds; SetupError where there is none, or the tool for it is missing."""
    found: list[TrustStore] = []
    if "system" in kinds:
        system = system_store()
        if system is None:
            raise SetupError(
                "ca.no_store",
                "this machine's trust store is of a kind that is not known",
                hint="give `egress ca show --pem` to its administrator, or use `egress exec`, which needs no store",
            )
        found.append(system)
    if "nss" in kinds:
        databases = nss_stores(home)
        if not databases:
            raise SetupError(
                "ca.no_store", f"no browser of this user has a database of certificates under {home}",
                hint="start the browser once",
            )  # fmt: skip
        if shutil.which("certutil") is None:
            raise SetupError(
                "ca.no_tool", "certutil is not installed", hint="Debian: libnss3-tools; Fedora: nss-tools"
            )
        found.extend(databases)
    return found
