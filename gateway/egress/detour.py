"""To a local model instead: which request may go there, and what of it does.

A rule that lets an object go to local models only may name one (`parameters = { reroute = "NAME" }`). The request then
goes there as a whole, and is decided about anew as one that goes there. Its bytes are those of the client but for the
name of the model: a dialect that the local server does not speak is refused, as nothing translates between dialects
without loss. Of the headers none goes that names the client to its provider.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from gateway.classify.documents import JsonDocument
from gateway.classify.evaluate import Evaluation
from gateway.classify.objects import ContextObject
from gateway.context import jsontext
from gateway.context.objects import Json, ObjectKind
from gateway.egress.dossier import Dossier
from gateway.egress.reading import ReadRequest, framed, header
from gateway.ports import Detour, Headers, OutboundRequest, Resigner

REROUTE: Final = "reroute"

_ENDPOINTS: Final = {
    "openai_chat": (re.compile(r"(?:/[^/]+)*/chat/completions"), "/chat/completions"),
    "openai_responses": (re.compile(r"(?:/[^/]+)*/responses"), "/responses"),
    "anthropic": (re.compile(r"(?:/[^/]+)*/messages"), "/messages"),
}
"""Endpoints that mean the same anywhere: the path that clients use, and where it is below a local server's base."""

DIALECTS: Final = tuple(_ENDPOINTS)

_ELSEWHERE: Final = frozenset(
    {"previous_response_id", "conversation", "prompt", "background", "container", "mcp_servers"}
)
"""Members that speak of what lies with the provider, or is done there: a local model does not have it."""

_KEPT: Final = frozenset(
    {b"content-type", b"accept", b"anthropic-version", b"anthropic-beta", b"openai-beta"}
)


@dataclass(frozen=True, slots=True)
class LocalModel:
    """A model server on this machine, as configured. `base` is the path before its endpoints, without a last slash."""

    name: str
    model: str
    scheme: str
    host: str
    port: int
    base: str
    dialects: frozenset[str]
    key: bytes = field(default=b"", repr=False)  # its own credential, none where it asks for none

    def headers(self, dialect: str) -> Headers:
        """Its credential, where this dialect puts one."""
        if not self.key:
            return ()
        if dialect == "anthropic":
            return ((b"x-api-key", self.key),)
        return ((b"authorization", b"Bearer " + self.key),)


def turns_off(
    dossier: Dossier, objects: Sequence[ContextObject], read: ReadRequest, models: Mapping[str, LocalModel]
) -> bool:
    """Whether the request goes to a local model from now on, so that it is to be decided about again."""
    if dossier.facts.locality == "local":
        return False
    place = detour(objects, read, dossier.request, models)
    if place is not None:
        dossier.turn_off(place)
    return place is not None


def detour(
    objects: Sequence[ContextObject],
    read: ReadRequest,
    request: OutboundRequest,
    models: Mapping[str, LocalModel],
) -> Detour | None:
    """Where the rules send a request that may not go where it was sent; None where they name no place, or several.

    Also none where the local server cannot be asked exactly this: another dialect or endpoint, a signed or compound
    body, content that lies with the provider.
    """
    names = {value for item in objects for key, value in item.decision.parameters if key == REROUTE}
    model = models.get(next(iter(names))) if len(names) == 1 else None
    known = _ENDPOINTS.get(read.adapter.id)
    if model is None or known is None or read.adapter.id not in model.dialects:
        return None
    whole = isinstance(read.document, JsonDocument) and not read.signed and request.transport == "http"
    path = request.target.partition("?")[0]
    if not whole or request.method != "POST" or known[0].fullmatch(path) is None:
        return None
    if any(item.scanned.coverage_reason == "coverage.reference" for item in objects):
        return None
    if not _stands_alone(objects):
        return None
    return Detour(
        name=model.name,
        model=model.model,
        scheme=model.scheme,
        host=model.host,
        port=model.port,
        target=model.base + known[1],
        headers=model.headers(read.adapter.id),
    )


def _stands_alone(objects: Sequence[ContextObject]) -> bool:
    """Whether the body names a model, which is replaced, and nothing that only the provider has."""
    value: Json = next((o.block.value for o in objects if o.block.kind is ObjectKind.PARAMETERS), None)
    if not isinstance(value, dict) or not isinstance(value.get("model"), str):
        return False
    return not any(value.get(name) for name in _ELSEWHERE)


def departing(
    request: OutboundRequest, read: ReadRequest, evaluation: Evaluation, place: Detour | None
) -> bytes:
    """The bytes that leave: as they came where nothing was done to them, else coded as they came; none, locally."""
    if evaluation.body is None:
        return request.body
    if place is not None:
        return body_for(place, evaluation.body)
    return read.encoded(evaluation.body) if evaluation.rewritten else request.body


def body_for(place: Detour, body: bytes) -> bytes:
    """The body with the local model's name in the place of the provider's; every other byte stays."""
    text = body.decode("utf-8")
    start, end = jsontext.locate(text, {("model",)})["model",]
    return (text[:start] + jsontext.quote(place.model) + text[end:]).encode("utf-8")


def leaving(dossier: Dossier, body: bytes, resigner: Resigner, now: str, *, identity_answer: bool) -> Headers:
    """The headers to forward with a body, to the provider (signed anew where that is so) or to the local model."""
    if dossier.detour is not None:
        return headers_for(dossier.detour, dossier.request, body)
    set_to = dossier.standing.headers
    headers = framed(dossier.request, body, identity_answer=identity_answer, set_to=set_to)
    return resigner.resign(dossier.request, headers, body, now)


def headers_for(place: Detour, request: OutboundRequest, body: bytes) -> Headers:
    """The headers for a local model: what the dialect needs, its own credential, and none of the client's."""
    kept = [(name, header(request.headers, name).encode("latin-1")) for name in sorted(_KEPT)]
    return (
        *((name, value) for name, value in kept if value),
        *place.headers,
        (b"accept-encoding", b"identity"),
        (b"content-length", b"%d" % len(body)),
    )
