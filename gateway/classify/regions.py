"""A body of several parts: each region is a document of its own, and every byte outside an edited region stays.

The objects of a region come out under its prefix, so that a pointer says which part an object stands in; member names
and file names of clients are never part of it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from gateway.classify.documents import Document
from gateway.classify.objects import ContextObject
from gateway.context.findings import Edit
from gateway.context.objects import Leaf, Path
from gateway.errors import BodyError

type Edits = Mapping[int, Sequence[tuple[Leaf, tuple[Edit, ...]]]]


@dataclass(frozen=True, slots=True)
class Region:
    """Bytes `start..end` of a body, read as `document`."""

    start: int
    end: int
    prefix: Path
    document: Document


@dataclass(frozen=True, slots=True)
class Parts:
    """What a reader found in a body: its regions in order, and objects that are scanned and never edited."""

    regions: tuple[Region, ...]
    fixed: tuple[ContextObject, ...] = ()


@dataclass(slots=True)
class RegionsDocument:
    """A body that `read` takes apart. Raises BodyError as `read` does, and body.too_many_objects (413)."""

    body: bytes = field(repr=False)
    read: Callable[[bytes], Parts]
    max_objects: int
    objects: list[ContextObject] = field(init=False)
    text: str = field(init=False, repr=False)
    _parts: Parts = field(init=False)
    _owner: list[tuple[int, int]] = field(
        init=False
    )  # region and index in it, of each object after the fixed ones

    def __post_init__(self) -> None:
        self._parts = self.read(self.body)
        self.objects, self._owner = self._listed(self._parts)
        # Bytes of pictures may stand between texts: a look at this text may err towards reading too much, no more.
        self.text = self.body.decode("utf-8", "replace")

    def _listed(self, parts: Parts) -> tuple[list[ContextObject], list[tuple[int, int]]]:
        objects, owner = list(parts.fixed), []
        for number, region in enumerate(parts.regions):
            for index, item in enumerate(region.document.objects):
                objects.append(replace(item, prefix=(*region.prefix, *item.prefix)))
                owner.append((number, index))
        if len(objects) > self.max_objects:
            raise BodyError("body.too_many_objects", status=413)
        return objects, owner

    def apply(self, edited: Edits) -> bytes:
        """See Document."""
        by_region: dict[int, dict[int, Sequence[tuple[Leaf, tuple[Edit, ...]]]]] = {}
        fixed = len(self._parts.fixed)
        for index, edits in edited.items():
            if index < fixed:
                raise BodyError("redaction.incomplete", "an edit of what is never rewritten")
            number, inner = self._owner[index - fixed]
            by_region.setdefault(number, {})[inner] = edits
        pieces, at = [], 0
        for number, inner_edits in sorted(by_region.items()):
            region = self._parts.regions[number]
            pieces += [self.body[at : region.start], region.document.apply(inner_edits)]
            at = region.end
        return b"".join([*pieces, self.body[at:]])

    def again(self, body: bytes) -> list[ContextObject]:
        """See Document."""
        objects, _ = self._listed(self.read(body))
        if [o.place for o in objects] != [o.place for o in self.objects]:
            raise BodyError("redaction.incomplete", "the edited body has other objects")
        return objects
