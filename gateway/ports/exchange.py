"""One request through the use case: what comes in, what is said of it, what is seen afterwards. See gateway.ports."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Protocol, override

from gateway.ports.answers import AnswerCounts, AnswerFinding, Released, Restoration
from gateway.ports.providers import Headers, NativeAnswer, Refusal


@dataclass(frozen=True, slots=True)
class Peer:
    """Who sends, as the gateway itself authenticated it; nothing in a body can claim any of this."""

    project: str = "default"
    principal: str = "unknown"
    principal_kind: str = "unknown"
    roles: tuple[str, ...] = ()
    team: str = ""
    classification: str = ""  # of what its project sends, where the configuration says


@dataclass(frozen=True, slots=True)
class OutboundRequest:
    """A whole request as it was received: `body` still carries its content coding, the transfer coding is undone."""

    request_id: str
    peer: Peer
    method: str
    scheme: str
    host: str  # lower case, no trailing dot
    port: int
    target: str  # path and query exactly as received
    headers: Headers = field(repr=False)
    body: bytes = field(repr=False)
    transport: str = "http"  # http | websocket

    @override
    def __repr__(self) -> str:
        return f"OutboundRequest({self.request_id}, {self.method}, {len(self.body)} bytes)"


@dataclass(frozen=True, slots=True)
class Detour:
    """A local model that a request goes to in the place of the one that its client asked.

    `name` stands for the provider in evidence; `target` is the path; `headers` hold the local server's own credential.
    """

    name: str
    model: str
    scheme: str
    host: str  # a loopback name or address
    port: int
    target: str
    headers: Headers = field(default=(), repr=False)

    @property
    def url(self) -> str:
        """Of the server, without a path."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{self.scheme}://{host}:{self.port}/"


@dataclass(frozen=True, slots=True)
class Admitted:
    """The request may leave as `body` with `headers` (which replace the old ones), and not otherwise."""

    body: bytes = field(repr=False)
    headers: Headers = field(repr=False)
    request_digest: str  # sha256:... of `body`
    receipt: str
    admission: str
    effect: str  # forwarded | rewritten
    restoration: Restoration | None = None
    detour: Detour | None = None  # where it goes instead of where the client sent it


@dataclass(frozen=True, slots=True)
class Refused:
    """The request must not leave; the client gets `answer`. `receipt` is empty where none could be stored."""

    answer: NativeAnswer
    receipt: str = ""


@dataclass(frozen=True, slots=True)
class Told:
    """What one message of a provider is: text messages for the client, and the requests that it answers.

    `answered` and `ended` are request ids: those whose answer has begun by now, and those whose answer is over.
    """

    messages: tuple[bytes, ...] = field(default=(), repr=False)
    answered: tuple[str, ...] = ()
    ended: tuple[str, ...] = ()


class Conversing(Protocol):
    """One WebSocket connection, as the dialect spoken on it is followed.

    Placeholders of every message that was admitted on it are restored in all that comes back on it. Nothing here
    raises, and nothing reads the clock.
    """

    @property
    def binary(self) -> bool:
        """Whether the provider writes its text in binary messages."""
        ...

    def sent(self, request_id: str, admitted: Admitted) -> AnswerCounts:
        """An admitted message is about to leave; what will be counted of its answer."""
        ...

    def told(self, message: bytes) -> Told:
        """A text message of the provider, or a binary one where its text comes in those."""
        ...

    def end(self) -> tuple[bytes, ...]:
        """The connection is over: what is still held for the client."""
        ...

    def refusal(self, message: bytes, refused: Refused) -> bytes | None:
        """The text message that refuses a client's message; None where the dialect has none."""
        ...


@dataclass(frozen=True, slots=True)
class Attempt:
    """What was seen of one transport attempt (contract.md §7.3, §10.2)."""

    number: int  # from 1
    transport: str  # http | websocket
    http_status: int | None  # of the response head, None where none was read
    failure: str | None  # connect | timeout | other, None where a head was read
    written_digest: str  # sha256:... of the body bytes handed to the connection
    written_bytes: int
    body_complete: bool  # the whole body was written before the head or the failure
    level: str  # answered | acknowledged | handed_over | maybe | not_sent
    peer_verified: bool  # TLS name checked and the address dialled is the admitted destination
    via: str = ""  # the parent proxy, host:port


@dataclass(frozen=True, slots=True)
class Ending:
    """How an exchange ended for the client."""

    response_complete: bool
    client_gone: bool = False
    placeholders_restored: int = 0
    restore_withheld: int = 0
    restore_refused: int = 0  # of these, the request's own placeholders, in tool calls that lead elsewhere
    usage: Mapping[str, int] | None = None
    findings: tuple[AnswerFinding, ...] = ()  # in what the model said
    answer_codes: tuple[str, ...] = ()  # what was done about them

    @property
    def reason_codes(self) -> tuple[str, ...]:
        """What a person should know of the way back."""
        codes: tuple[str, ...] = () if self.response_complete else ("response.incomplete",)
        codes += ("restore.withheld",) if self.restore_refused else ()
        codes += ("placeholder.foreign",) if self.restore_withheld > self.restore_refused else ()
        return codes + self.answer_codes


@dataclass(frozen=True, slots=True)
class ConnectionEvent:
    """A connection that carries no readable request: tunnelled, refused, or a protocol that is not let through."""

    peer: Peer
    host: str
    port: int
    action: str  # tunnelled | refused
    reason_code: str
    bytes_up: int = 0
    bytes_down: int = 0


class UseCase(Protocol):
    """The life of a request, as an edge drives it. `handle` first; nothing may leave before it returns Admitted."""

    async def handle(self, request: OutboundRequest) -> Admitted | Refused:
        """Evaluate, make the evidence durable, and say what may leave. Never raises; refuses instead."""
        ...

    async def reject(self, request: OutboundRequest, refusal: Refusal) -> Refused:
        """Record a request that the edge itself refuses, and give the answer. Never raises.

        For what never reaches `handle` (over the limit, malformed, destinations that disagree, overload) or overran its
        deadline there; `request.body` is what was read of it, possibly nothing. The receipt is empty where none could
        be stored.
        """
        ...

    async def observe(self, request_id: str, attempt: Attempt) -> None:
        """Record one attempt of an admitted request; a failure to record is counted, never raised."""
        ...

    async def release(self, request_id: str, answer: NativeAnswer | None) -> Released:
        """A whole answer that the policy held back: what the client gets of it. Never raises; refuses instead.

        None: it was larger than the edge can hold.
        """
        ...

    async def conclude(self, request_id: str, ending: Ending) -> None:
        """Write the one lineage of a request, after its last attempt; idempotent."""
        ...

    async def note(self, event: ConnectionEvent) -> None:
        """Record a connection without a readable request."""
        ...

    def refuse(self, host: str, path: str, refusal: Refusal) -> NativeAnswer:
        """A refusal in the shape of the dialect spoken at (host, path); pure, never raises."""
        ...

    def converse(self, host: str, path: str, project: str) -> Conversing | None:
        """A new WebSocket connection to (host, path); None where no dialect is known whose messages can be read.

        Each message of the client is a request of its own, with the transport `websocket`.
        """
        ...


class Resigner(Protocol):
    """Signs requests anew whose client signed them, so that they may be changed."""

    def covers(self, request: OutboundRequest) -> bool:
        """Whether this request's signature is made anew."""
        ...

    def resign(self, request: OutboundRequest, headers: Headers, body: bytes, now: str) -> Headers:
        """The headers with a new signature over them and the body, as they were where `covers` is false.

        `now` is RFC 3339 in UTC. BodyError where there is nothing to sign with.
        """
        ...
