"""The text a detector looks at, and the small questions all detectors ask of it."""

from __future__ import annotations

from dataclasses import dataclass, field

from gateway.context.findings import Category, Finding, Severity

_ESCAPED = frozenset("nrtbf")


@dataclass(slots=True)
class Scope:
    """One text (an item or a decoded view of one) and what was found in it so far.

    `text` may begin with the member name (`password: "`), so that rules see the context they know from files;
    `offset` is the length of that prefix. `consumed` keeps, for each rule, where its last match ended.
    """

    text: str
    channel: str = "other"
    offset: int = 0
    found: list[Finding] = field(default_factory=list)
    consumed: dict[int, int] = field(default_factory=dict)

    def before(self, at: int, size: int) -> str:
        """Up to `size` characters left of `at`."""
        return self.text[max(0, at - size) : at]

    def add(
        self,
        span: tuple[int, int],
        what: tuple[str, Category, Severity],
        confidence: int,
        detector: str,
    ) -> None:
        """Record a finding at `span` of `text`."""
        kind, category, severity = what
        self.found.append(Finding(kind, category, severity, confidence, span[0], span[1], detector))


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
    return (
        at > 2
        and text[at - 3] == "%"
        and text[at - 2 : at] in {"20", "22", "27", "2C", "2F", "3A", "3D", "26", "0A"}
    )


def as_value(text: str, start: int) -> bool:
    """Whether what begins at `start` is handed over as a value: assigned, quoted, or alone on its line."""
    at = start - 1
    while at >= 0 and text[at] in " \t":
        at -= 1
    if at < 0 or text[at] in "\n=:\"'`(@/,[<>|":
        return True
    return text[at] in _ESCAPED and at > 0 and text[at - 1] == "\\"
