"""What a refusal is made of where no evaluation, or none that ended, says it."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from gateway.classify.documents import OpaqueDocument
from gateway.classify.history import keeps_here
from gateway.classify.objects import ContextObject, Scanned
from gateway.context.objects import Limits
from gateway.contract import ContextDispositionV1
from gateway.egress.dossier import Dossier
from gateway.egress.reading import ReadRequest, read_request
from gateway.errors import BodyError, GatewayError
from gateway.ports import Hold, OutboundRequest, ProviderAdapter, Refusal, Refused
from gateway.providers.generic import Generic

_D = ContextDispositionV1


def bare_refusal(request: OutboundRequest) -> Refused:
    """The refusal of a request of which not even the facts could be had; without a receipt."""
    message = "The gateway could not evaluate the request."
    return Refused(Generic().refuse(Refusal(503, ("gateway.error",), message, "", request.request_id)))


def unread(request: OutboundRequest, code: str) -> OpaqueDocument:
    """A body of which nothing was read, for this reason."""
    document = OpaqueDocument(len(request.body))
    for item in document.objects:
        item.scanned = Scanned((), "failed", code, item.size)
    return document


def read_by(dossier: Dossier, limits: Limits, find: Callable[[str, str], ProviderAdapter]) -> ReadRequest:
    """The request as its dialect reads it; in shadow enforcement one that cannot be read passes as unread."""
    request = dossier.request
    try:
        return read_request(request, dossier.adapter, limits, find)
    except BodyError as error:
        if dossier.policy.enforcement != "shadow":
            raise
        return ReadRequest(dossier.adapter, unread(request, error.code), [], request.body, (), signed=True)


def effect_of(objects: Sequence[ContextObject]) -> str:
    """`held` where people can still let it go, else `refused`."""
    held = {_D.ALLOW_WITH_APPROVAL, _D.QUARANTINE}
    dispositions = {item.decision.disposition for item in objects if keeps_here(item)}
    return "held" if dispositions & held and _D.DENY not in dispositions else "refused"


def said(holds: Sequence[Hold], way_on: str) -> str:
    """What a refusal adds to the sentence about its reason: what waits for a person, where it stands, how to go on."""
    names = ", ".join(f"{hold.kind} {hold.id}" for hold in holds[:8])
    return (f" Held: {names}." if names else "") + (f" {way_on}" if way_on else "")


def leading(codes: Sequence[str]) -> str:
    """The code that a refusal is explained by: one that blocks, before one that only describes."""
    return next(
        (c for c in codes if not c.endswith((".redacted", ".flagged"))),
        codes[0] if codes else "gateway.error",
    )


def reason(error: GatewayError, fallback: str) -> str:
    """The reason code of an error, where its code is one."""
    return error.code if error.code.startswith(("detector.", "deadline.", "gateway.")) else fallback
