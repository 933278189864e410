"""Lineages beyond the founding tests: what ours refuse in addition, and agreement with the receipt (contract §5)."""

from __future__ import annotations

import json
from typing import Any

import pytest

from gateway.contract import (
    AclCheckV1,
    ContextDecisionLineageV1,
    ContextDispositionV1,
    ContextReceiptStateV1,
    DeliveryOutcomeV1,
    IntegrationRouteV1,
    PrincipalV1,
    SourceValidityV1,
)
from gateway.errors import ContractError
from tests.support.contract_fixtures import candidate, decision, digest_of, receipt, request

D = ContextDispositionV1
S = ContextReceiptStateV1
R = IntegrationRouteV1
CLEAN = receipt([decision(D.ALLOW, "a")])
MIXED = receipt([decision(D.ALLOW, "a"), decision(D.DENY, "c")])


def lineage(**changes: Any) -> ContextDecisionLineageV1:
    made = ContextDecisionLineageV1.for_receipt(
        request(R.PROXY), (), CLEAN, True, digest_of("d"), (digest_of("e"),)
    )
    return made.replace(**changes) if changes else made


def _refused(action: Any) -> str:
    with pytest.raises(ContractError) as refused:
        action()
    return refused.value.code


def test_a_proxy_lineage_has_the_documented_shape() -> None:
    assert json.loads(lineage().to_json()) == {
        "schema_version": 1,
        "request": {
            "request_id": "req-1",
            "principal": {"kind": "person", "id": "user-1"},
            "source_scope": [{"kind": "provider", "id": "gitlab"}],
            "route": "proxy",
            "destination": {"provider": "anthropic", "locality": "remote", "organization_managed": True},
        },
        "decision_receipt": CLEAN.canonical_digest(),
        "outcomes": [{"object": digest_of("a"), "outcome": "allow"}],
        "receipt_state": "observed_model_egress",
        "egress_admission": digest_of("d"),
        "egress_observations": [digest_of("e")],
    }


@pytest.mark.parametrize("disposition", [d for d in D if not d.delivers_content])
def test_whatever_is_held_back_makes_a_delivery_partial(disposition: D) -> None:
    held = receipt([decision(D.ALLOW, "a"), decision(disposition, "c")])
    made = ContextDecisionLineageV1.for_receipt(request(R.PROXY), (), held, True, digest_of("d"), ())
    assert made.receipt_state is S.PARTIAL


def test_incomplete_coverage_makes_a_delivery_partial() -> None:
    half = receipt([decision(D.ALLOW, "a")], incomplete_coverage=1)
    made = ContextDecisionLineageV1.for_receipt(request(R.PROXY), (), half, False)
    assert made.receipt_state is S.PARTIAL


@pytest.mark.parametrize("validity", [v for v in SourceValidityV1 if v is not SourceValidityV1.VALID])
def test_a_source_that_is_not_valid_makes_a_delivery_partial(validity: SourceValidityV1) -> None:
    made = ContextDecisionLineageV1.for_receipt(
        request(R.PROXY), [candidate(validity, AclCheckV1.RECHECKED)], CLEAN, True
    )
    assert made.receipt_state is S.PARTIAL


@pytest.mark.parametrize("outcome", [DeliveryOutcomeV1.WITHHELD, DeliveryOutcomeV1.FAILED])
def test_what_was_not_delivered_is_rejected(outcome: DeliveryOutcomeV1) -> None:
    none = receipt([decision(D.DENY, "c")], outcome)
    made = ContextDecisionLineageV1.for_receipt(request(R.PROXY), (), none, False)
    assert made.receipt_state is S.REJECTED


@pytest.mark.parametrize("state", [S.OBSERVED_MODEL_EGRESS, S.HANDED_OFF])
def test_a_clean_claim_beside_a_denial_is_refused(state: S) -> None:
    outcomes = ContextDecisionLineageV1.for_receipt(request(R.PROXY), (), MIXED, True).outcomes
    assert _refused(lambda: lineage(receipt_state=state, outcomes=outcomes)) == "state_overclaims"


@pytest.mark.parametrize("state", [S.OBSERVED_MODEL_EGRESS, S.HANDED_OFF])
def test_a_clean_claim_beside_a_stale_source_is_refused(state: S) -> None:
    stale = candidate(SourceValidityV1.STALE, AclCheckV1.RECHECKED)
    assert _refused(lambda: lineage(receipt_state=state, candidates=(stale,))) == "state_overclaims"


def test_an_observation_counts_once() -> None:
    twice = (digest_of("e"), digest_of("e"))
    assert _refused(lambda: lineage(egress_observations=twice)) == "duplicate_observation"


def test_a_context_only_route_lists_no_observations() -> None:
    mcp = request(R.MCP)
    assert _refused(lambda: lineage(request=mcp, receipt_state=S.PREPARED)) == "egress_claim_route"


@pytest.mark.parametrize(
    ("field", "size"), [("egress_observations", 33), ("candidates", 257), ("outcomes", 4097)]
)
def test_lists_are_bounded(field: str, size: int) -> None:
    items: dict[str, Any] = {
        "egress_observations": [f"sha256:{i:064x}" for i in range(size)],
        "candidates": [candidate(SourceValidityV1.STALE, AclCheckV1.RECHECKED)] * size,
        "outcomes": list(lineage().outcomes) * size,
    }
    changes = {field: tuple(items[field]), "receipt_state": S.PARTIAL}
    assert _refused(lambda: lineage(**changes)) == "bounds_exceeded"


def test_the_scope_is_bounded() -> None:
    scoped = request(R.PROXY)
    assert _refused(lambda: scoped.replace(source_scope=scoped.source_scope * 257)) == "bounds_exceeded"


def test_the_request_must_be_the_receipts() -> None:
    other = request(R.PROXY).replace(principal=PrincipalV1.unknown())
    assert (
        _refused(lambda: ContextDecisionLineageV1.for_receipt(other, (), CLEAN, True)) == "receipt_mismatch"
    )
    elsewhere = request(R.PROXY)
    elsewhere = elsewhere.replace(destination=elsewhere.destination.replace(provider="openai"))
    assert (
        _refused(lambda: ContextDecisionLineageV1.for_receipt(elsewhere, (), CLEAN, True))
        == "receipt_mismatch"
    )


def test_a_lineage_holds_against_its_own_receipt_only() -> None:
    lineage().validate_for(CLEAN)
    assert _refused(lambda: lineage().validate_for(MIXED)) == "receipt_mismatch"
    other = receipt([decision(D.ALLOW, "b")])
    renamed = lineage(decision_receipt=other.canonical_digest())
    assert _refused(lambda: renamed.validate_for(other)) == "receipt_mismatch"


def test_a_state_that_the_receipt_does_not_bear_is_refused() -> None:
    half = receipt([decision(D.ALLOW, "a")], incomplete_coverage=1)
    claim = lineage(decision_receipt=half.canonical_digest())
    assert _refused(lambda: claim.validate_for(half)) == "state_overclaims"
    failed = receipt([decision(D.ALLOW, "a")], DeliveryOutcomeV1.FAILED)
    claim = lineage(decision_receipt=failed.canonical_digest(), receipt_state=S.PREPARED)
    assert _refused(lambda: claim.validate_for(failed)) == "state_overclaims"


def test_only_two_routes_carry_the_model_request() -> None:
    assert [r for r in R if r.observes_model_egress] == [R.PROXY, R.HOST_EGRESS]
