"""Whose each fingerprint is: sorted arrays that processes can share, and what was learnt since they were made.

An owner is one number: project << 48 | source << 24 | place in the source. 0 is what several have and nobody owns.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

import numpy as np
from numpy.typing import NDArray

from gateway.boundary.words import U64, Hashes

COMMON: Final = 0
MISSING: Final = (1 << 64) - 1
REPEATED: Final = 8
"""Files of one project from which a fingerprint is its boilerplate, such as a licence's head, and no file's own."""

_SOURCE_SHIFT, _PROJECT_SHIFT = 24, 48
_FIELD: Final = (1 << 24) - 1
_FILTER_BITS: Final = 8  # bits of the filter for each fingerprint
_BUCKET: Final = 2  # fingerprints that at least begin alike, on the average


def owner_of(project: int, source: int) -> int:
    """The owner without a place. Sources and places beyond 2**24 count as the last that fits."""
    return project << _PROJECT_SHIFT | min(source, _FIELD) << _SOURCE_SHIFT


def owners_at(owner: int, places: NDArray[np.uint32]) -> Hashes:
    """An owner with the places of its fingerprints."""
    return np.minimum(places, _FIELD).astype(U64) | U64(owner)


def project_of(owner: int) -> int:
    """The number of an owner's project."""
    return owner >> _PROJECT_SHIFT


def source_of(owner: int) -> int:
    """The number of an owner's source; 0 for what was only seen in traffic."""
    return owner >> _SOURCE_SHIFT & _FIELD


def sources_of(owners: Hashes) -> NDArray[np.int64]:
    """The number of each owner's source."""
    return (owners >> U64(_SOURCE_SHIFT) & U64(_FIELD)).astype(np.int64)


def place_of(owners: Hashes) -> NDArray[np.int64]:
    """The place of each owner in its source."""
    return (owners & U64(_FIELD)).astype(np.int64)


@dataclass(frozen=True, slots=True)
class PrintTable:
    """Fingerprints in order, the owner of each, a filter that most strangers do not pass, and where buckets begin.

    A bucket is what has the same top bits. All of it may lie in a file that is mapped: nothing is ever written to it.
    """

    prints: Hashes = field(default_factory=lambda: np.zeros(0, U64), repr=False)
    owners: Hashes = field(default_factory=lambda: np.zeros(0, U64), repr=False)
    filter: NDArray[np.uint8] = field(default_factory=lambda: np.zeros(1 << 10, np.uint8), repr=False)
    buckets: NDArray[np.uint32] = field(default_factory=lambda: np.zeros(2, np.uint32), repr=False)

    @classmethod
    def made(cls, prints: Hashes, owners: Hashes) -> PrintTable:
        """The table of fingerprints in order, each of them once."""
        count = _bucket_count(len(prints))
        tops = np.arange(count, dtype=U64) << U64(65 - count.bit_length())
        buckets = np.append(np.searchsorted(prints, tops), [len(prints)] * 2).astype(np.uint32)
        return cls(prints, owners, filter_of(prints), buckets)

    def __len__(self) -> int:
        return len(self.prints)

    def find(self, prints: Hashes) -> Hashes:
        """The owner of each fingerprint, `MISSING` where it has none."""
        found = np.full(len(prints), MISSING, U64)
        if not len(self.prints):
            return found
        likely = np.flatnonzero(passes(self.filter, prints))
        wanted = prints[likely]
        places = self._places(wanted)
        there = self.prints[places] == wanted
        found[likely[there]] = self.owners[places[there]]
        return found

    def _places(self, wanted: Hashes) -> NDArray[np.int64]:
        """Where each stands, or would. Fingerprints are as good as random, so a bucket has few."""
        shift = U64(65 - (len(self.buckets) - 2).bit_length())
        places = self.buckets[(wanted >> shift).astype(np.int64)].astype(np.int64)
        last = len(self.prints) - 1
        behind = np.flatnonzero(self.prints.take(places, mode="clip") < wanted)
        while len(behind):
            places[behind] += 1
            behind = behind[self.prints.take(places[behind], mode="clip") < wanted[behind]]
            behind = behind[places[behind] <= last]
        return np.minimum(places, last)

    def parts(self) -> tuple[memoryview, ...]:
        """The arrays as bytes, each a multiple of 8 long."""
        return tuple(part.data.cast("B") for part in (self.prints, self.owners, self.buckets, self.filter))

    @classmethod
    def of(cls, data: memoryview, count: int) -> PrintTable:
        """The table of so many fingerprints whose `parts` these bytes are; nothing is copied."""
        if not count:
            return cls()
        buckets = count * 16 + 4 * (_bucket_count(count) + 2)
        return cls(
            np.frombuffer(data[: count * 8], U64),
            np.frombuffer(data[count * 8 : count * 16], U64),
            np.frombuffer(data[buckets:], np.uint8),
            np.frombuffer(data[count * 16 : buckets], np.uint32),
        )


def _bucket_count(prints: int) -> int:
    """Buckets of so many fingerprints, a power of two."""
    return 1 << max(1, (prints // _BUCKET).bit_length())


def passes(filter_: NDArray[np.uint8], prints: Hashes) -> NDArray[np.bool_]:
    """Which fingerprints may be in the set of a filter, whose length is a power of two."""
    bits = prints >> U64(64 - (len(filter_).bit_length() + 2))
    found: NDArray[np.bool_] = (
        filter_[(bits >> U64(3)).astype(np.int64)] >> (bits & U64(7)).astype(np.uint8)
    ) & 1 == 1
    return found


def filter_of(prints: Hashes, least: int = 1 << 10) -> NDArray[np.uint8]:
    """The filter of a set of fingerprints: a bit each, by its top bits."""
    size = max(least, 1 << (len(prints) * _FILTER_BITS // 8).bit_length())
    found = np.zeros(size, np.uint8)
    enter(found, prints)
    return found


def enter(filter_: NDArray[np.uint8], prints: Hashes) -> None:
    """Let fingerprints pass a filter."""
    bits = prints >> U64(64 - (len(filter_).bit_length() + 2))
    np.bitwise_or.at(
        filter_,
        (bits >> U64(3)).astype(np.int64),
        np.left_shift(1, (bits & U64(7)).astype(np.uint8)).astype(np.uint8),
    )


def merged(parts: Sequence[tuple[Hashes, Hashes]]) -> PrintTable:
    """One table of (fingerprints, owners), in the order in which they were met.

    What files of two projects have is nobody's, and so is what traffic of two has; a file takes what was only seen in
    traffic, and traffic takes nothing from a file, else a project could unown another's text by sending it. What
    `REPEATED` files of one project have is nobody's either.
    """
    if not any(len(prints) for prints, _ in parts):
        return PrintTable()
    prints = np.concatenate([p for p, _ in parts])
    owners = np.concatenate([o for _, o in parts])
    order = np.argsort(prints, kind="stable")
    prints, owners = prints[order], owners[order]
    first = np.empty(len(prints), np.bool_)
    first[0] = True
    np.not_equal(prints[1:], prints[:-1], out=first[1:])
    groups = np.flatnonzero(first)
    winners = _winners(owners, groups, first)
    kept = prints[groups]
    return PrintTable.made(kept, winners)


def _winners(owners: Hashes, groups: NDArray[np.int64], first: NDArray[np.bool_]) -> Hashes:
    place = np.arange(len(owners))
    from_file = (owners >> U64(_SOURCE_SHIFT)) & U64(_FIELD) != 0
    any_file = np.logical_or.reduceat(from_file, groups)
    counts = np.diff(np.append(groups, len(owners)))
    # Where a file has it, traffic does not count.
    counted = from_file | ~np.repeat(any_file, counts)
    projects = (owners >> U64(_PROJECT_SHIFT)).astype(np.int64)
    low = np.minimum.reduceat(np.where(counted, projects, 1 << 17), groups)
    high = np.maximum.reduceat(np.where(counted, projects, -1), groups)
    chosen = np.minimum.reduceat(np.where(counted, place, len(owners)), groups)
    files = owners >> U64(_SOURCE_SHIFT)
    other_file = from_file.copy()
    other_file[1:] &= first[1:] | (files[1:] != files[:-1])
    nobodys = np.logical_or.reduceat(owners == U64(COMMON), groups)
    nobodys |= (low != high) | (np.add.reduceat(other_file, groups) >= REPEATED)
    return np.where(nobodys, U64(COMMON), owners[np.minimum(chosen, len(owners) - 1)])


def as_part(owners: Mapping[int, int]) -> tuple[Hashes, Hashes]:
    """A mapping as fingerprints and owners."""
    return np.fromiter(owners.keys(), U64, len(owners)), np.fromiter(owners.values(), U64, len(owners))
