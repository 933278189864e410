"""Runs: the end of one text and the start of the next as one text, and where each piece of it stands.

A text that is short stands in a run whole and the run goes on behind it, so that a value cut into many small parts is
whole in one run, and every character is read at most twice.
"""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import accumulate
from typing import Final, override

from gateway.classify.spans import Spans, overlapping, uncovered
from gateway.context.findings import Finding, ScanResult
from gateway.context.objects import Leaf, LeafRole, Path

NEAR: Final = 160  # characters of each side that a run holds
FAR: Final = 8192  # of those sides where something begins or ends that is longer
_INSIDE: Final = 1024  # of each side between parts of one object, which are read together once
_CONTEXT: Final = 80  # characters behind a seam in which what stands before it still is context
_LONG_HEAD: Final = "PRIVATE KEY-----"  # what begins here goes on for thousands of characters
_BUDGET: Final = "budget"
_WORD: Final = re.compile(r"[A-Z]?[a-z]{0,15}(?:[A-Z][a-z]{2,15})*|[A-Z]{1,16}|[0-9]{1,4}")
_BETWEEN_WORDS: Final = re.compile(r"[^A-Za-z0-9]+")
_BREAK: Final = re.compile(r"[^A-Za-z0-9_+/=.~-]")  # what stands in no long token
_CODES: Final = re.compile(
    r"[0-9a-fA-FxXu\\%&#;{}()\[\],.:+\s-]*"
)  # what lists of codes and escapes are made of


@dataclass(slots=True)
class Part:
    """Characters `start..end` of a leaf's text (`whole`); `owner` numbers the texts of whoever makes runs."""

    owner: int
    leaf: int
    role: LeafRole
    whole: str = field(repr=False)
    start: int
    end: int

    @property
    def size(self) -> int:
        """In characters."""
        return self.end - self.start

    def cut(self, start: int, end: int) -> Part:
        """Other characters of the same leaf."""
        return Part(self.owner, self.leaf, self.role, self.whole, start, end)


type Piece = tuple[Part, int, int]
"""Where a piece of a finding stands: its part, and the span in the text of the part's leaf."""


@dataclass(slots=True)
class Run:
    """Parts in order, the owners whose front seam stands in it, and its text once it is closed."""

    parts: list[Part]
    seams: list[int]
    text: str = field(default="", repr=False)
    starts: list[int] = field(default_factory=list, repr=False)  # where each part begins in the text

    def close(self) -> Run:
        """Make its text; no part comes behind it any more."""
        self.text = "".join([part.whole[part.start : part.end] for part in self.parts])
        self.starts = list(accumulate((part.size for part in self.parts[:-1]), initial=0))
        return self

    def cut(self, result: ScanResult) -> list[int]:
        """The owners over whose front seam something may go on beyond the run."""
        first, last = self.parts[0], self.parts[-1]
        open_left, open_right = first.start > 0, last.end < len(last.whole)
        found = set()
        if open_left and (
            self._goes_on(0, first.size)
            or first.whole.rfind(_LONG_HEAD, max(0, len(first.whole) - FAR), first.end) >= 0
        ):
            found.add(self.seams[0])
        if open_right and self._goes_on(len(self.text) - last.size, len(self.text)):
            found.add(self.seams[-1])
        for finding in result.findings if open_left or open_right else ():
            if (open_left and not finding.start) or (open_right and finding.end == len(self.text)):
                found.add(self.touched(finding)[-1][0].owner)
        return [owner for owner in self.seams if owner in found]

    def _goes_on(self, start: int, end: int) -> bool:
        """Whether what stands there is a part of one long token, or of its characters one by one as codes."""
        return (
            _BREAK.search(self.text, start, end) is None
            or _CODES.fullmatch(self.text, start, end) is not None
        )

    def touched(self, finding: Finding) -> list[tuple[Part, int]]:
        """The parts in which a finding of the run stands, with their offsets."""
        first, behind = bisect_right(self.starts, finding.start) - 1, bisect_left(self.starts, finding.end)
        near = zip(self.parts[first:behind], self.starts[first:behind], strict=True)
        return [(part, at) for part, at in near if finding.start < at + part.size]

    def behind(self, at: int) -> Part | None:
        """The first part that begins at this offset."""
        number = bisect_left(self.starts, at)
        return self.parts[number] if number < len(self.starts) and self.starts[number] == at else None

    @override
    def __repr__(self) -> str:
        return f"Run({len(self.parts)} parts)"


def texts_of(leaves: Sequence[Leaf]) -> list[tuple[int, LeafRole, str]]:
    """The texts of an object that can go on in its neighbours, with their indexes among its leaves."""
    return [
        (index, leaf.role, leaf.text)
        for index, leaf in enumerate(leaves)
        if leaf.role is LeafRole.TEXT and leaf.outer is None
    ]


def inner_runs(leaves: Sequence[Leaf]) -> list[Run]:
    """The runs over the seams inside an object: between parts of one list (`content[0].text`, `content[1].text`)."""
    if len(leaves) < 2:
        return []
    texts = [Part(0, n, role, text, 0, len(text)) for n, role, text in texts_of(leaves)]
    seams = [
        n for n in range(1, len(texts)) if _beside(leaves[texts[n - 1].leaf].path, leaves[texts[n].leaf].path)
    ]
    if not seams:
        return []
    inside = set(seams)
    return runs_over(
        lambda n: [replace(texts[n], owner=n)],
        seams,
        _INSIDE,
        lambda n: n in inside and texts[n].size < _INSIDE,
    )


def _beside(a: Path, b: Path) -> bool:
    """Whether two paths are those of elements of one list."""
    if len(a) != len(b):
        return False
    differing = [(x, y) for x, y in zip(a, b, strict=True) if x != y]
    return len(differing) == 1 and all(isinstance(each, int) for each in differing[0])


def runs_over(
    parts_of: Callable[[int], Sequence[Part]],
    owners: Sequence[int],
    reach: int,
    reaches_beyond: Callable[[int], bool],
) -> list[Run]:
    """The runs over the seams before these owners, in ascending order.

    `parts_of` gives the whole texts of an owner; `reaches_beyond` whether a run may go on past one, which stands in it
    whole then.
    """
    runs: list[Run] = []
    for owner in owners:
        here = parts_of(owner)
        if not here:
            continue
        if runs and runs[-1].parts[-1].owner == owner - 1 == runs[-1].seams[-1] and reaches_beyond(owner - 1):
            run = runs[-1]
        else:
            tail = _tail(parts_of, owner - 1, reach, reaches_beyond)
            if not tail:
                continue
            run = Run(tail, [])
            runs.append(run)
        whole = len(here) == 1 and reaches_beyond(owner)
        run.parts.append(here[0] if whole or here[0].end <= reach else here[0].cut(0, reach))
        run.seams.append(owner)
    return [run.close() for run in runs]


def _tail(
    parts_of: Callable[[int], Sequence[Part]], owner: int, reach: int, reaches_beyond: Callable[[int], bool]
) -> list[Part]:
    """The last `reach` characters up to the end of an owner's texts."""
    parts: list[Part] = []
    room = reach
    while owner >= 0 and room > 0:
        here = parts_of(owner)
        if here:
            last = here[-1]
            start = max(0, last.end - room)
            parts.insert(0, last.cut(start, last.end) if start else last)
            room -= last.end - start
        if len(here) > 1 or not reaches_beyond(owner):
            break
        owner -= 1
    return parts


def pieces_of(
    run: Run,
    result: ScanResult,
    own: Sequence[tuple[int, int]],
    known: Callable[[int], Spans],
) -> Iterator[tuple[Finding, int, list[Piece]]]:
    """What lies over a seam, or beside one and owes itself to what stands on its other side.

    Yields the finding, the owner behind the last seam that it needs, and its pieces: without what is known to be found
    in an owner by itself, and without placeholders (`own`, spans in the run in ascending order). A value that is known
    to be whole in its own text does not go on in the first word of the next one.
    """
    for finding in result.findings:
        touched = run.touched(finding)
        newest = -1 if finding.type == _BUDGET else _newest(run, finding, touched)
        if newest < 0:
            continue
        pieces: list[Piece] = []
        for part, at in touched:
            shift = part.start - at
            low, high = max(finding.start + shift, part.start), min(finding.end + shift, part.end)
            covered = [*known(part.owner).get(part.leaf, ())]
            covered += [(a + shift, b + shift) for a, b in overlapping(own, at, at + part.size)]
            pieces += [(part, a, b) for a, b in uncovered(low, high, covered) if part.whole[a:b].strip()]
        if pieces and not _are_neighbours(run, finding, touched, pieces):
            yield finding, newest, pieces


def _are_neighbours(
    run: Run, finding: Finding, touched: Sequence[tuple[Part, int]], pieces: Sequence[Piece]
) -> bool:
    """Whether a part of the finding is found by itself, and the rest is words that only stand beside it."""
    beside = {id(part) for part, _, _ in pieces}
    by_itself = [
        (part, at)
        for part, at in touched
        if id(part) not in beside
        and run.text[max(at, finding.start) : min(at + part.size, finding.end)].strip()
    ]
    is_a_number = not any(map(str.isalpha, run.text[finding.start : finding.end]))
    return (
        bool(by_itself)
        and not is_a_number
        and all(_reads_as_words(part.whole, a, b) for part, a, b in pieces)
    )


def _reads_as_words(whole: str, start: int, end: int) -> bool:
    """Whether what stands there is words, names and short numbers, and not the rest of a token."""
    return all(_WORD.fullmatch(word) for word in _BETWEEN_WORDS.split(whole[start:end]))


def _newest(run: Run, finding: Finding, touched: Sequence[tuple[Part, int]]) -> int:
    """The owner behind the last seam that a finding lies over or beside; -1 where it lies by none."""
    if len(touched) > 1:
        return touched[-1][0].owner
    part, at = touched[0]
    following = run.behind(at + part.size)
    if following is not None and at + part.size - finding.end <= _CONTEXT:
        return following.owner
    return part.owner if part is not run.parts[0] and finding.start - at <= _CONTEXT else -1
