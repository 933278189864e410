"""From a received request to a document: coding undone, dialect found, body read. Raises BodyError, never guesses."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from urllib.parse import unquote

from gateway.classify import wayout
from gateway.classify.coded import beside_objects
from gateway.classify.documents import Document
from gateway.classify.envelope import envelope
from gateway.classify.forms import Bodies
from gateway.classify.memory import remember
from gateway.classify.objects import ContextObject
from gateway.classify.values import Values
from gateway.context import encoding, walk
from gateway.context.objects import Channel, LeafRole, Limits, ObjectKind
from gateway.memory.wire import written_by
from gateway.ports import Headers, OutboundRequest, ProviderAdapter
from gateway.providers import base

_SAID = (ObjectKind.SYSTEM, ObjectKind.TEXT)
_SPEAKERS = (Channel.SYSTEM, Channel.USER)


def header(headers: Headers, name: bytes) -> str:
    """The values of a header joined by commas, as RFC 9110 §5.3 reads a repeated field; empty where it is absent."""
    return ", ".join(v.decode("latin-1") for k, v in headers if k.lower() == name)


@dataclass(frozen=True, slots=True)
class ReadRequest:
    """A request that could be read: its document, the decoded body, and the codings to put back after an edit."""

    adapter: ProviderAdapter
    document: Document
    envelope: list[ContextObject]
    body: bytes = field(repr=False)
    codings: tuple[str, ...]
    signed: bool

    def hosts(self, objects: Sequence[ContextObject], limits: Limits) -> frozenset[str]:
        """The hosts that system prompts and users name: where tool calls of the answer may take masked values.

        Tool results do not count: what a page or a file says is not what a person asked for.
        """
        said = (i for i in objects if i.block.kind in _SAID and i.block.channel in _SPEAKERS)
        leaves = (
            leaf
            for item in said
            for leaf in (item.leaves or walk.leaves(item.block, item.rules or self.adapter.rules, limits))
        )
        return wayout.hosts_named(leaf.text for leaf in leaves if leaf.role is LeafRole.TEXT)

    def encoded(self, body: bytes) -> bytes:
        """An edited body in the codings in which the request came."""
        return encoding.encode(body, self.codings)

    def values(
        self,
        request: OutboundRequest,
        openers: Mapping[str, Callable[[], str | None]],
        objects: Sequence[ContextObject],
        limits: Limits,
    ) -> Values:
        """What turns back in the answer, and the hosts that it may be taken to."""
        # Who speaks over a WebSocket names a host once, and the value may come in a later message.
        guarded = bool(openers) or request.transport == "websocket"
        return Values(openers, self.hosts(objects, limits) if guarded else frozenset())


def read_request(
    request: OutboundRequest,
    adapter: ProviderAdapter,
    limits: Limits,
    find: Callable[[str, str], ProviderAdapter],
) -> ReadRequest:
    """Undo the content coding and read the body as what it is; `find` gives the dialect of a host and path."""
    decoded = encoding.decode(request.body, header(request.headers, b"content-encoding"), limits)
    body = decoded.body
    document = Bodies(adapter, partial(find, request.host), limits).read(
        body, header(request.headers, b"content-type")
    )
    if memory := written_by(request.method, request.host, base.normalise(request.target)):
        remember(document.objects, memory)
    return ReadRequest(
        adapter=adapter,
        document=document,
        envelope=[*envelope(request.target, request.headers), *beside_objects(decoded.beside)],
        body=body,
        codings=tuple(decoded.codings),
        signed=is_signed(request.headers, request.target),
    )


def is_signed(headers: Headers, target: str) -> bool:
    """Whether the client signed the request (AWS SigV4, in a header or the query), so that an edit would break it."""
    query = target.partition("?")[2].lower()
    in_query = any(unquote(pair.partition("=")[0]) == "x-amz-signature" for pair in query.split("&"))
    return in_query or header(headers, b"authorization").lstrip().upper().startswith("AWS4-")


def framed(request: OutboundRequest, body: bytes, *, identity_answer: bool, set_to: Headers = ()) -> Headers:
    """The headers to forward with a body: one true framing header, and an uncompressed answer where it is restored.

    `set_to` are headers of ours: whatever the client said in them goes.
    """
    changed = body is not request.body
    dropped = {b"transfer-encoding", *(name.lower() for name, _ in set_to)}
    dropped |= {b"content-length"} if changed else set()
    chunked = bool(header(request.headers, b"transfer-encoding"))
    if identity_answer:
        dropped.add(b"accept-encoding")
    headers = [(k, v) for k, v in request.headers if k.lower() not in dropped]
    if body and (changed or chunked or not header(tuple(headers), b"content-length")):
        headers = [(k, v) for k, v in headers if k.lower() != b"content-length"]
        headers.append((b"content-length", str(len(body)).encode()))
    if identity_answer:
        headers.append((b"accept-encoding", b"identity"))
    return (*headers, *set_to)
