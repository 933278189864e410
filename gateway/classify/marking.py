"""Texts that a policy takes out of an answer, and the mark in their place.

Marks go the way that values go which are restored: through deltas and snapshots, wherever an answer is cut.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final, override

from gateway.classify.placeholders import label_for
from gateway.classify.values import Substitution, Values

_SHORT: Final = 4  # what is shorter stands in too many words: only where it is one by itself


def mark(finding_type: str) -> str:
    """What stands in the place of a finding: no JSON, shell or URL needs to escape it."""
    return f"[REDACTED:{label_for(finding_type)}]"


def _pattern(text: str) -> str:
    escaped = re.escape(text)
    return escaped if len(text) >= _SHORT else rf"(?<!\w){escaped}(?!\w)"


class Marks(Values):
    """Found texts, each with its mark; every occurrence is replaced."""

    def __init__(self, found: Mapping[str, str]) -> None:
        super().__init__({}, None)
        self._marks = {text: label for text, label in found.items() if text}
        ordered = sorted(self._marks, key=len, reverse=True)
        self._any = re.compile("|".join(map(_pattern, ordered)) or r"(?!)")
        self._starts = {text[:n] for text in self._marks for n in range(1, len(text))}
        self._longest = max(map(len, self._marks), default=0)

    @override
    def __bool__(self) -> bool:
        return bool(self._marks)

    @override
    def may_hold(self, data: str | bytes) -> bool:
        return True

    @override
    def held_length(self, text: str) -> int:
        # Of the ones that are complete no end is a beginning; they are looked for once, where it matters.
        whole: list[tuple[int, int]] | None = None
        for n in range(min(self._longest - 1, len(text)), 0, -1):
            if text[-n:] in self._starts:
                whole = [match.span() for match in self._any.finditer(text)] if whole is None else whole
                if not any(start < len(text) - n < end for start, end in whole):
                    return n
        return 0

    @override
    def substitutions(
        self, text: str, before: str | None = None, *, declared: bool = True
    ) -> list[Substitution]:
        found = [(*match.span(), self._marks[match[0]]) for match in self._any.finditer(text)]
        self.restored += len(found)
        return found
