"""Windows of neighbouring words that some known value may fill, for a whole batch of texts at once.

A window must begin with the six letters or digits that some value begins with: a bitmap over a keyed hash of them says
so of every word of a text, and lets few through. Where they are few, each is followed by itself. Where they are many,
windows whose length and number of digits no value has are passed over and the others are hashed: a polynomial over the
letters and digits alone, modulo 2^64 with a secret base and secret weights, has the hash of a run of words as a
difference of two prefix sums. Only those whose hash another bitmap holds are looked up for certain. Small letters and
capitals weigh the same; text beyond ASCII is not read here.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final, Protocol

import numpy as np
from numpy.typing import NDArray

type Hashes = NDArray[np.uint64]
type Places = NDArray[np.int64]
type Flags = NDArray[np.bool_]

MAX_LENGTH: Final = 128  # letters and digits of a window
MAX_GAP: Final = 3  # characters between two words of one window
HEAD: Final = 6  # letters and digits that every value has
_FEW: Final = 96  # words of a chunk that may begin a value, up to which each is followed by itself
_SHAPES: Final = 1 << 16
_CHUNK: Final = 1 << 16  # bytes worked on together: what is computed of them stays in the cache
_REACH: Final = 256  # bytes that a window can span: 128 letters and digits, seven gaps of three characters
_U64: Final = np.uint64
_LETTERS: Final = b"0123456789abcdefghijklmnopqrstuvwxyz"
_READ: Final = bytes(chr(c).isalnum() and c < 128 for c in range(256))  # 1 for a letter or a digit
_DIGIT: Final = bytes(48 <= c <= 57 for c in range(256))
_OTHERS: Final = bytes(c for c in range(256) if not _READ[c])
_NO_DIGITS: Final = bytes(c for c in range(256) if not _DIGIT[c])
_LOWER: Final = bytes(ord(chr(c).lower()) if c < 128 else c for c in range(256))
_HEAD_MASK: Final = _U64((1 << 8 * HEAD) - 1)
_WIDE_HEAD: Final = 8  # bytes that are read for a head
_LINE_END: Final = 10


class Sieve(Protocol):
    """What the known values let through."""

    @property
    def words(self) -> int:
        """The most words of a value."""
        ...

    @property
    def fitting(self) -> Flags:
        """See `fitting`."""
        ...

    @property
    def rolling(self) -> Rolling:
        """The hash of windows."""
        ...

    def may_begin(self, heads: Hashes) -> Flags:
        """Whether a value can begin with what has this hash (`Rolling.heads`): false is certain."""
        ...

    def may_hold(self, hashes: Hashes) -> Flags:
        """Whether a value with this hash can be known: false is certain."""
        ...


def fitting(shapes: Iterable[int]) -> Flags:
    """A table that says of each shape (length << 8 | digits) whether some value has it."""
    table = np.zeros(_SHAPES, np.bool_)
    table[[shape for shape in shapes if shape < _SHAPES]] = True
    return table


class Rolling:
    """The keyed hash of a run of letters and digits, ASCII, in either case."""

    def __init__(self, key: bytes) -> None:
        secret = hashlib.shake_256(b"egress known values, rolling" + key).digest(8 * (len(_LETTERS) + 5))
        numbers = np.frombuffer(secret, "<u8")
        self._weights: Hashes = np.zeros(256, _U64)
        for number, letter in zip(numbers, _LETTERS, strict=False):
            self._weights[[letter, ord(chr(letter).upper())]] = number
        self._base = int(numbers[-5]) | 1
        self._mask, self._factor = numbers[-4], numbers[-3] | _U64(1)
        self._head_mask, self._head_factor = numbers[-2], numbers[-1] | _U64(1)
        self._powers: tuple[Hashes, Hashes] = (np.zeros(0, _U64), np.zeros(0, _U64))

    def heads(self, letters: bytes, at: Places) -> Hashes:
        """The hash of the six letters and digits, small ones, from each place; of fewer at the end."""
        padded = letters + bytes(_WIDE_HEAD)
        every: Hashes = np.ndarray((len(letters) + 1,), "<u8", padded, strides=(1,))
        mixed: Hashes = ((every[at] & _HEAD_MASK) ^ self._head_mask) * self._head_factor
        mixed = (mixed ^ (mixed >> _U64(31))) * self._factor
        return mixed ^ (mixed >> _U64(29))

    def sums(self, letters: NDArray[np.uint8]) -> Hashes:
        """Prefix sums over letters and digits: one more than there are."""
        sums = np.zeros(len(letters) + 1, _U64)
        np.cumsum(self._weights[letters] * self._raised(len(letters))[0], out=sums[1:])
        return sums

    def between(self, sums: Hashes, starts: Places, ends: Places) -> Hashes:
        """The hash of each run `starts..ends`."""
        mixed: Hashes = (sums[ends] - sums[starts]) * self._raised(len(sums))[1][starts]
        mixed = (mixed ^ self._mask ^ (mixed >> _U64(32))) * self._factor
        mixed = (mixed ^ (mixed >> _U64(29))) * self._factor
        return mixed ^ (mixed >> _U64(32))

    def _raised(self, size: int) -> tuple[Hashes, Hashes]:
        """The powers of the base, and those of its inverse."""
        if len(self._powers[0]) < size:
            grown = max(size, _CHUNK + _REACH + 1)
            inverse = pow(self._base, -1, 1 << 64)
            self._powers = (_powers(self._base, grown), _powers(inverse, grown))
        return self._powers[0][:size], self._powers[1]

    def of(self, values: Sequence[bytes]) -> Hashes:
        """The hash of each value, all of them letters and digits of ASCII."""
        ends = np.cumsum([len(value) for value in values], dtype=np.int64)
        starts = np.concatenate((np.zeros(1, np.int64), ends[:-1])) if values else ends
        return self.between(self.sums(np.frombuffer(b"".join(values), np.uint8)), starts, ends)


def _powers(base: int, size: int) -> Hashes:
    raised = np.full(size, base, _U64)
    raised[0] = 1
    return np.cumprod(raised, dtype=_U64)


@dataclass(frozen=True, slots=True)
class _Words:
    """The words of a piece of text: where each stands, and in the piece's letters and digits alone."""

    piece: bytes
    letters: bytes
    starts: Places
    ends: Places
    first: Places
    after: Places


def windows(data: bytes, sieve: Sieve) -> Iterator[tuple[int, int]]:
    """`start, end` of each window that may be a known value, by start and then by end."""
    for low in range(0, len(data), _CHUNK):
        words = _read(data[low : low + _CHUNK + _REACH])
        heads: Places = np.flatnonzero(sieve.may_begin(sieve.rolling.heads(words.letters, words.first)))
        if not len(heads):
            continue
        cut = low > 0 and bool(_READ[data[low - 1]])
        for start, end in (
            _followed(words, sieve, heads) if len(heads) <= _FEW else _hashed(words, sieve, heads)
        ):
            if start < _CHUNK and not (
                cut and start == 0
            ):  # a word goes on from before, or is the next piece's
                yield low + start, low + end


def _read(piece: bytes) -> _Words:
    flags = np.frombuffer(b"\0" + piece.translate(_READ) + b"\0", np.uint8)
    edges = np.flatnonzero(flags[1:] != flags[:-1])
    starts, ends = edges[::2], edges[1::2]
    after = np.cumsum(ends - starts)
    return _Words(piece, piece.translate(_LOWER, _OTHERS), starts, ends, after - (ends - starts), after)


def _followed(words: _Words, sieve: Sieve, heads: Places) -> Iterator[tuple[int, int]]:
    """The windows that begin at these words and have the length and the digits of some value."""
    for head in heads.tolist():
        first, start = int(words.first[head]), int(words.starts[head])
        for index in range(head, min(head + sieve.words, len(words.starts))):
            if index > head and not _near(words, index):
                break
            after = int(words.after[index])
            if after - first > MAX_LENGTH:
                break
            digits = len(words.letters[first:after].translate(None, _NO_DIGITS))
            if sieve.fitting[after - first << 8 | digits]:
                yield start, int(words.ends[index])


def _near(words: _Words, index: int) -> bool:
    """Whether a word is near enough to the one before to be in one window with it."""
    gap = words.piece[int(words.ends[index - 1]) : int(words.starts[index])]
    return len(gap) <= MAX_GAP and _LINE_END not in gap


def _joins(words: _Words) -> Flags:
    """`_near` of every word."""
    piece, starts, ends = np.frombuffer(words.piece, np.uint8), words.starts, words.ends
    joins = np.zeros(len(starts), np.bool_)
    if len(starts) > 1:
        before, gaps = ends[:-1], starts[1:] - ends[:-1]
        near = gaps <= MAX_GAP
        near &= piece[before] != _LINE_END
        for step in range(1, MAX_GAP):
            wide = np.flatnonzero(near & (gaps > step))
            near[wide] = piece[before[wide] + step] != _LINE_END
        joins[1:] = near
    return joins


def _hashed(words: _Words, sieve: Sieve, heading: Places) -> Iterator[tuple[int, int]]:
    """The windows that begin at these words and that the sieve lets through."""
    joins, sums = _joins(words), sieve.rolling.sums(np.frombuffer(words.letters, np.uint8))
    digits = np.zeros(len(words.letters) + 1, np.int32)
    np.cumsum(np.frombuffer(words.letters.translate(_DIGIT), np.uint8), dtype=np.int32, out=digits[1:])
    heads, tails = [], []
    for more in range(sieve.words):
        if more:
            heading = heading[: np.searchsorted(heading, len(joins) - more)]
            heading = heading[joins[heading + more]]
        low, high = words.first[heading], words.after[heading + more]
        sizes = high - low
        if len(sizes) and int(sizes.max()) > MAX_LENGTH:
            short = sizes <= MAX_LENGTH
            heading, low, high, sizes = heading[short], low[short], high[short], sizes[short]
        fit = np.flatnonzero(sieve.fitting[sizes << 8 | (digits[high] - digits[low])])
        fit = fit[sieve.may_hold(sieve.rolling.between(sums, low[fit], high[fit]))]
        heads.append(heading[fit])
        tails.append(heading[fit] + more)
    head, tail = np.concatenate(heads), np.concatenate(tails)
    order = np.lexsort((tail, head))
    yield from zip(words.starts[head[order]].tolist(), words.ends[tail[order]].tolist(), strict=True)
