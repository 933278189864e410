"""JSON Pointers (RFC 6901) for paths."""

from __future__ import annotations

from gateway.context.objects import Path
from gateway.errors import ContractError


def to_pointer(path: Path) -> str:
    """The pointer of a path: empty for the whole document."""
    return "".join("/" + str(token).replace("~", "~0").replace("/", "~1") for token in path)


def parse(pointer: str) -> Path:
    """The path of a pointer; tokens that are array indexes by their form (RFC 6901 §4) become integers.

    A member whose name is such a number is therefore read as an index: resolve against the value where that
    matters. Raises ContractError pointer.invalid.
    """
    if not pointer:
        return ()
    if not pointer.startswith("/"):
        raise ContractError("pointer.invalid", "a pointer is empty or begins with a slash")
    return tuple(_token(raw) for raw in pointer[1:].split("/"))


def _token(raw: str) -> str | int:
    if raw.isascii() and raw.isdigit() and (raw == "0" or raw[0] != "0") and len(raw) <= 10:
        return int(raw)
    parts = raw.split("~")
    if any(part[:1] not in {"0", "1"} for part in parts[1:]):
        raise ContractError("pointer.invalid", "a tilde must be followed by 0 or 1")
    return parts[0] + "".join(("~" if part[0] == "0" else "/") + part[1:] for part in parts[1:])
