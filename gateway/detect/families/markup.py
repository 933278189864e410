"""Values that the head of a column names in a table of HTML: `<th>password</th>` and the cells below it."""

from __future__ import annotations

import re
from typing import Final, override

from gateway.detect.families.assignment import WORDS
from gateway.detect.families.named import LEAST, NamedValues
from gateway.detect.keynames import KeyKind, key_kind
from gateway.detect.matcher import Trigger
from gateway.detect.scope import Scope

_HEAD: Final = 2_000  # characters of a row of heads
_MOST: Final = 32_000  # characters of the rows below it
_TAG_COST: Final = 2  # units of the budget
_TAG: Final = re.compile(r"(?i)<(?P<t>/?tr|th|td|/table)\b[^<>]{0,200}>")
_INNER: Final = re.compile(r"(?:\s{1,40}|<[a-zA-Z][^<>]{0,120}>){0,6}(?P<v>[^<>]{0,400})")


class Markup(NamedValues):
    """Finds values by the name of their column in HTML."""

    place = "markup"
    triggers = (Trigger(WORDS + "[\\w ]{0,8}</th>", 0, caseless=True),)

    @override
    def _read(self, scope: Scope, end: int) -> None:
        text = scope.text
        scope.consumed[self.place] = end
        low = max(0, end - _HEAD)
        row = max(text.rfind("<tr", low, end), text.rfind("<TR", low, end))
        if row < 0:
            return
        named: dict[int, str] = {}
        heads, cell = True, -1
        reach = min(len(text), end + _MOST)
        for tag in _TAG.finditer(text, row + 1, reach):
            scope.consumed[self.place] = max(end, tag.start())
            scope.budget.hits -= _TAG_COST
            name = tag["t"].lower()
            if name in {"tr", "/tr"}:
                heads, cell = heads and name == "/tr" and cell < 0, -1
                if not named:
                    return
            elif name == "/table":
                return
            else:
                cell += 1
                self._cell(scope, tag.end(), cell, named, heads=heads)
        scope.consumed[self.place] = max(end, reach - _HEAD)

    def _cell(self, scope: Scope, at: int, cell: int, named: dict[int, str], *, heads: bool) -> None:
        """Note the name that a head gives its column; judge what stands in a column that has one."""
        inner = _INNER.match(scope.text, at)
        value = inner["v"].strip() if inner else ""
        if inner is None or not value:
            return
        name = value.replace(" ", "_")
        if heads and key_kind(name) is not KeyKind.NONE:
            named[cell] = name
        elif not heads and cell in named and len(value) >= LEAST:
            start = scope.text.index(value, inner.start("v"))
            self._assignments.judge(scope, named[cell], start, "|", start + len(value))
