"""Forms and files: multipart/form-data, URL-encoded forms, and bodies that are files of some media type.

A file that is text is read and rewritten as text, JSON as JSON, JSON lines line by line. What is no text is media whose
structure is checked, a document, or opaque; the policy says what becomes of it. Part names, file names and part headers
are read and never rewritten.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final
from urllib.parse import unquote_plus

from gateway.classify.coded import coded
from gateway.classify.documents import Document, EmptyDocument, JsonDocument, OpaqueDocument, TextDocument
from gateway.classify.lines import KINDS as LINES
from gateway.classify.lines import AnyJson, Find, looks_like_lines, read_lines
from gateway.classify.objects import ContextObject, make
from gateway.classify.regions import Edits, Parts, Region, RegionsDocument
from gateway.classify.unread import judged
from gateway.context import base64text, charset, media, mediatext, multipart
from gateway.context.objects import Block, Channel, Leaf, LeafRole, Limits, ObjectKind, Path
from gateway.errors import BodyError
from gateway.ports import ProviderAdapter

_BINARY: Final = (
    "application/grpc",
    "application/connect+",
    "application/x-protobuf",
    "application/protobuf",
    "application/proto",
)


@dataclass(frozen=True, slots=True)
class Bodies:
    """Reads bodies of one request: `adapter` is its dialect, `find` the dialects at its host."""

    adapter: ProviderAdapter
    find: Find
    limits: Limits

    def read(self, body: bytes, content_type: str) -> Document:
        """The document of a whole body. Raises BodyError where it is not what its type says."""
        kind = media_type(content_type)
        if not body:
            return EmptyDocument()
        if not charset.is_readable(content_type):
            raise BodyError("body.not_utf8")
        if kind.startswith("multipart/"):
            boundary = multipart.boundary(content_type)
            form = kind == "multipart/form-data"
            return self._regions(body, lambda data: self._form(data, boundary, form=form))
        if kind in LINES:
            return self._regions(body, self._lines)
        if _is_json(kind):
            return JsonDocument(body, self.adapter, self.limits)
        # Whatever the type says, servers read JSON where it stands (curl sends it as a form).
        if body.lstrip()[:1] in (b"{", b"[") and (document := self._json(body)) is not None:
            return document
        if kind == "application/x-www-form-urlencoded":
            return FixedDocument(body, urlencoded(body, self.adapter), ("form",))
        return self._file(body, kind, "", ObjectKind.TEXT)

    def _json(self, body: bytes) -> JsonDocument | None:
        """A body that is JSON without saying so; None where it is not. Raises BodyError for JSON that must not pass."""
        try:
            return JsonDocument(body, self.adapter, self.limits)
        except BodyError as error:
            if error.code not in {"body.malformed", "body.not_utf8"}:
                raise
        return None

    def _regions(self, body: bytes, read: Callable[[bytes], Parts]) -> RegionsDocument:
        return RegionsDocument(body, read, self.limits.max_objects)

    def _lines(self, body: bytes) -> Parts:
        return read_lines(body, self.adapter, self.find, self.limits)

    def _form(self, body: bytes, boundary: str, *, form: bool) -> Parts:
        regions, fixed = [], []
        for number, part in enumerate(multipart.parse(body, boundary, self.limits, form=form)):
            prefix: Path = ("parts", number)
            fixed.append(_part_names(part, prefix))
            data = body[part.start : part.end]
            if data:
                regions.append(Region(part.start, part.end, prefix, self._part(part, data)))
        return Parts(tuple(regions), tuple(fixed))

    def _part(self, part: multipart.Part, data: bytes) -> Document:
        kind = media_type(part.content_type)
        if not charset.is_readable(part.content_type):
            return UnreadDocument(data, "")
        if part.filename is None and _is_json(kind):
            return JsonDocument(
                data, self.adapter, self.limits
            )  # the request's own parameters, as in /realtime/calls
        if (part.filename or "").lower().endswith((".jsonl", ".ndjson")) or kind in LINES:
            return self._regions(data, self._lines)
        return self._file(data, kind, clean(part.name))

    def _file(
        self, data: bytes, kind: str, name: str, as_kind: ObjectKind = ObjectKind.FORM_PART
    ) -> Document:
        """A file's bytes as text where they are text, else as what they are; a packed file as what is packed."""
        if (
            unpacked := coded(data, self.limits, lambda inner: self._file(inner, "", name, as_kind))
        ) is not None:
            return unpacked
        text = None if kind.startswith(_BINARY) else base64text.printable(data)
        if text is None or (media.sniff(data) and not media.textual(kind)):
            return UnreadDocument(data, kind)
        if text.lstrip()[:1] in {"{", "["}:
            return self._data(data, text, name, as_kind)
        return TextDocument(data, name, as_kind)

    def _data(self, data: bytes, text: str, name: str, as_kind: ObjectKind) -> Document:
        """JSON or JSON lines that a file holds; what only looks like it is text."""
        try:
            if looks_like_lines(text):
                return self._regions(data, self._lines)
            return JsonDocument(data, AnyJson(as_kind), self.limits)
        except BodyError as error:
            if error.code != "body.malformed":
                raise
        return TextDocument(data, name, as_kind)


@dataclass(slots=True)
class UnreadDocument(OpaqueDocument):
    """Bytes that are no text: media of a known structure, a document, or opaque."""

    data: bytes = field(repr=False)
    mime: str

    def __init__(self, data: bytes, mime: str) -> None:
        self.data, self.mime, self.size, self.text = data, mime, len(data), ""
        kind, coverage, reason = judged(data, mime, ObjectKind.OPAQUE)
        block = Block((), kind, Channel.USER, None)
        leaves = [Leaf((), said, LeafRole.STRUCTURAL) for said in mediatext.texts("", data)]
        item = ContextObject(
            block,
            hashlib.sha256(data).digest(),
            len(data),
            leaves=leaves,
            unread=(coverage, reason),
            raw=data,
        )
        self.objects = [item]


@dataclass(slots=True)
class FixedDocument:
    """A body that is read and never rewritten: one object of structural leaves."""

    body: bytes = field(repr=False)
    leaves: list[Leaf] = field(repr=False)
    path: Path
    objects: list[ContextObject] = field(init=False)
    text: str = field(init=False, repr=False)

    def __post_init__(self) -> None:
        self.text = self.body.decode("utf-8", "replace")
        self.objects = [_fixed(self.path, self.leaves)]

    def apply(self, edited: Edits) -> bytes:
        """See Document; nothing here is edited."""
        raise BodyError("redaction.incomplete")

    def again(self, body: bytes) -> list[ContextObject]:
        """See Document."""
        return self.objects


def urlencoded(body: bytes, adapter: ProviderAdapter) -> list[Leaf]:
    """Names and values of an application/x-www-form-urlencoded body (WHATWG URL §5.1)."""
    leaves = []
    for pair in body.decode("utf-8", "replace").split("&"):
        name, _, value = (unquote_plus(piece) for piece in pair.partition("="))
        own = name in adapter.rules.credentials and " " not in value
        leaves += [
            Leaf(("name",), name, LeafRole.STRUCTURAL),
            Leaf(("value",), value, LeafRole.SEALED if own else LeafRole.STRUCTURAL, name[:64]),
        ]
    return [leaf for leaf in leaves if leaf.text]


def _part_names(part: multipart.Part, prefix: Path) -> ContextObject:
    """Name, file name and headers of a part."""
    leaves = [Leaf(("name",), clean(part.name), LeafRole.STRUCTURAL)]
    leaves += [Leaf(("filename",), clean(part.filename or ""), LeafRole.STRUCTURAL)]
    for name, value in part.headers:
        leaves += [
            Leaf(("header",), name, LeafRole.STRUCTURAL),
            Leaf(("header",), clean(value), LeafRole.STRUCTURAL, name[:64]),
        ]
    return _fixed((*prefix, "head"), [leaf for leaf in leaves if leaf.text])


def _fixed(path: Path, leaves: list[Leaf]) -> ContextObject:
    item = make(Block(path, ObjectKind.FORM_PART, Channel.USER, [[leaf.name, leaf.text] for leaf in leaves]))
    item.leaves, item.size = leaves, sum(len(leaf.text) for leaf in leaves)
    return item


def clean(text: str) -> str:
    """A header's text without the stand-ins of bytes that are no UTF-8."""
    return text.encode("utf-8", "surrogateescape").decode("utf-8", "replace")


def media_type(content_type: str) -> str:
    """The media type of a Content-Type value, lower case, without parameters."""
    return content_type.partition(";")[0].strip().lower()


def _is_json(kind: str) -> bool:
    return kind in {"application/json", "text/json"} or kind.endswith("+json")
