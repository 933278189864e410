r"""Lists of known values on disk: sorted keyed fingerprints, eight bytes each, mapped into memory and searched there.

```
"EGKV\x01" "<" | MAC of the rest | count, words, number of shapes | shapes, 4 bytes each | fingerprints, 8 bytes each
```

The key is a file of its own in the key folder (`values.key`), the only one that scanning processes read. With the list
alone nothing can be guessed; who also has the key can test guesses, and read nothing. Processes share the pages: a
million values are 8 MB once for all of them.
"""

from __future__ import annotations

import hashlib
import hmac
import mmap
import os
import sys
from array import array
from bisect import bisect_left
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from struct import Struct
from typing import Final

from gateway.detect.known import PROBE, indexable, shapes_of, word_count
from gateway.errors import SetupError
from gateway.store.folders import private_folder

_MAGIC: Final = b"EGKV\x01" + (b"<" if sys.byteorder == "little" else b">")
_MAC: Final = 16
_HEAD: Final = Struct("=QII")
_PRINT: Final = 8
_KEY: Final = 32
_BUCKETS: Final = 256


@dataclass(frozen=True, slots=True)
class Counts:
    """What a list was made of: values kept, and those that are too short, too long or of too many words."""

    values: int
    passed_over: int


def fingerprint(normal: str, key: bytes) -> int:
    """The keyed fingerprint of a normalised value, 64 bits."""
    digest = hashlib.blake2b(normal.encode("utf-8", "surrogatepass"), digest_size=_PRINT, key=key)
    return int.from_bytes(digest.digest(), "big")


class _Gathered:
    """Fingerprints by their first byte, so that sorting needs memory for one part in 256 at a time."""

    def __init__(self, key: bytes) -> None:
        self._key = key
        self._buckets = [array("Q") for _ in range(_BUCKETS)]
        self.shapes: set[int] = set()
        self.words = 1

    def add(self, value: str) -> bool:
        normal = indexable(value)
        if normal:
            number = fingerprint(normal, self._key)
            self._buckets[number >> 56].append(number)
            self.shapes |= shapes_of(value)
            self.words = max(self.words, word_count(value))
        return bool(normal)

    def parts(self) -> Iterator[bytes]:
        """The fingerprints in order, each once."""
        for bucket in self._buckets:
            yield array("Q", sorted(set(bucket))).tobytes()


def write_known(path: Path, key: bytes, values: Iterable[str]) -> Counts:
    """Replace the list at `path`; whole and durable when it returns. SetupError where it cannot be written."""
    gathered = _Gathered(key)
    gathered.add(PROBE)
    kept = passed = 0
    for value in values:
        if gathered.add(value):
            kept += 1
        else:
            passed += 1
    parts = list(gathered.parts())
    head = _HEAD.pack(sum(map(len, parts)) // _PRINT, gathered.words, len(gathered.shapes))
    shapes = array("I", sorted(gathered.shapes)).tobytes()
    shapes += bytes(-(len(_MAGIC) + _MAC + len(head) + len(shapes)) % _PRINT)
    mac = hashlib.blake2b(digest_size=_MAC, key=key)
    for part in (head, shapes, *parts):
        mac.update(part)
    try:
        _replace(path, (_MAGIC, mac.digest(), head, shapes, *parts))
    except OSError as error:
        raise _unusable(path, os.strerror(error.errno or 0)) from error
    return Counts(kept, passed)


def _replace(path: Path, parts: Iterable[bytes]) -> None:
    private_folder(path.parent)
    draft = path.with_name(f"{path.name}.{os.getpid()}.new")
    descriptor = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
    with os.fdopen(descriptor, "wb") as out:
        out.writelines(parts)
        out.flush()
        os.fsync(descriptor)
    draft.replace(path)


class KnownFile:
    """A list, mapped: the look-up object of `gateway.detect.known`."""

    def __init__(self, path: Path, key: bytes) -> None:
        """Map the file. SetupError where it is damaged, of another key or machine, or cannot be read."""
        self._key = key
        try:
            with path.open("rb") as file:
                mapped = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
        except (OSError, ValueError) as error:
            raise _unusable(path, type(error).__name__) from None
        view = memoryview(mapped)
        start = len(_MAGIC) + _MAC
        mac = hashlib.blake2b(view[start:], digest_size=_MAC, key=key).digest()
        if view[: len(_MAGIC)] != _MAGIC or not hmac.compare_digest(mac, view[len(_MAGIC) : start]):
            raise _unusable(path, "it is damaged, or was made with another key or on another machine")
        count, self.words, shapes = _HEAD.unpack_from(view, start)
        at = start + _HEAD.size
        self.shapes = frozenset(view[at : at + 4 * shapes].cast("I"))
        counted = self.shapes - shapes_of(PROBE) or self.shapes
        self.least_digits = min(shape & 255 for shape in counted)
        self._prints = view[len(view) - count * _PRINT :].cast("Q")
        self.revision = mac.hex()

    def __len__(self) -> int:
        return len(self._prints)

    def holds(self, normal: str) -> bool:
        """See KnownValues."""
        wanted = fingerprint(normal, self._key)
        at = bisect_left(self._prints, wanted)
        return at < len(self._prints) and self._prints[at] == wanted


def values_key(folder: Path, *, create: bool = False) -> bytes:
    """The 32 bytes in `values.key` of the key folder; made where `create` allows it. SetupError."""
    path = folder / "values.key"
    try:
        if create and not path.exists():
            _replace(path, (os.urandom(_KEY),))
        with path.open("rb") as file:
            private = not os.fstat(file.fileno()).st_mode & 0o077
            key = file.read()
    except OSError as error:
        raise _unusable(path, os.strerror(error.errno or 0)) from error
    if not private or len(key) != _KEY:
        raise _unusable(path, "others can read it" if not private else "it does not hold 32 bytes")
    return key


def _unusable(path: Path, why: str) -> SetupError:
    return SetupError(
        "values.unusable",
        f"{path.name} of the known values cannot be used: {why}",
        hint="make it again: egress project index --values FILE",
    )
