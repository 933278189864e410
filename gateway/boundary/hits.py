"""Fingerprints that were found in texts, and the words or tokens that they run over."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from gateway.boundary.words import U64, Hashes, Places


@dataclass(frozen=True, slots=True, eq=False)
class Items:
    """Words or tokens in a row: first byte and byte after the last, text, what each is, and its bits of surprise.

    Bits are in parts of `rarity.UNIT`; an id is the place of the bits in their table, below 2**18.
    """

    starts: Places
    ends: Places
    texts: Places
    ids: NDArray[np.int32]
    bits: NDArray[np.uint8]

    def __len__(self) -> int:
        return len(self.starts)

    @classmethod
    def none(cls) -> Items:
        """No items: of a buffer in which nothing was found, none are needed."""
        nothing = np.zeros(0, np.int64)
        return cls(nothing, nothing, nothing, np.zeros(0, np.int32), np.zeros(0, np.uint8))


@dataclass(frozen=True, slots=True, eq=False)
class Hits:
    """Fingerprints of one kind that are one project's, each a run of `width` items, whose bits stand in `rarity`.

    `at` is the place of its first item in the text, `item` its number in `items`; those marked `extra` are kept of
    short texts only. At the `missing` items begin runs that nobody has, though whoever had all their items would: no
    copy holds one of them whole. At the `unkept` ones, too, where the source is a short text.
    """

    width: int
    rarity: NDArray[np.uint8]
    items: Items
    text: Places
    at: Places
    item: Places
    owners: Hashes
    extra: NDArray[np.bool_]
    missing: Places
    unkept: Places

    def __len__(self) -> int:
        return len(self.text)

    def bits(self) -> NDArray[np.int64]:
        """Bits of surprise of each, in parts of `rarity.UNIT`."""
        sums = np.zeros(len(self.items) + 1, np.int64)
        np.cumsum(self.items.bits, out=sums[1:])
        found: NDArray[np.int64] = sums[self.item + self.width] - sums[self.item]
        return found

    @classmethod
    def none(cls, width: int, rarity: NDArray[np.uint8]) -> Hits:
        """No hits."""
        nothing, owners, extra = np.zeros(0, np.int64), np.zeros(0, U64), np.zeros(0, np.bool_)
        return cls(width, rarity, Items.none(), nothing, nothing, nothing, owners, extra, nothing, nothing)

    @classmethod
    def together(cls, parts: Sequence[Hits]) -> Hits:
        """The hits of one buffer after the other; of those without hits nothing is kept."""
        some = [part for part in parts if len(part)]
        if len(some) <= 1:
            return some[0] if some else cls.none(parts[0].width, parts[0].rarity)
        before = np.cumsum([0, *(len(part.items) for part in some)])
        numbered = list(zip(before.tolist(), some, strict=False))
        items = [part.items for part in some]
        return cls(
            some[0].width,
            some[0].rarity,
            Items(
                np.concatenate([i.starts for i in items]),
                np.concatenate([i.ends for i in items]),
                np.concatenate([i.texts for i in items]),
                np.concatenate([i.ids for i in items]),
                np.concatenate([i.bits for i in items]),
            ),
            np.concatenate([p.text for p in some]),
            np.concatenate([p.at for p in some]),
            np.concatenate([p.item + n for n, p in numbered]),
            np.concatenate([p.owners for p in some]),
            np.concatenate([p.extra for p in some]),
            np.concatenate([p.missing + n for n, p in numbered]),
            np.concatenate([p.unkept + n for n, p in numbered]),
        )
