"""Bodies as documents: a list of objects, and the bytes that result from edits. Everything outside an edit is kept.

JsonDocument    one JSON text of a known or unknown dialect
EmptyDocument   no body
OpaqueDocument  bytes that nobody here can read: one object without leaves, which the policy judges
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol, override

from gateway.classify.objects import ContextObject, LeafFinding, make
from gateway.context import jsontext, splice
from gateway.context.findings import Edit
from gateway.context.objects import Block, Channel, Leaf, LeafRole, Limits, ObjectKind
from gateway.errors import BodyError
from gateway.ports import ProviderAdapter


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


@dataclass(slots=True)
class JsonDocument:
    """A JSON body of one dialect."""

    body: bytes = field(repr=False)
    adapter: ProviderAdapter
    limits: Limits
    objects: list[ContextObject] = field(init=False)
    text: str = field(init=False, repr=False)

    def __post_init__(self) -> None:
        self.objects = self._read(self.body)
        self.text = self.body.decode("utf-8")

    def _read(self, body: bytes) -> list[ContextObject]:
        value = jsontext.parse(body, self.limits)
        blocks = self.adapter.blocks(value)
        if len(blocks) > self.limits.max_objects:
            raise BodyError("body.too_many_objects", status=413)
        return [make(block) for block in blocks]

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
        objects = self._read(body)
        if [o.block.path for o in objects] != [o.block.path for o in self.objects]:
            raise BodyError("redaction.incomplete", "the edited body has other objects")
        return objects


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


CREDENTIAL_HEADERS = frozenset(
    {
        b"authorization", b"proxy-authorization", b"cookie", b"x-api-key", b"api-key", b"x-goog-api-key",
        b"x-amz-security-token", b"x-amz-date", b"x-amz-content-sha256", b"x-goog-iam-authorization-token",
        b"ocp-apim-subscription-key", b"x-subscription-token", b"openai-organization", b"openai-project",
        b"statsig-api-key",  # Codex, to ab.chatgpt.com
    }
)  # fmt: skip
"""Headers by which a call names itself to its own provider: they go there untouched and are no findings."""

PLUMBING_HEADERS = frozenset(
    {
        b"host", b"content-length", b"transfer-encoding", b"connection", b"accept", b"accept-encoding",
        b"accept-language", b"content-type", b"content-encoding", b"user-agent", b"expect", b"te", b"upgrade",
        b"sec-websocket-key", b"sec-websocket-version", b"sec-websocket-extensions", b"sec-websocket-protocol",
        b"traceparent", b"tracestate", b"proxy-connection",
    }
)  # fmt: skip

CREDENTIAL_QUERY = frozenset({"key", "api-key", "api_key", "access_token", "subscription-key"})


def envelope(target: str, headers: Sequence[tuple[bytes, bytes]]) -> list[ContextObject]:
    """The request target and the headers that are no credentials, as objects that are scanned and never rewritten."""
    path, _, query = target.partition("?")
    leaves = [Leaf(("path",), path, LeafRole.STRUCTURAL, "path")]
    for pair in query.split("&") if query else ():
        name, _, value = pair.partition("=")
        if name.lower() not in CREDENTIAL_QUERY:
            leaves.append(Leaf(("query",), value or pair, LeafRole.STRUCTURAL, name[:64]))
            leaves.append(Leaf(("query",), name, LeafRole.STRUCTURAL))
    objects = [_envelope_object(ObjectKind.TARGET, leaves)]
    header_leaves = [
        Leaf(("header",), value.decode("latin-1"), LeafRole.STRUCTURAL, name.decode("latin-1").lower()[:64])
        for name, value in headers
        if name.lower() not in CREDENTIAL_HEADERS and name.lower() not in PLUMBING_HEADERS
    ]
    header_leaves += [
        Leaf(("header",), name.decode("latin-1"), LeafRole.STRUCTURAL)
        for name, _ in headers
        if name.lower() not in CREDENTIAL_HEADERS and name.lower() not in PLUMBING_HEADERS
    ]
    header_leaves += [
        Leaf(("header",), value.decode("latin-1"), LeafRole.STRUCTURAL, "user-agent")
        for name, value in headers
        if name.lower()
        in (b"user-agent", b"accept", b"accept-language", b"content-type", b"traceparent", b"tracestate")
    ]
    if header_leaves:
        objects.append(_envelope_object(ObjectKind.HEADER, header_leaves))
    return objects


def _envelope_object(kind: ObjectKind, leaves: list[Leaf]) -> ContextObject:
    block = Block((str(kind),), kind, Channel.OTHER, [[leaf.name, leaf.text] for leaf in leaves])
    item = make(block)
    item.leaves = leaves
    item.size = sum(len(leaf.text) for leaf in leaves)
    return item


def edits_of(findings: Sequence[LeafFinding], leaves: Sequence[Leaf]) -> list[tuple[Leaf, tuple[Edit, ...]]]:
    """The edits of one object, by leaf, each finding replaced by its placeholder."""
    by_leaf: dict[int, list[Edit]] = {}
    for finding in findings:
        by_leaf.setdefault(finding.leaf, []).append(Edit(finding.start, finding.end, finding.token))
    return [(leaves[index], tuple(edits)) for index, edits in sorted(by_leaf.items())]
