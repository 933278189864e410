"""Values that SQL hands over by position: the column list of an INSERT or a COPY names what stands in each row.

`INSERT INTO users (login, password) VALUES ('jane', '...')`, `COPY users (id, api_key) FROM stdin;` and its rows. The
engine finds a naming word inside the list; the value at the same place of each row is judged as any assigned one.
"""

from __future__ import annotations

import re
from typing import Final, override

from gateway.detect.families.assignment import WORDS
from gateway.detect.families.named import LEAST, NamedValues
from gateway.detect.keynames import KeyKind, key_kind
from gateway.detect.matcher import Trigger
from gateway.detect.scope import Scope

Span = tuple[int, int]

_LIST: Final = 1_200  # characters of a list of columns
_MOST: Final = 64_000  # characters of the rows of a statement
_ROW: Final = 8_000  # and of one row
_COST: Final = 6  # units of the budget for a list of columns
_CHARS: Final = 8  # of the rows that are read for a unit
_VERBS: Final = 3  # words before the end of a list of columns that may begin its statement
_VERB: Final = re.compile(r"(?i)\b(?:insert|replace|copy)\b")
_HEAD: Final = re.compile(
    r"(?i)(?P<verb>insert|replace|copy)\b[^()\n;]{0,120}\((?P<names>[\w\s,.\"'`\[\]]{1,1200})\)"
    r"\s{0,8}(?:values\s{0,8}|from stdin[^\n]{0,80}\n)"
)
_TOKEN: Final = re.compile(
    r"(?P<text>[NEB]?'(?:[^'\\]|''|\\.){0,4000}'|\"[^\"]{0,4000}\")|[(),;]|\s{1,400}|[^\s'\"(),;]{1,400}|['\"]"
)
_MARKS: Final = " \t\r\n\"'`[]"


class Statements(NamedValues):
    """Finds values by the name of their column in a statement."""

    place = "statements"
    triggers = (
        Trigger(
            WORDS
            + "[\\w]{0,16}[\"'`\\]]?(?:,[\\w \"'`,\\[\\]\\n]{0,120})?\\)[ \t\r\n]{1,3}(?:values|from stdin)",
            0,
            caseless=True,
        ),
    )

    @override
    def _read(self, scope: Scope, end: int) -> None:
        text = scope.text
        scope.budget.hits -= _COST
        begun = max(0, end - _LIST, scope.consumed.get(self.place, 0))  # behind the rows of the one before
        verbs = list(_VERB.finditer(text, begun, end))[-_VERBS:]
        heads = (_HEAD.match(text, verb.start()) for verb in reversed(verbs))  # a column may be called `copy`
        head = next(filter(None, heads), None)
        if head is None:
            return
        names = [name.strip(_MARKS) for name in head["names"].split(",")]
        named = {at: name for at, name in enumerate(names) if name and key_kind(name) is not KeyKind.NONE}
        read = _copied if head["verb"].lower() == "copy" else _tuples
        rows, scope.consumed[self.place] = read(text, head.end())
        scope.budget.hits -= (scope.consumed[self.place] - head.end()) // _CHARS
        for row in rows:
            for at, name in named.items():
                if at < len(row) and row[at][1] - row[at][0] >= LEAST:
                    self._assignments.judge(scope, name, row[at][0], ":", row[at][1])


def _tuples(text: str, at: int) -> tuple[list[list[Span]], int]:
    """The rows in brackets, each with the spans of its texts, empty for what is no literal; and where they end."""
    depth, end, last = 0, at, at
    rows: list[list[Span]] = []
    row: list[Span] = []
    for token in _TOKEN.finditer(text, at, at + _MOST):
        mark, end = token[0], token.end()
        if end - last > _ROW or ((depth <= 0 and mark not in "(,") and not mark.isspace()):
            end = token.start()  # it may begin the next statement
            break
        if mark == "(":
            depth += 1
            row = [(end, end)] if depth == 1 else row
        elif mark == ")":
            depth, last = depth - 1, end
            if depth == 0:
                rows.append(row)
        elif depth == 1 and mark == ",":
            row.append((end, end))
        elif depth == 1 and token["text"]:
            row[-1] = token.start() + mark.index(mark[-1]) + 1, end - 1
    return rows, end


def _copied(text: str, at: int) -> tuple[list[list[Span]], int]:
    """The cells of each line, up to the one that ends the data; and where that is."""
    rows: list[list[Span]] = []
    high = at + _MOST
    while at < high:
        end = text.find("\n", at, high)
        end = end if end >= 0 else min(len(text), high)
        if end <= at or text.startswith("\\.", at):
            break
        row, low = [], at
        for cell in text[at:end].split("\t"):
            row.append((low, low + len(cell)))
            low += len(cell) + 1
        rows.append(row)
        at = end + 1
    return rows, at
