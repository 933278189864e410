"""Many texts as one byte string, so that the engine is called once: one byte a character, no match across texts."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from itertools import accumulate

SEPARATOR = b"\n\x00\x00\x00\n"
_SHAPES = bytes(
    48 if 48 <= c <= 57 else 65 if 65 <= c <= 90 else 97 if 97 <= c <= 122 else c for c in range(256)
)
"""Digits to 0, capitals to A, small letters to a: identifiers become literals that the engine finds at full speed."""


def shape_of(text: str) -> str:
    """A text as `Batch.shapes` has it."""
    return encode(text).translate(_SHAPES).decode("latin-1")


def encode(text: str) -> bytes:
    """One byte for each character, so that offsets agree; what Latin-1 has not becomes `?`, which starts no token."""
    return text.encode("latin-1", "replace")


class Batch:
    """Texts joined for one scan. Offsets of the joined bytes are those of the texts plus a start."""

    def __init__(self, texts: Sequence[str]) -> None:
        parts = [encode(text) for text in texts]
        self.data = SEPARATOR.join((b"", *parts, b""))
        gap = len(SEPARATOR)
        self.starts = [gap, *(gap + n for n in accumulate(len(p) + gap for p in parts))][: len(parts)]

    def shapes(self) -> bytes:
        """The same bytes with every digit, capital and small letter folded to one of its kind."""
        return self.data.translate(_SHAPES)

    def locate(self, offset: int) -> int:
        """The index of the text in which the byte before `offset` lies."""
        return bisect_right(self.starts, offset - 1) - 1
