"""Spans of a text that are known already: what of another span they leave, and whether one of them holds it."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import accumulate

type Spans = Mapping[int, Sequence[tuple[int, int]]]
"""Spans of something found in the texts of an object, by the index of its leaf."""


def overlapping(spans: Sequence[tuple[int, int]], low: int, high: int) -> Iterator[tuple[int, int]]:
    """The spans that share something with `low..high`; they are in ascending order, and none overlaps another."""
    at = bisect_right(spans, (low, low))
    at -= at > 0 and spans[at - 1][1] > low
    while at < len(spans) and spans[at][0] < high:
        yield spans[at]
        at += 1


def uncovered(low: int, high: int, spans: Sequence[tuple[int, int]]) -> list[tuple[int, int]]:
    """What of `low..high` lies in none of the spans."""
    found = []
    for start, end in sorted(spans):
        if start < high and end > low:
            if start > low:
                found.append((low, start))
            low = max(low, end)
    return [*found, (low, high)] if low < high else found


class Holding:
    """Spans that may lie in each other, asked many times whether one of them holds another span."""

    def __init__(self, spans: Iterable[tuple[int, int]]) -> None:
        ordered = sorted(spans)
        self._starts = [start for start, _ in ordered]
        self._reach = list(accumulate((end for _, end in ordered), max))

    def holds(self, start: int, end: int) -> bool:
        """Whether `start..end` lies in one of them."""
        begun = bisect_right(self._starts, start)
        return begun > 0 and self._reach[begun - 1] >= end
