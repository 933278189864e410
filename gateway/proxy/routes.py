"""Where a connection may go and who opens it. Pure: strings in, decisions out.

A host is *intercepted* (its requests are read), *tunnelled* (passed through unread, recorded) or *refused*.
A denial always wins; what the operator lists wins over the shipped provider table, the longer pattern over the shorter,
and between equally long patterns interception over a tunnel. Nothing matches: `unknown` decides.
"""

from __future__ import annotations

import base64
import binascii
import hmac
import ipaddress
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Literal, Protocol

from gateway.ports import Peer
from gateway.proxy.places import NOWHERE, Place

type Action = Literal["intercept", "tunnel", "refuse"]

_LABELS = re.compile(r"(?=.{1,253}\Z)[a-z0-9_]([a-z0-9_-]{0,62})?(\.[a-z0-9_]([a-z0-9_-]{0,62})?)*\Z")
LOCAL_NAMES = frozenset({"localhost", "localhost.localdomain", "ip6-localhost"})
DEFAULT_PROJECT = "default"


@dataclass(frozen=True, slots=True)
class HostRules:
    """The effective host lists: exact names or `*.suffix`, optionally with `:port`.

    `is_provider` is the shipped table. `unknown` is `refuse` or `tunnel`: what then looks like a provider by its name,
    or in plain HTTP by the path of a request, is opened all the same.
    """

    intercept: frozenset[str] = frozenset()
    tunnel: frozenset[str] = frozenset()
    deny: frozenset[str] = frozenset()
    unknown: str = "refuse"
    is_provider: Callable[[str], bool] = field(default=lambda _host: False)
    looks_like_provider: Callable[[str], bool] = field(default=lambda _host: False)
    tells: Callable[[str, str], bool] = field(default=lambda _host, _path: False)


@dataclass(frozen=True, slots=True)
class Route:
    """What is done with connections to one destination, and why."""

    action: Action
    reason_code: str


class AccessEntry(Protocol):
    """The peer of one user name and the token that proves it."""

    @property
    def peer(self) -> Peer:
        """Who that is."""
        ...

    @property
    def token(self) -> bytes:
        """The secret; empty where none is asked for."""
        ...


def normalise_host(host: str) -> str | None:
    """Lower case, without brackets or trailing dot, IDNA where needed; None for what names no host."""
    host = host.strip().lower().removesuffix(".")
    if host.startswith("[") and host.endswith("]"):
        host = host[1:-1]
    try:
        return str(ipaddress.ip_address(host))
    except ValueError:
        pass
    if not host.isascii():
        try:
            host = host.encode("idna").decode("ascii")
        except UnicodeError:
            return None
    return host if _LABELS.match(host) else None


def split_authority(authority: str, default_port: int) -> tuple[str, int] | None:
    """(normalised host, port) of `host[:port]`; None when it is neither."""
    host, port = authority, ""
    if authority.startswith("["):
        inner, bracket, rest = authority.partition("]")
        if not bracket or (rest and not rest.startswith(":")):
            return None
        host, port = inner[1:], rest[1:]
    elif ":" in authority:
        host, _, port = authority.rpartition(":")
    name = normalise_host(host)
    if name is None or (port and not (port.isascii() and port.isdigit() and 0 < int(port) < 65536)):
        return None
    return name, int(port) if port else default_port


def _specificity(patterns: frozenset[str], host: str, port: int) -> int:
    """Length of the longest pattern that fits, 0 for none; an exact name beats every wildcard."""
    best = 0
    for candidate in (host, f"{host}:{port}"):
        if candidate in patterns:
            best = max(best, 1000 + len(candidate))
    suffix = host
    while "." in suffix:
        suffix = suffix.partition(".")[2]
        for candidate in (f"*.{suffix}", f"*.{suffix}:{port}"):
            if candidate in patterns:
                best = max(best, len(candidate))
    return best


def decide(host: str, port: int, rules: HostRules) -> Route:
    """The route for a normalised host and a port by name alone; addresses are looked at when they are dialled."""
    if _specificity(rules.deny, host, port):
        return Route("refuse", "host.denied")
    intercept = _specificity(rules.intercept, host, port)
    tunnel = _specificity(rules.tunnel, host, port)
    if tunnel > intercept:
        return Route("tunnel", "host.tunnelled")
    if intercept or rules.is_provider(host):
        return Route("intercept", "host.intercepted")
    if rules.unknown == "tunnel":
        if rules.looks_like_provider(host):
            return Route("intercept", "host.recognised")
        return Route("tunnel", "host.unknown")
    return Route("refuse", "host.unknown")


def by_path(route: Route, host: str, path: str, rules: HostRules) -> Route:
    """The route of a plain HTTP request, whose path is seen before anything is dialled."""
    unknown = route == Route("tunnel", "host.unknown")
    return Route("intercept", "host.recognised") if unknown and rules.tells(host, path) else route


def is_private(address: str) -> bool:
    """Whether an IP address is none of the public internet: private, loopback, link-local, unspecified, reserved."""
    ip = ipaddress.ip_address(address.partition("%")[0])
    mapped = ip.ipv4_mapped if isinstance(ip, ipaddress.IPv6Address) else None
    return not (mapped or ip).is_global


def is_local(address: str, listen_host: str) -> bool:
    """Whether an address or a well-known name reaches this machine's own listeners."""
    if address in LOCAL_NAMES or address == listen_host:
        return True
    try:
        ip = ipaddress.ip_address(address.partition("%")[0])
    except ValueError:
        return False
    mapped = ip.ipv4_mapped if isinstance(ip, ipaddress.IPv6Address) else None
    return (mapped or ip).is_loopback or (mapped or ip).is_unspecified


def authenticate(
    header: bytes | None, access: Mapping[str, AccessEntry], place: Place = NOWHERE
) -> Peer | None:
    """The peer that a Proxy-Authorization value proves, None where it proves none (answer 407).

    Without credentials the place's project is given, or on a loopback listener the default one; any other place gives
    nothing, and there an entry without a token opens nothing either. Tokens are compared in constant time.
    """
    if header is None:
        entry = access.get(place.project or DEFAULT_PROJECT) if place.open and not place.conflict else None
        return entry.peer if entry is not None and not entry.token else None
    named, password = _basic(header)
    user = place.user(named)
    entry = access.get(user) if user is not None else None
    if entry is None:
        hmac.compare_digest(password, password)  # an unknown name takes as long as a wrong token
        return None
    if not entry.token:
        # A network says which project it is, not who somebody in it is.
        return entry.peer if place.is_loopback or (place.by_network and user == place.project) else None
    return entry.peer if hmac.compare_digest(password, entry.token) else None


def user_of(header: bytes | None) -> str:
    """The user name of a Proxy-Authorization value; empty without one."""
    return _basic(header)[0] if header is not None else ""


def _basic(header: bytes) -> tuple[str, bytes]:
    """User name and password of RFC 7617 credentials; an empty name for anything else."""
    scheme, _, value = header.partition(b" ")
    if scheme.lower() != b"basic":
        return "", b""
    try:
        user, _, password = base64.b64decode(value.strip(), validate=True).partition(b":")
        return user.decode("ascii"), password
    except (binascii.Error, UnicodeDecodeError):
        return "", b""
