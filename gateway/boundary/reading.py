"""Texts read for a look-up: which of their fingerprints are known, where they stand, and what they cover."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from gateway.boundary.hits import Hits, Items
from gateway.boundary.licences import Licensed, licences
from gateway.boundary.rarity import of_tokens, of_words, triples
from gateway.boundary.shingles import NOVEL, SHAPE, WORDS, Printer, kept, novelty, pieces, shapes, word_runs
from gateway.boundary.table import COMMON, MISSING
from gateway.boundary.words import CHUNK, U64, Hashes, Places, Tokens, blanked, read, short

Find = Callable[[Hashes], Hashes]
"""The owner of each fingerprint, `table.MISSING` where it has none."""

_NEW: Final = (
    NOVEL + 1
)  # new pairs of tokens from which a shape is kept of the file, too, though other text is before it
_SHORT: Final = 120  # words up to which a text is looked up with every shingle
# Between texts that are read together: so many tokens that nothing of one tells on the next.
_APART: Final = b"\n" + b"(" * (SHAPE + 2) + b"\n"


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
    """One buffer read: where each of its texts begins in it, and how much of the (one) text came before it."""

    tokens: Tokens
    bounds: Places
    bytes_before: int
    words_before: int
    tokens_before: int

    def numbered(self, places: Places) -> tuple[Places, Places]:
        """The number of each text's first item, and the text of each item; items by their first bytes."""
        first = np.searchsorted(places, self.bounds)
        return first, np.repeat(np.arange(len(first)), np.diff(np.append(first, len(places))))


class Reader:
    """The `lowered` texts of one batch; they are known here by their place in it.

    `data` holds them all; each begins at its place in `begins` and ends at its place in `ends`.
    """

    def __init__(self, printer: Printer, find: Find, texts: Sequence[bytes]) -> None:
        """Read every text."""
        self._printer, self._find = printer, find
        lengths = np.fromiter(map(len, texts), np.int64, len(texts))
        if len(texts) == 1 and len(texts[0]) > CHUNK:
            self.data = blanked(texts[0])
            self.begins = np.zeros(1, np.int64)
            self._pieces = list(_one(self.data))
        else:
            self.data = blanked(b"".join(part for text in texts for part in (_APART, text)))
            self.begins = np.cumsum(lengths + len(_APART)) - lengths
            self._pieces = [_Piece(read(self.data), self.begins - len(_APART), 0, 0, 0)]
        self.ends = self.begins + lengths
        self.counts = np.zeros(len(texts), np.int64)
        for piece in self._pieces:
            self.counts += np.bincount(piece.numbered(piece.tokens.starts)[1], minlength=len(texts))
        self._covered = np.zeros(len(texts), np.int64)

    def words(self) -> Hits:
        """The word shingles that belong to one project."""
        return Hits.together([self._words(piece) for piece in self._pieces])

    def _words(self, piece: _Piece) -> Hits:
        tokens = piece.tokens
        first, texts = piece.numbered(tokens.starts)
        runs = word_runs(tokens)
        sure = kept(runs)
        asked = np.flatnonzero(sure | (self.counts[texts[: len(runs)]] <= _SHORT))
        found, owners, missing = self._known(
            self._printer.word_prints(runs[asked]), runs[asked], licences()[0]
        )
        found, missing = asked[found], asked[missing]
        inside = texts[found + WORDS - 1] == texts[found]
        found, owners = found[inside], owners[inside]
        covered = np.zeros(len(tokens.hashes), np.bool_)
        for place in range(WORDS):
            covered[found + place] = True
        self._covered += np.bincount(texts[covered], minlength=len(self.counts))
        items = Items.none()
        if len(found):
            items = Items(
                tokens.starts + piece.bytes_before,
                tokens.ends + piece.bytes_before,
                texts,
                ids := short(tokens.hashes).astype(np.int32),
                of_words().take(ids),
            )
        at = found - first[texts[found]] + piece.words_before
        return Hits(
            WORDS,
            of_words(),
            items,
            texts[found],
            at,
            found,
            owners,
            ~sure[found],
            missing[sure[missing]],
            missing,
        )

    def uncovered(self) -> NDArray[np.float64]:
        """For each text, the share of its words that `words` did not cover; of a text without words, none."""
        share: NDArray[np.float64] = (self._covered + (self.counts == 0)) / np.maximum(self.counts, 1)
        return 1 - share

    def shapes(self, wanted: NDArray[np.bool_]) -> Hits:
        """The shapes of the wanted texts that belong to one project."""
        return Hits.together([self._shapes(piece, wanted) for piece in self._pieces])

    def _shapes(self, piece: _Piece, wanted: NDArray[np.bool_]) -> Hits:
        tokens = piece.tokens
        if not wanted.all():
            tokens = tokens.where(
                wanted[piece.numbered(tokens.starts)[1]], wanted[piece.numbered(tokens.token_starts)[1]]
            )
        begins, hashes, symbols = shapes(tokens)
        found, owners, missing = self._known(self._printer.shape_prints(hashes), hashes, licences()[1])
        found, missing = begins[found], begins[missing]
        first, texts = piece.numbered(tokens.token_starts)
        inside = texts[found + SHAPE - 1] == texts[found]
        found, owners = found[inside], owners[inside]
        items = Items.none()
        if len(found):
            # What repeats itself nobody has, for it is not kept: that it is missing says nothing.
            missing = missing[novelty(symbols, missing) >= _NEW]
            starts = tokens.token_starts + piece.bytes_before
            ids = triples(symbols)[0].astype(np.int32)
            items = Items(starts, starts + 1, texts, ids, of_tokens().take(ids))
        at = found - first[texts[found]] + piece.tokens_before
        return Hits(
            SHAPE,
            of_tokens(),
            items,
            texts[found],
            at,
            found,
            owners,
            np.zeros(len(found), np.bool_),
            missing,
            missing,
        )

    def _known(self, prints: Hashes, hashes: Hashes, licensed: Licensed) -> tuple[Places, Hashes, Places]:
        """Which fingerprints are one project's, but for what stands in licences, their owners; and which nobody has."""
        owners = self._find(prints)
        missing = owners == U64(MISSING)
        found = np.flatnonzero(~missing & (owners != U64(COMMON)))
        if len(found):
            licence = licensed.has(hashes[found])
            missing[found[licence]] = True
            found = found[~licence]
        return found, owners[found], np.flatnonzero(missing)


def _one(text: bytes) -> Iterator[_Piece]:
    words = tokens = 0
    for start, data in pieces(text):
        piece = read(data)
        yield _Piece(piece, np.zeros(1, np.int64), start, words, tokens)
        words += len(piece.hashes)
        tokens += len(piece.codes)
