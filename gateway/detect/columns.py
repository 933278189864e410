"""Tables in texts: comma or tab separated rows, tables of Markdown and of databases.

A label names the datum behind it; at the head of a table it names one in every row.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from gateway.detect.scope import Scope

HEAD_LENGTH: Final = 600
"""Characters of a head, and of a row."""
_MOST_ROWS: Final = 400
_MOST_CELLS: Final = 40
_TO_END: Final = re.compile(
    r"[^\n,;|\t:=(){}<>\[\]]{0,48}(?:[,;|\t]|\r?\n)"
)  # a label's cell, from inside the label on
_CODE: Final = re.compile(r"[(){}<>\[\]=:]")
_RULE: Final = re.compile(r"[ |:+-]{3,600}\r?")  # a line between rows
_CELL: Final = {
    s: re.compile(rf'[ ]{{0,40}}"[^"\n]{{0,300}}"[ ]{{0,40}}|[^{s}\n]{{0,300}}')
    for s in ("|", "\t", ";", ",")
}
_MARKS: Final = " \"'`*\r"


def cells_below(scope: Scope, start: int, end: int) -> Iterator[tuple[int, int]]:
    """The spans of the cells below the label at `start..end`, in order; none where it heads no column.

    A head is a line of at least two cells without operators or brackets; its rows have as many cells as it has.
    """
    text = scope.text
    inside = end - 1  # a trigger may take in one character behind the label
    if _TO_END.match(text, inside) is None:
        return
    low = text.rfind("\n", max(0, start - HEAD_LENGTH), start + 1) + 1
    high = text.find("\n", inside, inside + HEAD_LENGTH)
    if high < 0 or _CODE.search(text, low, high):
        return
    separator = separator_of(text, low, high)
    head = cells_of(text, low, high, separator) if separator else []
    column = next((n for n, cell in enumerate(head) if cell[0] <= start + 1 <= cell[1]), -1)
    if len(head) < 2 or column < 0:
        return
    for row in rows_below(text, high, separator, len(head)):
        yield bare(text, *row[column])


def rows_below(text: str, head: int, separator: str, size: int) -> Iterator[list[tuple[int, int]]]:
    """The cells of each row below the head that ends at `head`, as long as they are `size`; rules are passed over."""
    at = head + 1
    for _ in range(_MOST_ROWS):
        if at >= len(text):
            return
        high = text.find("\n", at, at + HEAD_LENGTH)
        high = high if high >= 0 else min(len(text), at + HEAD_LENGTH)
        if not _RULE.fullmatch(text, at, high):
            row = cells_of(text, at, high, separator)
            if len(row) != size:
                return
            yield row
        at = high + 1


def separator_of(text: str, low: int, high: int) -> str:
    """What stands between the cells of a line; empty where nothing does."""
    return next((separator for separator in _CELL if text.find(separator, low, high) >= 0), "")


def cells_of(text: str, low: int, high: int, separator: str) -> list[tuple[int, int]]:
    """The spans of the cells of a line; none where there are too many."""
    cells: list[tuple[int, int]] = []
    at = low
    while at <= high and len(cells) < _MOST_CELLS:
        cell = _CELL[separator].match(text, at, high)
        end = cell.end() if cell else high
        cells.append((at, end))
        if end >= high:
            return cells
        if text[end] != separator:
            return []
        at = end + 1
    return cells if len(cells) < _MOST_CELLS else []


def bare(text: str, low: int, high: int) -> tuple[int, int]:
    """A cell without the blanks, quotes and marks around its text."""
    while low < high and text[low] in _MARKS:
        low += 1
    while high > low and text[high - 1] in _MARKS:
        high -= 1
    return low, high
