"""The founding documents' fixtures, as records; and the vectors."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from gateway.contract import (
    AclCheckV1,
    ContextDecisionReceiptV1,
    ContextDecisionV1,
    ContextDispositionV1,
    ContextRequestV1,
    DeliveryOutcomeV1,
    DestinationLocalityV1,
    DestinationV1,
    GatewayModeV1,
    IntegrationRouteV1,
    PrincipalKindV1,
    PrincipalV1,
    SecurityCountsV1,
    SourceCandidateV1,
    SourceCountsV1,
    SourceKindV1,
    SourceRefV1,
    SourceValidityV1,
    TokenAccountV1,
)

VECTORS = Path(__file__).parents[1] / "vectors" / "contract"


def vectors(name: str) -> Any:
    return json.loads((VECTORS / f"{name}.json").read_text(encoding="utf-8"))


def digest_of(fill: str) -> str:
    return f"sha256:{fill * 64}"


def decision(disposition: ContextDispositionV1, fill: str) -> ContextDecisionV1:
    reasons = () if disposition is ContextDispositionV1.ALLOW else ("secret.detected",)
    return ContextDecisionV1(object=digest_of(fill), disposition=disposition, reason_codes=reasons)


def receipt(
    decisions: Sequence[ContextDecisionV1] = (),
    outcome: DeliveryOutcomeV1 = DeliveryOutcomeV1.DELIVERED,
    incomplete_coverage: int = 0,
) -> ContextDecisionReceiptV1:
    def count(disposition: ContextDispositionV1) -> int:
        return sum(d.disposition is disposition for d in decisions)

    return ContextDecisionReceiptV1(
        schema_version=1,
        receipt_id="rcpt-1",
        mode=GatewayModeV1.GOVERNED,
        principal=PrincipalV1(kind=PrincipalKindV1.PERSON, id="user-1"),
        destination=DestinationV1(
            provider="anthropic", locality=DestinationLocalityV1.REMOTE, organization_managed=True
        ),
        sources=SourceCountsV1(inspected=3, permitted=2, selected=2, blocked=1),
        security=SecurityCountsV1(
            redactions=0,
            blocked_objects=count(ContextDispositionV1.DENY),
            quarantined_objects=count(ContextDispositionV1.QUARANTINE),
            injection_signals=0,
            incomplete_coverage=incomplete_coverage,
        ),
        decisions=tuple(decisions),
        tokens=TokenAccountV1(original=900, delivered=300),
        final_context=digest_of("f") if outcome is DeliveryOutcomeV1.DELIVERED else None,
        outcome=outcome,
        duration_us=10,
    )


def request(route: IntegrationRouteV1) -> ContextRequestV1:
    return ContextRequestV1(
        request_id="req-1",
        principal=PrincipalV1(kind=PrincipalKindV1.PERSON, id="user-1"),
        source_scope=(SourceRefV1(kind=SourceKindV1.PROVIDER, id="gitlab"),),
        route=route,
        destination=receipt((), DeliveryOutcomeV1.WITHHELD).destination,
    )


def candidate(validity: SourceValidityV1, acl_check: AclCheckV1) -> SourceCandidateV1:
    return SourceCandidateV1(
        source=SourceRefV1(kind=SourceKindV1.PROVIDER, id="gitlab:issue-1"),
        revision="2026-10-14T10:00:00Z",
        acl_check=acl_check,
        validity=validity,
    )
