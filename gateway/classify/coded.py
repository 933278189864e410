"""A file that is compressed inside its body: read as what it holds, packed the same way again after an edit."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import override

from gateway.classify.documents import Document
from gateway.classify.objects import ContextObject, make
from gateway.classify.regions import Edits
from gateway.context import encoding
from gateway.context.objects import Block, Channel, Leaf, LeafRole, Limits, ObjectKind
from gateway.errors import BodyError


@dataclass(slots=True)
class CodedDocument:
    """What the codings hold, and first what they carry beside it (file names in gzip), which is never rewritten."""

    inner: Document
    codings: tuple[str, ...]
    limits: Limits
    beside: tuple[ContextObject, ...] = ()
    objects: list[ContextObject] = field(init=False)
    text: str = field(init=False, repr=False)

    def __post_init__(self) -> None:
        self.objects = [*self.beside, *self.inner.objects]
        self.text = self.inner.text

    def apply(self, edited: Edits) -> bytes:
        """See Document."""
        fixed = len(self.beside)
        if any(index < fixed for index in edited):
            raise BodyError("redaction.incomplete", "an edit of what is never rewritten")
        return encoding.encode(
            self.inner.apply({i - fixed: edits for i, edits in edited.items()}), self.codings
        )

    def again(self, body: bytes) -> list[ContextObject]:
        """See Document. What stood beside is gone after an edit; it was judged as it came."""
        decoded = encoding.decode(body, "", self.limits)
        return [*(replace(item) for item in self.beside), *self.inner.again(decoded.body)]

    @override
    def __repr__(self) -> str:
        return f"CodedDocument({','.join(self.codings)})"


def coded(data: bytes, limits: Limits, read: Callable[[bytes], Document]) -> CodedDocument | None:
    """The document that compressed bytes hold; None for others. Raises BodyError where they grow too far."""
    if not encoding.guessed(data):
        return None
    decoded = encoding.decode(data, "", limits)
    if not decoded.codings:
        return None
    return CodedDocument(read(decoded.body), decoded.codings, limits, beside_objects(decoded.beside))


def beside_objects(beside: tuple[bytes, ...]) -> tuple[ContextObject, ...]:
    """What a compressed form carries beside its content, as one object that is read and never rewritten."""
    texts = [piece.decode("latin-1") for piece in beside]
    if not texts:
        return ()
    block = Block(("coding",), ObjectKind.HEADER, Channel.OTHER, [[text] for text in texts])
    item = make(block)
    item.leaves = [Leaf(("coding",), text, LeafRole.STRUCTURAL) for text in texts]
    item.size = sum(map(len, texts))
    return (item,)
