"""Whole words turned round or rotated: reversed text, rot13 and rot47."""

from __future__ import annotations

import codecs
import re
from typing import override

from gateway.context.views.form import Pieces, View, around

_HEAD = 80  # characters that a head may need
_GROUPED = 48  # characters of the longest IBAN in groups, and of what stands before it
_GROUPS = re.compile(r"(?<![0-9A-Za-z])[0-9A-Za-z]{1,4}(?: [0-9A-Za-z]{4}){2,8}\Z")
_SPACE = re.compile(r"\s")
_ROT47 = {33 + i: 33 + (i + 47) % 94 for i in range(94)}
_BREAKS = re.compile(r"[\s\"'`<>,;\\]")
_ESCAPED = frozenset("nrt")


def reversed_word(text: str, at: int, *, past: int = 0) -> View | None:
    """The word round `at`, last character first; the trigger may have gone on for `past` characters behind it."""
    low, high = _word(text, at - past - 1, 512)
    if high - low < 8:
        return None
    return ReversedView("reversed", text[low:high][::-1], low, high)


def reversed_groups(text: str, at: int) -> View | None:
    """The groups between single spaces that end before `at`, last character first: `... 0610 38LP`."""
    low = max(0, at - 1 - _GROUPED)
    found = _GROUPS.search(text, low, at - 1)
    return ReversedView("reversed", found[0][::-1], found.start(), found.end()) if found else None


def _word(text: str, at: int, after: int) -> tuple[int, int]:
    """The word round `at`, without the letter of an escape before it (a line end as JSON writes it)."""
    low, high = around(text, at, _BREAKS, after=after)
    escaped = text[low - 1 : low] == "\\" and text[low : low + 1] in _ESCAPED
    return (low + 1 if escaped and low < at else low), high


class ReversedView(View):
    """A view whose offsets run the other way."""

    @override
    def span(self, start: int, end: int) -> tuple[int, int]:
        """See View."""
        return self.end - end, max(self.end - start, self.end - end + 1)


def rot13_word(text: str, at: int) -> View | None:
    """The word round `at`, letters moved by thirteen."""
    low, high = _word(text, at - 1, 2048)
    pieces = Pieces()
    pieces.add(codecs.encode(text[low:high], "rot13"), low, high)
    return View("rot13", pieces.text(), low, high, pieces) if high - low >= 8 else None


def rot47(text: str) -> str:
    """Every visible ASCII character moved by 47 places."""
    return text.translate(_ROT47)


def rot47_word(text: str, at: int, *, size: int, head: re.Pattern[str]) -> View | None:
    """The word, up to a blank, whose first `size` characters end at `at`, moved by 47, where `head` then begins it."""
    low = at - size
    if low < 0 or head.match(rot47(text[low : low + _HEAD])) is None:
        return None
    end = _SPACE.search(text, at, at + 2048)
    high = end.start() if end else min(len(text), at + 2048)
    pieces = Pieces()
    pieces.add(rot47(text[low:high]), low, high)
    return View("rot47", pieces.text(), low, high, pieces)
