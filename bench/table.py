"""Timing and tables."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any


@dataclass
class Suite:
    """Rows of one suite, printed as they come in."""

    name: str
    head: tuple[str, ...]
    rows: list[tuple[Any, ...]] = field(default_factory=list)

    def add(self, *cells: Any) -> None:
        """One more row."""
        if not self.rows:
            print(f"\n## {self.name}\n| {' | '.join(self.head)} |\n|{'---|' * len(self.head)}")
        self.rows.append(cells)
        print(f"| {' | '.join(_shown(c) for c in cells)} |", flush=True)


def _shown(cell: Any) -> str:
    return (
        f"{cell:.3g}"
        if isinstance(cell, float) and cell < 100
        else f"{cell:.0f}"
        if isinstance(cell, float)
        else str(cell)
    )


def median_ms(work: Callable[[], object], rounds: int) -> float:
    """Milliseconds of one call, the median over rounds."""
    return statistics.median(timed_ms(work) for _ in range(rounds))


def timed_ms(work: Callable[[], object]) -> float:
    """Milliseconds of one call on the processor, in all threads: what waits for a busy neighbour is not counted."""
    began = time.process_time()
    work()
    return (time.process_time() - began) * 1000


def percentile(values: Sequence[float], share: float) -> float:
    """A percentile by rank."""
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(share * len(ordered)))]
