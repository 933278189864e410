"""What the fingerprints that were found in a text are worth together.

A copy keeps the order of what it copies, word for word: its hits all lie on one *diagonal*, where the place here
minus the place in the source stays the same. Idioms that two people wrote lie on many. So evidence is counted along
diagonals of one source, and in bits of surprise (see `rarity`): each different word and token that the hits of the
best diagonal cover counts once. The longer a text, the more chances it has to look like something, so what is asked
for grows with its logarithm. The figures were set on the development split of `bench.boundary`.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from gateway.boundary.table import place_of
from gateway.boundary.words import U64, Hashes, Places

LEAST: Final = 76.0
MOST: Final = 200.0
_SLOPE, _OFFSET = 19.0, -17.0

JITTER: Final = 2
"""Places by which neighbouring diagonals may differ: a name became two words, a comma was lost."""
_SOURCE: Final = U64(24)
_DENSE: Final = 0.9  # hits a place, from which a run is exact
_LOOKED_AT: Final = 40  # hits of a diagonal that are weighed; more make nothing surer
_KEPT: Final = 6  # diagonals of a text that are looked at, the ones with most hits


def enough(words: int) -> float:
    """Bits of evidence from which a text of so many words is attributed."""
    return min(MOST, max(LEAST, _SLOPE * math.log2(max(words, 1)) + _OFFSET))


@dataclass(frozen=True, slots=True, eq=False)
class Hits:
    """Fingerprints found, of one kind. `at` is the place in the text, `ids` and `bits` are of what each covers."""

    text: Places
    at: Places
    start: Places
    end: Places
    owners: Hashes
    ids: NDArray[np.int64]
    bits: NDArray[np.float64]

    def __len__(self) -> int:
        return len(self.text)


class Diagonal(NamedTuple):
    """Hits of one source in the same order here and there, and the most bits that they can be worth."""

    owner: int
    bound: float
    hits: Hits
    rows: Places

    def worth(self) -> float:
        """Bits of evidence: each different thing that is covered, once."""
        rows = self.rows[:_LOOKED_AT]
        ids, bits = self.hits.ids[rows].ravel().tolist(), self.hits.bits[rows].ravel().tolist()
        return sum(dict(zip(ids, bits, strict=True)).values())

    @property
    def extent(self) -> tuple[int, int]:
        """Bytes of the text from the first hit to the end of the last in order."""
        return int(self.hits.start[self.rows[0]]), int(self.hits.end[self.rows[-1]])

    def runs(self, gap: int) -> list[Run]:
        """From the first to the last hit, apart where more than `gap` places lie between."""
        rows = self.rows
        at = self.hits.at[rows]
        steps = at[1:] - at[:-1]
        if not len(steps) or (steps.min() >= 0 and steps.max() <= gap):
            places = int(at[-1]) - int(at[0]) + 1
            return [Run(*self.extent, len(rows) >= _DENSE * places)]
        if steps.min() < 0:
            rows = rows[np.argsort(at, kind="stable")]
            at = self.hits.at[rows]
            steps = at[1:] - at[:-1]
        breaks = np.flatnonzero(steps > gap).tolist()
        firsts, lasts = [0, *(b + 1 for b in breaks)], [*breaks, len(rows) - 1]
        starts, ends = self.hits.start[rows[firsts]].tolist(), self.hits.end[rows[lasts]].tolist()
        lengths = (at[lasts] - at[firsts] + 1).tolist()
        return [
            Run(start, end, (last - first + 1) >= _DENSE * length)
            for start, end, first, last, length in zip(starts, ends, firsts, lasts, lengths, strict=True)
        ]


class Run(NamedTuple):
    """Bytes of a text that a diagonal covers; `exact` where every place has its hit, so that no more was copied."""

    start: int
    end: int
    exact: bool


@dataclass(frozen=True, slots=True, eq=False)
class Diagonals:
    """The diagonals of many texts: those of text n are `bounds_of[n]` to `bounds_of[n + 1]`."""

    hits: Hits
    order: Places
    firsts: Places
    text: Places
    owner: Hashes
    bound: NDArray[np.float64]
    begins: Places

    def bounds(self, texts: int) -> NDArray[np.float64]:
        """For each text the most that one of its diagonals can be worth."""
        found = np.zeros(texts)
        np.maximum.at(found, self.text, self.bound)
        return found

    def of(self, text: int) -> list[Diagonal]:
        """The likeliest of one text."""
        low, high = self.begins[text], self.begins[text + 1]
        bounds = self.bound[low:high]
        likely = np.arange(low, high)
        if high - low > _KEPT:
            likely = likely[np.argsort(bounds, kind="stable")[-_KEPT:]]
        return [
            Diagonal(owner, bound, self.hits, self.order[first:end])
            for owner, bound, first, end in zip(
                self.owner[likely].tolist(),
                self.bound[likely].tolist(),
                self.firsts[likely].tolist(),
                self.firsts[likely + 1].tolist(),
                strict=True,
            )
        ]


def diagonals(hits: Hits, texts: int) -> Diagonals:
    """Sort hits into the diagonals of every text and source."""
    source = hits.owners >> _SOURCE
    diagonal = place_of(hits.owners) - hits.at
    order = np.lexsort((hits.at, diagonal, source, hits.text))
    text, source, diagonal = hits.text[order], source[order], diagonal[order]
    new = np.ones(len(order), np.bool_)
    new[1:] = (text[1:] != text[:-1]) | (source[1:] != source[:-1]) | (diagonal[1:] - diagonal[:-1] > JITTER)
    firsts = np.flatnonzero(new)
    bound = np.add.reduceat(hits.bits.sum(axis=1)[order], firsts) if len(order) else np.zeros(0)
    begins = np.searchsorted(text[firsts], np.arange(texts + 1))
    return Diagonals(
        hits, order, np.append(firsts, len(order)), text[firsts], source[firsts] << _SOURCE, bound, begins
    )


def strongest(found: Sequence[Diagonal], asked: float) -> tuple[float, list[tuple[float, Diagonal]]]:
    """The worth of the best of a project's diagonals in a text, and those that mark it.

    Once one has all that is asked for, the others are taken at their bound: they only say where.
    """
    best, weighed = 0.0, []
    for diagonal in sorted(found, key=lambda d: -d.bound):
        worth = diagonal.worth() if best < asked else min(diagonal.bound, best)
        best = max(best, worth)
        weighed.append((worth, diagonal))
    return best, weighed
