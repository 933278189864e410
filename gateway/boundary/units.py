"""Cutting text into the units that are fingerprinted: lines, and the clauses of long lines.

A unit is what is left of a line when only its letters are kept, in lower case. Indentation, line numbers,
diff marks, list bullets, quotes, trailing commas and the numbers themselves all vanish, so a line found
again in a numbered listing, a patch or a JSON string is the same unit. Every step works on the whole text
at once and keeps its length, so that a unit's place in the original is known without any map.

Long lines are prose more often than code; there a sentence is quoted, not a line, so their clauses are
units too.
"""

from __future__ import annotations

import re
from collections.abc import Collection
from dataclasses import dataclass
from typing import NamedTuple, override

LINE_MIN = 10
"""Letters a unit needs; shorter lines (`else:`, `return None`) stand everywhere."""
LONG_LINE = 48
"""Letters from which the clauses of a line are units as well."""

_CLAUSE_ENDS = b".,;:()!?"
_MARK = b"\x01"
_LETTERS = b"abcdefghijklmnopqrstuvwxyz"
_KEPT = frozenset(_LETTERS + _LETTERS.upper() + b"\n" + bytes(range(0x80, 0x100)))
_FOLD = bytes(1 if b in _CLAUSE_ENDS else b for b in bytes(range(256)).lower())
_DROP = bytes(b for b in range(256) if b not in _KEPT and b not in _CLAUSE_ENDS)
_CLAUSE = re.compile(rb"[^" + re.escape(_CLAUSE_ENDS) + rb"]+")

# General punctuation, arrows, box drawing, bullets: U+2000 to U+2FFF begin with E2. No letter stands there.
_SYMBOLS = re.compile(rb"\xe2[\x80-\xbf]{2}")
# Line ends and tabs inside a JSON string, as text: blanked out with their length kept.
_ESCAPES = ((b"\\n", b" \n"), (b"\\t", b"  "), (b"\\r", b"  "))


class Unit(NamedTuple):
    """One unit: its letters, and where it begins and ends in the bytes of the original text."""

    letters: bytes
    line: int
    start: int
    end: int

    @override
    def __repr__(self) -> str:
        return f"Unit({len(self.letters)} letters, line {self.line})"


@dataclass(frozen=True, slots=True)
class Cut:
    """A text cut into lines: `letters[i]` are those of line i, `marked[i]` the same with the clause ends marked."""

    original: tuple[bytes, ...]
    marked: tuple[bytes, ...]
    letters: tuple[bytes, ...]

    @override
    def __repr__(self) -> str:
        return f"Cut({len(self.letters)} lines)"


def cut(data: bytes) -> Cut:
    """Cut UTF-8 text into lines of letters; the three views have the same number of lines."""
    data = same_length(data)
    marked = data.translate(_FOLD, _DROP)
    letters = marked.translate(None, _MARK)
    return Cut(tuple(data.split(b"\n")), tuple(marked.split(b"\n")), tuple(letters.split(b"\n")))


def same_length(data: bytes) -> bytes:
    """The text with symbols and written-out escapes blanked; every other byte stands where it stood."""
    if b"\\" in data:
        for written, blank in _ESCAPES:
            data = data.replace(written, blank)
    if b"\xe2" in data:
        data = _SYMBOLS.sub(b"   ", data)
    return data


def texts(parts: Cut) -> list[bytes]:
    """The letters of every unit, lines first and then clauses, without places: what hashing needs."""
    letters = parts.letters
    found = [line for line in letters if len(line) >= LINE_MIN]
    for number in [n for n, line in enumerate(letters) if len(line) >= LONG_LINE]:
        found += [c for c in parts.marked[number].split(_MARK) if len(c) >= LINE_MIN]
    return found


def place(parts: Cut, wanted: Collection[bytes]) -> list[Unit]:
    """Where the units with the wanted letters stand, in the order of the text; a line before its clauses."""
    found = []
    offset = 0
    for number, line in enumerate(parts.letters):
        original = parts.original[number]
        if line in wanted and len(line) >= LINE_MIN:
            found.append(Unit(line, number, offset, offset + len(original)))
        elif len(line) >= LONG_LINE:
            found += [
                Unit(letters, number, offset + m.start(), offset + m.end())
                for m in _CLAUSE.finditer(original)
                if len(letters := m.group().translate(_FOLD, _DROP)) >= LINE_MIN and letters in wanted
            ]
        offset += len(original) + 1
    return found
