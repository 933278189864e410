"""What an admitted request leaves with, worked out in one stretch: its body and headers, and the evidence of both."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from gateway.classify.belonging import own_texts
from gateway.classify.evaluate import Evaluation
from gateway.classify.values import Values
from gateway.context.objects import Limits
from gateway.contract.canonical import digest
from gateway.egress.detour import departing, leaving
from gateway.egress.dossier import Dossier, EvidenceSet
from gateway.egress.reading import ReadRequest
from gateway.ports import Headers, OutboundRequest, OwnedText, Resigner


@dataclass(frozen=True, slots=True)
class Departure:
    """What leaves, what is stored before it does, and what is known from then on."""

    body: bytes = field(repr=False)
    headers: Headers = field(repr=False)
    digest: str  # of the body
    evidence: EvidenceSet
    values: Values = field(repr=False)
    texts: Sequence[OwnedText] = field(repr=False)  # that the project shows to be its own

    @classmethod
    def of(
        cls,
        request: OutboundRequest,
        dossier: Dossier,
        read: ReadRequest,
        evaluation: Evaluation,
        openers: Mapping[str, Callable[[], str | None]],
        ways: tuple[Resigner, Limits, str],
    ) -> Departure:
        """Put an evaluated request together; `ways`: who signs it, within which limits, and when (RFC 3339)."""
        resigner, limits, now = ways
        body = departing(request, read, evaluation, dossier.detour)
        values = read.values(request, openers, evaluation.objects, limits)
        headers = leaving(dossier, body, resigner, now, identity_answer=bool(values))
        effect = "rewritten" if evaluation.rewritten or dossier.detour is not None else "forwarded"
        name = digest(body)
        evidence = dossier.evidence(evaluation.objects, evaluation.reason_codes, effect, name, len(body))
        return cls(body, headers, name, evidence, values, own_texts(evaluation.objects, request.peer.project))
