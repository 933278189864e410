"""Bodies as documents: a list of objects, and the bytes that result from edits. Everything outside an edit is kept.

JsonDocument    one JSON text of a known or unknown dialect
TextDocument    plain text: one object
EmptyDocument   no body
OpaqueDocument  bytes that nobody here can read: one object without leaves, which the policy judges

Bodies of several parts are `gateway.classify.regions`; what headers and the request target hold is `envelope`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol, override

from gateway.classify.memory import with_memory
from gateway.classify.objects import ContextObject, LeafFinding, make
from gateway.context import jsontext, splice
from gateway.context.findings import Edit
from gateway.context.objects import Block, Channel, Json, Leaf, LeafRole, Limits, ObjectKind, WalkRules
from gateway.errors import BodyError


class Document(Protocol):
    """A body that has been read."""

    objects: list[ContextObject]
    text: str

    def apply(self, edited: Mapping[int, Sequence[tuple[Leaf, tuple[Edit, ...]]]]) -> bytes:
        """The body with these edits, by object index; raises BodyError where an edit cannot be carried out."""
        ...

    def again(self, body: bytes) -> list[ContextObject]:
        """The objects of an edited body, in the same order; raises BodyError where they are not the same objects."""
        ...


class BodyReader(Protocol):
    """What a dialect says of bodies; every ports.ProviderAdapter is one."""

    @property
    def id(self) -> str:
        """Name of the dialect, under which scans are remembered."""
        ...

    @property
    def version(self) -> str:
        """Of the reader."""
        ...

    @property
    def rules(self) -> WalkRules:
        """How the walk treats its member names."""
        ...

    def blocks(self, body: Json) -> list[Block]:
        """See ports.ProviderAdapter."""
        ...


@dataclass(slots=True)
class JsonDocument:
    """A JSON body of one dialect."""

    body: bytes = field(repr=False)
    adapter: BodyReader
    limits: Limits
    objects: list[ContextObject] = field(init=False)
    text: str = field(init=False, repr=False)

    def __post_init__(self) -> None:
        self.text = jsontext.decode(self.body)
        self.objects = self._read(self.text)

    def _read(self, text: str) -> list[ContextObject]:
        value = jsontext.parse_text(text, self.limits)
        blocks = with_memory(self.adapter.blocks(value))
        if len(blocks) > self.limits.max_objects:
            raise BodyError("body.too_many_objects", status=413)
        rules, dialect = self.adapter.rules, f"{self.adapter.id}/{self.adapter.version}"
        objects = [make(block) for block in blocks]
        for item in objects:
            item.rules, item.dialect = rules, dialect
        return objects

    def apply(self, edited: Mapping[int, Sequence[tuple[Leaf, tuple[Edit, ...]]]]) -> bytes:
        """See Document."""
        leaf_edits = [
            (leaf, self.objects[index].block.path, edits)
            for index, group in edited.items()
            for leaf, edits in group
        ]
        return splice.apply(self.text, leaf_edits).encode("utf-8")

    def again(self, body: bytes) -> list[ContextObject]:
        """See Document."""
        objects = self._read(jsontext.decode(body))
        if [o.block.path for o in objects] != [o.block.path for o in self.objects]:
            raise BodyError("redaction.incomplete", "the edited body has other objects")
        return objects


@dataclass(slots=True)
class TextDocument:
    """A body, a form field or a file that is plain text. `name` is the field's, for the context of what it holds."""

    body: bytes = field(repr=False)
    name: str = ""
    kind: ObjectKind = ObjectKind.FORM_PART
    objects: list[ContextObject] = field(init=False)
    text: str = field(init=False, repr=False)

    def __post_init__(self) -> None:
        self.text = jsontext.decode(self.body)
        self.objects = self._read(self.text)

    def _read(self, text: str) -> list[ContextObject]:
        item = make(Block((), self.kind, Channel.USER, text))
        item.leaves = [Leaf((), text, LeafRole.TEXT, self.name)] if text else []
        return [item]

    def apply(self, edited: Mapping[int, Sequence[tuple[Leaf, tuple[Edit, ...]]]]) -> bytes:
        """See Document."""
        edits = [edit for group in edited.values() for _, each in group for edit in each]
        return splice.edited(self.text, edits).encode("utf-8")

    def again(self, body: bytes) -> list[ContextObject]:
        """See Document."""
        return self._read(jsontext.decode(body))


@dataclass(slots=True)
class EmptyDocument:
    """A request without a body."""

    objects: list[ContextObject] = field(default_factory=list)
    text: str = ""

    def apply(self, edited: Mapping[int, Sequence[tuple[Leaf, tuple[Edit, ...]]]]) -> bytes:
        """See Document; there is nothing to edit."""
        if edited:
            raise BodyError("redaction.incomplete")
        return b""

    def again(self, body: bytes) -> list[ContextObject]:
        """See Document."""
        return []


@dataclass(slots=True)
class OpaqueDocument:
    """Bytes that cannot be read; `size` is their number."""

    size: int
    objects: list[ContextObject] = field(init=False)
    text: str = field(init=False, default="")

    def __post_init__(self) -> None:
        block = Block((), ObjectKind.OPAQUE, Channel.OTHER, None)
        item = make(block)
        item.size, item.leaves = self.size, []
        self.objects = [item]

    def apply(self, edited: Mapping[int, Sequence[tuple[Leaf, tuple[Edit, ...]]]]) -> bytes:
        """See Document; opaque bytes are never edited."""
        raise BodyError("redaction.incomplete")

    def again(self, body: bytes) -> list[ContextObject]:
        """See Document."""
        return self.objects

    @override
    def __repr__(self) -> str:
        return f"OpaqueDocument({self.size} bytes)"


def edits_of(findings: Sequence[LeafFinding], leaves: Sequence[Leaf]) -> list[tuple[Leaf, tuple[Edit, ...]]]:
    """The edits of one object, by leaf, each finding replaced by its placeholder."""
    by_leaf: dict[int, list[Edit]] = {}
    for finding in findings:
        by_leaf.setdefault(finding.leaf, []).append(Edit(finding.start, finding.end, finding.token))
    return [(leaves[index], tuple(edits)) for index, edits in sorted(by_leaf.items())]
