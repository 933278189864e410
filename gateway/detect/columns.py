"""Tables in texts: comma or tab separated rows, tables of Markdown and of databases.

A label names the datum behind it; at the head of a table it names one in every row.
"""

from __future__ import annotations

import re
from collections.abc import Hashable, Iterator
from itertools import islice
from typing import Final

from gateway.detect.scope import Line, Scope

HEAD_LENGTH: Final = 600
"""Characters of a head, and of a row."""
_MOST_ROWS: Final = 400
_MOST_CELLS: Final = 40
_MOST_LINES: Final = 1600  # kept in cells: the rows of a table, each also as a head, and as many before them
_ROW_COST: Final = 3  # units of the budget for cutting a line into cells
_TO_END: Final = re.compile(
    r"[^\n,;|\t:=(){}<>\[\]]{0,48}+[,;|\t\n]"
)  # a label's cell, from inside the label on
_CODE: Final = re.compile(r"[(){}<>\[\]=:]")
_RULE: Final = re.compile(r"[ |:+-]{3,600}\r?")  # a line between rows
_CELL: Final = {
    s: re.compile(rf'[ ]{{0,40}}"[^"\n]{{0,300}}"[ ]{{0,40}}|[^{s}\n]{{0,300}}')
    for s in ("|", "\t", ";", ",")
}
_MARKS: Final = " \"'`*\r"


def cells_below(scope: Scope, reader: int, start: int, end: int) -> Iterator[tuple[int, int]]:
    """The spans of the cells below the label at `start..end`, in order; none where it heads no column.

    A head is a line of at least two cells without operators or brackets; its rows have as many cells as it has.
    `reader` is the rule that asks: what it was given below one head it is not given below another.
    """
    text, inside = scope.text, end - 1
    low, high = line_around(text, start + 1, inside)
    head = head_of(scope, low, high, _CODE) if high >= 0 else None
    if head is None or len(head.cells) < 2:
        return
    column = next((n for n, cell in enumerate(head.cells) if cell[0] <= start + 1 <= cell[1]), -1)
    if column >= 0:
        for row in rows_below(scope, (reader, column), head):
            yield bare(text, *row[column])


def may_head(text: str, end: int) -> bool:
    """Whether the label that ends at `end`, or a character before it, is at the end of a cell."""
    return _TO_END.match(text, end - 1) is not None


def line_around(text: str, at: int, inside: int) -> tuple[int, int]:
    """Where the line begins in which `at` lies, and where it ends behind `inside`; -1 for the end of a longer one."""
    start = max(0, at - 1 - HEAD_LENGTH)
    low = text.rfind("\n", start, at)
    if low < 0 < start:
        return start, -1
    return low + 1, text.find("\n", inside, inside + HEAD_LENGTH)


def head_of(scope: Scope, low: int, high: int, code: re.Pattern[str]) -> Line | None:
    """The line `low..high` in cells, read once for all labels in it; None where it holds code or is one cell."""
    key = low, code.pattern
    if key not in scope.lines:
        scope.budget.hits -= _ROW_COST
        separator = "" if code.search(scope.text, low, high) else separator_of(scope.text, low, high)
        row = _row(scope, low, separator) if separator else None
        cells = row.cells if row is not None and row.end == high else []
        if len(cells) > 4 and separator == "|" and scope.text.startswith("||", low):
            cells = [cells[0], *cells[2:-2:2], cells[-1]]  # a head of Jira: two strokes before each name
        _keep(scope, key, Line(high, separator, cells) if cells else None)
    return scope.lines[key]


def rows_below(scope: Scope, reader: Hashable, head: Line) -> Iterator[list[tuple[int, int]]]:
    """The cells of each row below a head, as long as they are as many as it has; rules are passed over.

    In a table whose every row could be a head, each row is given to a reader once. Each costs units of the budget.
    """
    text, size = scope.text, len(head.cells)
    key = reader, head.separator, size
    first = at = head.end + 1
    top, bottom = scope.below.get(key, (-1, -1))
    if top <= at <= bottom:
        first, at = top, bottom
    for _ in range(_MOST_ROWS):
        scope.below[key] = first, at
        if at >= len(text):
            return
        row = _row(scope, at, head.separator)
        if row.cells or row.separator:
            if len(row.cells) != size:
                return
            scope.budget.hits -= 1
            yield row.cells
        at = row.end + 1
    scope.below[key] = first, at


def _row(scope: Scope, at: int, separator: str) -> Line:
    """The line from `at` in cells, which several readers may ask for; a rule between rows has no separator."""
    key = at, separator
    row = scope.lines.get(key)
    if row is None:
        scope.budget.hits -= _ROW_COST
        text = scope.text
        high = text.find("\n", at, at + HEAD_LENGTH)
        high = high if high >= 0 else min(len(text), at + HEAD_LENGTH)
        rule = _RULE.fullmatch(text, at, high) is not None
        row = Line(high, "", []) if rule else Line(high, separator, cells_of(text, at, high, separator))
        _keep(scope, key, row)
    return row


def _keep(scope: Scope, key: tuple[int, str], line: Line | None) -> None:
    if len(scope.lines) >= _MOST_LINES:
        for oldest in list(islice(scope.lines, _MOST_LINES // 2)):
            del scope.lines[oldest]
    scope.lines[key] = line


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
