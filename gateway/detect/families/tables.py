"""Values that a column's head names: comma or tab separated rows, tables of Markdown.

The engine finds a naming word at the end of a cell. The line must then be a head, made of names alone, and what
follows rows of as many cells; the cell below the name is judged as any assigned value.
"""

from __future__ import annotations

import re
from typing import Final

from gateway.detect.families.assignment import WORDS, Assignments
from gateway.detect.keynames import KeyKind, key_kind
from gateway.detect.matcher import Trigger
from gateway.detect.scope import Scope
from gateway.detect.typelist import TypeRow

_HEAD_LENGTH: Final = 600  # characters of a head, and of a row
_MOST_ROWS: Final = 200
_MOST_CELLS: Final = 40
_CONSUMED: Final = -7  # where the last table that was read ended
_CODE: Final = re.compile(r"[(){}<>=:]")
_NAME: Final = re.compile(r"[\w .#/-]{1,40}")
_RULE: Final = re.compile(r"[ |:+-]{3,600}")  # the line under a head
_PLAIN: Final = {s: re.compile(rf'"[^"\n]{{0,300}}"|[^{s}\n]{{0,300}}') for s in ("|", "\t", ",", ";")}
_MARKS: Final = " \"'`*"


class Tables:
    """Finds values by the name of their column."""

    contextual = True
    triggers = (
        Trigger(
            WORDS
            + "[\\w.-]{0,16}[\"'`*]{0,3}[ ]{0,8}(?:[,;\t][\\w\"' ]|[|][ ]?[\\w\"'`*]|(?:[|][ ]{0,2})?\r?\n[\\w|\"'])",
            0,
            caseless=True,
        ),
    )

    def __init__(self, assignments: Assignments) -> None:
        self._assignments = assignments
        self.described: tuple[TypeRow, ...] = assignments.described

    def find(self, scope: Scope, end: int) -> None:
        """See Family."""
        text = scope.text
        if end <= scope.consumed.get(_CONSUMED, 0):
            return
        inside = end - 2 if text[end - 2 : end - 1] == "\n" else end - 1
        low = text.rfind("\n", max(0, inside - _HEAD_LENGTH), inside) + 1
        high = text.find("\n", inside, inside + _HEAD_LENGTH)
        if high < 0 or _CODE.search(text, low, high):
            return
        separator = next((s for s in _PLAIN if text.find(s, low, high) >= 0), "")
        named = _named(text, low, high, separator) if separator else {}
        if named:
            scope.consumed[_CONSUMED] = high
            self._rows(scope, high + 1, separator, named)

    def _rows(self, scope: Scope, at: int, separator: str, named: dict[int, str]) -> None:
        """Judge the named cells of the rows from `at`, as long as they have as many cells as the head."""
        text, size = scope.text, named.pop(-1, None)
        for _ in range(_MOST_ROWS):
            high = text.find("\n", at, at + _HEAD_LENGTH)
            high = high if high >= 0 else min(len(text), at + _HEAD_LENGTH)
            cells = _cells(text, at, high, separator)
            if len(cells) != int(size or 0):
                return
            if not _RULE.fullmatch(text, at, high):
                for column, key in named.items():
                    low, stop = _bare(text, *cells[column])
                    if stop - low >= 6:
                        operator = "|" if separator == "|" else ":"
                        self._assignments.judge(scope, key, low, operator, stop)
            at = high + 1
            if at >= len(text):
                return


def _named(text: str, low: int, high: int, separator: str) -> dict[int, str]:
    """The columns of a head that name secrets, with -1 for the number of its cells; empty when it is no head."""
    cells = _cells(text, low, high, separator)
    names = [text[slice(*_bare(text, *cell))] for cell in cells]
    inner = names[1:-1] if separator == "|" and not names[0] and not names[-1] else names
    if len(inner) < 2 or not all(map(_NAME.fullmatch, inner)):
        return {}
    keys = {column: name.strip().replace(" ", "_") for column, name in enumerate(names)}
    named = {column: key for column, key in keys.items() if key and key_kind(key) is not KeyKind.NONE}
    return {-1: str(len(cells)), **named} if named else {}


def _cells(text: str, low: int, high: int, separator: str) -> list[tuple[int, int]]:
    """The spans of the cells of a line; none where there are too many."""
    cells: list[tuple[int, int]] = []
    at = low
    while at <= high and len(cells) < _MOST_CELLS:
        cell = _PLAIN[separator].match(text, at, high)
        end = cell.end() if cell else high
        cells.append((at, end))
        if end >= high:
            return cells
        if text[end] != separator:
            return []
        at = end + 1
    return cells if len(cells) < _MOST_CELLS else []


def _bare(text: str, low: int, high: int) -> tuple[int, int]:
    """A cell without the blanks, quotes and marks around its text."""
    while low < high and text[low] in _MARKS:
        low += 1
    while (high > low and text[high - 1] in _MARKS) or text[high - 1 : high] == "\r":
        high -= 1
    return low, high
