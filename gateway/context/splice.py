"""Edits as splices: the bytes of a body outside the edited spans stay as they were sent.

A leaf may lie several strings deep (tool arguments are JSON in a string, which may hold JSON in a string
again). Each such document is edited as a text of its own, and the changes become edits of the string that
holds it, so that a replacement is escaped once a level and nothing around it is touched.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from json.decoder import scanstring  # type: ignore[attr-defined]  # the C scanner, not in the stubs

from gateway.context import base64text, jsontext
from gateway.context.findings import Edit
from gateway.context.objects import Leaf, LeafRole, Path
from gateway.errors import BodyError

_NAMES = frozenset({LeafRole.NAME, LeafRole.STRUCTURAL_NAME})


@dataclass(slots=True)
class _Change:
    """What happens to one token: edits in the leaf, and in the document that the leaf holds."""

    leaf: Leaf
    edits: list[Edit] = field(default_factory=list)
    inner: _Document | None = None


@dataclass(slots=True)
class _Document:
    """Changes of one JSON text, by path; member names and values apart."""

    values: dict[Path, _Change] = field(default_factory=dict)
    names: dict[Path, _Change] = field(default_factory=dict)


def apply(text: str, leaf_edits: Iterable[tuple[Leaf, Path, Sequence[Edit]]]) -> str:
    """The JSON text with every edit made.

    Each item is a leaf, the path of its block in the document, and its edits in characters of the leaf's
    text. Edits that overlap are one edit over their union, with the replacement of the one that begins
    first. Numbers become strings. Raises BodyError edit.misplaced when a leaf does not stand where its path
    says, or an edit lies outside.
    """
    document = _Document()
    for leaf, block, edits in leaf_edits:
        if edits:
            _place(document, leaf, block).edits.extend(edits)
    return _spliced(text, _raw_edits(text, document))


def drop(text: str, paths: Iterable[Path]) -> str:
    """The JSON text without the array elements at `paths`, each with exactly one comma.

    Raises BodyError edit.misplaced when a path names no array element.
    """
    gone: dict[Path, set[int]] = {}
    for path in paths:
        if not path or not isinstance(path[-1], int):
            raise BodyError("edit.misplaced")
        gone.setdefault(path[:-1], set()).add(path[-1])
    outermost = [
        array for array in gone if not any(array[n] in gone.get(array[:n], ()) for n in range(len(array)))
    ]
    edges = {(*array, i + step) for array in outermost for i in gone[array] for step in (-1, 0, 1)}
    spans = jsontext.locate(text, [edge for edge in edges if edge[-1] != -1])
    cuts = [cut for array in outermost for cut in _cuts(array, sorted(gone[array]), spans)]
    return _spliced(text, sorted(cuts, key=lambda cut: cut.start))


def merged(edits: Iterable[Edit]) -> list[Edit]:
    """Edits in order, with those that overlap made one: the union, replaced as the first says."""
    result: list[Edit] = []
    for edit in sorted(edits, key=lambda e: (e.start, e.end)):
        if result and edit.start < result[-1].end:
            first = result[-1]
            result[-1] = Edit(first.start, max(first.end, edit.end), first.replacement)
        else:
            result.append(edit)
    return result


def edited(text: str, edits: Iterable[Edit]) -> str:
    """A leaf's text after its edits; raises BodyError edit.misplaced for an edit outside the text."""
    return _spliced(text, merged(edits))


def _place(root: _Document, leaf: Leaf, block: Path) -> _Change:
    chain = [leaf]
    while chain[0].outer is not None:
        chain.insert(0, chain[0].outer)
    document, path = root, (*block, *chain[0].path)
    for outer, within in pairwise(chain):
        change = document.values.setdefault(path, _Change(outer))
        if change.inner is None:
            change.inner = _Document()
        document, path = change.inner, within.path
    changes = document.names if leaf.role in _NAMES else document.values
    return changes.setdefault(path, _Change(leaf))


def _raw_edits(text: str, document: _Document) -> list[Edit]:
    """The changes of a document as edits of its own raw text."""
    result: list[Edit] = []
    for changes, spans in (
        (document.values, jsontext.locate(text, document.values)),
        (document.names, jsontext.locate_names(text, document.names)),
    ):
        if len(spans) != len(changes):
            raise BodyError("edit.misplaced")
        for path, change in changes.items():
            start, end = spans[path]
            result.extend(
                Edit(start + edit.start, start + edit.end, edit.replacement)
                for edit in _token_edits(text[start:end], change)
            )
    return sorted(result, key=lambda e: e.start)


def _token_edits(raw: str, change: _Change) -> list[Edit]:
    """The edits of one leaf as edits of its raw token, escaped for a JSON string."""
    leaf = change.leaf
    inner = [] if change.inner is None else _raw_edits(leaf.text, change.inner)
    edits = merged([*change.edits, *inner])
    if leaf.role is LeafRole.NUMBER:
        if raw[:1] not in "-0123456789":
            raise BodyError("edit.misplaced")
        return [Edit(0, len(raw), jsontext.quote(_spliced(leaf.text, edits)))]
    if raw[:1] != '"':
        raise BodyError("edit.misplaced")
    held: str = scanstring(raw, 1)[0]
    if leaf.role is LeafRole.ENCODED:
        whole = base64text.replace(held, leaf.text, _spliced(leaf.text, edits))
        return [Edit(0, len(raw), jsontext.quote(whole))]
    if held != leaf.text:
        raise BodyError("edit.misplaced")
    return _escaped(raw, len(held), edits)


def _escaped(raw: str, length: int, edits: Sequence[Edit]) -> list[Edit]:
    offsets = [offset for edit in edits for offset in (edit.start, edit.end)]
    if any(edit.start > edit.end for edit in edits) or (
        offsets and not 0 <= offsets[0] <= offsets[-1] <= length
    ):
        raise BodyError("edit.misplaced")
    mapped = jsontext.raw_offsets(raw, offsets)
    return [
        Edit(start, end, jsontext.quote(edit.replacement)[1:-1])
        for start, end, edit in zip(mapped[::2], mapped[1::2], edits, strict=True)
    ]


def _spliced(text: str, edits: Sequence[Edit]) -> str:
    pieces: list[str] = []
    at = 0
    for edit in edits:
        if not at <= edit.start <= edit.end <= len(text):
            raise BodyError("edit.misplaced")
        pieces += (text[at : edit.start], edit.replacement)
        at = edit.end
    pieces.append(text[at:])
    return "".join(pieces)


def _cuts(array: Path, indexes: Sequence[int], spans: dict[Path, tuple[int, int]]) -> list[Edit]:
    """What to cut for runs of elements: with the comma before them, or else with the one after."""
    cuts: list[Edit] = []
    at = 0
    while at < len(indexes):
        first = last = indexes[at]
        while at + 1 < len(indexes) and indexes[at + 1] == last + 1:
            at += 1
            last += 1
        at += 1
        if (*array, first) not in spans or (*array, last) not in spans:
            raise BodyError("edit.misplaced")
        start, end = spans[*array, first][0], spans[*array, last][1]
        if first > 0:
            start = spans[*array, first - 1][1]
        elif (*array, last + 1) in spans:
            end = spans[*array, last + 1][0]
        cuts.append(Edit(start, end, ""))
    return cuts
