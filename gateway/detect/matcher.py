"""The multi-pattern engines behind one method: which trigger matched, and where it ended.

Hyperscan (Vectorscan) is the engine; google-re2 finds the same matches, more than ten times slower, where Hyperscan has
no build, fails its self-test, or refuses a trigger. Every trigger is literal-anchored and bounded (`dialect`), the
subset in which Vectorscan showed no difference from `re`.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from operator import itemgetter
from typing import Any, Protocol

import hyperscan
import re2

from gateway.errors import DetectorError

_PLACE = itemgetter(1, 0)  # one order for both engines, also of triggers that end at one place


@dataclass(frozen=True, slots=True)
class Trigger:
    """One expression for the engine; `length` is that of every match, 0 where it varies (then only ends are equal).

    `parts` are the alternatives of an expression, where several of them can match from one place with other ends: an
    engine that reports one end for each start must look for each.
    """

    expression: str
    length: int
    caseless: bool = False
    shape: bool = False
    parts: tuple[str, ...] = ()


class Matcher(Protocol):
    """Finds triggers in bytes."""

    name: str

    def scan(self, data: bytes) -> list[tuple[int, int]]:
        """(index of the trigger, end of the match), by end and index; every match of every trigger."""
        ...


class HyperscanMatcher:
    """One compiled database with its own scratch space: one object a thread."""

    name = "hyperscan"

    def __init__(self, triggers: Sequence[Trigger], compiled: bytes | None = None) -> None:
        """Compile the triggers, or load the bytes that `dump` gave for the same triggers on this processor."""
        try:
            self._database = (
                _compile(triggers) if compiled is None else hyperscan.loadb(compiled, hyperscan.HS_MODE_BLOCK)
            )
            self._scratch = hyperscan.Scratch(self._database)
        except hyperscan.HyperscanError as error:
            raise DetectorError("detector.engine", _refused(triggers, error)) from error

    def dump(self) -> bytes:
        """The compiled database, for `compiled`; valid for this version and processor only."""
        return bytes(hyperscan.dumpb(self._database))

    def scan(self, data: bytes) -> list[tuple[int, int]]:
        """See Matcher; raises DetectorError when the engine fails."""
        hits: list[tuple[int, int]] = []
        add = hits.append

        def collect(trigger: int, _start: int, end: int, _flags: int, _context: object) -> None:
            add((trigger, end))

        try:
            self._database.scan(data, match_event_handler=collect, scratch=self._scratch)
        except hyperscan.HyperscanError as error:
            raise DetectorError("detector.engine", "the pattern engine failed") from error
        hits.sort(key=_PLACE)
        return hits


def _refused(triggers: Sequence[Trigger], error: Exception) -> str:
    """Why the engine cannot be set up, with the first expression that it does not take, if it is that."""
    for trigger in triggers:
        try:
            _compile([trigger])
        except hyperscan.HyperscanError:
            return f"the pattern engine cannot compile {trigger.expression[:200]}"
    return f"the pattern engine cannot be set up: {error}"


def _encoded(expression: str) -> bytes:
    """The expression as the engines take it: they search text of one byte a character."""
    try:
        return expression.encode("latin-1")
    except UnicodeEncodeError:
        message = f"the pattern engine looks for no characters beyond Latin-1: {expression[:200]}"
        raise DetectorError("detector.engine", message) from None


def _compile(triggers: Sequence[Trigger]) -> Any:
    database = hyperscan.Database(mode=hyperscan.HS_MODE_BLOCK)
    database.compile(
        expressions=[_encoded(t.expression) for t in triggers],
        ids=list(range(len(triggers))),
        flags=[hyperscan.HS_FLAG_CASELESS if t.caseless else 0 for t in triggers],
    )
    return database


def _re2(expression: bytes, options: Any) -> Any:
    try:
        return re2.compile(expression, options)
    except re2.error as error:
        message = f"the pattern engine cannot compile {expression[:200].decode('latin-1')}"
        raise DetectorError("detector.engine", message) from error


_SET_SIZE = 800  # expressions a set: one set of all can run out of states
_RE2_MEMORY = 1 << 29
_LEAST_LITERAL = 3  # characters of a literal that is worth a look of its own


class Re2Matcher:
    """google-re2: sets tell which triggers can occur, then each is located. Linear time.

    Most triggers hold a literal. A set of the literals alone is small and fast; a set of whole triggers has so many
    states that it is made anew for every text.
    """

    name = "re2"

    def __init__(self, triggers: Sequence[Trigger]) -> None:
        options = re2.Options()
        options.encoding = re2.Options.Encoding.LATIN1
        options.log_errors = False
        options.max_mem = _RE2_MEMORY
        self._each = [[_re2(source, options) for source in self._sources(trigger)] for trigger in triggers]
        holders: dict[bytes, list[int]] = {}
        for index, trigger in enumerate(triggers):
            literal = re.escape(required_literal(trigger.expression)).encode("latin-1")
            source = b"(?i:" + literal + b")" if literal and trigger.caseless else literal
            holders.setdefault(source or self._sources(trigger, whole=True)[0], []).append(index)
        sources = list(holders)
        self._holders = list(holders.values())
        self._sets = [
            self._set(sources[at : at + _SET_SIZE], options) for at in range(0, len(sources), _SET_SIZE)
        ]

    @staticmethod
    def _sources(trigger: Trigger, *, whole: bool = False) -> list[bytes]:
        expressions = (trigger.expression,) if whole or not trigger.parts else trigger.parts
        return [_encoded(f"(?i:{each})" if trigger.caseless else each) for each in expressions]

    @staticmethod
    def _set(sources: Sequence[bytes], options: Any) -> Any:
        made = re2.Set.SearchSet(options)
        for source in sources:
            made.Add(source)
        made.Add(b"")  # is in every text: an answer without it is none
        made.Compile()
        return made

    def scan(self, data: bytes) -> list[tuple[int, int]]:
        """See Matcher."""
        hits: list[tuple[int, int]] = []
        for number, group in enumerate(self._sets):
            holders = self._holders[number * _SET_SIZE : (number + 1) * _SET_SIZE]
            occurring = group.Match(data) or range(len(holders))  # nothing at all: it ran out of states
            for at in occurring:
                for index in holders[at] if at < len(holders) else ():
                    self._locate(index, data, hits)
        hits.sort(key=_PLACE)
        return hits

    def _locate(self, index: int, data: bytes, hits: list[tuple[int, int]]) -> None:
        ends: set[int] = set()
        for expression in self._each[index]:
            at = 0
            while (found := expression.search(data, at)) is not None:
                ends.add(found.end())
                at = found.start() + 1
        hits.extend((index, end) for end in ends)


_ELEMENT = re.compile(
    r"\\(?:x[0-9A-Fa-f]{2}|.)|\[\^?\]?(?:\\.|[^\]\\])*\]|\(|\)|[\s\S]", re.DOTALL
)  # of an expression: an escape, a class, a bracket, a character
_REPEAT = re.compile(r"[*+?]\??|\{[0-9,]+\}\??")


def required_literal(expression: str) -> str:
    """The longest run of characters that stands in every match; empty where it is short or cannot be told."""
    best, run, depth, at = "", "", 0, 0
    while at < len(expression):
        element = _ELEMENT.match(expression, at)
        if element is None:
            return ""
        at = element.end()
        repeat = _REPEAT.match(expression, at)
        at = repeat.end() if repeat else at
        depth += {"(": 1, ")": -1}.get(element[0], 0)
        if element[0] == "|" and depth == 0:
            return ""
        char = _char(element[0])
        run = run + char if char and not repeat and depth == 0 else ""
        best = max(best, run, key=len)
    return best if len(best) >= _LEAST_LITERAL else ""


def _char(element: str) -> str:
    """The one character that an element stands for, if it does."""
    if element[0] == "\\":
        return element[1] if len(element) == 2 and not element[1].isalnum() else ""
    if element[0] == "[":
        return element[1] if len(element) == 3 and element[1] != "^" else ""
    return "" if element in {".", "^", "$", "(", ")", "|", "*", "+", "?"} else element
