"""From a block's value to the leaves that are scanned: one generic walk for every dialect.

A dialect names what must not be read as ordinary text (`WalkRules`); everything else is text, so that block
types nobody has heard of yet are scanned all the same. Strings that hold JSON are read one level at a time,
each level in its own coordinates, so that an edit can be put back through every layer of escaping.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import lru_cache
from typing import Any, Final

from gateway.context import base64text, charset, jsontext, media, mediatext
from gateway.context.objects import Block, Json, Leaf, LeafRole, Limits, ObjectKind, Path, WalkRules
from gateway.errors import BodyError

_MAX_NESTING: Final = 8  # JSON in strings in strings; escapes double every level, so real bodies end at three
_MIN_DIGITS: Final = 7  # shorter numbers hold nothing that a detector knows
_SMALL_FILE: Final = 512  # characters of base64 below which nothing is a file of a type that is not known
_FILES: Final = frozenset({ObjectKind.MEDIA, ObjectKind.DOCUMENT})
_HOLDS_JSON: Final = frozenset({LeafRole.TEXT, LeafRole.ENCODED})
_OPENERS: Final = frozenset("{[ \t\r\n")
_DOCUMENTS: Final = frozenset({"document", "documents"})
_MIMES: Final = ("media_type", "mimeType", "mime_type", "format")
_FORMATS: Final = {
    "wav": "audio/wav",
    "mp3": "audio/mpeg",
    "png": "image/png",
    "jpeg": "image/jpeg",
    "jpg": "image/jpeg",
    "gif": "image/gif",
    "webp": "image/webp",
    "pdf": "application/pdf",
    "mp4": "video/mp4",
    "csv": "text/csv",
    "txt": "text/plain",
    "md": "text/markdown",
    "html": "text/html",
}

type _Holes = dict[str | int, Any] | None


@lru_cache(maxsize=64)
def known_names(rules: WalkRules) -> frozenset[str]:
    """Every member name that the dialect itself defines."""
    return rules.known_names.union(
        rules.structural,
        rules.sealed,
        rules.thinking,
        rules.references,
        rules.media,
        rules.free_form,
        rules.credentials,
    )


def leaves(block: Block, rules: WalkRules, limits: Limits) -> list[Leaf]:
    """The leaves of a block in document order, without those in its holes.

    Strings of no characters and numbers of fewer than seven digits are left out. Raises BodyError
    body.too_many_nodes when strings that hold JSON multiply the values of a body beyond the limit.
    """
    return _Walk(block, rules, limits).run()


def residue(block: Block) -> Json:
    """The block's value with null in place of its holes: what its digest covers."""
    return _without(block.value, _tree(block.holes))


def _without(value: Any, holes: _Holes) -> Json:
    if holes is None:
        whole: Json = value
        return whole
    if not holes:
        return None
    if isinstance(value, dict):
        return {name: _without(member, holes.get(name)) for name, member in value.items()}
    return [_without(element, holes.get(index)) for index, element in enumerate(value)]


def _tree(paths: Iterable[Path]) -> _Holes:
    """Paths as a tree; an empty node is a hole. None: no holes."""
    tree: dict[str | int, Any] = {}
    for path in paths:
        node = tree
        for token in path:
            node = node.setdefault(token, {})
    return tree or None


class _Frame:
    """A container whose members or elements are being read."""

    __slots__ = ("above", "free", "holes", "items", "members", "name", "outer", "path")

    def __init__(
        self, value: dict[str, Any] | list[Any], name: str, path: Path, holes: _Holes, above: _Frame | None
    ) -> None:
        self.members: dict[str, Any] | None = None
        self.items: Iterator[tuple[Any, Any]]
        if isinstance(value, dict):
            self.members = value
            self.items = iter(value.items())
        else:
            self.items = iter(enumerate(value))
        self.name = name  # the nearest member name, which elements of an array inherit
        self.path = path
        self.holes = holes
        self.above = above
        self.free: bool = above is not None and above.free  # the caller's own JSON, where no rule applies
        self.outer: Leaf | None = None if above is None else above.outer

    def mime(self) -> str:
        """The media type that siblings declare, or members further up; empty where none is."""
        frame: _Frame | None = self
        while frame is not None:
            for name in _MIMES if frame.members is not None else ():
                kind = frame.members.get(name) if frame.members is not None else None
                if isinstance(kind, str):
                    return _FORMATS.get(kind.lower(), kind.lower())
            frame = frame.above
        return ""

    def plain(self) -> bool:
        """Whether the data is not encoded: `{"type": "text", "data": ...}`; Cohere's `{"document": {"data": ...}}`."""
        if self.members is None:
            return False
        document = self.name in _DOCUMENTS and not any(name in self.members for name in ("type", *_MIMES))
        return document or self.members.get("type") == "text"


class _Walk:
    def __init__(self, block: Block, rules: WalkRules, limits: Limits) -> None:
        self.block = block
        self.rules = rules
        self.limits = limits
        self.known = known_names(rules)
        self.stack: list[_Frame] = []
        self.found: list[Leaf] = []
        self.nodes = 0

    def run(self) -> list[Leaf]:
        name = next((token for token in reversed(self.block.path) if isinstance(token, str)), "")
        self.value(_Frame([], name, (), None, None), name, (), self.block.value, _tree(self.block.holes))
        stack = self.stack
        while stack:
            frame = stack[-1]
            depth = len(stack)
            for token, value in frame.items:
                self.item(frame, token, value)
                if len(stack) > depth:
                    break  # the child first: document order
            else:
                stack.pop()
        return self.found

    def item(self, frame: _Frame, token: str | int, value: Any) -> None:
        hole = None if frame.holes is None else frame.holes.get(token)
        path = (*frame.path, token)
        if type(token) is not str:
            if hole is None or hole:
                self.value(frame, frame.name, path, value, hole)
            return
        if token not in self.known or frame.free:
            role = LeafRole.NAME if frame.free else LeafRole.STRUCTURAL_NAME
            if token:
                self.found.append(Leaf(path, token, role, frame.name, frame.outer))
        elif type(value) is str and value and hole is None and token in self.rules.structural:
            self.found.append(Leaf(path, value, LeafRole.STRUCTURAL, token, frame.outer))
            return
        if hole is None or hole:
            self.value(frame, token, path, value, hole)

    def value(self, frame: _Frame, name: str, path: Path, value: Any, hole: _Holes) -> None:
        kind = type(value)
        if kind is str:
            if value:
                self.text(frame, name, path, value)
        elif kind is dict or kind is list:
            if value:
                below = _Frame(value, name, path, hole, frame)
                below.free = frame.free or name in self.rules.free_form
                self.stack.append(below)
        elif value is not None and kind is not bool:
            digits = repr(value)
            if len(digits) >= _MIN_DIGITS and sum(map(str.isdigit, digits)) >= _MIN_DIGITS:
                self.found.append(Leaf(path, digits, LeafRole.NUMBER, name, frame.outer))

    def text(self, frame: _Frame, name: str, path: Path, text: str) -> None:
        role, mime, held = self.role(frame, name, text)
        leaf = Leaf(path, held, role, name, frame.outer, mime)
        if held[0] not in _OPENERS or role not in _HOLDS_JSON or not self.nested(leaf):
            self.found.append(leaf)
        if role is LeafRole.MEDIA:
            self.found += [Leaf(path, said, LeafRole.STRUCTURAL, name, frame.outer) for said in _said(leaf)]

    def nested(self, leaf: Leaf) -> bool:
        """Whether the leaf's text is a JSON document; then its own leaves are read instead of it."""
        if leaf.text.lstrip(" \t\r\n")[:1] not in {"{", "["}:
            return False
        if _nesting(leaf) >= _MAX_NESTING:
            return False
        try:
            value = jsontext.parse_text(leaf.text, self.limits)
        except BodyError:
            return False  # not JSON: the text itself is scanned
        self.nodes += leaf.text.count(",") + 1
        if self.nodes > self.limits.max_nodes:
            raise BodyError("body.too_many_nodes")
        below = _Frame(value, leaf.name, (), None, None)  # type: ignore[arg-type]  # the text opens a container
        below.free, below.outer = True, leaf
        self.stack.append(below)
        return True

    def role(self, frame: _Frame, name: str, text: str) -> tuple[LeafRole, str, str]:
        """The role of a string, its declared media type, and the text to scan."""
        uri = base64text.data_uri(text) if text[:5].lower() == "data:" else None
        files = self.block.kind in _FILES
        if uri is not None:
            foreign = not charset.is_readable(uri[0])
            return (LeafRole.MEDIA, uri[1], text) if foreign else _media_role(text, uri[1], files=files)
        rules, kind = self.rules, self.block.kind
        role = LeafRole.TEXT
        if frame.free:
            if name in rules.media and not frame.plain() and _proven(text, mime := frame.mime()):
                return _media_role(text, mime, files=files)
        elif name in rules.credentials and not any(map(str.isspace, text)):
            role = LeafRole.SEALED
        elif name in rules.structural:
            role = LeafRole.STRUCTURAL
        elif name in rules.sealed or kind is ObjectKind.SEALED:
            role = LeafRole.SEALED if media.sealed_ok(text) else LeafRole.STRUCTURAL
        elif name in rules.thinking or kind is ObjectKind.THINKING:
            role = LeafRole.THINKING
        elif (name in rules.media and not frame.plain()) or (kind is ObjectKind.MEDIA and _sniffed(text)):
            return _media_role(text, frame.mime(), files=files)
        elif name in rules.references:
            role = LeafRole.REFERENCE
        return role, "", text


def _media_role(text: str, mime: str, *, files: bool) -> tuple[LeafRole, str, str]:
    """Base64 of text is read as text; the rest is media, and malformed media where it is no base64.

    What is as short as a token and of no structure that could be checked is read as it stands, unless it says its type
    or stands where only `files` do.
    """
    files = files or "/" in mime
    encoded = base64text.decode(text)
    held = None if encoded is None else encoded.text()
    if encoded is None or (
        held is None and " " in text and media.textual(mime)
    ):  # prose can look like base64
        return (LeafRole.TEXT if media.textual(mime) else LeafRole.MEDIA), mime, text
    if held is None or (not media.textual(mime) and media.sniff(encoded.data)):
        small = not files and len(text) < _SMALL_FILE and not media.verifiable(mime, encoded.data)
        return (LeafRole.STRUCTURAL if small else LeafRole.MEDIA), mime, text
    return LeafRole.ENCODED, mime, held


def _said(leaf: Leaf) -> list[str]:
    """What is read of media: its words, and short ones as they stand, as a token can look like base64."""
    encoded = base64text.decode(leaf.text)
    if encoded is None:
        return [leaf.text]
    said = mediatext.texts(leaf.mime, encoded.data)
    small = len(leaf.text) < _SMALL_FILE and not media.verifiable(leaf.mime, encoded.data)
    return [*said, leaf.text] if small else said


def _proven(text: str, mime: str) -> bool:
    """Whether a string inside the caller's own JSON is media beyond doubt (tool results carry pictures)."""
    encoded = base64text.decode(text) if mime else None
    if encoded is None:
        return False
    if media.textual(mime):
        return encoded.text() is not None
    return bool(media.sniff(encoded.data)) and not media.check(mime, encoded.data)


def _sniffed(text: str) -> bool:
    """Whether a string of a media block holds media under a name that holds text elsewhere."""
    encoded = base64text.decode(text)
    return encoded is not None and bool(media.sniff(encoded.data))


def _nesting(leaf: Leaf) -> int:
    depth = 0
    while leaf.outer is not None:
        leaf, depth = leaf.outer, depth + 1
    return depth
