"""Texts read for a look-up: which of their fingerprints are known, where they stand, and what they cover."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from gateway.boundary.evidence import Hits
from gateway.boundary.licences import Licensed, licences
from gateway.boundary.rarity import token_bits, word_bits
from gateway.boundary.shingles import SHAPE, WORDS, Printer, kept, pieces, shapes, word_runs
from gateway.boundary.table import COMMON, MISSING
from gateway.boundary.words import CHUNK, U64, Hashes, Places, Tokens, read, short

Find = Callable[[Hashes], Hashes]
"""The owner of each fingerprint, `table.MISSING` where it has none."""

_SHORT: Final = 120  # words up to which a text is looked up with every shingle
# Between texts that are read together: so many tokens that nothing of one tells on the next.
_APART: Final = b"\n" + b"(" * (SHAPE + 2)
_WORD_RUN: Final = np.arange(WORDS)
_SHAPE_RUN: Final = np.arange(SHAPE)


def batches(data: Sequence[bytes]) -> Iterator[list[int]]:
    """Texts by their numbers, so many together that they fill a chunk; a longer one stands alone."""
    numbers: list[int] = []
    size = 0
    for number, text in enumerate(data):
        if numbers and size + len(text) > CHUNK:
            yield numbers
            numbers, size = [], 0
        numbers.append(number)
        size += len(text) + len(_APART)
    if numbers:
        yield numbers


@dataclass(frozen=True, slots=True, eq=False)
class _Piece:
    """One buffer: where each of its texts begins in it, and how much of the (one) text came before it.

    `lead` bytes at the beginning of each are none of the text.
    """

    tokens: Tokens
    bounds: Places
    lead: int
    bytes_before: int
    words_before: int
    tokens_before: int

    def numbered(self, places: Places) -> tuple[Places, Places]:
        """The number of each text's first item, and the text of each item; items by their first bytes."""
        first = np.searchsorted(places, self.bounds)
        return first, np.repeat(np.arange(len(first)), np.diff(np.append(first, len(places))))


class Reader:
    """The texts of one batch; they are known here by their place in it."""

    def __init__(self, printer: Printer, find: Find, texts: Sequence[bytes]) -> None:
        """Read every text."""
        self._printer, self._find = printer, find
        self._pieces = list(_one(texts[0]) if len(texts[0]) > CHUNK else _many(texts))
        self.counts = np.zeros(len(texts), np.int64)
        for piece in self._pieces:
            self.counts += np.bincount(piece.numbered(piece.tokens.starts)[1], minlength=len(texts))
        self._covered = np.zeros(len(texts), np.int64)

    def words(self) -> Hits:
        """The word shingles that belong to one project."""
        parts = [self._words(piece) for piece in self._pieces]
        return parts[0] if len(parts) == 1 else _together(parts)

    def _words(self, piece: _Piece) -> Hits:
        tokens = piece.tokens
        first, texts = piece.numbered(tokens.starts)
        runs = word_runs(tokens)
        asked = np.flatnonzero(kept(runs) | (self.counts[texts[: len(runs)]] <= _SHORT))
        found, owners = self._known(self._printer.word_prints(runs[asked]), runs[asked], licences()[0])
        found = asked[found]
        inside = texts[found + WORDS - 1] == texts[found]
        found, owners = found[inside], owners[inside]
        text = texts[found]
        covered = np.zeros(len(tokens.hashes), np.bool_)
        for place in range(WORDS):
            covered[found + place] = True
        self._covered += np.bincount(texts[covered], minlength=len(self.counts))
        hashes = tokens.hashes[found[:, None] + _WORD_RUN]
        begin = piece.bounds[text] + piece.lead - piece.bytes_before
        return Hits(
            text,
            found - first[text] + piece.words_before,
            tokens.starts[found] - begin,
            tokens.ends[found + WORDS - 1] - begin,
            owners,
            short(hashes).astype(np.int64),
            word_bits(hashes),
        )

    def uncovered(self) -> NDArray[np.float64]:
        """For each text, the share of its words that `words` did not cover; of a text without words, none."""
        share: NDArray[np.float64] = (self._covered + (self.counts == 0)) / np.maximum(self.counts, 1)
        return 1 - share

    def shapes(self, wanted: Places) -> Hits:
        """The shapes of the wanted texts that belong to one project."""
        parts = [self._shapes(piece, wanted) for piece in self._pieces]
        return parts[0] if len(parts) == 1 else _together(parts)

    def _shapes(self, piece: _Piece, wanted: Places) -> Hits:
        tokens = piece.tokens
        begins, hashes = shapes(tokens)
        found, owners = self._known(self._printer.shape_prints(hashes), hashes, licences()[1])
        begins = begins[found]
        first, texts = piece.numbered(tokens.token_starts)
        text = texts[begins]
        inside = (texts[begins + SHAPE - 1] == text) & np.isin(text, wanted)
        begins, owners, text = begins[inside], owners[inside], text[inside]
        ends = tokens.token_starts[begins + SHAPE - 1]
        begin = piece.bounds[text] + piece.lead - piece.bytes_before
        window = begins[:, None] + _SHAPE_RUN
        what, bits = token_bits(tokens) if len(begins) else (np.zeros(0, np.int64), np.zeros(0, np.uint8))
        return Hits(
            text,
            begins - first[text] + piece.tokens_before,
            tokens.token_starts[begins] - begin,
            ends + 1 - begin,
            owners,
            what[window],
            bits[window],
        )

    def _known(self, prints: Hashes, hashes: Hashes, licensed: Licensed) -> tuple[Places, Hashes]:
        """Which fingerprints are one project's, but for what stands in licences, and their owners."""
        owners = self._find(prints)
        found = np.flatnonzero((owners != U64(MISSING)) & (owners != U64(COMMON)))
        found = found[~licensed.has(hashes[found])]
        return found, owners[found]


def _many(texts: Sequence[bytes]) -> Iterator[_Piece]:
    lengths = np.fromiter((len(text) + len(_APART) for text in texts), np.int64, len(texts))
    whole = b"".join(part for text in texts for part in (_APART, text))
    yield _Piece(read(whole), np.cumsum(lengths) - lengths, len(_APART), 0, 0, 0)


def _one(text: bytes) -> Iterator[_Piece]:
    words = tokens = 0
    for start, data in pieces(text):
        piece = read(data)
        yield _Piece(piece, np.zeros(1, np.int64), 0, start, words, tokens)
        words += len(piece.hashes)
        tokens += len(piece.codes)


def _together(parts: Sequence[Hits]) -> Hits:
    return Hits(
        np.concatenate([p.text for p in parts]),
        np.concatenate([p.at for p in parts]),
        np.concatenate([p.start for p in parts]),
        np.concatenate([p.end for p in parts]),
        np.concatenate([p.owners for p in parts]),
        np.concatenate([p.ids for p in parts]),
        np.concatenate([p.bits for p in parts]),
    )
