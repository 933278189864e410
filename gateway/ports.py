"""What the use case asks of the world. Protocols of one to four methods; the contract is in the docstring.

Nothing but `gateway.errors.GatewayError` may escape an implementation. Every method that is not `async` is pure or a
quick look at memory and may be called on the event loop.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol, override

from gateway.context.decisions import AnswerRules, Decision, ObjectFacts, RequestFacts
from gateway.context.findings import Edit, ScanItem, ScanResult
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
    answers: AnswerRules  # what happens to findings in what the model says
    reads_place: bool  # whether a rule asks where an object stands or how large it is

    def decide(self, request: RequestFacts, facts: ObjectFacts) -> Decision:
        """The combined decision of every rule; a rule that errors denies (`policy.rule_error`)."""
        ...

    def text(self, reason_code: str) -> str:
        """A sentence for people about a reason code; falls back to a general one."""
        ...


class Minimiser(Protocol):
    """Cuts a text down to parts of itself. Pure and deterministic: a resent text is cut at the same places."""

    id: str
    version: str

    def check(self, parameters: Mapping[str, str]) -> None:
        """Raises PolicyError `policy.invalid` for parameters that it does not take; asked when a policy is loaded."""
        ...

    def cuts(self, text: str, earlier: Sequence[str], parameters: Mapping[str, str]) -> Sequence[Edit]:
        """What to take out, and the mark in its place. `earlier` are texts that stand before it in the request.

        Cuts of several minimisers are united, so that one more never lets more out.
        """
        ...


class Summariser(Protocol):
    """Makes a local extract of a text. Pure and deterministic; no model is asked."""

    id: str
    version: str

    def check(self, parameters: Mapping[str, str]) -> None:
        """Raises PolicyError `policy.invalid` for parameters that it does not take; asked when a policy is loaded."""
        ...

    def summarise(self, text: str, parameters: Mapping[str, str]) -> str:
        """The extract: shape and counts, no values. What it says is scanned again before it leaves."""
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


@dataclass(frozen=True, slots=True)
class Record:
    """One evidence record in canonical bytes. `parts` joined are the record; parts are stored once by digest."""

    # receipt | evaluation | decisions | admission | observation | lineage | boundary_event | event | key_handover |
    # retention
    kind: str
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
    label: str  # the category of the finding
    mac: bytes  # HMAC of the value under a project key: finds the entry again without the value
    sealed: bytes


class EvidenceStore(Protocol):
    """Durable evidence. One writer a machine; an append has happened on disk when it returns."""

    async def append(self, records: Sequence[Record], row: RequestRow | None = None) -> None:
        """All records in one transaction, or EvidenceError and none. `row` is inserted or replaced by request_id."""
        ...

    async def rows(self, query: Mapping[str, Any]) -> tuple[list[dict[str, Any]], str | None]:
        """Index rows newest first with their records read back, and the cursor of the next page.

        Keys: limit, after, since, until, project, effect, state, digest, kind.
        """
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

    async def since(self, project: str, mark: str, limit: int) -> tuple[str, list[SealedValue]]:
        """A new mark, and the entries of a project that were issued since `mark`, oldest first.

        Without a mark, or with one that says nothing any more, the last `limit` entries: some may be known already.
        """
        ...


class ConversationStore(Protocol):
    """What a conversation has already sent: which objects, with which edits, and which values it has masked."""

    async def load(self, project: str, anchor: bytes) -> Mapping[str, Any] | None:
        """The state kept under a conversation's anchor (the digest of its first blocks), or None."""
        ...

    async def find(self, project: str, anchors: Sequence[bytes]) -> tuple[bytes, Mapping[str, Any]] | None:
        """The first of these anchors under which a state is kept or noted, and that state."""
        ...

    async def save(self, project: str, anchor: bytes, state: Mapping[str, Any]) -> None:
        """Keep the state; durable when it returns."""
        ...

    async def note(self, project: str, anchor: bytes, state: Mapping[str, Any]) -> None:
        """Remember the state for as long as the store is open, within bounds; what was kept there is gone."""
        ...


# -- what an edge (the proxy) asks of the use case ----------------------------------------------------------------


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


class BodyRestorer(Protocol):
    """Turns placeholders of one answer back into values while it streams. Never raises."""

    def feed(self, data: bytes) -> bytes:
        """Bytes for the client, for bytes of the provider's answer; may hold back at most one possible placeholder."""
        ...

    def end(self) -> bytes:
        """The rest, at the end of the answer."""
        ...

    @property
    def alters(self) -> bool:
        """Whether bytes may change at all; else the answer keeps its length and its content coding."""
        ...

    @property
    def broken(self) -> bool:
        """Whether the answer cannot be read to its end: nothing more will come, and the client must see that."""
        ...

    @property
    def restored(self) -> int:
        """How many placeholders were turned back."""
        ...

    @property
    def withheld(self) -> int:
        """How many texts of the placeholder form were left as they are: this request does not carry them."""
        ...

    @property
    def refused(self) -> int:
        """How many placeholders of this request stay in tool calls that lead to hosts the project does not know."""
        ...

    @property
    def usage(self) -> Mapping[str, int] | None:
        """The provider's own count of tokens, where it gave one, in the words of `gateway.providers.usage`."""
        ...


class AnswerCounts(Protocol):
    """What became of the placeholders of one answer; see BodyRestorer."""

    @property
    def restored(self) -> int:
        """Turned back."""
        ...

    @property
    def withheld(self) -> int:
        """Of the placeholder form, and not this request's."""
        ...

    @property
    def refused(self) -> int:
        """This request's own, left in tool calls that lead elsewhere."""
        ...

    @property
    def usage(self) -> Mapping[str, int] | None:
        """The provider's own count of tokens, where it gave one, in the words of `gateway.providers.usage`."""
        ...


@dataclass(frozen=True, slots=True)
class AnswerFinding:
    """Findings of one type in one answer: how many different values, how sure the surest; never where or what."""

    type: str
    category: str
    severity: str
    confidence_milli: int
    count: int


@dataclass(frozen=True, slots=True)
class Released:
    """What a client gets of an answer that was held back, and what was counted of it."""

    answer: NativeAnswer
    counts: AnswerCounts | None = None


class Restoration(Protocol):
    """What may be restored in the answers of one admitted request."""

    @property
    def holds(self) -> bool:
        """Whether the policy holds the answer back until all of it was scanned (see UseCase.release)."""
        ...

    def open(self, status: int, headers: Headers) -> tuple[Headers, BodyRestorer] | None:
        """Headers and a restorer for an answer with this head; None: pass it on as it is."""
        ...


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


# -- what the use case asks for values that were masked -----------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Kept:
    """One value to keep behind its placeholder; the value is sealed before it is written anywhere."""

    token: str
    category: str  # of its finding: secret | pii | custom
    mac: bytes = field(repr=False)
    value: str = field(repr=False)


class ValueVault(Protocol):
    """The values of one installation's projects, by placeholder. Values are in the clear only in memory and briefly."""

    async def keep(self, project: str, values: Sequence[Kept]) -> None:
        """Sealed and durable when it returns; EvidenceError where that is not possible."""
        ...

    async def issued(self, project: str, macs: Sequence[bytes]) -> Mapping[bytes, str]:
        """The placeholders of values that have one."""
        ...

    async def masked(self, project: str) -> tuple[int, Sequence[tuple[str, str, str]]]:
        """How many values the project has masked; the latest, oldest first: (placeholder, value, category)."""
        ...

    def kept(self, project: str) -> Callable[[str], bool]:
        """Whether a placeholder's value is known to be durable."""
        ...

    async def openers(self, project: str, tokens: Sequence[str]) -> Mapping[str, Callable[[], str | None]]:
        """For each placeholder that is kept, a function that opens its value when it is needed."""
        ...


@dataclass(frozen=True, slots=True)
class Hold:
    """An object that waits for a person. `id` stands for object, project, destination and policy together."""

    id: str
    kind: str  # quarantine | approval
    project: str
    digest: str  # as evidence writes it
    destination: str
    policy: str  # digest of the policy in force
    principal: str
    time: str
    object_kind: str
    pointer: str
    size: int
    provenance: str
    reason_codes: tuple[str, ...]
    findings: tuple[Mapping[str, Any], ...]
    content: bytes = field(repr=False)


@dataclass(frozen=True, slots=True)
class Reviewer:
    """Somebody who may decide about held objects, as the control port authenticated them.

    `roles` are of REVIEWER_ROLES; `projects` empty: every one. `principals` are the names under which they send
    requests themselves: who asked can never decide.
    """

    name: str
    roles: frozenset[str]
    projects: frozenset[str] = frozenset()
    principals: frozenset[str] = frozenset()


REVIEWER_ROLES = ("view", "content", "release", "approve", "operate", "break_glass")
"""See what is held; look at content; release or discard; approve or deny; reload, and stop and start traffic."""


class Holding(Protocol):
    """Objects that are held until a person decides, and what was decided."""

    async def hold(self, holds: Sequence[Hold]) -> None:
        """Keep objects sealed, durable when it returns; one that is held already stays. EvidenceError otherwise."""
        ...

    async def reviews(self, project: str, holds: Sequence[str]) -> Mapping[str, str]:
        """`released` or `refused` by id, where somebody entitled decided so, it is genuine and not over yet."""
        ...

    async def wait(self, holds: Sequence[str], timeout_us: int) -> bool:
        """Whether one of them was decided about within this time."""
        ...


class Gate(Protocol):
    """What stops requests whatever they hold: the kill switch, and budgets."""

    def admits(self, peer: Peer, size: int) -> Refusal | None:
        """Why a request of this peer with a body of `size` bytes may not go, or None; counts it where it may."""
        ...

    def stopped(self, peer: Peer) -> Refusal | None:
        """Why nothing of this peer may go now, or None; asked once more before a request is let go."""
        ...

    def spent(self, project: str, principal: str, usage: Mapping[str, int]) -> None:
        """What the answer to a request cost by the provider's own count; EvidenceError where it cannot be counted."""
        ...


@dataclass(frozen=True, slots=True)
class Standing:
    """What a request's credentials say of its account at the provider.

    `account_ref` and `organization_managed` are attested: by a listed credential, or by a header that makes the
    provider itself refuse all other organisations. `headers` replace the client's on the way out.
    """

    account_ref: str = ""
    organization_managed: bool = False
    region: str = ""
    headers: Headers = ()
    refusal: Refusal | None = None


class Accounts(Protocol):
    """Which accounts at a provider may be used."""

    def standing(self, request: OutboundRequest, provider: str, *, login: bool) -> Standing:
        """Whose account this request uses; `login`: it asks for a token, and so has none yet."""
        ...


class TokenReader(Protocol):
    """Text of token ids."""

    def text(self, model: str, ids: Sequence[int]) -> str | None:
        """What these ids stand for in the encoding of a model; None where that is not known."""
        ...


class DocumentReader(Protocol):
    """Text of documents, read where a hostile one can do no harm."""

    async def read(self, data: bytes, *, deadline_us: int) -> tuple[str, bool]:
        """(text of a PDF, whether that is all that it holds); ("", False) where it cannot be read.

        `deadline_us` is on the monotonic clock; whatever reads is killed then.
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


class Meter(Protocol):
    """Counters and timings; none of them can delay or fail a request, none holds content."""

    def evaluated(self, microseconds: int, size: int) -> None:
        """An evaluation of a body of `size` bytes ended."""
        ...

    def appended(self, microseconds: int) -> None:
        """Evidence became durable."""
        ...

    def decided(self, effect: str, provider: str, objects: Sequence[Any]) -> None:
        """A request was judged; `objects` have `decision` and `scanned.findings`."""
        ...

    def failed_closed(self, code: str) -> None:
        """A request was refused, or evidence lost, for a reason that is not the policy's."""
        ...

    def fault(self, error: Exception) -> None:
        """A fault of ours; only its type and place may be kept, never its text."""
        ...

    def concluded(self, ending: Ending) -> None:
        """An exchange ended."""
        ...

    def answered(self, findings: Sequence[AnswerFinding]) -> None:
        """An answer was scanned."""
        ...

    def connection(self, action: str, reason_code: str) -> None:
        """A connection was tunnelled or refused."""
        ...


CONTENT_EVIDENCE = frozenset({"fingerprint", "canary"})
"""Evidence that a text is a project's own content; all other kinds only say that it speaks of the project."""


@dataclass(frozen=True, slots=True)
class Claimed:
    """Evidence that one text belongs to a project, whoever asks.

    `evidence` is fingerprint, canary, cwd, path, remote or tag; `spans` are half-open, in characters of the text;
    `sources` are keyed digests of the files it was recognised from, where these were indexed.
    """

    project: str
    evidence: str
    confidence_milli: int
    spans: tuple[tuple[int, int], ...]
    sources: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Reach:
    """One request reaching for what is another project's, in one way (contract.md §9.1).

    `facts` is how many pieces of the owner's content stand in the request: none where it is only named.
    """

    owner: str
    event: str  # search | recall | import
    facts: int
    sources: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Ruling:
    """Whether a reach is allowed. `owner_hash` names the owner in evidence.

    `audit` is the event of the attempt in canonical bytes, empty where the policy keeps none, or where no content was
    reached.
    """

    reach: Reach
    owner_hash: str
    allowed: bool
    audit: bytes = field(default=b"", repr=False)


@dataclass(frozen=True, slots=True)
class OwnedText:
    """A text that was sent in a project's traffic, with the kind and channel of its object."""

    text: str = field(repr=False)
    kind: str
    channel: str


class Ownership(Protocol):
    """Whose content a text is, by what was indexed, seen before, or is said in it (contract.md §9)."""

    @property
    def revision(self) -> int:
        """Changes when projects were indexed anew, so that earlier claims are out of date; 0: none are told apart."""
        ...

    async def claims(self, texts: Sequence[str]) -> list[tuple[Claimed, ...]]:
        """For each text, the projects that it belongs to or speaks of."""
        ...

    def rule(self, peer: Peer, reaches: Sequence[Reach], time: str) -> list[Ruling]:
        """For each reach, whether this peer may see the owner's content, by the rule of contract.md §9.4."""
        ...

    async def learn(self, project: str, texts: Sequence[OwnedText]) -> None:
        """What a project has sent belongs to it from now on."""
        ...
