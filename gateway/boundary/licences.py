"""Texts of licences are nobody's, though only one project was indexed with them.

`licences.bin` holds the top 32 bits of the hashes of every run of words and every shape in the texts of the licences
that OSI approved and some that are used as widely, and in the heads of files that name one; `tools/licences.py` makes
it of a list of SPDX. They are hashes without a key, of texts that everybody has. One strange run in 40,000 looks like
one of these, which costs a copy nothing.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterable
from functools import lru_cache
from pathlib import Path
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from gateway.boundary.shingles import NOVEL, pieces, shapes, word_runs
from gateway.boundary.words import U64, Hashes, read, same_length

FILE: Final = Path(__file__).with_name("licences.bin")

_KEPT: Final = U64(32)  # bits of a hash that are left out
_FILTER: Final = U64(43)  # bits of a hash that a filter leaves out: 2**21 places
_EMPTY: Final = np.zeros(0, np.uint32)


class Licensed(NamedTuple):
    """Hashes in order of one kind, and a filter that most others do not pass."""

    hashes: NDArray[np.uint32]
    filter: NDArray[np.bool_]

    @classmethod
    def of(cls, hashes: NDArray[np.uint32]) -> Licensed:
        """The set of these hashes."""
        places = np.zeros(1 << (64 - int(_FILTER)), np.bool_)
        places[hashes >> np.uint32(_FILTER - _KEPT)] = True
        return cls(hashes, places)

    def has(self, hashes: Hashes) -> NDArray[np.bool_]:
        """Which of these runs or shapes stand in a licence."""
        found = self.filter[(hashes >> _FILTER).astype(np.int64)]
        likely = np.flatnonzero(found)
        wanted = (hashes[likely] >> _KEPT).astype(np.uint32)
        places = np.minimum(np.searchsorted(self.hashes, wanted), len(self.hashes) - 1)
        found[likely] = self.hashes[places] == wanted
        return found


@lru_cache(maxsize=1)
def licences() -> tuple[Licensed, Licensed]:
    """What is shipped: runs of words, and shapes."""
    data = zlib.decompress(FILE.read_bytes())
    count = int.from_bytes(data[:4], "little")
    return Licensed.of(_unpacked(data[4 : 4 + 4 * count])), Licensed.of(_unpacked(data[4 + 4 * count :]))


def packed(texts: Iterable[str]) -> bytes:
    """The contents of `licences.bin` for these texts."""
    words, forms = [_EMPTY], [_EMPTY]
    for text in texts:
        for _, piece in pieces(same_length(text)):
            tokens = read(piece)
            words.append((word_runs(tokens) >> _KEPT).astype(np.uint32))
            # Those that an index can have; what stands before a licence may make a shape of it a bit newer.
            forms.append((shapes(tokens, novel=NOVEL - 1)[1] >> _KEPT).astype(np.uint32))
    runs, shaped = np.unique(np.concatenate(words)), np.unique(np.concatenate(forms))
    return zlib.compress(len(runs).to_bytes(4, "little") + _steps(runs) + _steps(shaped), 9)


def _steps(hashes: NDArray[np.uint32]) -> bytes:
    """Hashes in order as steps, their first bytes first, then their second bytes, and so on: most of them are 0."""
    steps = np.diff(hashes, prepend=np.uint32(0)).astype("<u4")
    return steps.view(np.uint8).reshape(-1, 4).T.tobytes()


def _unpacked(data: bytes) -> NDArray[np.uint32]:
    steps = np.frombuffer(data, np.uint8).reshape(4, -1).T.copy().view("<u4").ravel()
    return np.cumsum(steps, dtype=np.uint32)
