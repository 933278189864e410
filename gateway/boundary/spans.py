"""Where a match stands: from what fingerprints cover to what a reader would call the copied text.

Not every run of words has a fingerprint that was kept, so what was copied may begin before the first hit and end after
the last. How far at most is known: a run that would have been kept and that nobody has is not copied whole. Lines that
a hit touches go, and those next to them that lie within that; of a line that is longer than `REACH` only the words do.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from gateway.boundary.evidence import Diagonals, Found, flat
from gateway.boundary.hits import Hits, Items
from gateway.boundary.reading import Reader
from gateway.boundary.shingles import SHAPE
from gateway.boundary.words import Places

GAP: Final = 8
"""Lines between two stretches of one diagonal that go with them: as many words stand there in the source, changed."""
MORE: Final = 10
"""Lines before and after that are taken along at most: what everybody has neither is the copy's nor ends it."""
_MORE_SHAPES: Final = 4  # of them where only the shape is known, which tells less exactly where a copy ends
REACH: Final = 160
"""Bytes up to the end of a line that are taken along."""

_NEARLY: Final = 32  # bytes that tokens may mark beyond the words of a copy in which no word was changed
_EXACT: Final = 16  # words from which that is seen
_NEAR: Final = 2  # lines from a strong match up to which a weak one counts
_FEW: Final = 4  # tokens at the edge that look like the source's though their line is not a copy
_BEFORE_STRINGS: Final = (b"[", b"{", b":", b",")
_AFTER_STRINGS: Final = (b"]", b"}", b":", b",")
_NEWLINE: Final = 10
_TRAILING: Final = b" \t\r\n\\"


class _Runs(NamedTuple):
    """What diagonals of one kind mark, without great gaps: the finding of each, its first item and its last.

    `whole` is set where every run of the source is kept, `strong` where they mark by themselves, and `exact`
    where nothing in them is changed.
    """

    of: Places
    first: Places
    last: Places
    whole: NDArray[np.bool_]
    strong: NDArray[np.bool_]
    exact: NDArray[np.bool_]


class _Spans(NamedTuple):
    """Spans in the buffer, in order of their findings and places; those of one finding do not touch."""

    of: Places
    starts: Places
    ends: Places

    @classmethod
    def none(cls) -> _Spans:
        nothing = np.zeros(0, np.int64)
        return cls(nothing, nothing, nothing)

    def corrected(
        self, runs: _Runs, items: Items, starts: Places, ends: Places, nearly: int
    ) -> tuple[Places, Places]:
        """The spans of runs of tokens, which end where these do that are of words, if they end so few bytes beyond.

        Whatever names follow a copy look like those of the source to tokens, so of the two its words tell better.
        """
        if not len(self.of) or not len(runs.of):
            return starts, ends
        first, last = items.starts[runs.first], items.ends[runs.last]
        far = int(max(self.ends.max(), last.max())) + 2
        places, reaches = self.starts + self.of * far, self.ends + self.of * far
        # The first span that ends behind the beginning, and the last that begins before the end.
        opening = np.minimum(np.searchsorted(reaches, first + runs.of * far, side="right"), len(places) - 1)
        closing = np.maximum(np.searchsorted(places, last + runs.of * far) - 1, 0)
        early = (
            (self.of[opening] == runs.of)
            & (first + nearly >= self.starts[opening])
            & (self.starts[opening] < last)
        )
        late = (
            (self.of[closing] == runs.of)
            & (last - nearly <= self.ends[closing])
            & (self.ends[closing] > first)
        )
        return np.where(early, self.starts[opening], starts), np.where(late, self.ends[closing], ends)

    @classmethod
    def all(cls, parts: Sequence[_Spans]) -> _Spans:
        """The spans of all parts, one part after the other."""
        return cls(*(np.concatenate(column) for column in zip(*parts, strict=True)))

    def near(self, strong: NDArray[np.bool_], newlines: Places) -> _Spans:
        """These, joined, but for those that are not strong and stand apart from the strong ones of their finding.

        Idioms that lie on one diagonal by chance do so anywhere; what remains of a changed copy lies beside the rest.
        """
        far = len(newlines) + 2 * _NEAR + 2  # lines, so that other findings are apart
        low = np.searchsorted(newlines, self.starts) + self.of * far
        high = np.searchsorted(newlines, self.ends) + self.of * far
        order = np.argsort(low[strong])
        reach = np.append(-_NEAR, np.maximum.accumulate(high[strong][order]))
        before = np.searchsorted(low[strong][order], high + _NEAR, side="right")
        some = strong | (reach[before] >= low - _NEAR)
        return _Spans.none().joined(_Spans(self.of[some], self.starts[some], self.ends[some]))

    def joined(self, more: _Spans) -> _Spans:
        """These and others; what touches is one."""
        of, starts, ends = _Spans.all([self, more])
        if not len(of):
            return self
        order = np.lexsort((starts, of))
        of, starts, ends = of[order], starts[order], ends[order]
        far = int(ends.max()) + 2  # more than any span is long, so that those of other findings are apart
        reach = np.maximum.accumulate(ends + of * far)
        begins = np.flatnonzero(np.append(True, starts[1:] + of[1:] * far > reach[:-1] + 1))
        return _Spans(of[begins], starts[begins], np.maximum.reduceat(ends, begins))


def lines_of(found: Found, kinds: Sequence[Diagonals], reader: Reader) -> list[list[tuple[int, int]]]:
    """For each finding its spans, in bytes of its text and in order."""
    data = np.frombuffer(reader.data, np.uint8)
    newlines = np.flatnonzero(data == _NEWLINE)
    known = exact = _Spans.none()
    parts, strong = [], []
    for kind, marked, of, sure in zip(kinds, found.marked, found.of, found.strong, strict=True):
        if len(marked):
            runs = _runs(kind, marked, of, sure, newlines)
            lines = _lines(runs, kind.hits, reader, newlines)
            for sure_of, nearly in ((known, 0), (exact, _NEARLY)):
                lines = sure_of.corrected(runs, kind.hits.items, *lines, nearly)
            part = _Spans(runs.of, *lines)
            parts.append(part)
            strong.append(runs.strong)
            known = known.joined(part)
            exact = exact.joined(_Spans(*(column[runs.exact] for column in part)))
    joined = _Spans.all(parts).near(np.concatenate(strong), newlines)
    of, starts, ends = joined
    spans: list[list[tuple[int, int]]] = [[] for _ in found.text]
    begins = reader.begins[found.text].tolist()
    for number, start, end in zip(of.tolist(), starts.tolist(), ends.tolist(), strict=True):
        some, begin = spans[number], begins[number]
        if some and not reader.data[some[-1][1] + begin : start].strip():
            some[-1] = (some[-1][0], max(some[-1][1], end - begin))
        else:
            some.append((start - begin, end - begin))
    return [
        [_trimmed(reader.data, *span, begin) for span in some]
        for some, begin in zip(spans, begins, strict=True)
    ]


def _trimmed(data: bytes, start: int, end: int, begin: int) -> tuple[int, int]:
    """A span without the blanks around it, which may be halves of what is written as an escape."""
    text = data[start + begin : end + begin]
    return end - len(text.lstrip()), start + len(text.rstrip(_TRAILING))


def _runs(kind: Diagonals, marked: Places, of: Places, strong: NDArray[np.bool_], newlines: Places) -> _Runs:
    hits = kind.hits
    number, stretches = flat(kind.begins[marked], kind.begins[marked + 1] - kind.begins[marked])
    first = kind.firsts[stretches]
    last = first + kind.counts[stretches] - 1
    order = np.lexsort((hits.at[first], number))
    number, first, last = number[order], first[order], last[order]
    low, high = hits.item[first], hits.item[last] + hits.width - 1
    new = np.ones(len(number), np.bool_)
    between = np.searchsorted(newlines, hits.items.starts[low[1:]])
    between -= np.searchsorted(newlines, hits.items.ends[high[:-1]])
    new[1:] = (
        (number[1:] != number[:-1]) | (hits.at[first[1:]] - hits.at[last[:-1]] > kind.gap) | (between > GAP)
    )
    begins = np.flatnonzero(new)
    extra = np.append(0, np.cumsum(hits.extra))
    whole = np.add.reduceat(extra[last + 1] - extra[first], begins) > 0
    low, high = low[begins], np.maximum.reduceat(high, begins)
    exact = np.searchsorted(hits.missing, low) == np.searchsorted(hits.missing, high - hits.width + 2)
    return _Runs(
        of[number[begins]],
        low,
        high,
        whole,
        np.maximum.reduceat(strong[number], begins),
        exact & (high - low >= _EXACT),
    )


class _Edges:
    """Where lines begin and end; never beyond the text that each place is in."""

    def __init__(self, newlines: Places, begins: Places, ends: Places) -> None:
        self._newlines, self._begins, self._ends = newlines, begins, ends
        far = int(ends.max(initial=0))
        self._outer = np.concatenate([[-1] * (MORE + 1), newlines, [far] * (MORE + 1)])

    def start(self, places: Places, above: int = 0) -> Places:
        """The first byte of the line of each place, or of one above it."""
        found: Places = self._outer[np.searchsorted(self._newlines, places) + MORE - above] + 1
        np.maximum(found, self._begins, out=found)
        return found

    def end(self, places: Places, below: int = 0) -> Places:
        """The byte after the line of each place, or of one below it."""
        found: Places = self._outer[np.searchsorted(self._newlines, places) + MORE + 1 + below]
        np.minimum(found, self._ends, out=found)
        return found


def _farthest(runs: _Runs, hits: Hits, missing: Places) -> tuple[Places, Places]:
    """The first and the last item that each run can have copied: of each missing one an item at least is not."""
    before = np.append(-1, missing)[np.searchsorted(missing, runs.first)] + 1
    after = np.append(missing, len(hits.items))[
        np.searchsorted(missing, runs.last - hits.width + 1, side="right")
    ]
    return before, after + hits.width - 2


def _lines(runs: _Runs, hits: Hits, reader: Reader, newlines: Places) -> tuple[Places, Places]:
    """The first byte of each run, and the byte after its last, in the buffer."""
    items, text = hits.items, hits.items.texts[runs.first]
    begin, end = reader.begins[text], reader.ends[text]
    low, high = _farthest(runs, hits, hits.missing)
    if runs.whole.any():
        nearer, farther = _farthest(runs, hits, hits.unkept)
        low, high = np.where(runs.whole, nearer, low), np.where(runs.whole, farther, high)
    text_first, text_last = (
        np.searchsorted(items.texts, text),
        np.searchsorted(items.texts, text, "right") - 1,
    )
    low = np.clip(low, text_first, runs.first)
    high = np.clip(high, runs.last, text_last)

    lines = _Edges(newlines, begin, end)
    more = _MORE_SHAPES if hits.width == SHAPE else MORE
    start, stop = items.starts[runs.first], items.ends[runs.last]
    own, far = lines.start(start), lines.start(items.starts[low])
    # Whether the line of the farthest item that may be copied begins with it; else the next line does.
    whole = (low == text_first) | (items.starts[low - 1] < far)
    far = np.where(whole, far, lines.end(items.starts[low]) + 1)
    starts = np.minimum(own, np.maximum(far, lines.start(start, more)))
    if hits.width == SHAPE:  # a few tokens of a line that is not copied whole look alike by chance
        inner = lines.end(start) + 1
        few = (far > own) & (np.searchsorted(items.starts, inner) - runs.first <= _FEW) & (inner < stop)
        starts = np.where(few, inner, starts)
    starts = np.where(start - own > REACH, items.starts[low], starts)
    own, far = lines.end(stop), lines.end(items.ends[high])
    whole = (high == text_last) | (items.starts[np.minimum(high + 1, len(items) - 1)] >= far)
    far = np.where(whole, far, lines.start(items.ends[high] - 1) - 1)
    ends = np.maximum(own, np.minimum(far, lines.end(stop, more)))
    if hits.width == SHAPE:
        inner = lines.start(stop - 1) - 1
        few = (far < own) & (runs.last + 1 - np.searchsorted(items.starts, inner) <= _FEW) & (inner > starts)
        ends = np.where(few, inner, ends)
    ends = np.where(own - stop > REACH, items.ends[high], ends)
    for run in np.flatnonzero(starts < items.starts[low]).tolist():
        starts[run] = _opened(reader.data, int(starts[run]), int(items.starts[low[run]]))
    for run in np.flatnonzero(ends > items.ends[high]).tolist():
        ends[run] = _closed(reader.data, int(items.ends[high[run]]), int(ends[run]))
    return starts, ends


def _opened(data: bytes, start: int, word: int) -> int:
    """The beginning of a span whose first word stands there: within the JSON string that begins on its line, if any."""
    quote = data.rfind(b'"', start, word)
    return quote + 1 if quote >= 0 and data[start:quote].rstrip()[-1:] in _BEFORE_STRINGS else start


def _closed(data: bytes, word: int, end: int) -> int:
    """The end of a span whose last word ends there: within the JSON string that ends on its line, if any."""
    quote = data.find(b'"', word, end)
    return quote if quote >= 0 and data[quote + 1 : end].lstrip()[:1] in _AFTER_STRINGS else end


def characters(text: str, data: bytes, spans: Sequence[tuple[int, int]]) -> tuple[tuple[int, int], ...]:
    """Spans of bytes of the UTF-8 form of a text as spans of its characters. `data` has the length of that form."""
    if len(data) == len(text):
        return tuple(spans)
    whole = text.encode("utf-8", "surrogatepass")
    found, byte, character = [], 0, 0
    for start, end in spans:
        character += _length(whole[byte:start])
        length = _length(whole[start:end])
        found.append((character, character + length))
        character, byte = character + length, end
    return tuple(found)


def _length(data: bytes) -> int:
    """Characters that begin in these bytes."""
    return len(data) - sum(map(data.count, _CONTINUATIONS))


_CONTINUATIONS: Final = [bytes([b]) for b in range(0x80, 0xC0)]
