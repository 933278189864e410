"""What a view is: a decoded or folded form of a region of a text, with a map back to the region."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import override

MAX_REGION = 65_536
"""Characters of a text that one view of an escape or a join may cover; what follows is the next view."""


@dataclass(slots=True)
class Pieces:
    """A map from decoded to source offsets in runs.

    Run `i` holds the decoded characters from `decoded[i]`; it came from `source[i]`..`ends[i]`, each of its characters
    from equally many (one, where it was copied; three, where it was percent-encoded).
    """

    decoded: list[int] = field(default_factory=list)
    source: list[int] = field(default_factory=list)
    ends: list[int] = field(default_factory=list)
    parts: list[str] = field(default_factory=list)
    size: int = 0

    def add(self, text: str, start: int, end: int) -> None:
        """Append decoded `text` that came from `start..end` of the source."""
        if text:
            self.decoded.append(self.size)
            self.source.append(start)
            self.ends.append(end)
            self.parts.append(text)
            self.size += len(text)

    def text(self) -> str:
        """The decoded text."""
        return "".join(self.parts)

    def position(self, at: int, *, end: bool) -> int:
        """The source offset of decoded offset `at` (of the character before it, when `end`)."""
        run = max(0, bisect_right(self.decoded, at - 1 if end else at) - 1)
        start, stop = self.source[run], self.ends[run]
        step, rest = divmod(stop - start, len(self.parts[run]))
        if rest:
            return stop if end else start
        return start + step * (at - self.decoded[run])


@dataclass(slots=True)  # made for many a hit, and a frozen one takes three times as long
class View:
    """A decoded form of `start..end` of its source; not to be changed.

    Without `pieces` any part of it stands for the whole region.
    """

    kind: str
    text: str
    start: int
    end: int
    pieces: Pieces | None = None

    def span(self, start: int, end: int) -> tuple[int, int]:
        """The part of the source that decoded characters `start..end` came from; never empty, inside the region."""
        if self.pieces is None:
            return self.start, self.end
        low = self.pieces.position(start, end=False)
        high = self.pieces.position(max(end, start + 1), end=True)
        return low, max(high, low + 1)

    @override
    def __repr__(self) -> str:
        return f"View({self.kind}, {self.start}..{self.end}, {len(self.text)} chars)"


type Finder = Callable[[str, int], View | None]
"""Looks at a trigger hit (a text, and where the hit ended) and gives the view of the region round it, or None.

A view without text says that the region was read and holds nothing, so that later hits in it are passed over."""


@dataclass(frozen=True, slots=True)
class ViewRule:
    """One kind of view: what triggers it (bounded expressions, seen by the pattern engine) and how it is made.

    A guarded one is scanned only where a known token can begin in it: its trigger is frequent in any program. A
    caseless one is triggered by letters of either case.
    """

    kind: str
    triggers: tuple[str, ...]
    find: Finder
    guarded: bool = False
    caseless: bool = False


def unescape(
    kind: str,
    text: str,
    span: tuple[int, int],
    escape: re.Pattern[str],
    decode: Callable[[re.Match[str]], str | None],
) -> View | None:
    """The view of `span` with every escape decoded; `decode` answers None for what must stay as it is.

    Without text where nothing was decoded: other hits in the span would find nothing either.
    """
    low, high = span
    pieces, at, changed = Pieces(), low, False
    for match in escape.finditer(text, low, high):
        decoded = decode(match)
        if decoded is None:
            continue
        pieces.add(text[at : match.start()], at, match.start())
        pieces.add(decoded, match.start(), match.end())
        at, changed = match.end(), True
    if not changed:
        return View(kind, "", low, high) if low < high else None
    pieces.add(text[at:high], at, high)
    return View(kind, pieces.text(), low, high, pieces)


def around(
    text: str, at: int, stop: re.Pattern[str], *, before: int = 512, after: int = MAX_REGION
) -> tuple[int, int]:
    """The region round `at` that holds no match of the one-character pattern `stop`."""
    low = max(0, at - before)
    earlier = stop.search(text[low:at][::-1])
    low = at - earlier.start() if earlier else low
    following = stop.search(text, at, min(len(text), at + after))
    return low, following.start() if following else min(len(text), at + after)
