"""What a wire dialect knows of requests, answers and refusals. See gateway.ports."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Protocol

from gateway.context.objects import Block, Json, WalkRules

type Headers = tuple[tuple[bytes, bytes], ...]


@dataclass(frozen=True, slots=True)
class Refusal:
    """Why a request is refused, in terms that hold no content. `blocks` names places: (pointer, kind, codes)."""

    status: int
    reason_codes: tuple[str, ...]
    message: str
    receipt: str = ""
    request_id: str = ""
    retry_after_s: int | None = None
    host: str = ""  # that was asked, and the path: providers of one dialect differ in their errors
    path: str = field(default="", repr=False)


@dataclass(frozen=True, slots=True)
class NativeAnswer:
    """A whole answer in a provider's own shape."""

    status: int
    headers: Headers
    body: bytes = field(repr=False)


@dataclass(frozen=True, slots=True)
class Delta:
    """Where one piece of streamed text stands in an event: its path in the event's JSON, and the channel it extends.

    `key` tells parallel channels apart (content index, choice and tool index, item id); `json_string` is true where
    the text is itself a piece of JSON (tool arguments), so that a restored value is escaped once more; `tool` where it
    is the input of a tool in some other form.
    """

    path: tuple[str | int, ...]
    key: str
    json_string: bool = False
    tool: bool = False


@dataclass(frozen=True, slots=True)
class EventReading:
    """What a dialect knows of one stream event.

    `deltas` extend channels; `ends` names channels that are over (flush what is held before this event; a name that
    ends in `*` ends every channel that begins so, ("*",) ends all); `whole` tells that every other string of the event
    is complete text and may be restored in place, except below the paths in `sealed` (signed thinking, which must come
    back to the provider as it was given). A whole answer that is not streamed reads as one event.
    `held` makes an event that carries held text: a template built from the channel's last delta event.
    """

    deltas: tuple[Delta, ...] = ()
    ends: tuple[str, ...] = ()
    whole: bool = True
    sealed: tuple[tuple[str | int, ...], ...] = ()


class ProviderAdapter(Protocol):
    """One wire dialect. Stateless; the walk itself is generic."""

    id: str
    version: str
    rules: WalkRules

    def matches(self, host: str, path: str) -> bool:
        """Whether this dialect speaks at (lower-case host, normalised path without query)."""
        ...

    def blocks(self, body: Json) -> list[Block]:
        """Every part of the body in exactly one block, in document order; the last is the PARAMETERS block."""
        ...

    def destination(self, host: str, path: str, body: Json) -> tuple[str, str]:
        """(provider, model); model is empty where it is not known."""
        ...

    def read_event(self, name: str, data: Json) -> EventReading:
        """What one SSE event (or one JSON line or array element) carries. `name` is the event type, may be empty."""
        ...

    def arguments(self, path: tuple[str | int, ...]) -> bool:
        """Whether the string at this path of a whole answer or snapshot is JSON text (tool arguments)."""
        ...

    def refuse(self, refusal: Refusal) -> NativeAnswer:
        """The refusal in the provider's own error shape."""
        ...

    def stream_error(self, refusal: Refusal) -> bytes:
        """Bytes that end a stream that has begun, as the provider itself would report an error."""
        ...
