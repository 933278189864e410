"""Fingerprints of a text: keyed hashes of runs of words, and of runs of tokens in which names are abstracted.

A word shingle is `WORDS` words in a row. Short texts give all of theirs; of longer ones the half whose hash is even
is kept, which half decides the words alone, so an excerpt and its file agree. A shape is `SHAPE` tokens in a row,
begun where the hash of five codes says so (about every third token), and kept only where it repeats itself little.

What leaves here is a pseudorandom function of the run under the key (one block of AES), so fingerprints that are
stolen say nothing without it, and equal runs are equal only under one key.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Final

import numpy as np
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes
from numpy.typing import NDArray

from gateway.boundary.words import (
    CHUNK,
    U64,
    Hashes,
    Places,
    Tokens,
    distances,
    mix,
    read,
    same_length,
    short,
)

WORDS: Final = 4
SHAPE: Final = 20
_SPARSE: Final = np.uint32(3)  # one in so many places begins a shape
_CODES: Final = 128  # codes that there may be
_ANCHOR: Final = 5  # codes that decide it
NOVEL: Final = 10
"""Tokens of a shape that must not follow their predecessor as they did just before."""
SHORT_TEXT: Final = 1000
"""Words up to which a text gives every shingle: a note of a few lines is known by each of its sentences."""

_WORD_DOMAIN, _SHAPE_DOMAIN = 1, 2
PRINT: Final = np.dtype([("print", "<u8"), ("at", "<u4")])
"""A fingerprint as it is kept: the keyed hash, and the number of the word or token at which its run begins."""

_COEFFICIENTS: Final = np.frombuffer(
    b"".join(hashlib.blake2b(bytes([n]), digest_size=8).digest() for n in range(64)), "<u8"
).astype(U64) | U64(1)
_TEST: Final = U64(40)


class PrintKey:
    """The pseudorandom function: AES-128 under a key derived from 16 to 64 secret bytes."""

    def __init__(self, key: bytes) -> None:
        """Raise ValueError where the key has another length."""
        if not 16 <= len(key) <= 64:
            raise ValueError("a fingerprint key has 16 to 64 bytes")
        secret = hashlib.blake2b(b"prints", digest_size=16, key=key).digest()
        # Every block is used once as a whole, so there is no pattern that a mode would have to hide.
        self._cipher = Cipher(algorithms.AES(secret), modes.ECB())  # noqa: S305 - a PRF on single blocks

    def prints(self, hashes: Hashes, domain: int) -> Hashes:
        """The keyed fingerprints of hashes of one kind; never 0."""
        blocks = np.empty((len(hashes), 2), "<u8")
        blocks[:, 0] = hashes
        blocks[:, 1] = domain
        done = self._cipher.encryptor().update(blocks.tobytes())
        return np.frombuffer(done, "<u8")[::2].astype(U64) | U64(1)


def word_runs(tokens: Tokens) -> Hashes:
    """The hash of each run of `WORDS` words, by the number of its first word."""
    count = len(tokens.hashes) - WORDS + 1
    if count <= 0:
        return np.zeros(0, U64)
    total = tokens.hashes[:count] * _COEFFICIENTS[0]
    for place in range(1, WORDS):
        total += tokens.hashes[place : place + count] * _COEFFICIENTS[place]
    runs: Hashes = mix(total)
    return runs


def kept(runs: Hashes) -> NDArray[np.bool_]:
    """Which runs of words are kept of a longer text: half of them."""
    found: NDArray[np.bool_] = (runs >> _TEST) & U64(1) == 0
    return found


def symbols(tokens: Tokens) -> Places:
    """Tokens as codes with the distance to where a name stood before; below 4096."""
    found: Places = tokens.codes + distances(tokens, SHAPE) * _CODES
    return found


def shapes(tokens: Tokens, *, novel: int = 0) -> tuple[Places, Hashes, Places]:
    """Where shapes begin (token numbers), and their hashes; those with `novel` new pairs of tokens at least.

    The `symbols` of the tokens come with them.
    """
    count = len(tokens.codes) - SHAPE + 1
    found = symbols(tokens)
    if count <= 0:
        return np.zeros(0, np.int64), np.zeros(0, U64), found
    codes = tokens.codes.astype(U64)
    anchor = codes[:count] * _COEFFICIENTS[40]
    for place in range(1, _ANCHOR):
        anchor += codes[place : place + count] * _COEFFICIENTS[40 + place]
    tested = (mix(anchor) >> _TEST).astype(np.uint32)
    begins = np.flatnonzero(tested == tested // _SPARSE * _SPARSE)
    if novel:
        begins = begins[novelty(found, begins) >= novel]
    total = np.zeros(len(begins), U64)
    for place, worth in enumerate(_worth()):
        total += worth.take(found[place:].take(begins, mode="clip"), mode="clip")
    return begins, mix(total), found


@lru_cache(maxsize=1)
def _worth() -> Hashes:
    """What a symbol (code + distance * 128) adds to the hash of a shape, by its place in it."""
    code, distance = np.arange(_CODES), np.arange(SHAPE)
    rows = []
    for place in range(SHAPE):
        seen = np.where(distance <= place, distance, 0)  # what stood before the shape began is new here
        values = (seen[:, None] * _CODES + code[None, :]).astype(U64) * _COEFFICIENTS[place]
        rows.append(values.ravel())
    return np.array(rows)


def novelty(symbols: Places, begins: Places) -> Places:
    """How many tokens of each shape follow their predecessor as no token did in the last `SHAPE`."""
    values = symbols.astype(U64)
    pairs = short(mix(values[:-1] * U64(1_000_003) + values[1:]))
    order = np.argsort(pairs, kind="stable")
    same = pairs[order][1:] == pairs[order][:-1]
    ago = np.zeros(len(values), np.int64)
    ago[order[1:][same]] = (order[1:] - order[:-1])[same]
    found = np.zeros(len(values) + 1, np.int64)
    np.cumsum((ago == 0) | (ago >= SHAPE), out=found[1:])
    new: Places = found[begins + SHAPE - 1] - found[begins]
    return new


def pieces(data: bytes) -> Iterator[tuple[int, bytes]]:
    """A text in pieces of at most a chunk, cut at line ends where there are any: (where it begins, piece)."""
    start = 0
    while len(data) - start > CHUNK:
        cut = data.rfind(b"\n", start + CHUNK // 2, start + CHUNK) + 1 or start + CHUNK
        yield start, data[start:cut]
        start = cut
    yield start, data[start:]


@dataclass(frozen=True, slots=True)
class Printer:
    """Cuts texts into the fingerprints that are kept of them."""

    key: PrintKey = field(repr=False)

    def prints(self, text: str) -> NDArray[np.void]:
        """The fingerprints of a text, of `PRINT`."""
        cut = [read(piece) for _, piece in pieces(same_length(text))]
        whole = sum(len(tokens.hashes) for tokens in cut) <= SHORT_TEXT
        parts, word, token = [], 0, 0
        for tokens in cut:
            runs = word_runs(tokens)
            some = np.arange(len(runs)) if whole else np.flatnonzero(kept(runs))
            parts.append(_joined(self.word_prints(runs[some]), some + word))
            begins, found, _ = shapes(tokens, novel=NOVEL)
            parts.append(_joined(self.shape_prints(found), begins + token))
            word += len(tokens.hashes)
            token += len(tokens.codes)
        return np.concatenate(parts)

    def word_prints(self, runs: Hashes) -> Hashes:
        """Runs of words as keyed fingerprints."""
        return self.key.prints(runs, _WORD_DOMAIN)

    def shape_prints(self, found: Hashes) -> Hashes:
        """Shapes as keyed fingerprints."""
        return self.key.prints(found, _SHAPE_DOMAIN)


def _joined(prints: Hashes, at: Places) -> NDArray[np.void]:
    joined = np.empty(len(prints), PRINT)
    joined["print"], joined["at"] = prints, at
    return joined
