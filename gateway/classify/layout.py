"""The caller's own JSON laid out as text again, so that a value is read beside what names it in another member.

Leaves are scanned one by one, each with the name of its own member. `{"name": "DB_PASSWORD", "value": "..."}`, the data
of a Kubernetes Secret, `"auth"` below `"auths"` and an option before its argument are told by members around the value,
and the rules for them read text. JSON that a tool returns or a call carries is therefore read a second time as it would
stand in a file, without the long strings, which hold their context themselves.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Final, override

from gateway.classify.runs import Part, Piece
from gateway.classify.spans import Spans, overlapping, uncovered
from gateway.context.findings import Category, Finding, ScanResult
from gateway.context.objects import Leaf, LeafRole, Path

_LONGEST: Final = 4096  # characters of a string that is laid out; longer ones stand there as "..."
_LEFT_OUT: Final = "..."
_NEAR: Final = ", "  # behind what names the next: an option among elements, a name among members
_FAR: Final = ",\n" + " " * 48  # behind all else: farther than a label reaches
_SHORT: Final = 8  # characters of an element that is no datum, so that many of them do not blow the text up
_NAMING: Final = re.compile(
    r".{0,40}(?:name|key|kind|type|label|field|title|variable|header|option)|id|env|kty|crv|[xyne]",
    re.IGNORECASE,
)
_FEWEST: Final = 2  # a name and its value are read together anyway
_QUOTED: Final = frozenset({LeafRole.TEXT, LeafRole.NAME})
_TOLD: Final = frozenset({Category.SECRET, Category.PII})
_SHOWN: Final = _QUOTED | {LeafRole.NUMBER}


@dataclass(slots=True)
class Layout:
    """One JSON document as text, and where in it its leaves stand: `starts` ascend, `places` are indexes of leaves."""

    text: str = field(default="", repr=False)
    starts: list[int] = field(default_factory=list)
    places: list[int] = field(default_factory=list)

    def touched(self, finding: Finding, leaves: Sequence[Leaf]) -> Iterator[tuple[Part, int, int, int]]:
        """The strings of a finding that may be rewritten: where they begin, and the spans of them that it covers."""
        at = max(0, bisect_right(self.starts, finding.start) - 1)
        while at < len(self.starts) and self.starts[at] < finding.end:
            start, index = self.starts[at], self.places[at]
            leaf = leaves[index]
            low, high = max(0, finding.start - start), min(len(leaf.text), finding.end - start)
            if leaf.role is LeafRole.TEXT and low < high and leaf.text[low:high].strip():
                yield Part(0, index, leaf.role, leaf.text, 0, len(leaf.text)), start, low, high
            at += 1

    @override
    def __repr__(self) -> str:
        return f"Layout({len(self.starts)} leaves)"


def layouts(leaves: Sequence[Leaf]) -> list[Layout]:
    """The documents among the leaves of an object that hold more than a name and its value.

    They are JSON in strings, and free-form JSON from a member's name on.
    """
    documents: dict[int | Path, tuple[int, list[int]]] = {}
    free: Path | None = None
    for index, leaf in enumerate(leaves):
        if leaf.outer is not None:
            documents.setdefault(id(leaf.outer), (0, []))[1].append(index)
            continue
        if leaf.role is LeafRole.NAME and (free is None or leaf.path[: len(free)] != free):
            free = leaf.path[:-1]
        if free is not None and leaf.path[: len(free)] == free:
            documents.setdefault(free, (len(free), []))[1].append(index)
    return [
        _laid_out(leaves, root, indexes)
        for root, indexes in documents.values()
        if sum(leaves[index].role in _QUOTED for index in indexes) > _FEWEST
    ]


def pieces(
    layout: Layout,
    leaves: Sequence[Leaf],
    result: ScanResult,
    own: Sequence[tuple[int, int]],
    known: Spans,
) -> Iterator[tuple[Piece, Finding]]:
    """What was found in a layout and in none of its leaves by itself.

    Where its budget ran out, the strings that were not looked at beside each other are covered, as in any text. `own`
    are the placeholders in its text, in ascending order; `known` the spans found in each leaf, by its index.
    """
    for finding in result.findings:
        if finding.category not in _TOLD:
            continue
        for part, start, low, high in layout.touched(finding, leaves):
            covered = [*known.get(part.leaf, ())]
            covered += [(a - start, b - start) for a, b in overlapping(own, start, start + len(part.whole))]
            for a, b in uncovered(low, high, covered):
                if part.whole[a:b].strip():
                    yield (part, a, b), finding


def _laid_out(leaves: Sequence[Leaf], root: int, indexes: Sequence[int]) -> Layout:
    writer = _Writer()
    for index in indexes:
        writer.add(index, leaves[index], leaves[index].path[root:])
    writer.close()
    return Layout("".join(writer.text), writer.starts, writer.places)


class _Writer:
    """Writes names and values in document order, with the brackets that their paths tell of."""

    def __init__(self) -> None:
        self.text: list[str] = []
        self.starts: list[int] = []
        self.places: list[int] = []
        self._at = 0
        self._last: Path = ()
        self._named = False  # whether a name waits for its value
        self._option = False  # whether an option waits for its argument

    def add(self, index: int, leaf: Leaf, path: Path) -> None:
        """Write a leaf; `path` begins at the root of the document."""
        self._go_to(path, len(leaf.text))
        self._named = leaf.role is LeafRole.NAME
        self._option = leaf.text.startswith("-")
        shown = _shown(leaf)
        self._write('"')
        if shown is not _LEFT_OUT:
            self.starts.append(self._at)
            self.places.append(index)
        self._write(shown)
        self._write('": ' if self._named else '"')

    def close(self) -> None:
        """Close what is open."""
        self._close(0)

    def _go_to(self, path: Path, size: int) -> None:
        last = self._last
        shared = next((n for n, (a, b) in enumerate(zip(last, path, strict=False)) if a != b), len(last))
        if shared < len(last):
            self._close(shared + 1)
            short = size < _SHORT and shared + 1 == len(path)
            self._write(self._between(last[shared], path[shared], short=short))
            shared += 1
        for token in path[shared:]:
            self._write("[" if isinstance(token, int) else "{")
        self._last = path

    def _between(self, before: str | int, token: str | int, *, short: bool) -> str:
        if isinstance(token, int):
            return _NEAR if self._option or short else _FAR
        return _NEAR if not self._named and _NAMING.fullmatch(str(before)) else _FAR

    def _close(self, kept: int) -> None:
        """Close all containers but the outermost `kept`; a name without a value that is a leaf gets null."""
        if self._named:
            self._write("null")
        for token in reversed(self._last[kept:]):
            self._write("]" if isinstance(token, int) else "}")

    def _write(self, text: str) -> None:
        self.text.append(text)
        self._at += len(text)


def _shown(leaf: Leaf) -> str:
    """What stands in a layout for a leaf: its text without a last line end, if that is short and needs no escape."""
    text = leaf.text.rstrip("\r\n")
    plain = leaf.role in _SHOWN and len(text) <= _LONGEST and '"' not in text and "\n" not in text
    return text if plain else _LEFT_OUT
