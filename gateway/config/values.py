"""Kinds of values: how one is read, what it must be, how it is shown.

A reader raises ValueError with what is expected and never quotes what was given: a value may be a secret.
"""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Any, override
from urllib.parse import urlsplit

from gateway.config.remote import check_url, is_remote

_NAME = re.compile(r"[a-z0-9][a-z0-9._-]{0,62}", re.ASCII)
_PLUGIN = re.compile(r"[a-z0-9][a-z0-9_.-]{0,62}", re.ASCII)
_HOST = re.compile(
    r"[a-z0-9_]([a-z0-9_-]{0,61}[a-z0-9_])?(\.[a-z0-9_]([a-z0-9_-]{0,61}[a-z0-9_])?)*", re.ASCII
)
MAX_HOST_LENGTH = 253  # RFC 1035 §2.3.4
MAX_PORT = 65_535


class Mode(StrEnum):
    """How strict the gateway is where a rule is silent (contract.md §3.3)."""

    DEVELOPER = "developer"
    GOVERNED = "governed"
    SOVEREIGN = "sovereign"


class ExtraFailure(StrEnum):
    """What becomes of content that an extra detector did not answer for."""

    DENY = "deny"
    FLAG = "flag"


class Enforcement(StrEnum):
    """Whether denials deny; in `shadow` they are only recorded."""

    ENFORCE = "enforce"
    SHADOW = "shadow"


class Unknown(StrEnum):
    """What happens to a connection to a host that no list names."""

    REFUSE = "refuse"
    TUNNEL = "tunnel"


@dataclass(frozen=True, slots=True, order=True)
class Address:
    """A host (lower case, no brackets) and a TCP port; port 0: any free one."""

    host: str
    port: int

    @property
    def is_loopback(self) -> bool:
        """True where only this machine can reach it; a name other than `localhost` never is."""
        if self.host == "localhost":
            return True
        try:
            return ipaddress.ip_address(self.host).is_loopback
        except ValueError:
            return False

    @override
    def __str__(self) -> str:
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"


@dataclass(frozen=True, slots=True, order=True)
class HostPattern:
    """A host name, or with `subdomains` every name below it; `port` None: any port."""

    host: str
    subdomains: bool = False
    port: int | None = None

    def matches(self, host: str, port: int) -> bool:
        """Whether a connection to this lower-case host without trailing dot, and port, is meant."""
        if self.port is not None and self.port != port:
            return False
        return host.endswith("." + self.host) if self.subdomains else host == self.host

    @override
    def __str__(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        port = "" if self.port is None else f":{self.port}"
        return ("*." if self.subdomains else "") + host + port


@dataclass(frozen=True, slots=True)
class Base:
    """Where relative paths start, and what `~` stands for."""

    folder: Path
    home: Path

    def path(self, text: str) -> Path:
        """An absolute path; not resolved, so that a link stays what it was named."""
        if text == "~" or text.startswith("~/"):
            return self.home / text[2:]
        return self.folder / text


def _as_is(value: Any) -> Any:
    return value


def as_text(value: Any) -> Any:
    """How something that may be absent is shown."""
    return "" if value is None else str(value)


def as_texts(value: Any) -> Any:
    """How a list of things that are written as text is shown."""
    return [str(item) for item in value]


@dataclass(frozen=True, slots=True)
class Kind:
    """One kind of value. `name` stands in the documentation; `toml`: the environment holds TOML, not text."""

    name: str
    read: Callable[[object, Base], Any]
    show: Callable[[Any], Any] = _as_is
    toml: bool = False


def text_of(value: object, what: str) -> str:
    """A string without control characters; `what` says what it should be."""
    if not isinstance(value, str):
        raise ValueError(f"must be a string: {what}")  # noqa: TRY004 - one error type for every reader
    if any(ord(c) < 0x20 or ord(c) == 0x7F for c in value):
        raise ValueError("must hold no control characters")
    return value


def _host(text: str) -> str:
    host = text.lower().removesuffix(".")
    if host.startswith("[") and host.endswith("]"):
        host = host[1:-1]
    try:
        return str(ipaddress.ip_address(host))
    except ValueError:
        pass
    if len(host) > MAX_HOST_LENGTH or not _HOST.fullmatch(host):
        raise ValueError("must name a host (ASCII letters, digits, hyphens and dots) or an IP address")
    return host


def _port(text: str, lowest: int) -> int:
    if not text.isascii() or not text.isdigit() or not lowest <= int(text[:6]) <= MAX_PORT:
        raise ValueError(f"must end with a port from {lowest} to {MAX_PORT}")
    return int(text)


def read_address(value: object, *, lowest_port: int = 0) -> Address:
    """`host:port` or `[v6]:port`."""
    host, colon, port = text_of(value, "host:port").rpartition(":")
    if not colon or not host or (":" in host and not host.startswith("[")):
        raise ValueError("must be host:port, an IPv6 address in brackets")
    return Address(_host(host), _port(port, lowest_port))


def read_host_pattern(value: object) -> HostPattern:
    """`host`, `*.domain`, each with or without `:port`."""
    text = text_of(value, "a host, *.domain or host:port")
    subdomains = text.startswith("*.")
    text = text.removeprefix("*.")
    host, colon, port = text.rpartition(":")
    if not colon or (text.startswith("[") and text.endswith("]")):
        return HostPattern(_host(text), subdomains)
    return HostPattern(_host(host), subdomains, _port(port, 1))


def without_password(url: str) -> str:
    """The URL with user and password replaced by `***`."""
    parts = urlsplit(url)
    if "@" not in parts.netloc:
        return url
    return parts._replace(netloc="***@" + parts.netloc.rpartition("@")[2]).geturl()


def _bundle_names(value: object, _: Base) -> tuple[str, ...]:
    names = list_of(value, lambda item: text_of(item, "a folder, the name of a packaged bundle, or a URL"))
    for name in filter(is_remote, names):
        check_url(name)
    if not names or "" in names:
        raise ValueError("must name at least one bundle, and no empty ones")
    return names


def _trial_names(value: object, base: Base) -> tuple[str, ...]:
    return _bundle_names(value, base) if value != [] else ()


def list_of[T](value: object, read: Callable[[object], T]) -> tuple[T, ...]:
    """A list whose items are read one by one, each of them once."""
    if not isinstance(value, list):
        raise ValueError("must be a list")  # noqa: TRY004
    items: list[T] = []
    for index, item in enumerate(value):
        try:
            items.append(read(item))
        except ValueError as error:
            raise ValueError(f"item {index}: {error}") from None
    if len(set(items)) != len(items):
        raise ValueError("must not name the same thing twice")
    return tuple(items)


def _dial_map(value: object, _: Base) -> dict[Address, Address]:
    if not isinstance(value, dict):
        raise ValueError('must be a table of "host:port" = "host:port"')  # noqa: TRY004
    table: dict[Address, Address] = {}
    for number, (target, dial) in enumerate(value.items()):
        try:
            key = read_address(target, lowest_port=1)
            table[key] = read_address(dial, lowest_port=1)
        except ValueError as error:
            raise ValueError(f"entry {number}: {error}") from None
    if len(table) != len(value):
        raise ValueError("must not name the same target twice")
    return table


def _optional_path(value: object, base: Base) -> Path | None:
    text = text_of(value, "a path, or empty")
    return base.path(text) if text else None


def _folder(value: object, base: Base) -> Path:
    text = text_of(value, "a path")
    if not text:
        raise ValueError("must not be empty")
    return base.path(text)


def _key_folder(value: object, base: Base) -> Path | None:
    text = text_of(value, "empty, or file:/path")
    if not text:
        return None
    if not text.startswith("file:") or text == "file:":
        raise ValueError("must be empty or file:/path, a folder; only state.signer can name a key elsewhere")
    return base.path(text.removeprefix("file:"))


def _signer(value: object, base: Base) -> str:
    text = text_of(value, "empty, or scheme:place")
    if not text:
        return ""
    scheme, _, place = text.partition(":")
    if not _PLUGIN.fullmatch(scheme) or not place or not place.isprintable():
        raise ValueError("must be empty, file:/path of a key in PEM, or scheme:place of a signer plug-in")
    return f"file:{base.path(place)}" if scheme == "file" else text


def _store(value: object, _: Base) -> str:
    text = text_of(value, "the name or URL of a store")
    scheme, separator, _rest = text.partition("://")
    if not _PLUGIN.fullmatch(scheme) or (separator and not urlsplit(text).hostname):
        raise ValueError("must be the name of a store or scheme://host/...")
    return text


def _proxy_url(value: object, _: Base) -> str:
    text = text_of(value, "http://user:password@host:port, or empty")
    if not text:
        return ""
    try:
        parts = urlsplit(text)
        usable = (
            parts.scheme in {"http", "https"} and parts.hostname and parts.port and parts.path in {"", "/"}
        )
    except ValueError:
        usable = False
    if not usable or urlsplit(text).query or urlsplit(text).fragment:
        raise ValueError("must be http://host:port or https://host:port, with user:password@ where asked for")
    return text


def name(value: object) -> str:
    """The name of a project, principal or team (interfaces: `[a-z0-9][a-z0-9._-]{0,62}`)."""
    text = text_of(value, "a name")
    if not _NAME.fullmatch(text):
        raise ValueError("must be 1 to 63 of a-z 0-9 . _ - and start with a letter or digit")
    return text


def _plugin_names(value: object, _: Base) -> tuple[str, ...]:
    def read(item: object) -> str:
        text = text_of(item, "the name of a plug-in")
        if not _PLUGIN.fullmatch(text):
            raise ValueError("must be the name of a plug-in")
        return text

    return list_of(value, read)


def _flag(value: object, _: Base) -> bool:
    if not isinstance(value, bool):
        raise ValueError("must be true or false")  # noqa: TRY004 - one error type for every reader
    return value


def whole(lowest: int, highest: int) -> Kind:
    """A whole number in a range, both ends included; TOML booleans and floats are refused."""

    def read(value: object, _: Base) -> int:
        if isinstance(value, bool) or not isinstance(value, int) or not lowest <= value <= highest:
            raise ValueError(f"must be a whole number from {lowest} to {highest}")
        return value

    return Kind(f"whole number, {lowest}–{highest}", read, toml=True)  # noqa: RUF001 - a range


def choice(options: type[StrEnum], *, empty: bool = False) -> Kind:
    """One of an enum's words; with `empty`, an empty string leaves the choice to another setting (None)."""
    words = [option.value for option in options]

    def read(value: object, _: Base) -> StrEnum | None:
        if empty and value == "":
            return None
        if value not in words:
            raise ValueError("must be one of " + ", ".join(words))
        return options(str(value))

    return Kind(" | ".join(words), read, as_text)


def word(options: Mapping[str, str] | frozenset[str]) -> Kind:
    """One of a closed set of words."""
    words = sorted(options)

    def read(value: object, _: Base) -> str:
        if value not in words:
            raise ValueError("must be one of " + ", ".join(words))
        return str(value)

    return Kind(" | ".join(words), read)


def checked(kind: str, check: Callable[[str], str]) -> Kind:
    """A text that `check` accepts and may write otherwise; it raises ValueError with what is expected."""
    return Kind(kind, lambda value, _: check(text_of(value, kind)))


def each_checked(kind: str, check: Callable[[str], str]) -> Kind:
    """A list of texts that `check` accepts."""
    return Kind(
        kind, lambda value, _: list_of(value, lambda item: check(text_of(item, kind))), list, toml=True
    )


def words(options: Sequence[str]) -> Kind:
    """A list of words out of a closed set."""

    def read_one(item: object) -> str:
        if item not in options:
            raise ValueError("must be one of " + ", ".join(options))
        return str(item)

    return Kind("list of " + " | ".join(options), lambda value, _: list_of(value, read_one), list, toml=True)


ADDRESS = Kind("host:port", lambda value, _: read_address(value), str)
HOSTS = Kind("list of hosts", lambda value, _: list_of(value, read_host_pattern), as_texts, toml=True)
DIAL = Kind("table", _dial_map, lambda table: {str(k): str(v) for k, v in sorted(table.items())}, toml=True)
FILE = Kind("path or empty", _optional_path, as_text)
FOLDER = Kind("path", _folder, str)
FOLDERS = Kind(
    "list of paths", lambda value, base: list_of(value, lambda item: _folder(item, base)), as_texts, toml=True
)
KEYS = Kind("empty or file:/path", _key_folder, lambda path: "" if path is None else f"file:{path}")
SIGNER = Kind("empty or scheme:place", _signer, without_password)
STORE = Kind("name or URL", _store, without_password)
PROXY_URL = Kind("URL or empty", _proxy_url, without_password)
BUNDLES = Kind("list of folders, names or URLs", _bundle_names, list, toml=True)
TRIAL = Kind("list of folders, names or URLs", _trial_names, list, toml=True)
NAMES = Kind("list of names", lambda value, _: list_of(value, name), list, toml=True)
PLUGINS = Kind("list of plug-in names", _plugin_names, list, toml=True)
FLAG = Kind("true or false", _flag, toml=True)
NAME = Kind("name or empty", lambda value, _: name(value) if value != "" else "")
