"""What the fingerprints that were found in a text are worth together.

A copy keeps the order of what it copies, word for word: its hits all lie on one *diagonal*, where the place here
minus the place in the source stays the same. Idioms that two people wrote lie on many. So evidence is counted along
diagonals of one source, and in bits of surprise (see `rarity`): each different word and token that the hits of the
best diagonal cover counts once. The longer a text, the more chances it has to look like something, so what is asked
for grows with its logarithm. The figures were set on the development split of `bench.boundary`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise, starmap
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from gateway.boundary.rarity import UNIT
from gateway.boundary.table import place_of
from gateway.boundary.words import U64, Hashes, Places

LEAST: Final = 76.0
MOST: Final = 200.0
_SLOPE, _OFFSET = 19.0, -17.0

JITTER: Final = 2
"""Places by which neighbouring diagonals may differ: a name became two words, a comma was lost."""
_SOURCE: Final = U64(24)  # bits of a place
_TEXT: Final = U64(40)  # bits of a project and a source
_DENSE: Final = 0.9  # hits a place, from which a run is exact
_LOOKED_AT: Final = 40  # hits of a diagonal that are weighed; more make nothing surer
_ID_BITS: Final = 17
_BITS_BITS: Final = 8
_KEPT: Final = 6  # diagonals of a text that are looked at, the ones with most hits


def enough(words: Places) -> NDArray[np.float64]:
    """Bits of evidence from which texts of so many words are attributed."""
    found: NDArray[np.float64] = np.clip(_SLOPE * np.log2(np.maximum(words, 1)) + _OFFSET, LEAST, MOST)
    return found


@dataclass(frozen=True, slots=True, eq=False)
class Hits:
    """Fingerprints found, of one kind. `at` is the place in the text, `ids` and `bits` are of what each covers.

    Bits are in parts of `rarity.UNIT`, ids below 2**17; equal ids have equal bits.
    """

    text: Places
    at: Places
    start: Places
    end: Places
    owners: Hashes
    ids: NDArray[np.int64]
    bits: NDArray[np.uint8]

    def __len__(self) -> int:
        return len(self.text)


class Run(NamedTuple):
    """Bytes of a text that a diagonal covers; `exact` where every place has its hit, so that no more was copied."""

    start: int
    end: int
    exact: bool


class Diagonal(NamedTuple):
    """Hits of one source in the same order here and there: what they are worth in bits, and at most.

    `start` and `end` are the bytes of the text from the first hit to the end of the last in order; `runs` are apart
    where more than a gap of places lies between two hits.
    """

    owner: int
    bound: float
    worth: float
    start: int
    end: int
    runs: list[Run]


@dataclass(frozen=True, slots=True, eq=False)
class Diagonals:
    """The diagonals of many texts, in order of the texts; the hits of diagonal n are `firsts[n]` to `firsts[n + 1]`."""

    hits: Hits
    order: Places
    firsts: Places
    text: Places
    owner: Hashes
    bound: NDArray[np.float64]

    def bounds(self, texts: int) -> NDArray[np.float64]:
        """For each text the most that one of its diagonals can be worth."""
        found = np.zeros(texts)
        np.maximum.at(found, self.text, self.bound)
        return found

    def likeliest(self, wanted: NDArray[np.bool_], gap: int) -> dict[int, list[Diagonal]]:
        """The few likeliest of each wanted text, by its number; the likeliest first."""
        chosen = self._chosen(wanted)
        if not len(chosen):
            return {}
        firsts, counts = self.firsts[chosen], self.firsts[chosen + 1] - self.firsts[chosen]
        runs, begins = self._runs(firsts, counts, gap)
        members = zip(
            self.owner[chosen].tolist(),
            self.bound[chosen].tolist(),
            self._worth(firsts, np.minimum(counts, _LOOKED_AT)).tolist(),
            self.hits.start[self.order[firsts]].tolist(),
            self.hits.end[self.order[firsts + counts - 1]].tolist(),
            [runs[first:end] for first, end in pairwise(begins)],
            strict=True,
        )
        found: dict[int, list[Diagonal]] = {}
        for text, diagonal in zip(self.text[chosen].tolist(), starmap(Diagonal, members), strict=True):
            found.setdefault(text, []).append(diagonal)
        return found

    def _chosen(self, wanted: NDArray[np.bool_]) -> Places:
        """Diagonals by text, those with the highest bounds first."""
        some = np.flatnonzero(wanted[self.text])
        order = some[np.lexsort((self.bound[some], self.text[some]))]
        text = self.text[order]
        after = np.searchsorted(text, text, side="right")
        order = np.sort(order[after - np.arange(len(order)) <= _KEPT])
        chosen: Places = order[np.lexsort((-self.bound[order], self.text[order]))]
        return chosen

    def _worth(self, firsts: Places, counts: Places) -> NDArray[np.float64]:
        """Bits of evidence of each: each different thing that is covered, once."""
        number, rows = _flat(firsts, counts)
        rows = self.order[rows]
        # Which diagonal, what, how many bits: so that one sort brings equal things together.
        keys = (
            (number[:, None] << _ID_BITS | self.hits.ids[rows]) << _BITS_BITS | self.hits.bits[rows]
        ).ravel()
        keys.sort()
        keys = keys[np.append(True, keys[1:] != keys[:-1])]
        found: NDArray[np.float64] = (
            np.bincount(keys >> (_ID_BITS + _BITS_BITS), keys & ((1 << _BITS_BITS) - 1), len(firsts)) / UNIT
        )
        return found

    def _runs(self, firsts: Places, counts: Places, gap: int) -> tuple[list[Run], list[int]]:
        """The runs of each, one after the other, and where those of each begin and the last end."""
        number, rows = _flat(firsts, counts)
        rows = self.order[rows]
        at = self.hits.at[rows]
        new = np.append(True, number[1:] != number[:-1])
        steps = np.diff(at, prepend=0)
        if ((steps < 0) & ~new).any():  # the jitter brings places of neighbouring diagonals out of order
            order = np.lexsort((at, number))
            rows, at = rows[order], at[order]
            steps = np.diff(at, prepend=0)
        first = np.flatnonzero(new | (steps > gap))
        last = np.append(first[1:], len(rows)) - 1
        exact = last - first + 1 >= _DENSE * (at[last] - at[first] + 1)
        found = map(
            Run,
            self.hits.start[rows[first]].tolist(),
            self.hits.end[rows[last]].tolist(),
            exact.tolist(),
        )
        return list(found), np.searchsorted(number[first], np.arange(len(firsts) + 1)).tolist()


def _flat(firsts: Places, counts: Places) -> tuple[Places, Places]:
    """Every number from each first on, so many, and which one it belongs to."""
    number = np.repeat(np.arange(len(firsts)), counts)
    before = np.cumsum(counts) - counts
    return number, np.arange(len(number)) + (firsts - before)[number]


def diagonals(hits: Hits) -> Diagonals:
    """Sort hits, which come in the order of texts and places, into the diagonals of every text and source."""
    pair = hits.text.astype(U64) << _TEXT | hits.owners >> _SOURCE
    diagonal = place_of(hits.owners) - hits.at
    order = np.lexsort((diagonal, pair))
    pair, diagonal = pair[order], diagonal[order]
    new = np.ones(len(order), np.bool_)
    new[1:] = (pair[1:] != pair[:-1]) | (diagonal[1:] - diagonal[:-1] > JITTER)
    firsts = np.flatnonzero(new)
    text, owner = hits.text[order[firsts]], hits.owners[order[firsts]] >> _SOURCE << _SOURCE
    bits = hits.bits.sum(axis=1, dtype=np.int64)[order]
    bound = np.add.reduceat(bits, firsts) / UNIT if len(order) else np.zeros(0)
    return Diagonals(hits, order, np.append(firsts, len(order)), text, owner, bound)


def strongest(found: Sequence[Diagonal], asked: float) -> tuple[float, list[tuple[float, Diagonal]]]:
    """The worth of the best of a project's diagonals in a text, and those that mark it; `found` is the likeliest first.

    Once one has all that is asked for, the others are taken at their bound: they only say where.
    """
    best, weighed = 0.0, []
    for diagonal in found:
        worth = diagonal.worth if best < asked else min(diagonal.bound, best)
        best = max(best, worth)
        weighed.append((worth, diagonal))
    return best, weighed
