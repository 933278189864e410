"""Which of many known texts may stand in a longer one: all are looked for at once, by their first eight bytes.

A project comes to have a thousand masked values in a dozen forms each, and every new text is compared with all of them.
Searching for one after the other took longer than everything else that is done with a request.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Final, override

import numpy as np

_KEY: Final = 8  # bytes
_BITS: Final = 18
_SHIFT: Final = np.uint64(64 - _BITS)
_MIX: Final = np.uint64(0x9E3779B97F4A7C15)  # 2**64 over the golden ratio: spreads neighbouring keys
_SLICE: Final = 1 << 16  # positions that are hashed at once, so that what is made for it stays in the cache
_LIMIT: Final = 8192


class Needles:
    """An index over the forms of values. It holds them, in memory alone; `clear` forgets them."""

    def __init__(self, forms: Callable[[str], Iterable[str]]) -> None:
        """`forms` gives the texts by which a value is looked for."""
        self._forms = forms
        self.clear()

    def clear(self) -> None:
        """Forget every value."""
        self._indexed: set[str] = set()
        self._short: set[str] = set()  # values with a form that is shorter than a key
        self._by_key: dict[int, list[str]] = {}
        self._maybe = np.zeros(1 << _BITS, dtype=np.bool_)

    def sift(self, text: str) -> set[str]:
        """The values that may stand in a text in one of their forms: more perhaps, never fewer than do."""
        data = text.encode("utf-8", "surrogatepass")  # character by character, so that a part stays a part
        found = set(self._short)
        for start in range(0, len(data) - _KEY + 1, _SLICE):
            count = min(_SLICE, len(data) - _KEY + 1 - start)
            windows: np.ndarray[tuple[int], np.dtype[np.uint64]] = np.ndarray(
                (count,), np.dtype("<u8"), data, start, (1,)
            )
            for key in set(windows[self._maybe[(windows * _MIX) >> _SHIFT]].tolist()):
                found.update(self._by_key.get(key, ()))
        return found

    def add(self, values: Sequence[str]) -> None:
        """Look for these as well from now on."""
        new = [value for value in values if value not in self._indexed]
        if len(self._indexed) + len(new) > max(_LIMIT, len(values)):
            self.clear()
            new = list(values)
        for value in new:
            self._indexed.add(value)
            for form in self._forms(value):
                data = form.encode("utf-8", "surrogatepass")[:_KEY]
                if len(data) < _KEY:
                    self._short.add(value)
                    continue
                key = int.from_bytes(data, "little")
                self._by_key.setdefault(key, []).append(value)
                self._maybe[(key * int(_MIX) & 0xFFFFFFFFFFFFFFFF) >> int(_SHIFT)] = True

    @override
    def __repr__(self) -> str:
        return f"Needles({len(self._indexed)} values)"
