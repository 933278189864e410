"""AWS Signature Version 4 over a request that was changed on its way, with credentials of the gateway's own.

The rules are those of "Create a signed AWS API request" in the IAM user guide; the published test suite and botocore's
own signatures are the vectors of its test. Only signatures in the Authorization header over a whole body are made anew:
not those in the query, over chunks of a stream, or of the asymmetric kind (SigV4A).
"""

from __future__ import annotations

import hashlib
import hmac
import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final, override
from urllib.parse import quote, unquote

from gateway.ports import Headers

_ALGORITHM: Final = "AWS4-HMAC-SHA256"
_AUTHORIZATION: Final = re.compile(
    rf"{_ALGORITHM} +Credential=[^/,\s]+/(\d{{8}})/([a-z0-9-]+)/([a-z0-9-]+)/aws4_request,"
    r"\s*SignedHeaders=([a-z0-9;_-]+),\s*Signature=[0-9a-f]{64}"
)
_OURS: Final = frozenset({"authorization", "x-amz-date", "x-amz-security-token", "x-amz-content-sha256"})
_SAFE: Final = "-._~"


@dataclass(frozen=True, slots=True)
class Credentials:
    """Keys of an AWS identity; `token` is that of a session, empty for lasting ones."""

    access_key: str = field(repr=False)
    secret: str = field(repr=False)
    token: str = field(default="", repr=False)

    @override
    def __repr__(self) -> str:
        return "Credentials()"


@dataclass(frozen=True, slots=True)
class Scope:
    """What a client's signature says that it is for; `signed` are the headers that it covers, lower case."""

    region: str
    service: str
    signed: tuple[str, ...]


def scope_of(headers: Headers) -> Scope | None:
    """The scope of a signature that can be made anew; None for every other request."""
    values = _named(headers, "authorization")
    found = _AUTHORIZATION.fullmatch(values[0].strip()) if len(values) == 1 else None
    payload = _named(headers, "x-amz-content-sha256")
    if found is None or any(value.startswith("STREAMING-") for value in payload):
        return None
    return Scope(found[2], found[3], tuple(found[4].split(";")))


@dataclass(frozen=True, slots=True)
class Outgoing:
    """A request in the form in which it is sent. `host` is its Host header, with any port but the scheme's own."""

    method: str
    host: str
    target: str
    headers: Headers = field(repr=False)
    body: bytes = field(repr=False)


def resigned(request: Outgoing, scope: Scope, credentials: Credentials, time: str) -> Headers:
    """The headers with a signature of these credentials in the place of the client's.

    Headers that the client's signature covered, and that are still there, are covered again. `time` is that of signing,
    `YYYYMMDDTHHMMSSZ`.
    """
    headers = request.headers
    digest = hashlib.sha256(request.body).hexdigest()
    kept = tuple((name, value) for name, value in headers if name.lower().decode("latin-1") not in _OURS)
    added = [("x-amz-date", time)]
    added += [("x-amz-security-token", credentials.token)] if credentials.token else []
    added += [("x-amz-content-sha256", digest)] if _named(headers, "x-amz-content-sha256") else []
    covered = {name: _value(_named(kept, name)) for name in scope.signed if _named(kept, name)}
    covered |= {"host": request.host, **dict(added)}
    names = ";".join(sorted(covered))
    canonical = "\n".join(
        (
            request.method,
            *_canonical(request.target),
            *(f"{n}:{covered[n]}" for n in sorted(covered)),
            "",
            names,
            digest,
        )
    )
    place = f"{time[:8]}/{scope.region}/{scope.service}/aws4_request"
    to_sign = "\n".join((_ALGORITHM, time, place, hashlib.sha256(canonical.encode("latin-1")).hexdigest()))
    key = ("AWS4" + credentials.secret).encode()
    for part in place.split("/"):
        key = _mac(key, part)
    signature = _mac(key, to_sign).hex()
    proof = f"{_ALGORITHM} Credential={credentials.access_key}/{place}, SignedHeaders={names}, Signature={signature}"
    made = [*added, ("authorization", proof)]
    return (*kept, *((name.encode(), value.encode("latin-1")) for name, value in made))


def _canonical(target: str) -> tuple[str, str]:
    """Canonical path and query of a target: what is sent, without dot segments, encoded once more (all but S3)."""
    path, _, query = target.partition("?")
    pairs = (pair.partition("=")[::2] for pair in query.split("&") if pair)
    encoded = sorted((quote(unquote(n), safe=_SAFE), quote(unquote(v), safe=_SAFE)) for n, v in pairs)
    return quote(_without_dots(path), safe="/" + _SAFE), "&".join(
        f"{name}={value}" for name, value in encoded
    )


def _without_dots(path: str) -> str:
    """RFC 3986 §5.2.4, and empty segments left out."""
    parts: list[str] = []
    for part in path.split("/"):
        if part == "..":
            del parts[-1:]
        elif part not in {"", "."}:
            parts.append(part)
    return "/" + "/".join(parts) + ("/" if parts and path.endswith("/") else "")


def _named(headers: Headers, name: str) -> list[str]:
    return [v.decode("latin-1") for n, v in headers if n.lower().decode("latin-1") == name]


def _value(values: Sequence[str]) -> str:
    return ",".join(" ".join(value.split()) for value in values)


def _mac(key: bytes, text: str) -> bytes:
    return hmac.digest(key, text.encode("latin-1"), hashlib.sha256)
