"""Which of many known texts may stand in a longer one: all are looked for at once, by their first eight bytes.

A project comes to have a thousand masked values in a dozen forms each, and every new text is compared with all of them.
Searching for one after the other took longer than everything else that is done with a request.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Final, override

import numpy as np

_KEY: Final = 8  # bytes
_BITS: Final = 18
_SHIFT: Final = np.uint64(64 - _BITS)
_MIX: Final = np.uint64(0x9E3779B97F4A7C15)  # 2**64 over the golden ratio: spreads neighbouring keys
_SLICE: Final = 1 << 16  # positions that are hashed at once, so that what is made for it stays in the cache
_LIMIT: Final = 8192


def _nothing() -> np.ndarray[tuple[int], np.dtype[np.bool_]]:
    return np.zeros(1 << _BITS, dtype=np.bool_)


@dataclass(frozen=True, slots=True)
class Index:
    """Values by what their forms begin with. It only grows, and names a value last, when it is found already."""

    indexed: set[str] = field(default_factory=set, repr=False)
    short: set[str] = field(default_factory=set, repr=False)  # values with a form that is shorter than a key
    by_key: dict[int, list[str]] = field(default_factory=dict, repr=False)
    maybe: np.ndarray[tuple[int], np.dtype[np.bool_]] = field(default_factory=_nothing, repr=False)


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
        data = text.encode("utf-8", "surrogatepass")  # character by character, so that a part stays a part
        found = set(index.short)
        for start in range(0, len(data) - _KEY + 1, _SLICE):
            count = min(_SLICE, len(data) - _KEY + 1 - start)
            windows: np.ndarray[tuple[int], np.dtype[np.uint64]] = np.ndarray(
                (count,), np.dtype("<u8"), data, start, (1,)
            )
            for key in set(windows[index.maybe[(windows * _MIX) >> _SHIFT]].tolist()):
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
                data = form.encode("utf-8", "surrogatepass")[:_KEY]
                if len(data) < _KEY:
                    index.short.add(value)
                    continue
                key = int.from_bytes(data, "little")
                index.by_key.setdefault(key, []).append(value)
                index.maybe[(key * int(_MIX) & 0xFFFFFFFFFFFFFFFF) >> int(_SHIFT)] = True
            index.indexed.add(value)
        return index

    @override
    def __repr__(self) -> str:
        return f"Needles({len(self._index.indexed)} values)"
