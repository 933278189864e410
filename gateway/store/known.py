r"""Lists of known values on disk: sorted keyed fingerprints, eight bytes each, mapped into memory and searched there.

```
"EGKV\x03" "<" | MAC of the rest | count, bytes of the sieve and of that of heads, words, number of shapes
    | shapes, 4 bytes each | zeros to a multiple of eight | sieve of heads | sieve | fingerprints, 8 bytes each
```

The sieve is a Bloom filter of 32 to 64 bits a value over another keyed hash, which is fast to compute for every window
of a text (`gateway.detect.windows`): it lets fewer than one window in a thousand through that is not known. Another one
holds the first six letters and digits of every value, and lets about one word in three hundred through.

The key is a file of its own in the key folder (`values.key`), the only one that scanning processes read. With the list
alone nothing can be guessed; who also has the key can test guesses, and read nothing. Processes share the pages: a
million values are 16 to 24 MB once for all of them.
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

import numpy as np
from numpy.typing import NDArray

from gateway.detect.known import PROBE, read_value, shapes_of
from gateway.detect.windows import HEAD, Flags, Hashes, Rolling, fitting
from gateway.errors import SetupError, words_of
from gateway.files import private_folder, replace_file

_MAGIC: Final = b"EGKV\x03" + (b"<" if sys.byteorder == "little" else b">")
_MAC: Final = 16
_HEAD: Final = Struct("=QQQII")
_PRINT: Final = 8
_KEY: Final = 32
_BUCKETS: Final = 256
_BITS: Final = 32  # of the sieve for a value, rounded up to a power of two for all
_PROBES: Final = 3  # bits set for a value
_HEAD_PROBES: Final = 2  # bits set for what a value begins with
_TOGETHER: Final = 4096  # values hashed at once


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
        self._rolling = Rolling(key)
        self._hashes = array("Q")
        self._heads = array("Q")
        self._plain: list[bytes] = []

    def add(self, value: str) -> bool:
        normal, shapes, words = read_value(value)
        if normal:
            number = fingerprint(normal, self._key)
            self._buckets[number >> 56].append(number)
            self.shapes |= shapes
            self.words = max(self.words, words)
            if normal.isascii():  # in a line of ASCII no other stands
                self._plain.append(normal.encode("ascii"))
                if len(self._plain) == _TOGETHER:
                    self._hash()
        return bool(normal)

    def _hash(self) -> None:
        self._hashes.frombytes(self._rolling.of(self._plain).tobytes())
        heads = b"".join([value[:HEAD] for value in self._plain])
        places = np.arange(0, len(heads), HEAD)
        self._heads.frombytes(self._rolling.heads(heads, places).tobytes())
        self._plain.clear()

    def sieves(self) -> tuple[bytes, bytes]:
        """The Bloom filters of the heads and of all values; the probe is one, so there is always one."""
        self._hash()
        return _bloom(self._heads, _HEAD_PROBES), _bloom(self._hashes, _PROBES)

    def parts(self) -> Iterator[bytes]:
        """The fingerprints in order, each once."""
        for bucket in self._buckets:
            yield array("Q", sorted(set(bucket))).tobytes()


def _bloom(gathered: array[int], probes: int) -> bytes:
    hashes = np.frombuffer(gathered, np.uint64)
    bits = np.zeros(1 << ((len(hashes) * _BITS - 1).bit_length() - 3), np.uint8)
    for number in range(probes):
        places = _place(hashes, number, len(bits))
        np.bitwise_or.at(bits, places >> np.uint64(3), _bit(places))
    return bits.tobytes()


def _held(hashes: Hashes, bits: NDArray[np.uint8], probes: int) -> Flags:
    left = np.arange(len(hashes))
    for number in range(probes):  # most fail the first probe
        places = _place(hashes[left], number, len(bits))
        left = left[bits[places >> np.uint64(3)] & _bit(places) != 0]
    held = np.zeros(len(hashes), np.bool_)
    held[left] = True
    return held


def _place(hashes: Hashes, number: int, size: int) -> Hashes:
    """One of the bits of each value in a sieve of `size` bytes, a power of two."""
    wide = size.bit_length() + 2
    return (hashes + np.uint64(number) * (hashes >> np.uint64(64 - wide))) & np.uint64((1 << wide) - 1)


def _bit(places: Hashes) -> NDArray[np.uint8]:
    return np.left_shift(np.uint8(1), (places & np.uint64(7)).astype(np.uint8))


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
    heads, sieve = gathered.sieves()
    parts = [heads, sieve, *gathered.parts()]
    count = sum(map(len, parts[2:])) // _PRINT
    head = _HEAD.pack(count, len(sieve), len(heads), gathered.words, len(gathered.shapes))
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
    replace_file(path, parts)


class KnownFile:
    """A list, mapped: the look-up object of `gateway.detect.known`."""

    def __init__(self, path: Path, key: bytes) -> None:
        """Map the file. SetupError where it is damaged, of another key or machine, or cannot be read."""
        self._key = key
        try:
            with path.open("rb") as file:
                mapped = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
        except (OSError, ValueError) as error:
            raise _unusable(path, words_of(error)) from None
        view = memoryview(mapped)
        start = len(_MAGIC) + _MAC
        mac = hashlib.blake2b(view[start:], digest_size=_MAC, key=key).digest()
        if view[: len(_MAGIC)] != _MAGIC or not hmac.compare_digest(mac, view[len(_MAGIC) : start]):
            raise _unusable(path, "it is damaged, or was made with another key, version or machine")
        count, size, heads, self.words, shapes = _HEAD.unpack_from(view, start)
        at = start + _HEAD.size
        self.shapes = frozenset(view[at : at + 4 * shapes].cast("I"))
        counted = self.shapes - shapes_of(PROBE) or self.shapes
        self.least_digits = min(shape & 255 for shape in counted)
        self.fitting = fitting(self.shapes)
        self.rolling = Rolling(key)
        prints = len(view) - count * _PRINT
        self._sieve = np.frombuffer(view[prints - size : prints], np.uint8)
        self._heads = np.frombuffer(view[prints - size - heads : prints - size], np.uint8)
        self._prints = view[prints:].cast("Q")
        self.revision = mac.hex()

    def __len__(self) -> int:
        return len(self._prints)

    def may_begin(self, heads: Hashes) -> Flags:
        """See Sieve."""
        return _held(heads, self._heads, _HEAD_PROBES)

    def may_hold(self, hashes: Hashes) -> Flags:
        """See Sieve."""
        return _held(hashes, self._sieve, _PROBES)

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
