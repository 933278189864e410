"""Text that lies in documents and in token ids, taken out before the evaluation, so that detectors see it.

Where nothing can take it out, the policy for what is unread decides, as everywhere.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Final

from gateway.classify.documents import Document
from gateway.classify.objects import ContextObject
from gateway.classify.reading import Reader
from gateway.context import base64text, media, walk
from gateway.context.objects import Leaf, LeafRole, Limits, ObjectKind, Path, WalkRules
from gateway.ports import DocumentReader, TokenReader
from gateway.providers.tokenids import lists_of

_PDF: Final = "application/pdf"
_ENCODED_PDF: Final = "JVBERi"  # base64 of `%PDF`
_MAX_DOCUMENTS: Final = 16  # of one request; further ones stay unread


@dataclass(frozen=True, slots=True)
class Extraction:
    """What there is to take texts out with; None: nothing."""

    tokens: TokenReader | None = None
    documents: DocumentReader | None = None

    def _token_ids(self, objects: Iterable[ContextObject], model: str) -> None:
        """Give objects of token ids their text."""
        for item in objects:
            lists = lists_of(item.block.value) if item.block.kind is ObjectKind.OPAQUE else None
            if self.tokens is None or lists is None:
                continue
            texts = [self.tokens.text(model, ids) for ids in lists]
            if all(text is not None for text in texts):
                item.leaves = [Leaf((n,), text, LeafRole.EXTRACTED) for n, text in enumerate(texts) if text]
                item.whole = frozenset({()})

    async def texts(self, document: Document, model: str, reader: Reader, deadline_us: int) -> None:
        """Give objects of token ids and objects that hold a PDF their text, but for those whose findings are known."""
        self._token_ids(document.objects, model)
        rules, limits = reader.rules, reader.limits
        if self.documents is None:
            return
        left = _MAX_DOCUMENTS
        for item in document.objects:
            if media.sniff(item.raw) == _PDF and left:
                left -= 1
                text, whole = await self.documents.read(item.raw, deadline_us=deadline_us)
                item.leaves = [*(item.leaves or ()), *([Leaf((), text, LeafRole.EXTRACTED)] if text else [])]
                item.unread = None if whole else item.unread
        for item in document.objects if _ENCODED_PDF in document.text else ():
            if item.leaves is None and reader.cache.get(reader.key(item)) is None:
                left -= await self._encoded(item, rules, limits, left, deadline_us)

    async def _encoded(
        self, item: ContextObject, rules: WalkRules, limits: Limits, left: int, deadline_us: int
    ) -> int:
        """Read what PDF an object holds in base64, at most `left`; how many that were."""
        leaves = walk.leaves(item.block, item.rules or rules, limits)
        if self.documents is None:
            return 0
        found = [(leaf, data) for leaf in leaves if (data := _pdf_of(leaf))][:left]
        for leaf, data in found:
            text, whole = await self.documents.read(data, deadline_us=deadline_us)
            leaves += [replace(leaf, text=text, role=LeafRole.EXTRACTED)] if text else []
            item.whole |= {leaf.path} if whole and leaf.outer is None else frozenset[Path]()
        item.leaves = leaves if found else None
        return len(found)


def _pdf_of(leaf: Leaf) -> bytes:
    encoded = base64text.decode(leaf.text) if leaf.role is LeafRole.MEDIA else None
    return encoded.data if encoded is not None and media.sniff(encoded.data) == _PDF else b""
