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
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from gateway.boundary.hits import Hits
from gateway.boundary.rarity import UNIT
from gateway.boundary.table import place_of, sources_of
from gateway.boundary.words import U64, Hashes, Places

LEAST: Final = 52.0
MOST: Final = 240.0
_SLOPE, _OFFSET = 22.0, -49.0
_APART: Final = 0.7
"""What the second of two kinds of evidence counts for where it points to another file than the first."""
_SEEN: Final = 24.0
"""Bits more that are asked for where a project was only seen to send it: headings and phrases of tools go by, too."""

JITTER: Final = 2
"""Places by which neighbouring diagonals may differ: a name became two words, a comma was lost."""
_SOURCE: Final = U64(24)  # bits of a place
_PROJECT: Final = U64(48)  # bits of a place and a source
_TEXT: Final = U64(40)  # bits of a project and a source
_LOOKED_AT: Final = 32  # hits of a diagonal that are weighed; more make nothing surer
_GLANCED_AT: Final = 16
_ID_BITS: Final = 18
_KEPT: Final = 6  # diagonals of a text that are looked at, the ones with most hits
_SOLID: Final = 24.0  # bits from which a diagonal marks its span
_STRONG: Final = 52.0  # and from which it does wherever that lies


def enough(words: Places) -> NDArray[np.float64]:
    """Bits of evidence from which texts of so many words are attributed."""
    found: NDArray[np.float64] = np.clip(_SLOPE * np.log2(np.maximum(words, 1)) + _OFFSET, LEAST, MOST)
    return found


@dataclass(frozen=True, slots=True, eq=False)
class Diagonals:
    """The diagonals of many texts, in order of the texts.

    Hits in a row that lie on one diagonal are a *stretch*: `counts[n]` hits from `firsts[n]` on. The stretches of
    diagonal n are `begins[n]` to `begins[n + 1]`; `text`, `owner` and the most that it can be worth (`bound`) are its
    own. Within a stretch no more than `gap` places have no hit.
    """

    hits: Hits
    gap: int
    firsts: Places
    counts: Places
    begins: Places
    text: Places
    owner: Hashes
    bound: NDArray[np.float64]

    def bounds(self, texts: int) -> NDArray[np.float64]:
        """For each text the most that one of its diagonals can be worth."""
        found = np.zeros(texts)
        np.maximum.at(found, self.text, self.bound)
        return found

    def likeliest(self, asked: NDArray[np.float64]) -> Places:
        """The few diagonals of each text with the highest bounds; of those that can mark nothing, only the first.

        `asked` is infinite where a text is not looked at.
        """
        some = np.flatnonzero(np.isfinite(asked)[self.text])
        order = some[np.lexsort((self.bound[some], self.text[some]))]
        text = self.text[order]
        rank = np.searchsorted(text, text, side="right") - np.arange(len(order))
        marking = (rank <= _KEPT) & (self.bound[order] >= np.minimum(asked[text], _SOLID))
        found: Places = order[(rank == 1) | marking]
        return found[~self._within(found)]

    def _within(self, some: Places) -> NDArray[np.bool_]:
        """Which of some diagonals, the last of each text the likeliest, lie in that one's range: they add nothing.

        A likeliest one with a gap has no such range, for what lies in the gap does add.
        """
        low, high, whole = self._ranges(some)
        text = self.text[some]
        best = np.searchsorted(text, text, side="right") - 1
        same = self.owner[some] >> _PROJECT == self.owner[some[best]] >> _PROJECT
        inside = whole[best] & same & (low >= low[best]) & (high <= high[best])
        found: NDArray[np.bool_] = inside & (best != np.arange(len(some)))
        return found

    def _ranges(self, some: Places) -> tuple[Places, Places, NDArray[np.bool_]]:
        """The first place of each diagonal and its last, and whether it has hits throughout."""
        number, stretches = flat(self.begins[some], self.begins[some + 1] - self.begins[some])
        low = self.hits.at[self.firsts[stretches]]
        high = self.hits.at[self.firsts[stretches] + self.counts[stretches] - 1]
        order = np.lexsort((low, number))
        low, high = low[order], high[order]
        if not len(some):
            return low, high, np.zeros(0, np.bool_)
        begins = np.searchsorted(number, np.arange(len(some)))
        gaps = low - np.concatenate([[0], high[:-1]])
        gaps[begins] = 0
        return (
            low[begins],
            np.maximum.reduceat(high, begins),
            np.maximum.reduceat(gaps, begins) <= self.gap // 4,
        )

    def worth(self, chosen: Places) -> NDArray[np.float64]:
        """Bits of evidence of some diagonals: each different thing that is covered, once."""
        number, stretches = flat(self.begins[chosen], self.begins[chosen + 1] - self.begins[chosen])
        counts = self.counts[stretches]
        before = np.cumsum(counts) - counts
        first = np.searchsorted(number, np.arange(len(chosen)))
        left = np.clip(self._looked_at(chosen)[number] - (before - before[first[number]]), 0, counts)
        where, rows = flat(self.firsts[stretches], left)
        items = self.hits.item[rows][:, None] + np.arange(self.hits.width)
        # Which diagonal and what, so that one sort brings equal things together.
        which = number[where]
        if len(chosen) < 1 << (31 - _ID_BITS):
            which = which.astype(np.int32)  # which sorts faster
        keys = (which[:, None] << _ID_BITS | self.hits.items.ids[items]).ravel()
        keys.sort()
        keys = keys[np.append(True, keys[1:] != keys[:-1])[: len(keys)]]
        bits = self.hits.rarity.take(keys & ((1 << _ID_BITS) - 1))
        return np.bincount(keys >> _ID_BITS, bits, len(chosen)) / UNIT

    def _looked_at(self, chosen: Places) -> Places:
        """How many hits of each are weighed: of those that are not the first of their text, enough to mark."""
        text = self.text[chosen]
        last = np.searchsorted(text, text, side="right") - 1
        return np.where(np.arange(len(chosen)) == last, _LOOKED_AT, _GLANCED_AT)


def flat(firsts: Places, counts: Places) -> tuple[Places, Places]:
    """Every number from each first on, so many, after which one it belongs to."""
    number = np.repeat(np.arange(len(firsts)), counts)
    before = np.cumsum(counts) - counts
    return number, np.arange(len(number)) + (firsts - before)[number]


def diagonals(hits: Hits, gap: int) -> Diagonals:
    """Sort hits, which come in the order of texts and places, into the diagonals of every text and source."""
    source = hits.owners >> _SOURCE
    diagonal = place_of(hits.owners) - hits.at
    new = np.ones(len(hits), np.bool_)
    new[1:] = (source[1:] != source[:-1]) | (diagonal[1:] != diagonal[:-1])
    new[1:] |= (hits.text[1:] != hits.text[:-1]) | (hits.at[1:] - hits.at[:-1] > gap)
    firsts = np.flatnonzero(new)
    counts = np.diff(firsts, append=len(hits))
    bits = np.add.reduceat(hits.bits(), firsts) if len(hits) else np.zeros(0, np.int64)
    pair = hits.text[firsts].astype(U64) << _TEXT | source[firsts]
    diagonal = diagonal[firsts]
    order = np.lexsort((diagonal, pair))
    firsts, counts, pair, diagonal = firsts[order], counts[order], pair[order], diagonal[order]
    new = np.ones(len(order), np.bool_)
    new[1:] = (pair[1:] != pair[:-1]) | (diagonal[1:] - diagonal[:-1] > JITTER)
    begins = np.flatnonzero(new)
    bound = np.add.reduceat(bits[order], begins) / UNIT if len(order) else np.zeros(0)
    first = firsts[begins]
    return Diagonals(
        hits, gap, firsts, counts, np.append(begins, len(order)), hits.text[first], hits.owners[first], bound
    )


class Found(NamedTuple):
    """What texts are found to belong to: for each finding its text, its project and its bits.

    `marked[k]` are the diagonals of kind k that mark where, and `of[k]` the finding of each of them; those that
    `strong[k]` names mark by themselves, the others near those.
    """

    text: Places
    project: Places
    bits: NDArray[np.float64]
    marked: list[Places]
    of: list[Places]
    strong: list[NDArray[np.bool_]]


def _together(
    kinds: Sequence[Diagonals],
    chosen: Sequence[Places],
    worth: Sequence[NDArray[np.float64]],
    groups: Sequence[Places],
    best: NDArray[np.float64],
) -> NDArray[np.float64]:
    """Bits of each project in a text: the best diagonal of each kind together, those of different files for less.

    A copy is one file's in its words as in its shape; idioms are one file's in this and another one's in that.
    """
    sources = (sources_of(kind.owner[some]) for kind, some in zip(kinds, chosen, strict=True))
    keys = np.concatenate([group << 24 | source for group, source in zip(groups, sources, strict=True)])
    files, which = np.unique(keys, return_inverse=True)
    found = np.zeros((len(kinds), len(files)))
    files_of = np.split(which, np.cumsum([len(some) for some in chosen])[:-1])
    for row, group, bits in zip(found, files_of, worth, strict=True):
        np.maximum.at(row, group, bits)
    total = best.max(axis=0) + _APART * (best.sum(axis=0) - best.max(axis=0))
    np.maximum.at(total, files >> 24, found.sum(axis=0))
    return total


def weigh(kinds: Sequence[Diagonals], asked: NDArray[np.float64]) -> Found:
    """The projects for which the evidence in a text suffices: what one diagonal of each kind is worth, together."""
    bounds = sum((kind.bounds(len(asked)) for kind in kinds), np.zeros(len(asked)))
    open_ = np.where((bounds >= asked) & (bounds > 0), asked, np.inf)
    chosen = [kind.likeliest(open_) for kind in kinds]
    worth = [kind.worth(some) for kind, some in zip(kinds, chosen, strict=True)]
    keys = [
        kind.text[some] << 16 | (kind.owner[some] >> _PROJECT).astype(np.int64)
        for kind, some in zip(kinds, chosen, strict=True)
    ]
    pairs, which = np.unique(np.concatenate(keys), return_inverse=True)
    groups = np.split(which, np.cumsum([len(some) for some in chosen])[:-1])
    best = np.zeros((len(kinds), len(pairs)))
    for row, group, bits in zip(best, groups, worth, strict=True):
        np.maximum.at(row, group, bits)
    total = _together(kinds, chosen, worth, groups, best)
    seen = np.zeros((2, len(pairs)))  # the best that traffic has, and files
    for kind, some, group, bits in zip(kinds, chosen, groups, worth, strict=True):
        np.maximum.at(seen, ((sources_of(kind.owner[some]) > 0).astype(np.int64), group), bits)
    wanted = asked[pairs >> 16]
    good = total >= wanted + np.where((seen[0] > seen[1]) & (wanted >= LEAST), _SEEN, 0.0)
    least = np.minimum(best.max(axis=0), _SOLID)
    number = np.cumsum(good) - 1
    strongest = np.minimum(best.max(axis=0), _STRONG)
    marked, of, strong = [], [], []
    for some, group, bits in zip(chosen, groups, worth, strict=True):
        marks = good[group] & (bits >= least[group])
        marked.append(some[marks])
        of.append(number[group[marks]])
        strong.append(bits[marks] >= strongest[group[marks]])
    pairs = pairs[good]
    return Found(pairs >> 16, pairs & 0xFFFF, total[good], marked, of, strong)
