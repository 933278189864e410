r"""Compiled pattern databases as bytes: what an engine gives away, and what a later one starts from.

```
"EGDB\x01" | SHA-256 of the rest | revision of the rules, 32 ASCII characters | (length, database) for each plan
```

Nothing here reads or writes a file: the caller keeps the bytes, where only its own user can change them, apart for each
version of the engine and each processor.
"""

from __future__ import annotations

import hashlib
import struct
from collections.abc import Callable, Sequence
from typing import Final

type Compiled = Callable[[str], bytes]
"""Given the revision of the rules: what `Engine.dump` gave for it on this processor, or no bytes."""

_MAGIC: Final = b"EGDB\x01"
_DIGEST: Final = 32
_REVISION: Final = 32
_LENGTH: Final = struct.Struct("<I")


def nothing_compiled(_revision: str) -> bytes:
    """There is none: compile."""
    return b""


def pack(revision: str, databases: Sequence[bytes]) -> bytes:
    """Databases of rules of one revision as one string of bytes."""
    body = revision.encode("ascii") + b"".join(_LENGTH.pack(len(each)) + each for each in databases)
    return _MAGIC + hashlib.sha256(body).digest() + body


def unpack(data: bytes, revision: str, count: int) -> list[bytes]:
    """The `count` databases in what `pack` made; empty where it is damaged, cut short or of other rules."""
    start = len(_MAGIC) + _DIGEST
    body = data[start:]
    if not data.startswith(_MAGIC) or hashlib.sha256(body).digest() != data[len(_MAGIC) : start]:
        return []
    if body[:_REVISION] != revision.encode("ascii"):
        return []
    found, at = [], _REVISION
    while at < len(body):
        (size,) = _LENGTH.unpack_from(body, at)
        at += _LENGTH.size
        found.append(body[at : at + size])
        at += size
    return found if len(found) == count else []
