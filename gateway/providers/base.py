"""What the dialects share: the listing of blocks by patterns, names that mean the same everywhere, error bodies."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any, Final
from urllib.parse import unquote

from gateway.context import media
from gateway.context.objects import Block, Channel, Json, ObjectKind, Path, WalkRules
from gateway.ports import NativeAnswer, Refusal

type Reading = tuple[ObjectKind, Channel] | None
type Reader = Callable[[Any, str], Reading]
"""(value, role of the message around it) to what the value is; None: no block itself, look inside."""

ROLES: Final[Mapping[str, Channel]] = {
    "system": Channel.SYSTEM,
    "developer": Channel.SYSTEM,
    "user": Channel.USER,
    "assistant": Channel.ASSISTANT,
    "model": Channel.ASSISTANT,
    "chatbot": Channel.ASSISTANT,
    "tool": Channel.TOOL,
    "function": Channel.TOOL,
}


def names(text: str) -> frozenset[str]:
    """Member names, written as words with spaces between."""
    return frozenset(text.split())


sealed_ok: Final = media.sealed_ok
"""Whether a value can be a provider's signature or ciphertext (`gateway.context.media`)."""

# JSON Schema (2020-12) as tool definitions use it
SCHEMA_STRUCTURAL: Final = names(
    "type required enum const format pattern $schema $ref $id $anchor nullable propertyOrdering dependentRequired "
    "contentEncoding contentMediaType"
)
SCHEMA_NAMES: Final = names(
    "properties items prefixItems additionalProperties patternProperties anyOf oneOf allOf not $defs definitions "
    "description title default examples example minimum maximum exclusiveMinimum exclusiveMaximum multipleOf "
    "minLength maxLength minItems maxItems minProperties maxProperties uniqueItems strict deprecated readOnly "
    "writeOnly propertyNames unevaluatedProperties if then else $comment"
)


def extended(
    rules: WalkRules,
    *,
    structural: Iterable[str] = (),
    references: Iterable[str] = (),
    known_names: Iterable[str] = (),
) -> WalkRules:
    """Rules with more names."""
    return replace(
        rules,
        structural=rules.structural.union(structural),
        references=rules.references.union(references),
        known_names=rules.known_names.union(known_names),
    )


class Shape:
    """A tree of places where blocks stand, written as paths: `messages[].content[]`.

    `[]` stands for each element of an array. A place that ends a path has a reader. A value whose type does
    not fit the tree is simply not found, and stays with the parameters.
    """

    __slots__ = ("each", "members", "reader")

    def __init__(self, places: Mapping[str, Reader] | None = None) -> None:
        self.members: dict[str, Shape] = {}
        self.each: Shape | None = None
        self.reader: Reader | None = None
        for place, reader in (places or {}).items():
            self.at(place).reader = reader

    def at(self, place: str) -> Shape:
        """The node of a path, made where it is new."""
        node = self
        for name in place.split("."):
            bare = name.rstrip("[]")
            if bare:
                node = node.members.setdefault(bare, Shape())
            for _ in range((len(name) - len(bare)) // 2):
                node.each = node.each or Shape()
                node = node.each
        return node

    def graft(self, place: str, shape: Shape) -> None:
        """Let another shape (or this one itself) begin at a path."""
        node = self.at(place)
        node.members, node.each, node.reader = shape.members, shape.each, shape.reader


def list_blocks(body: Json, shape: Shape) -> list[Block]:
    """Every part of a body in one block: those of the shape in document order, and the rest as the last block."""
    found: list[Block] = []
    holes: list[Path] = []
    _visit(body, shape, (), "", (found, holes))
    found.append(Block((), ObjectKind.PARAMETERS, Channel.OTHER, body, tuple(h for h in holes if h)))
    return found


def _visit(value: Any, node: Shape, path: Path, role: str, into: tuple[list[Block], list[Path]]) -> bool:
    """List the blocks of a value; whether nothing of it is left for the parameters.

    A container of which nothing is left is one hole, not a hole for each of its blocks: a long history must not make
    the parameters long.
    """
    if isinstance(value, dict) and isinstance(value.get("role"), str):
        role = value["role"]
    found, holes = into
    reading = (
        node.reader(value, role) if node.reader is not None and isinstance(value, (str, dict, list)) else None
    )
    if reading is not None and path:
        if value:
            found.append(Block(path, *reading, value))
            holes.append(path)
        return True
    before = len(holes)
    if isinstance(value, dict):
        whole = _visit_members(value, node, path, role, into)
    elif isinstance(value, list) and node.each is not None:
        whole = True
        for index, element in enumerate(value):
            whole &= _visit(element, node.each, (*path, index), role, into)
    else:
        return False
    if whole and path:
        del holes[before:]
        holes.append(path)
    return whole


def _visit_members(
    value: dict[str, Any], node: Shape, path: Path, role: str, into: tuple[list[Block], list[Path]]
) -> bool:
    whole = True
    for name, member in value.items():  # in document order
        inner = node.members.get(name)
        if inner is not None:
            whole &= _visit(member, inner, (*path, name), role, into)
        elif name != "role" or not isinstance(member, str) or member not in ROLES:
            whole = False
    return whole


def by_role(role: str, default: Channel = Channel.OTHER) -> tuple[ObjectKind, Channel]:
    """What plain text of a role is."""
    channel = ROLES.get(role.lower(), default)
    if channel is Channel.SYSTEM:
        return ObjectKind.SYSTEM, channel
    return (ObjectKind.TOOL_RESULT if channel is Channel.TOOL else ObjectKind.TEXT), channel


def constant(kind: ObjectKind, channel: Channel) -> Reader:
    """A reader for a place whose values (but not arrays of them) are always the same."""
    return lambda value, _role: None if isinstance(value, list) else (kind, channel)


def type_of(value: Any) -> str:
    """The `type` of a part, empty where it has none."""
    kind = value.get("type") if isinstance(value, dict) else None
    return kind if isinstance(kind, str) else ""


def text_at(value: Any, *path: str | int) -> str:
    """The string at a path of a JSON value; empty where there is none."""
    for token in path:
        if isinstance(value, dict) and isinstance(token, str):
            value = value.get(token)
        elif isinstance(value, list) and isinstance(token, int) and -len(value) <= token < len(value):
            value = value[token]
        else:
            return ""
    return value if isinstance(value, str) else ""


def list_at(value: Any, *path: str) -> list[Any]:
    """The array at a path of a JSON value; empty where there is none."""
    for name in path:
        value = value.get(name) if isinstance(value, dict) else None
    return value if isinstance(value, list) else []


def normalise(path: str) -> str:
    """A request path for matching: without query, percent-decoded, single slashes, no trailing slash, lower case."""
    path = unquote(path.partition("?")[0].partition("#")[0])
    parts: list[str] = []
    for part in path.split("/"):
        if part == "..":
            del parts[-1:]
        elif part not in {"", "."}:
            parts.append(part)
    return "/" + "/".join(parts).lower()


# -- refusals ------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Errors:
    """How a dialect reports an error: the body for (refusal, text), the header that carries the request id."""

    body: Callable[[Refusal, str], Json]
    id_header: str = "x-request-id"
    headers: tuple[tuple[str, str], ...] = ()


def error_text(refusal: Refusal) -> str:
    """What a person reads: who refused, why, and under which receipt; reason codes and ids only, never content.

    Words that clients look for to retry or to shorten the prompt are nobody's reason code and stay out.
    """
    text = f"Model Egress Gateway refused this request: {refusal.message}"
    if refusal.reason_codes:
        text += f" [{', '.join(refusal.reason_codes)}]"
    if refusal.receipt:
        text += f" (receipt {refusal.receipt})"
    return text


def error_answer(refusal: Refusal, errors: Errors) -> NativeAnswer:
    """A refusal as an answer that SDKs show once and do not retry (unless it says when to)."""
    body = encode(errors.body(refusal, error_text(refusal)))
    headers = [
        ("content-type", "application/json"),
        ("content-length", str(len(body))),
        *errors.headers,
        (errors.id_header, refusal.request_id),
        ("x-egress-receipt", refusal.receipt),
    ]
    if refusal.retry_after_s is None:
        headers.append(("x-should-retry", "false"))
    else:
        headers.append(("retry-after", str(refusal.retry_after_s)))
    sent = tuple((name.encode("ascii"), value.encode("ascii", "replace")) for name, value in headers if value)
    return NativeAnswer(refusal.status, sent, body)


def openai_error(refusal: Refusal, text: str) -> Json:
    """The error object of OpenAI and of everyone who speaks its shapes."""
    kind = "api_error" if refusal.status >= 500 else "invalid_request_error"
    return {"error": {"message": text, "type": kind, "param": None, "code": "gateway_blocked"}}


OPENAI_ERRORS: Final = Errors(openai_error)


def encode(value: Json) -> bytes:
    """Compact JSON of a record of our own."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode("utf-8")


def sse_event(data: Json, name: str = "") -> bytes:
    """One server-sent event of our own."""
    head = f"event: {name}\n".encode() if name else b""
    return head + b"data: " + encode(data) + b"\n\n"
