"""Where any of many known texts stand in others: all are looked for in one pass, however many there are.

A document of ten thousand people is ten thousand texts in which each of ten thousand values may stand again; looking
for each in each takes minutes.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from itertools import accumulate
from typing import Final, NamedTuple, override

from gateway.classify.needles import KEY_BYTES, Beginnings, in_bytes

_MANY: Final = 20  # texts from which on all are looked for at once
_MOST_SIZES: Final = 8  # of texts that begin alike: each is tried wherever they may begin


class Place(NamedTuple):
    """Where a text that is sought stands: in which text, from where to where in characters, and which one it is."""

    text: int
    start: int
    end: int
    sought: str


class Sought:
    """Texts that are looked for in others. Each is found as `str.find` finds it, again behind its own end."""

    def __init__(self, sought: Iterable[str]) -> None:
        """Empty texts are not looked for."""
        self._texts = {in_bytes(text): text for text in sought if text}
        self._each: list[bytes] = []  # those that are looked for one after the other
        self._sizes: dict[int, set[int]] = {}  # bytes of the texts that begin alike
        self._beginnings = Beginnings()
        alike: dict[bytes, list[bytes]] = {}
        for data in self._texts:
            alike.setdefault(data[:KEY_BYTES], []).append(data)
        for begun, texts in alike.items():
            sizes = set(map(len, texts))
            if len(self._texts) < _MANY or len(begun) < KEY_BYTES or len(sizes) > _MOST_SIZES:
                self._each += texts
            else:
                self._sizes[self._beginnings.add(begun)] = sizes

    def stands_in(self, texts: Sequence[str]) -> bool:
        """Whether one of them stands in one of the texts."""
        return next(self.within(texts), None) is not None

    def within(self, texts: Sequence[str]) -> Iterator[Place]:
        """Every place in texts that none of them ends or begins inside of: by text, then by where it starts."""
        encoded = [in_bytes(text) for text in texts]
        data = b"\0".join(encoded)
        starts = [0, *accumulate(len(each) + 1 for each in encoded)]
        behind: dict[bytes, int] = {}
        text = char = at = 0  # where `at` is in characters
        for start, each in sorted(self._everywhere(data)):
            end = start + len(each)
            number = bisect_right(starts, start) - 1
            if end >= starts[number + 1] or start < behind.get(each, 0):
                continue
            behind[each] = end
            if number != text or at < starts[number]:
                text, char, at = number, 0, starts[number]
            char += _characters(data, at, start)
            at = start
            sought = self._texts[each]
            yield Place(number, char, char + len(sought), sought)

    def _everywhere(self, data: bytes) -> Iterator[tuple[int, bytes]]:
        """Where one of them stands in joined texts, in no order."""
        for each in self._each:
            at, step = data.find(each), 1 if b"\0" in each else len(each)  # what lies over two texts is none
            while at >= 0:
                yield at, each
                at = data.find(each, at + step)
        if self._sizes:
            for at, key in self._beginnings.within(data):
                for size in self._sizes.get(key, ()):
                    if (each := data[at : at + size]) in self._texts:
                        yield at, each

    @override
    def __repr__(self) -> str:
        return f"Sought({len(self._texts)} texts)"


def _characters(data: bytes, start: int, end: int) -> int:
    """How many characters a part of a text in UTF-8 has."""
    part = data[start:end]
    return len(part) if part.isascii() else len(part.decode("utf-8", "surrogatepass"))
