"""Which of many known texts may stand in a longer one: all are looked for at once, by their first eight bytes.

A project comes to have a thousand masked values in a dozen forms each, and every new text is compared with all of them.
Searching for one after the other took longer than everything else that is done with a request.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Final, override

import numpy as np
from numpy.typing import NDArray

KEY_BYTES: Final = 8
"""What texts are told apart by begins them: so many bytes."""
_BITS: Final = 18
_SHIFT: Final = np.uint64(64 - _BITS)
_MIX: Final = np.uint64(0x9E3779B97F4A7C15)  # 2**64 over the golden ratio: spreads neighbouring keys
_SLICE: Final = 1 << 16  # positions that are hashed at once, so that what is made for it stays in the cache
_LIMIT: Final = 8192


def in_bytes(text: str) -> bytes:
    """A text in UTF-8, character by character (lone surrogates too), so that a part stays a part."""
    return text.encode("utf-8", "surrogatepass")


class Beginnings:
    """The first bytes of texts, as numbers; a table that lets few others through."""

    def __init__(self) -> None:
        self._maybe = np.zeros(1 << _BITS, dtype=np.bool_)

    def add(self, data: bytes) -> int:
        """The number of what begins a text of at least `KEY_BYTES`; it is looked for from now on."""
        key = int.from_bytes(data[:KEY_BYTES], "little")
        self._maybe[(key * int(_MIX) & 0xFFFFFFFFFFFFFFFF) >> int(_SHIFT)] = True
        return key

    def within(self, data: bytes) -> Iterator[tuple[int, int]]:
        """Where one of them may begin, and its number; those of some others as well."""
        for start, windows, let_through in self._slices(data):
            yield from zip(
                (np.flatnonzero(let_through) + start).tolist(), windows[let_through].tolist(), strict=True
            )

    def among(self, data: bytes) -> set[int]:
        """The numbers of those that occur, and of some others."""
        found: set[int] = set()
        for _, windows, let_through in self._slices(data):
            found.update(windows[let_through].tolist())
        return found

    def _slices(self, data: bytes) -> Iterator[tuple[int, NDArray[np.uint64], NDArray[np.bool_]]]:
        for start in range(0, len(data) - KEY_BYTES + 1, _SLICE):
            count = min(_SLICE, len(data) - KEY_BYTES + 1 - start)
            windows: NDArray[np.uint64] = np.ndarray((count,), np.dtype("<u8"), data, start, (1,))
            yield start, windows, self._maybe[(windows * _MIX) >> _SHIFT]


@dataclass(frozen=True, slots=True)
class Index:
    """Values by what their forms begin with. It only grows, and names a value last, when it is found already."""

    indexed: set[str] = field(default_factory=set, repr=False)
    short: set[str] = field(default_factory=set, repr=False)  # values with a form that is shorter than a key
    by_key: dict[int, list[str]] = field(default_factory=dict, repr=False)
    beginnings: Beginnings = field(default_factory=Beginnings, repr=False)


class Needles:
    """An index over the forms of values. It holds them, in memory alone; `clear` forgets them.

    May be used from several threads: each looks in the index that `add` gave it, which nobody empties.
    """

    def __init__(self, forms: Callable[[str], Iterable[str]]) -> None:
        """`forms` gives the texts by which a value is looked for."""
        self._forms = forms
        self.clear()

    def clear(self) -> None:
        """Forget every value."""
        self._index = Index()

    @staticmethod
    def sift(text: str, index: Index) -> set[str]:
        """The values that may stand in a text in one of their forms: more perhaps, never fewer than do."""
        found = set(index.short)
        for key in index.beginnings.among(in_bytes(text)):
            found.update(index.by_key.get(key, ()))
        return found

    def add(self, values: Sequence[str]) -> Index:
        """Look for these as well from now on: an index in which they are."""
        index = self._index
        new = [value for value in values if value not in index.indexed]
        if len(index.indexed) + len(new) > max(_LIMIT, len(values)):
            index = self._index = Index()
            new = list(values)
        for value in new:
            for form in self._forms(value):
                data = in_bytes(form)
                if len(data) < KEY_BYTES:
                    index.short.add(value)
                else:
                    index.by_key.setdefault(index.beginnings.add(data), []).append(value)
            index.indexed.add(value)
        return index

    @override
    def __repr__(self) -> str:
        return f"Needles({len(self._index.indexed)} values)"
