"""The text a detector looks at, and the small questions all detectors ask of it."""

from __future__ import annotations

import re
from collections.abc import Hashable
from dataclasses import dataclass
from typing import NamedTuple

from gateway.context.findings import Category, Finding, Severity
from gateway.context.views import View
from gateway.context.views.lines import behind_line_end, is_of_its_own
from gateway.detect.orders import Sentence

_ESCAPED = frozenset("nrtbf")
_URL_ENDS = frozenset(("20", "22", "27", "2C", "2F", "3A", "3D", "26", "0A"))

# Of the budget of an object: as many units as keep the slowest text at a megabyte a second, which is enough for a list
# of tokens, line by line.
_FREE_UNITS = 1700
_DENSE = 1 << 17  # characters
_FREE_CHARS = 65_536
_LEAST_CHARS = 16_384  # of views of a small text, and twice its size


@dataclass(slots=True)
class Budget:
    """What one object may cost: units of work at the hits of triggers, and characters of decoded views.

    A unit stands for about a microsecond and a half of the slowest kind of work, whatever text asks for it: where work
    varies, it is charged as it is done. When units run out, `low`..`high` is the part whose hits were not looked at.
    """

    hits: int
    view_chars: int
    low: int = -1
    high: int = -1

    @classmethod
    def of(cls, size: int) -> Budget:
        """What an object of so many characters has."""
        units = _FREE_UNITS + min(size, _DENSE) // 2 + max(0, size - _DENSE) // 3
        return cls(units, 2 * size + min(_FREE_CHARS, _LEAST_CHARS + 2 * size))

    @property
    def exhausted(self) -> bool:
        """Whether something was left out."""
        return self.low >= 0

    def leave_out(self, low: int, high: int) -> None:
        """Note that `low..high` of the object was not looked at."""
        self.low = low if self.low < 0 else min(self.low, low)
        self.high = max(self.high, high)


class Line(NamedTuple):
    """A line of a table: where it ends, what separates its cells, and their spans."""

    end: int
    separator: str
    cells: list[tuple[int, int]]


_OVER_LINES = frozenset({"wrapped", "quoted_printable"})  # views that read on behind a line end


class Scope:
    """One text (an object's leaf, or a decoded view of one) and what was found in it so far.

    `text` may begin with the member name (`password: "`), so that rules see the context they know from files; `offset`
    is the length of that prefix. `consumed` keeps, for each rule by its number and each family by its name, where its
    last match ended; `cuts` where a line end cuts what began like a token; `judged` what was said of a value, as logs
    and crafted texts repeat theirs; `lines` the cells of lines of tables, and `below` the first and last row that a
    reader of a column was given; `left` what was not looked at; `asked` the last label that a rule looked round;
    `sentences` what orders hold;
    `sought` how far `ahead` read for a word, and whether it came to one. From `start` on, `shapes` holds the text with
    its digits folded, where known. `wholes` tells where findings end without what views over line ends add.
    """

    __slots__ = (
        "asked", "below", "budget", "channel", "consumed", "cuts", "depth", "found", "judged", "left", "lines",
        "offset", "parent", "sentences", "shapes", "sought", "start", "text", "view", "viewed", "wholes", "windows",
    )  # fmt: skip

    def __init__(
        self,
        text: str,
        channel: str,
        budget: Budget,
        offset: int = 0,
        *,
        parent: Scope | None = None,
        view: View | None = None,
        depth: int = 0,
    ) -> None:
        self.text = text
        self.channel = channel
        self.budget = budget
        self.offset = offset
        self.parent = parent
        self.view = view
        self.depth = depth
        self.found: list[Finding] = []
        self.consumed: dict[int | str, int] = {}
        self.viewed: dict[str, int] = {}
        self.cuts: list[int] = []
        self.windows: dict[int, list[tuple[int, int]]] = {}
        self.judged: dict[object, bool] = {}
        self.lines: dict[tuple[int, str], Line | None] = {}
        self.below: dict[Hashable, tuple[int, int]] = {}
        self.sought: dict[str, tuple[int, int, bool]] = {}
        self.sentences: dict[tuple[int, int, str], Sentence] = {}
        self.asked: dict[int, tuple[int, int]] = {}
        self.left: tuple[int, int] | None = None
        self.wholes: dict[tuple[str, int], int] | None = None
        self.shapes = b""
        self.start = 0

    def has_digits(self, count: int, low: int, high: int) -> bool:
        """Whether so many may stand side by side in `low..high`: asked before a search, as few labels have them."""
        start = self.start
        return not self.shapes or self.shapes.find(b"0" * count, start + max(low, 0), start + high) >= 0

    def ahead(self, word: str, at: int, limit: int) -> int:
        """`text.find(word, at, limit)`; what was read for it before is not read again, as calls go forward."""
        low, high, known = self.sought.get(word, (-1, -1, False))
        if not low <= at <= high:
            low, high, known = at, at, False
        if not known:  # none begins in `low..high`
            found = self.text.find(word, high, max(limit, high))
            known = found >= 0
            high = found if known else max(high, min(limit, len(self.text)) - len(word) + 1)
            self.sought[word] = low, high, known
        return high if known and high + len(word) <= limit else -1

    def before(self, at: int, size: int) -> str:
        """Up to `size` characters left of `at`."""
        return self.text[max(0, at - size) : at]

    def add(
        self, span: tuple[int, int], what: tuple[str, Category, Severity], confidence: int, detector: str
    ) -> None:
        """Record a finding at `span` of `text`."""
        kind, category, severity = what
        self.found.append(Finding(kind, category, severity, confidence, span[0], span[1], detector))

    def leave_out(self, low: int, high: int) -> None:
        """Note that `low..high` of this text was not looked at; a view says so to what it is a view of, once."""
        if self.parent is None:
            self.budget.leave_out(low, high)
        elif self.left is None:
            self.left = low, high
        else:
            self.left = min(low, self.left[0]), max(high, self.left[1])

    def hand_up(self) -> None:
        """Give the findings of a view to the text it is a view of; each keeps its decoded value where that differs."""
        if self.parent is None or self.view is None:
            return
        if self.left is not None:
            self.parent.leave_out(*self.view.span(*self.left))
        for f in self.found:
            value = f.value if f.value is not None else self.text[f.start : f.end]
            start, end = self.view.span(f.start, f.end)
            if self.view.kind in _OVER_LINES and self._goes_too_far(self.parent, f, start, end):
                continue
            same = self.parent.text[start:end] == value
            self.parent.found.append(
                Finding(
                    f.type,
                    f.category,
                    f.severity,
                    f.confidence_milli,
                    start,
                    end,
                    f.detector,
                    None if same else value,
                )
            )

    @staticmethod
    def _goes_too_far(parent: Scope, found: Finding, start: int, end: int) -> bool:
        """Whether a token over line ends was found whole before one of them, and only a line's own word follows."""
        if parent.wholes is None:
            parent.wholes = {}
            for f in parent.found:
                parent.wholes[f.type, f.start] = max(f.end, parent.wholes.get((f.type, f.start), 0))
        whole = parent.wholes.get((found.type, start), end)
        if whole >= end:
            return False
        text = parent.text
        rest = behind_line_end(text, whole, end)
        return rest is not None and is_of_its_own(rest, text[end : end + 1])


def left_edge(text: str, at: int) -> bool:
    """Whether a token may begin at `at`: nothing alphanumeric stands left of it, except a JSON or URL escape."""
    if at == 0:
        return True
    previous = text[at - 1]
    if not previous.isalnum():
        return True
    if ord(previous) > 0x2FF:
        return True  # letters of another script do not extend an ASCII token
    if previous in _ESCAPED and at > 1 and text[at - 2] == "\\":
        return True
    return at > 2 and text[at - 3] == "%" and text[at - 2 : at] in _URL_ENDS


_ESCAPE = re.compile(
    r"(?:\x1b|\\(?:x1[bB]|u001[bB]|033|e)|\^\[)\[[0-9;]{0,16}[mK]|\\(?:[nrtfb]|x[0-9A-Fa-f]{2}|u[0-9A-Fa-f]{4})"
)
_LONGEST_ESCAPE = 24


def past_escape(text: str, start: int, end: int) -> int:
    r"""Where a datum begins that was matched from inside an escape (`\nbob@...`): behind it; `start` if it was not."""
    beside = text[max(0, start - _LONGEST_ESCAPE) : start]
    if "\\" not in beside and "[" not in beside:
        return start
    for escape in _ESCAPE.finditer(text, max(0, start - _LONGEST_ESCAPE), min(end, start + _LONGEST_ESCAPE)):
        if escape.start() < start < escape.end() < end:
            return escape.end()
    return start


_KEY_BEFORE = re.compile(
    r"(?:^|[\n{,(\[]|\\n|[ \t](?=[\w.-]{0,40}(?:KEY|TOKEN|SECRET|key|token|secret)))\s{0,16}"
    r"[\"']?[\w.-]{1,60}\\?[\"']?\s{0,4}:\s{0,4}\Z"
)


def as_value(text: str, start: int) -> bool:
    """Whether what begins at `start` is handed over as a value: assigned, quoted, or alone on its line."""
    at = start - 1
    while at >= 0 and text[at] in " \t":
        at -= 1
    if at < 0 or text[at] in "\n=\"'`(@/,[<>|":
        return True
    if text[at] == ":":
        return _KEY_BEFORE.search(text[max(0, start - 90) : start]) is not None
    return text[at] in _ESCAPED and at > 0 and text[at - 1] == "\\"


def heard_from(channel: str, severity: Severity) -> Severity:
    """Who speaks matters: what a user or a system prompt says is not smuggled in by data."""
    if channel in {"user", "system"}:
        return Severity.LOW
    return Severity.MEDIUM if channel == "assistant" and severity is Severity.HIGH else severity
