"""Context objects: the unit that is judged, and the leaves that are read.

A `repr` of anything here shows kind, size and digest, never content.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, override

type Json = dict[str, Any] | list[Any] | str | int | float | bool | None
"""A parsed JSON value."""

type Path = tuple[str | int, ...]
"""Reference tokens from the root of a body: member names and array indexes (RFC 6901 without the escaping)."""


class ObjectKind(StrEnum):
    """What a block is; rules and evidence use these names."""

    SYSTEM = "system"
    TEXT = "text"
    TOOL_CALL = "tool_call"
    TOOL_RESULT = "tool_result"
    TOOL_DEFINITION = "tool_definition"
    THINKING = "thinking"
    SEALED = "sealed"
    MEDIA = "media"
    DOCUMENT = "document"
    MEMORY = "memory"
    REFERENCE = (
        "reference"  # points at content that the gateway cannot see (file ids, earlier responses, URLs)
    )
    PARAMETERS = "parameters"  # everything of a body that stands in no other block
    FORM_PART = "form_part"
    OPAQUE = "opaque"  # bytes that could not be read
    TARGET = "target"  # path and query
    HEADER = "header"


class Channel(StrEnum):
    """Who speaks in a block. Tool output is not a user."""

    SYSTEM = "system"
    USER = "user"
    ASSISTANT = "assistant"
    TOOL = "tool"
    OTHER = "other"


class LeafRole(StrEnum):
    """What may happen to a leaf."""

    TEXT = "text"  # scanned, may be edited
    STRUCTURAL = "structural"  # scanned, never rewritten: a finding denies
    THINKING = "thinking"  # scanned, never edited: a finding drops the whole block or denies
    SEALED = "sealed"  # signatures and encrypted values: shape checked, not scanned, never touched
    MEDIA = "media"  # base64 media or a data URI: structure checked, bytes untouched
    ENCODED = "encoded"  # base64 of a text document: decoded, scanned, encoded again after an edit
    NAME = "name"  # a member name that is data (inside tool input and the like): scanned, may be edited
    STRUCTURAL_NAME = "structural_name"  # any other member name the dialect does not know: a finding denies
    NUMBER = "number"  # a number; an edit replaces it by a string
    REFERENCE = "reference"  # an id or URL of content elsewhere: scanned, never rewritten, reported
    EXTRACTED = (
        "extracted"  # the text of a document or of token ids: scanned, never rewritten, any finding denies
    )


@dataclass(frozen=True, slots=True)
class Leaf:
    """One scanned piece of a block.

    `path` is relative to the block (or, when `outer` is set, to the JSON document that the outer leaf's text holds).
    For a NAME leaf the path ends with the member name itself. `name` is the nearest member name above, for key context.
    `mime` is the declared media type of a MEDIA or ENCODED leaf. The text of an ENCODED leaf is what its base64 holds.
    """

    path: Path
    text: str
    role: LeafRole
    name: str = ""
    outer: Leaf | None = None
    mime: str = ""

    @override
    def __repr__(self) -> str:
        return f"Leaf({self.role}, {len(self.text)} chars)"


@dataclass(frozen=True, slots=True)
class Block:
    """A part of a body that is judged as one object; `path` from the root of the body.

    `value` is the parsed value. `holes` are paths (relative to the block) of parts that stand in blocks of their own.
    """

    path: Path
    kind: ObjectKind
    channel: Channel
    value: Json
    holes: tuple[Path, ...] = ()

    @override
    def __repr__(self) -> str:
        return f"Block({self.kind}, {self.channel})"


@dataclass(frozen=True, slots=True)
class Limits:
    """Bounds on what is read; the units are in the names (`[limits]` of gateway.toml)."""

    max_body_bytes: int = 33_554_432
    max_decoded_ratio: int = 100
    max_nodes: int = 2_000_000
    max_depth: int = 128
    max_objects: int = 4096


@dataclass(frozen=True, slots=True)
class WalkRules:
    """How the generic walk treats the member names of one dialect.

    A name that stands in none of the sets is ordinary text. `free_form` names hold the caller's own JSON (tool input,
    tool results, arguments as objects): below them none of the sets applies (a key called `signature` there would be a
    way past the detectors), and member names are data (LeafRole.NAME).
    `known_names` are member names of the dialect itself: they are not scanned; every other name outside free-form JSON
    is a STRUCTURAL_NAME leaf. `credentials` hold what a call proves itself with to its own provider (OAuth, RFC 6749),
    as the Authorization header does: sealed where they are one word.
    """

    structural: frozenset[str] = frozenset()
    sealed: frozenset[str] = frozenset()
    thinking: frozenset[str] = frozenset()
    references: frozenset[str] = frozenset()
    media: frozenset[str] = frozenset()
    free_form: frozenset[str] = frozenset()
    known_names: frozenset[str] = frozenset()
    credentials: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class Conversation:
    """Where a request stands: project, and the chain of object digests that came before."""

    project: str
    chain: tuple[bytes, ...] = field(default=(), repr=False)
