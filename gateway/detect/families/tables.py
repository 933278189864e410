"""Values that a column's head names: comma or tab separated rows, tables of Markdown and of databases.

The engine finds a naming word at the end of a cell. The line must then be a head, made of names alone, and what
follows rows of as many cells; the cell below the name is judged as any assigned value.
"""

from __future__ import annotations

import re
from typing import Final, override

from gateway.detect.columns import bare, head_of, line_around, rows_below
from gateway.detect.families.assignment import WORDS
from gateway.detect.families.named import LEAST, NamedValues
from gateway.detect.keynames import KeyKind, key_kind
from gateway.detect.matcher import Trigger
from gateway.detect.scope import Scope

_COST: Final = 4  # units of the budget for a line that may be a head; rows cost beside it
_CODE: Final = re.compile(r"[(){}<>=:]")
_NAME: Final = re.compile(r"[\w .#/-]{1,40}")


class Tables(NamedValues):
    """Finds values by the name of their column."""

    place = "tables"
    triggers = (
        Trigger(
            WORDS
            + "[\\w.-]{0,16}[\"'`*]{0,3}(?:[ ]{0,8}[,;\t][\\w\"' ]|[ ]{0,32}[|]{1,2}[ ]?[\\w\"'`*]"
            + "|(?:[ ]{0,32}[|]{1,2}[ ]{0,2})?\r?\n[\\w|\"'+-])",
            0,
            caseless=True,
        ),
    )

    @override
    def _read(self, scope: Scope, end: int) -> None:
        text = scope.text
        scope.budget.hits -= _COST
        inside = end - 2 if text[end - 2 : end - 1] == "\n" else end - 1
        low, high = line_around(text, inside, inside)
        head = head_of(scope, low, high, _CODE) if high >= 0 else None
        named = (
            _named([text[slice(*bare(text, *cell))] for cell in head.cells], head.separator) if head else {}
        )
        if head is None or not named:
            return
        scope.consumed[self.place] = high
        operator = "|" if head.separator == "|" else ":"
        for column, key in named.items():
            for row in rows_below(scope, (key, column), head):
                first, stop = bare(text, *row[column])
                if stop - first >= LEAST:
                    self._assignments.judge(scope, key, first, operator, stop)


def _named(names: list[str], separator: str) -> dict[int, str]:
    """The columns of a head that name secrets; empty when it is no head."""
    inner = names[1:-1] if separator == "|" and len(names) > 1 and not names[0] and not names[-1] else names
    if len(inner) < 2 or not all(map(_NAME.fullmatch, inner)):
        return {}
    keys = {column: name.strip().replace(" ", "_") for column, name in enumerate(names)}
    return {column: key for column, key in keys.items() if key and key_kind(key) is not KeyKind.NONE}
