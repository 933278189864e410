"""Text as words and as tokens, whole buffers at a time: what fingerprints are made of.

Two readings of the same bytes. As *words*, text is its words and numbers in lower case and nothing else, so
indentation, wrapping, punctuation, patch marks and quotes do not matter. As *tokens*, text is the shape of code:
brackets, operators and keywords as they are, and of every other word only how far back it stood before (the
parameterized matching of Baker, 1993), so names do not matter. Line numbers and the places that `grep -n` writes
are blanked. Every step keeps the length of the text, so a word's place in the original is known without a map.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Final, override

import numpy as np
from numpy.typing import NDArray

U64: Final = np.uint64
Hashes = NDArray[np.uint64]
Places = NDArray[np.int64]

CHUNK: Final = 1 << 17
"""Bytes that are worked on at once: fewer calls against a processor's cache. No buffer may be longer than two of it."""

_PUNCTUATION: Final = b"()[]{}.=:!?&@%<"
_KEYWORDS: Final = (
    "and as assert async await boolean break case catch class cls const continue def default del dict do elif else enum"
    " except export exports extends false finally for from func function get global if import in instanceof int"
    " interface is lambda len let list match module new nil none nonlocal not null number or package pass print private"
    " public raise range require return self set static str string struct super switch this throw true try type typeof"
    " undefined var void while with yield"
)

_NAME: Final = 1  # the code of a word that is no keyword
_FIRST_KEYWORD: Final = 32


def _classes() -> bytes:
    table = bytearray(256)
    for byte in b"abcdefghijklmnopqrstuvwxyz0123456789_":
        table[byte] = _NAME
    table[128:] = bytes([_NAME]) * 128
    for number, byte in enumerate(_PUNCTUATION):
        table[byte] = number + 3
    return bytes(table)


_CLASSES: Final = _classes()

# General punctuation, arrows, box drawing, bullets: U+2000 to U+2FFF begin with E2. No letter stands there.
_SYMBOLS: Final = re.compile(rb"\xe2[\x80-\xbf]{2}")
# Of line ends and tabs inside a JSON string, as text, what becomes of the byte after the backslash; it becomes a blank.
_ESCAPES: Final = {ord("n"): 10, ord("t"): 32, ord("r"): 32}
_NEWLINE, _BLANK, _BACKSLASH = 10, 32, 92
_FARTHEST: Final = 208  # bytes of a line up to the last digit of its number
# What tools write before a line: its number, or the file and its number.
_NUMBERED: Final = re.compile(rb"[+\->]?[ \t]{0,8}\d{1,7}(?:\t|\xe2\x86\x92|[:|]| \|)")
_AFTER_NUMBERS: Final = bytes(
    1 if byte in b"0123456789" else 2 if byte in b"\t:|-\xe2" else 4 if byte == 32 else 0
    for byte in range(256)
)
_PLACED: Final = re.compile(rb"[^\s:]{1,200}:\d{1,7}[:\-]")

_BASE: Final = 0x9E3779B97F4A7C15
_MULTIPLIER: Final = U64(0xD6E8FEB86659FD93)
_HALF: Final = U64(32)
_TOP: Final = U64(48)


@dataclass(frozen=True, slots=True, eq=False)
class Tokens:
    """One buffer read. Words: hash, first byte, byte after the last, token number. Tokens: code and first byte.

    A word's hash says what it is; `names` marks words that are no keywords.
    """

    hashes: Hashes
    starts: Places
    ends: Places
    at: Places
    names: NDArray[np.bool_]
    codes: NDArray[np.uint8]
    token_starts: Places

    def where(self, words: NDArray[np.bool_], tokens: NDArray[np.bool_]) -> Tokens:
        """The marked words and tokens alone, as if nothing stood between them."""
        return Tokens(
            self.hashes[words],
            self.starts[words],
            self.ends[words],
            (np.cumsum(tokens) - 1)[self.at[words]],
            self.names[words],
            self.codes[tokens],
            self.token_starts[tokens],
        )

    @override
    def __repr__(self) -> str:
        return f"Tokens({len(self.hashes)} words, {len(self.codes)} tokens)"


def same_length(text: str) -> bytes:
    """The text in UTF-8 and lower case, with symbols, written-out escapes and line numbers blanked."""
    return blanked(lowered(text))


def lowered(text: str) -> bytes:
    """The text in UTF-8 and lower case."""
    return text.encode("utf-8", "surrogatepass").lower()


def blanked(data: bytes) -> bytes:
    """`lowered` texts, each of which begins on a new line, with what is not of their words blanked."""
    if b"\\" in data:
        data = _unescaped(data)
    data = _unnumbered(data)
    if b"\xe2" in data:
        data = _SYMBOLS.sub(b"   ", data)
    return data


def _unescaped(data: bytes) -> bytes:
    found = np.frombuffer(bytearray(data), np.uint8)
    before = np.flatnonzero(found[:-1] == _BACKSLASH)
    after = found[before + 1]
    for letter, byte in _ESCAPES.items():
        some = before[after == letter]
        found[some], found[some + 1] = _BLANK, byte
    return found.tobytes()


def _unnumbered(data: bytes) -> bytes:
    """With the numbers and places that tools write before lines blanked.

    Only lines in which a digit stands before what ends such a number, near enough to the beginning, are looked at.
    """
    kinds = np.frombuffer(data.translate(_AFTER_NUMBERS), np.uint8)
    after = kinds[1:] >> 1
    ends = np.flatnonzero(kinds[:-1] & (after | after >> 1) & 1)
    if not len(ends):
        return data
    begins = np.append(0, np.flatnonzero(np.frombuffer(data, np.uint8) == _NEWLINE) + 1)
    lines = begins[np.searchsorted(begins, ends, side="right") - 1]
    near = lines[ends - lines < _FARTHEST]
    blank = bytearray(data)
    for start in near[np.append(True, near[1:] != near[:-1])[: len(near)]].tolist():
        if found := _NUMBERED.match(data, start) or _PLACED.match(data, start):
            blank[start : found.end()] = b" " * (found.end() - start)
    return bytes(blank)


def mix(values: Any) -> Any:
    """Spread 64-bit values over all their bits."""
    values = values ^ (values >> _HALF)
    values *= _MULTIPLIER
    return values ^ (values >> _HALF)


@lru_cache(maxsize=1)
def _powers() -> tuple[Hashes, Hashes]:
    """Powers of the base and of its inverse, modulo 2**64."""
    inverse = pow(_BASE, -1, 1 << 64)
    up, down = np.empty(2 * CHUNK + 2, U64), np.empty(2 * CHUNK + 2, U64)
    a = b = 1
    for exponent in range(2 * CHUNK + 2):
        up[exponent], down[exponent] = a, b
        a, b = a * _BASE % (1 << 64), b * inverse % (1 << 64)
    return up, down


@lru_cache(maxsize=1)
def _keywords() -> NDArray[np.uint8]:
    """The code of a keyword by the top 16 bits of its hash, 0 where there is none."""
    table = np.zeros(1 << 16, np.uint8)
    hashes = _hashes(_KEYWORDS.encode())[0]
    table[(hashes >> _TOP).astype(np.int64)] = np.arange(len(hashes), dtype=np.uint8) + _FIRST_KEYWORD
    return table


def _hashes(data: bytes) -> tuple[Hashes, Places, Places, NDArray[np.uint8]]:
    """Word hashes, where words begin and end, and the class of each byte."""
    up, down = _powers()
    size = len(data)
    classes = np.frombuffer(data.translate(_CLASSES), np.uint8)
    inside = np.zeros(size + 2, np.bool_)
    inside[1:-1] = classes == _NAME
    edges = np.flatnonzero(inside[1:] != inside[:-1])
    starts, ends = edges[::2], edges[1::2]
    sums = np.empty(size + 1, U64)
    sums[0] = 0
    np.cumsum(np.frombuffer(data, np.uint8) * up[:size], out=sums[1:])
    return mix((sums[ends] - sums[starts]) * down[starts]), starts, ends, classes


def read(data: bytes) -> Tokens:
    """Read a buffer of `same_length` text, which is no longer than two chunks."""
    hashes, starts, ends, classes = _hashes(data)
    begins = classes > _NAME
    begins[starts] = True
    places = np.flatnonzero(begins)
    codes = classes[places]
    at = np.flatnonzero(codes == _NAME)
    keywords = _keywords()[(hashes >> _TOP).astype(np.int64)]
    codes[at] = np.maximum(keywords, _NAME)
    return Tokens(hashes, starts, ends, at, keywords == 0, codes, places)


def short(hashes: Hashes) -> NDArray[np.uint16]:
    """The top 16 bits: enough to tell neighbours apart, and sorted by counting."""
    return (hashes >> _TOP).astype(np.uint16)


def distances(tokens: Tokens, most: int) -> Places:
    """For each token that is a name, how many tokens ago it stood before; 0 where that is `most` or more, or never."""
    found = np.zeros(len(tokens.codes), np.int64)
    ids = short(tokens.hashes[tokens.names])
    order = np.argsort(ids, kind="stable")
    sorted_ids, places = ids[order], tokens.at[tokens.names][order]
    same = sorted_ids[1:] == sorted_ids[:-1]
    gaps = (places[1:] - places[:-1])[same]
    found[places[1:][same]] = np.where(gaps < most, gaps, 0)
    return found
