"""The regular expressions a rule may use: bounded, so that no text can make one expensive.

A *trigger* is a sequence of literals, classes and exact counts (`ghp_[A-Za-z0-9]{6}`); its length is fixed, so the
start of a match follows from its end and no engine has to report starts. A *pattern* may also branch, group, repeat
up to a bound and look around. Neither may use `*`, `+`, an open count, a back reference, DOTALL or `.`: Vectorscan 5.4
misses matches with DOTALL (VectorCamp/vectorscan #382), and unbounded repeats cost a backtracking matcher more than
linear time.
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass

from gateway.errors import PolicyError

MAX_PATTERN_LENGTH = 20_000  # characters one match may span
MAX_LOOSE = 12  # repeats of a group whose length varies: what it can cost is two to that power
MIN_TRIGGER_BITS = 19.0  # selectivity of a trigger; three literal bytes have 24
_CLASS_ESCAPES = {"d": 10, "w": 63, "s": 6, "S": 250, "D": 246, "W": 193}
_COUNT = re.compile(r"\{(\d{1,5})(?:,(\d{1,5})?)?\}")


@dataclass(frozen=True, slots=True)
class Atom:
    """One position class of a trigger: its source text, how many byte values it admits, how often it repeats."""

    source: str
    width: int
    count: int


def refuse(message: str, pattern: str) -> PolicyError:
    """The error for an expression outside the dialect; quotes the rule's own text, never content."""
    return PolicyError("rule.dialect", f"{message}: {pattern[:120]}")


def parse_trigger(expression: str) -> tuple[Atom, ...]:
    """Read a trigger; raises PolicyError when it is not a fixed-length sequence of enough selectivity."""
    atoms: list[Atom] = []
    at = 0
    while at < len(expression):
        end, width = _one(expression, at)
        source, count = expression[at:end], 1
        counted = _COUNT.match(expression, end)
        if counted:
            if counted[2] is not None or "," in counted[0]:
                raise refuse("a trigger's length must be fixed", expression)
            count, end = int(counted[1]), counted.end()
        atoms.append(Atom(source, width, count))
        at = end
    bits = sum(math.log2(256 / a.width) * a.count for a in atoms)
    if bits < MIN_TRIGGER_BITS:
        raise refuse("a trigger must be more selective", expression)
    return tuple(atoms)


def trigger_length(atoms: tuple[Atom, ...]) -> int:
    """How many characters every match of the trigger has."""
    return sum(a.count for a in atoms)


def render(atoms: tuple[Atom, ...]) -> str:
    """The expression of a sequence of atoms."""
    return "".join(a.source + (f"{{{a.count}}}" if a.count > 1 else "") for a in atoms)


def _one(expression: str, at: int) -> tuple[int, int]:
    """End and width (admitted byte values) of the single-character element at `at`."""
    char = expression[at]
    if char == "[":
        return _bracket(expression, at)
    if char == "\\":
        if at + 1 >= len(expression):
            raise refuse("a lone backslash", expression)
        escaped = expression[at + 1]
        if escaped in "bBAZ" or escaped.isdigit():
            raise refuse("no anchors or back references", expression)
        if escaped in "xuUN":
            raise refuse("no numeric escapes", expression)
        return at + 2, _CLASS_ESCAPES.get(escaped, 1)
    if char in "*+?{}()|.^$":
        raise refuse(f"{char!r} is not allowed here", expression)
    return at + 1, 1


def _bracket(expression: str, at: int) -> tuple[int, int]:
    """End and width of the class that opens at `at`."""
    end = at + 1
    if expression[end : end + 1] == "^":
        end += 1
    if expression[end : end + 1] == "]":
        end += 1
    while end < len(expression) and expression[end] != "]":
        end += 2 if expression[end] == "\\" else 1
    if end >= len(expression):
        raise refuse("an open class", expression)
    try:
        admits = re.compile(expression[at : end + 1])
    except re.error as error:
        raise refuse("not a class", expression) from error
    width = sum(1 for code in range(256) if admits.match(chr(code)))
    return end + 1, max(1, width)


def compile_pattern(pattern: str, *, flags: int = 0, suffix: str = "") -> re.Pattern[str]:
    """Compile a confirmation pattern; raises PolicyError when it can be expensive or cannot match."""
    bounds = _Bounds(pattern)
    if bounds.read().longest > MAX_PATTERN_LENGTH:
        raise refuse("a match may not be that long", pattern)
    if flags & re.IGNORECASE:
        pattern = _in_both_cases(pattern, bounds.heads)
    try:
        return re.compile(f"(?:{pattern}){suffix}" if suffix else pattern, flags)
    except re.error as error:
        raise refuse("not a regular expression", pattern) from error


def digits_held(pattern: str) -> int:
    """How many digits stand side by side in every match of a pattern, at the least."""
    return _Bounds(pattern).read().digits


def ways_in(pattern: str) -> int:
    """How many alternatives a pattern has to try at a place before it fails there: what a search costs goes by them."""
    return _Bounds(pattern).read().ways


_OTHER_CASES = {"i": "\u0131\u0130", "k": "\u212a", "s": "\u017f", "\u00e5": "\u212b"}  # that `re` knows too


def _in_both_cases(pattern: str, heads: Sequence[int]) -> str:
    """The same pattern with the letters at `heads` as classes of both cases.

    The engine of `re` passes over an alternative that begins with a class or a letter at once, but not over one whose
    case does not matter: those it has to enter, one after the other.
    """
    parts, behind = [], 0
    for at in heads:
        low, high = pattern[at].lower(), pattern[at].upper()
        if pattern[at].isalpha() and len(low) == len(high) == 1:
            parts += [pattern[behind:at], f"(?-i:[{low}{high}{_OTHER_CASES.get(low, '')}])"]
            behind = at + 1
    return "".join(parts) + pattern[behind:]


@dataclass(frozen=True, slots=True)
class _Extent:
    """What the matches of a part of a pattern have: the longest length, whether it varies, digits side by side.

    `ways` counts the alternatives with which it can begin.
    """

    longest: int
    varies: bool = False
    digits: int = 0
    ways: int = 1


_EMPTY = _Extent(0)
_DIGIT = re.compile(r"\[(?:[0-9]-[0-9]|[0-9])+\]|[0-9]")  # a class, or a character, that is a digit


class _Bounds:
    """A recursive reader that finds the longest match and refuses what the dialect has not."""

    def __init__(self, pattern: str) -> None:
        self.pattern = pattern
        self.at = 0
        self.heads: list[int] = []  # the places of the letters with which an alternative begins

    def read(self) -> _Extent:
        result = self._branches(leading=True)
        if self.at < len(self.pattern):
            raise refuse("an unbalanced group", self.pattern)
        return result

    def _branches(self, *, leading: bool) -> _Extent:
        branches: list[_Extent] = []
        while True:
            branches.append(self._sequence(leading=leading))
            if self.pattern[self.at : self.at + 1] != "|":
                longest = max(branch.longest for branch in branches)
                alike = all(not branch.varies and branch.longest == longest for branch in branches)
                ways = sum(branch.ways for branch in branches)
                return _Extent(longest, not alike, min(branch.digits for branch in branches), ways)
            self.at += 1

    def _sequence(self, *, leading: bool) -> _Extent:
        total, varies, digits, run = 0, False, 0, 0
        first = True
        ways, begun = 0, False  # what may be empty is followed by what else may come first
        while self.at < len(self.pattern) and self.pattern[self.at] not in "|)":
            start, part = self.at, self._element(leading=leading and first)
            first = False
            alone = part.digits and _DIGIT.fullmatch(self.pattern, start, self.at)
            low, high = self._repeat()
            if part.varies and high > MAX_LOOSE:
                raise refuse("a group of varying length may repeat at most twelve times", self.pattern)
            total += part.longest * high
            varies = varies or part.varies or low != high
            run = run + low if alone else 0
            digits = max(digits, run, part.digits if low else 0)
            ways += 0 if begun else part.ways
            begun = begun or (low > 0 and part.longest > 0)
        return _Extent(total, varies, digits, max(ways, 1))

    def _element(self, *, leading: bool) -> _Extent:
        char = self.pattern[self.at]
        if char == "(":
            return self._group(leading=leading)
        if char in "^$":
            self.at += 1
            return _EMPTY
        if char == "\\" and self.pattern[self.at + 1 : self.at + 2] in {"b", "B", "A", "Z"}:
            self.at += 2
            return _EMPTY
        if char == "\\" and self.pattern[self.at + 1 : self.at + 2] == "u":
            self.at += 6
            return _Extent(1)
        start, (self.at, _) = self.at, _one(self.pattern, self.at)
        if leading and self.at == start + 1:
            self.heads.append(start)
        return _Extent(1, digits=int(_DIGIT.fullmatch(self.pattern, start, self.at) is not None))

    def _group(self, *, leading: bool) -> _Extent:
        head = re.compile(r"\((?:\?(?::|=|!|<=|<!|P<\w{1,32}>|i:|-i:))?").match(self.pattern, self.at)
        if head is None or (head[0] == "(" and self.pattern[self.at + 1 : self.at + 2] == "?"):
            raise refuse("this kind of group is not allowed", self.pattern)
        self.at = head.end()
        inside = self._branches(leading=not head[0].endswith("i:"))
        if self.pattern[self.at : self.at + 1] != ")":
            raise refuse("an open group", self.pattern)
        self.at += 1
        return _EMPTY if head[0][1:] in {"?=", "?!", "?<=", "?<!"} else inside

    def _repeat(self) -> tuple[int, int]:
        rest = self.pattern[self.at : self.at + 1]
        if rest and rest in "*+":
            raise refuse("repeats must have a bound", self.pattern)
        low, high = 1, 1
        if rest == "?":
            self.at += 1
            low = 0
        elif rest == "{":
            counted = _COUNT.match(self.pattern, self.at)
            if counted is None or ("," in counted[0] and counted[2] is None):
                raise refuse("repeats must have a bound", self.pattern)
            low = int(counted[1])
            high = int(counted[2] or counted[1])
            self.at = counted.end()
        if self.pattern[self.at : self.at + 1] in {"?", "+"} and (low, high) != (1, 1):
            self.at += 1  # lazy or possessive: same bounds
        return low, high
