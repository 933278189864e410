"""What the use case asks of the world. Protocols of one to four methods; the contract is in the docstring.

Nothing but `gateway.errors.GatewayError` may escape an implementation. Every method that is not `async` is pure or a
quick look at memory and may be called on the event loop.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol, override

from gateway.context.decisions import Decision, ObjectFacts, RequestFacts
from gateway.context.findings import ScanItem, ScanResult
from gateway.context.objects import Block, Json, WalkRules

type Headers = tuple[tuple[bytes, bytes], ...]


class Clock(Protocol):
    """Time as an argument, so that the core reads none."""

    def now(self) -> str:
        """UTC wall time, RFC 3339 with microseconds and `Z`."""
        ...

    def monotonic_us(self) -> int:
        """Microseconds that never run backwards."""
        ...


class Detector(Protocol):
    """A scanner of texts. `revision` changes whenever the same text could give other findings."""

    id: str
    version: str
    revision: str

    def scan(self, items: Sequence[ScanItem]) -> list[ScanResult]:
        """One result an item, in order; raises DetectorError, never returns less."""
        ...


class Scanner(Protocol):
    """Detection as the use case sees it: inline for little text, in a worker that can be killed for much."""

    revision: str

    async def scan(self, items: Sequence[ScanItem], *, deadline_us: int) -> list[ScanResult]:
        """One result an item; raises DetectorError when the worker died or the deadline passed."""
        ...


class Policy(Protocol):
    """The compiled rules of all layers."""

    id: str
    version: str
    digest: str  # sha256:... of the effective settings
    mode: str  # developer | governed | sovereign
    enforcement: str  # enforce | shadow

    def decide(self, request: RequestFacts, facts: ObjectFacts) -> Decision:
        """The combined decision of every rule; a rule that errors denies (`policy.rule_error`)."""
        ...

    def text(self, reason_code: str) -> str:
        """A sentence for people about a reason code; falls back to a general one."""
        ...


@dataclass(frozen=True, slots=True)
class Refusal:
    """Why a request is refused, in terms that hold no content. `blocks` names places: (pointer, kind, codes)."""

    status: int
    reason_codes: tuple[str, ...]
    message: str
    receipt: str = ""
    request_id: str = ""
    retry_after_s: int | None = None


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
    the text is itself a piece of JSON (tool arguments), so that a restored value is escaped once more.
    """

    path: tuple[str | int, ...]
    key: str
    json_string: bool = False


@dataclass(frozen=True, slots=True)
class EventReading:
    """What a dialect knows of one stream event.

    `deltas` extend channels; `ends` names channels that are over (flush what is held before this event; ("*",) ends
    all); `whole` tells that every other string of the event is complete text and may be restored in place.
    `held` makes an event that carries held text: a template built from the channel's last delta event.
    """

    deltas: tuple[Delta, ...] = ()
    ends: tuple[str, ...] = ()
    whole: bool = True


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
        """Whether the string at this path of a whole (not streamed) answer or snapshot is JSON text (tool arguments)."""
        ...

    def refuse(self, refusal: Refusal) -> NativeAnswer:
        """The refusal in the provider's own error shape."""
        ...

    def stream_error(self, refusal: Refusal) -> bytes:
        """Bytes that end a stream that has begun, as the provider itself would report an error."""
        ...


@dataclass(frozen=True, slots=True)
class Record:
    """One evidence record in canonical bytes. `parts` joined are the record; parts are stored once by digest."""

    kind: str  # receipt | evaluation | admission | observation | lineage | boundary_event | event
    digest: str  # sha256:... of the joined parts
    parts: tuple[bytes, ...]

    @override
    def __repr__(self) -> str:
        return f"Record({self.kind}, {self.digest})"


@dataclass(frozen=True, slots=True)
class RequestRow:
    """The index row of one request, by which evidence is listed; holds no content."""

    request_id: str
    receipt: str
    time: str
    project: str
    effect: str  # forwarded | rewritten | refused | held
    receipt_state: str
    evaluation: str
    admission: str | None = None
    lineage: str | None = None
    provider: str = ""


@dataclass(frozen=True, slots=True)
class SealedValue:
    """One vault entry: a value encrypted under its project's key; `token` is its placeholder."""

    project: str
    token: str
    label: str
    mac: bytes  # HMAC of the value under a project key: finds the entry again without the value
    sealed: bytes


class EvidenceStore(Protocol):
    """Durable evidence. One writer a machine; an append has happened on disk when it returns."""

    async def append(self, records: Sequence[Record], row: RequestRow | None = None) -> None:
        """All records in one transaction, or EvidenceError and none. `row` is inserted or replaced by request_id."""
        ...

    async def rows(self, query: Mapping[str, Any]) -> tuple[list[dict[str, Any]], str | None]:
        """Index rows newest first with their records read back, and the cursor of the next page.

        Keys: limit, after, since, until, project, effect, state, digest, kind."""
        ...

    async def record(self, digest: str) -> bytes | None:
        """The canonical bytes of one record."""
        ...

    async def health(self) -> str:
        """Empty when evidence can be written now, else the reason."""
        ...


class VaultStore(Protocol):
    """Sealed values, found by token or by keyed digest; values themselves exist in memory only."""

    async def keep(self, values: Sequence[SealedValue]) -> None:
        """Durable when it returns; an entry that exists is kept as it was issued first."""
        ...

    async def by_mac(self, project: str, macs: Sequence[bytes]) -> dict[bytes, SealedValue]:
        """The entries of known values."""
        ...

    async def by_token(self, project: str, tokens: Sequence[str]) -> dict[str, SealedValue]:
        """The entries of known placeholders."""
        ...


class ConversationStore(Protocol):
    """What a conversation has already sent: which objects, with which edits, and which values it has masked."""

    async def load(self, project: str, anchor: bytes) -> Mapping[str, Any] | None:
        """The state kept under a conversation's anchor (the digest of its first blocks), or None."""
        ...

    async def save(self, project: str, anchor: bytes, state: Mapping[str, Any]) -> None:
        """Keep the state; durable when it returns."""
        ...
