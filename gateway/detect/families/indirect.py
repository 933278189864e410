r"""Values that stand further from the key that names them: in a call, in a pair, in markup, after words.

`String::from("...")`, `environ.get("X") or "..."`, `{"name": "API_KEY", "value": "..."}`, `<key>Token</key><string>`,
`the key has been changed to ...`. The engine finds a naming word, what stands between, and the start of a value; the
form that the text before the value has tells where the key is, and the value is judged as any assigned one. The forms
are rows of `data/forms.toml`.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any, Final

from gateway.detect.data import document
from gateway.detect.families.assignment import (
    ALONE,
    CONSUMED,
    WORDS,
    Assignments,
    alternatives,
    from_line,
    unescaped,
    with_first_word,
)
from gateway.detect.keynames import KeyKind, key_kind
from gateway.detect.scope import Scope
from gateway.detect.typelist import TypeRow

_KEY: Final = r"(?<![\w.$-])[\w.$-]{1,80}+"
_NAME: Final = re.compile(_KEY)
_ESCAPED: Final = frozenset("nrt")  # see `unescaped`
_NAMED: Final = {"KEY": _KEY, "OPTION": r"(?<![\w.$-])--?[\w.$-]{1,80}+"}
_STANDS_FOR: Final = {
    "TYPE": r"(?: (?:As )?[A-Za-z][\w.<>\[\]*]{0,24}|\?:[ ]{0,2}[A-Za-z][\w.<>\[\] |]{0,24}| ?\[[\w ]{0,12}\])",
    "OP": r"(?:=>|:=|=|:)",
    "CLOSE": r"[\"'`\])}]{0,3}",
}
_REACH: Final = 7  # characters of a value that the triggers without an operator ask for
_WINDOW: Final = 120
_FAR: Final = 480  # characters between key and value in a block of several lines
_FAR_LINES: Final = 6
_LINE: Final = 240
_COST: Final = 8  # units of the budget for what stands before a value
_MOST_WORDS: Final = 2  # of a line that is a value, perhaps with a note


class IndirectAssignments:
    """All forms whose value is judged alike: one expression for the engine, as many would cost it as many times."""

    contextual = True

    def __init__(
        self, assignments: Assignments, forms: Sequence[Mapping[str, Any]], *, worded: bool, far: bool
    ) -> None:
        self._assignments = assignments
        self._worded = worded
        self._window, self._lines = (_FAR, _FAR_LINES) if far else (_WINDOW, 4)
        heads = (_begun(name, key, forms) for name, key in _NAMED.items())
        before = "|".join(head for head in heads if head)
        for name, stands_for in _STANDS_FOR.items():
            before = before.replace(name, stands_for)
        self._head = re.compile(rf"(?:{before})\Z")
        self.triggers = (alternatives(f"{WORDS}[\\w.-]{{0,24}}", [str(form["engine"]) for form in forms]),)
        self.described: tuple[TypeRow, ...] = assignments.described

    def find(self, scope: Scope, end: int) -> None:
        """See Family."""
        text, start = scope.text, end - (_REACH if self._worded else 1)
        if start < scope.consumed.get(CONSUMED, 0):
            return
        scope.budget.hits -= _COST
        before = text[from_line(text, max(0, start - self._window), start, self._lines) : max(0, start)]
        key = "" if self._worded and _in_a_sentence(text, before, start) else self._key(before)
        if key:
            self._assignments.judge(scope, key, start, " " if self._worded else _operator(before))

    def _key(self, before: str) -> str:
        """The key nearest to the value; `api key` in prose is one. Empty where none of them names a secret."""
        for found in reversed(list(_NAME.finditer(before))):
            key = found[0]
            if key_kind(key) is KeyKind.NONE and key not in ALONE and key[0] not in _ESCAPED:
                continue
            at = found.start()
            key = with_first_word(before, at, key) if key in ALONE else unescaped(before, at, key)
            if key_kind(key) is KeyKind.NONE or (self._worded and before[at - 1 : at] in {"/", "+"}):
                continue  # of another thing, or a piece of base64
            if self._head.match(before, at) is not None:
                return key
        return ""


def _begun(name: str, key: str, forms: Sequence[Mapping[str, Any]]) -> str:
    """The forms that begin with such a key, as one expression; empty where there are none."""
    befores = [str(form["before"]) for form in forms]
    rest = "|".join(before.removeprefix(name) for before in befores if before.startswith(name))
    return f"{key}(?:{rest})" if rest else ""


def _in_a_sentence(text: str, before: str, start: int) -> bool:
    """Whether what begins a line below its name goes on as a sentence does, so that it is no value by itself."""
    above = before.rstrip("\"'` >")
    if not above.endswith("\n") or before.endswith(("'", '"', "`")):
        return False
    end = text.find("\n", start, start + _LINE)
    return len(text[start : end if end >= 0 else start + _LINE].split()) > _MOST_WORDS


def _operator(before: str) -> str:
    """What decides how the value ends and what it may be: an element's text, a comparison, or an assignment."""
    bare = before.rstrip("\"'` \n\t")
    if bare[-1:] in {">", "["} and "<" in bare:
        return ">"
    return "==" if bare.endswith("==") else "="


def indirect(assignments: Assignments) -> tuple[IndirectAssignments, ...]:
    """The forms with a literal value, those with words before it, and those with lines between."""
    kinds: dict[tuple[bool, bool], list[Mapping[str, Any]]] = {}
    for form in document("forms.toml")["form"]:
        kinds.setdefault((bool(form.get("worded")), bool(form.get("far"))), []).append(form)
    return tuple(
        IndirectAssignments(assignments, forms, worded=worded, far=far)
        for (worded, far), forms in kinds.items()
    )
