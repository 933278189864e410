"""JSON lines: files of batches, each line a request of its own in the dialect that its `url` names.

Lines are `{"custom_id", "method", "url", "body"}` (OpenAI and those who follow it), `{"key", "request"}` (Gemini), or
the caller's own data. Everything between the values that are edited stays as it is, line ends and blank lines too.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Final

from gateway.classify.documents import BodyReader, JsonDocument
from gateway.classify.regions import Parts, Region
from gateway.context import jsontext
from gateway.context.objects import Block, Channel, Json, Limits, ObjectKind, WalkRules
from gateway.ports import ProviderAdapter

type Find = Callable[[str], ProviderAdapter]
"""The dialect spoken at a path of the request's host."""

KINDS: Final = frozenset(
    {"application/jsonl", "application/x-jsonlines", "application/x-ndjson", "application/json-lines"}
)
_FREE: Final = WalkRules(free_form=frozenset({""}))
_ENVELOPE: Final = frozenset({"custom_id", "method", "url"})


@dataclass(frozen=True, slots=True)
class AnyJson:
    """The caller's own data: one object in which no name means anything, so that all of it is read as text."""

    kind: ObjectKind = ObjectKind.FORM_PART
    id: str = "data"
    version: str = "1"
    rules: WalkRules = _FREE

    def blocks(self, body: Json) -> list[Block]:
        """The whole value."""
        return [Block((), self.kind, Channel.USER, body)]


@dataclass(frozen=True, slots=True)
class BatchLine:
    """A line that holds a whole request of `request` in its `body`; its own members tie results to requests."""

    request: ProviderAdapter

    @property
    def id(self) -> str:
        """The dialect's, marked."""
        return f"{self.request.id}.batch"

    @property
    def version(self) -> str:
        """The dialect's."""
        return self.request.version

    @property
    def rules(self) -> WalkRules:
        """Those of the dialect, and the members of a line."""
        rules = self.request.rules
        return replace(
            rules, structural=rules.structural | _ENVELOPE, known_names=rules.known_names | {"body"}
        )

    def blocks(self, body: Json) -> list[Block]:
        """The blocks of the request, and the rest of the line with its parameters."""
        request = body["body"] if isinstance(body, dict) else None
        inner = [replace(b, path=("body", *b.path)) for b in self.request.blocks(request)[:-1]]
        rest = Block((), ObjectKind.PARAMETERS, Channel.OTHER, body, tuple(b.path for b in inner))
        return [*inner, rest]


def line_adapter(line: Json, adapter: ProviderAdapter, find: Find) -> BodyReader:
    """Which dialect a line speaks; `adapter` is that of the request that carries the file."""
    if isinstance(line, dict) and isinstance(line.get("body"), dict):
        url = line.get("url")
        return BatchLine(find(url) if isinstance(url, str) and url.startswith("/") else adapter)
    if isinstance(line, dict) and isinstance(line.get("request"), dict):
        return find("/v1beta/models/batch:generateContent")
    return AnyJson()


@dataclass(frozen=True, slots=True)
class Whole:
    """A line as one object, under the rules of its dialect: for files of more parts than a receipt can list."""

    line: BodyReader

    @property
    def id(self) -> str:
        """The dialect's, marked."""
        return f"{self.line.id}.whole"

    @property
    def version(self) -> str:
        """The dialect's."""
        return self.line.version

    @property
    def rules(self) -> WalkRules:
        """The dialect's."""
        return self.line.rules

    def blocks(self, body: Json) -> list[Block]:
        """The whole line."""
        return [Block((), ObjectKind.FORM_PART, Channel.USER, body)]


def read_lines(body: bytes, adapter: ProviderAdapter, find: Find, limits: Limits) -> Parts:
    """The lines of a file that are not blank, part by part, or line by line where there are too many parts.

    Raises BodyError where one is not JSON.
    """
    parts = _read(body, adapter, find, limits, whole=False)
    many = sum(len(region.document.objects) for region in parts.regions) > limits.max_objects // 2
    return _read(body, adapter, find, limits, whole=True) if many else parts


def _read(body: bytes, adapter: ProviderAdapter, find: Find, limits: Limits, *, whole: bool) -> Parts:
    regions, at = [], 0
    for number, line in enumerate(body.split(b"\n")):
        text = line.strip()
        if text:
            start = at + line.index(text[:1])
            value = jsontext.parse(text, limits)
            reader = line_adapter(value, adapter, find)
            document = JsonDocument(text, Whole(reader) if whole else reader, limits)
            regions.append(Region(start, start + len(text), ("lines", number), document))
        at += len(line) + 1
    return Parts(tuple(regions))


def looks_like_lines(text: str) -> bool:
    """Whether a text is JSON lines by its first two."""
    head = [line for line in text[:65_536].split("\n") if line.strip()][:2]
    return len(head) == 2 and all(line.lstrip()[:1] == "{" and line.rstrip()[-1:] == "}" for line in head)
