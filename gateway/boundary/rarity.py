"""How much a match is worth: bits of surprise of words and of tokens in code and prose at large.

`rarity.bin` holds two tables of sixteenths of bits, made by `tools/rarity.py`: of words by the top 16 bits of their
hash, and of tokens after the two before them by 18 bits of the hash of all three. A word that everybody uses says
little about whose a text is; a token that always follows the one before says nothing.
"""

from __future__ import annotations

import zlib
from functools import lru_cache
from pathlib import Path
from typing import Final

import numpy as np
from numpy.typing import NDArray

from gateway.boundary.words import U64, Places, mix

FILE: Final = Path(__file__).with_name("rarity.bin")
UNIT: Final = 16
"""Parts of a bit in the tables."""
MOST_WORD: Final = 13.0
MOST_SHAPE: Final = 8.75
"""Bits of a token in a shape."""

_A, _B, _C = U64(0x9E3779B97F4A7C15), U64(0xC2B2AE3D27D4EB4F), U64(0x165667B19E3779F9)
TRIPLE_BITS: Final = 18
_TRIPLE: Final = U64(64 - TRIPLE_BITS)


@lru_cache(maxsize=1)
def _tables() -> tuple[NDArray[np.uint8], NDArray[np.uint8]]:
    table = np.frombuffer(zlib.decompress(FILE.read_bytes()), np.uint8)
    return table[: 1 << 16], table[1 << 16 :]


def of_words() -> NDArray[np.uint8]:
    """Bits of words by the `short` form of their hash, in parts of `UNIT`."""
    return _tables()[0]


def of_tokens() -> NDArray[np.uint8]:
    """Bits of tokens after the two before them by the number that `triples` gives, in parts of `UNIT`."""
    return _tables()[1]


def triples(symbols: Places) -> tuple[Places, Places]:
    """For each token a number below 2**`TRIPLE_BITS` for it and the two before it, and one for the two alone."""
    padded = np.concatenate([np.zeros(2, U64), symbols.astype(U64)])
    pair = padded[1:-1] * _B + padded[:-2] * _C
    whole: Places = (mix(padded[2:] * _A + pair) >> _TRIPLE).astype(np.int64)
    return whole, (mix(pair) >> _TRIPLE).astype(np.int64)
