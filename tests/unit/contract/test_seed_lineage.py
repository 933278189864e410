"""Every assertion of the founding lineage tests, one test each, named after the document's own."""

from __future__ import annotations

import json
from typing import Any

import pytest

from gateway.contract import (
    AclCheckV1,
    ContextDecisionLineageV1,
    ContextDecisionOutcomeV1,
    ContextDispositionV1,
    ContextReceiptStateV1,
    DeliveryOutcomeV1,
    IntegrationRouteV1,
    SourceValidityV1,
)
from gateway.errors import ContractError
from tests.support.contract_fixtures import candidate, decision, digest_of, receipt, request

D = ContextDispositionV1
O = ContextDecisionOutcomeV1  # noqa: E741  # the founding document's own shorthand
S = ContextReceiptStateV1
V = SourceValidityV1
R = IntegrationRouteV1
CONTEXT_ONLY = (R.MCP, R.CLI, R.HOOK, R.TOOL_SESSION, R.ENGINE_INTERFACE, R.SDK)

OUTCOMES = [
    (D.ALLOW, O.ALLOW),
    (D.ALLOW_LOCAL_MODEL_ONLY, O.ALLOW),
    (D.ALLOW_REDACTED, O.REDACT),
    (D.ALLOW_MINIMIZED, O.TRANSFORM),
    (D.ALLOW_SUMMARY_ONLY, O.TRANSFORM),
    (D.ALLOW_WITH_APPROVAL, O.DENY),
    (D.QUARANTINE, O.DENY),
    (D.DENY, O.DENY),
]


@pytest.mark.parametrize(("disposition", "outcome"), OUTCOMES)
def test_every_disposition_has_one_outcome(disposition: D, outcome: O) -> None:
    assert ContextDecisionOutcomeV1.from_disposition(disposition) is outcome


@pytest.mark.parametrize(("disposition", "outcome"), OUTCOMES)
def test_delivery_agrees_with_the_disposition_it_came_from(disposition: D, outcome: O) -> None:
    assert outcome.delivers_content == disposition.delivers_content


@pytest.mark.parametrize("state", list(V))
def test_only_a_valid_source_is_materialized(state: V) -> None:
    assert state.permits_materialization == (state is V.VALID)


@pytest.mark.parametrize("state", list(V))
def test_every_state_is_read_back_from_its_code(state: V) -> None:
    assert V.from_reason_code(state.reason_code) is state


@pytest.mark.parametrize(
    ("code", "state"),
    [
        ("store.source_changed", V.STALE),
        ("store.source_unavailable", V.DELETED),
        ("lineage.source_no_longer_admitted", V.REVOKED),
        ("store.no_source_authority", V.UNSUPPORTED),
        ("policy.changed", V.REVALIDATE_REQUIRED),
        ("secret.redacted", None),
    ],
)
def test_existing_codes_map_to_one_state(code: str, state: V | None) -> None:
    assert V.from_reason_code(code) is state


@pytest.mark.parametrize("route", CONTEXT_ONLY)
def test_an_observation_count_cannot_turn_a_context_only_route_into_model_egress(route: R) -> None:
    assert S.derive(DeliveryOutcomeV1.DELIVERED, route, True, 3, False) is S.HANDED_OFF
    assert S.derive(DeliveryOutcomeV1.DELIVERED, route, False, 3, False) is S.PREPARED


@pytest.mark.parametrize(
    ("outcome", "route", "handed_off", "observations", "mixed", "state"),
    [
        (DeliveryOutcomeV1.DELIVERED, R.PROXY, True, 1, False, S.OBSERVED_MODEL_EGRESS),
        (DeliveryOutcomeV1.DELIVERED, R.PROXY, True, 0, False, S.HANDED_OFF),
        (DeliveryOutcomeV1.DELIVERED, R.HOST_EGRESS, False, 0, False, S.PREPARED),
        (DeliveryOutcomeV1.DELIVERED, R.PROXY, True, 1, True, S.PARTIAL),
        (DeliveryOutcomeV1.WITHHELD, R.PROXY, True, 1, False, S.REJECTED),
        (DeliveryOutcomeV1.FAILED, R.MCP, False, 0, False, S.REJECTED),
    ],
)
def test_a_receipt_state_never_claims_more_than_was_observed(
    outcome: DeliveryOutcomeV1, route: R, handed_off: bool, observations: int, mixed: bool, state: S
) -> None:
    assert S.derive(outcome, route, handed_off, observations, mixed) is state


@pytest.fixture
def lineage() -> ContextDecisionLineageV1:
    return ContextDecisionLineageV1.for_receipt(
        request(R.MCP),
        [candidate(V.VALID, AclCheckV1.RECHECKED)],
        receipt([decision(D.ALLOW, "a"), decision(D.DENY, "c")]),
        True,
        None,
        (),
    )


def test_a_lineage_names_its_receipt_by_digest(lineage: ContextDecisionLineageV1) -> None:
    delivered = receipt([decision(D.ALLOW, "a"), decision(D.DENY, "c")])
    assert lineage.decision_receipt == delivered.canonical_digest()


def test_a_lineage_with_a_denial_is_partial(lineage: ContextDecisionLineageV1) -> None:
    assert lineage.receipt_state is S.PARTIAL


def test_a_lineage_projects_its_receipts_decisions_in_order(lineage: ContextDecisionLineageV1) -> None:
    assert [o.outcome for o in lineage.outcomes] == [O.ALLOW, O.DENY]
    assert [o.object for o in lineage.outcomes] == [digest_of("a"), digest_of("c")]


def _refused(lineage: ContextDecisionLineageV1, **changes: Any) -> str:
    with pytest.raises(ContractError) as refused:
        lineage.replace(**changes)
    return refused.value.code


def test_model_egress_on_a_context_only_route_is_refused(lineage: ContextDecisionLineageV1) -> None:
    assert _refused(lineage, receipt_state=S.OBSERVED_MODEL_EGRESS) == "egress_claim_route"


def test_model_egress_without_an_observation_is_refused(lineage: ContextDecisionLineageV1) -> None:
    code = _refused(
        lineage, request=lineage.request.replace(route=R.PROXY), receipt_state=S.OBSERVED_MODEL_EGRESS
    )
    assert code == "egress_claim_unobserved"


def test_a_source_nobody_can_recheck_is_never_valid() -> None:
    with pytest.raises(ContractError) as refused:
        candidate(V.VALID, AclCheckV1.UNSUPPORTED)
    assert refused.value.code == "unverifiable_valid_source"


def test_a_lineage_with_an_unverifiable_valid_source_is_refused(lineage: ContextDecisionLineageV1) -> None:
    value = json.loads(lineage.to_json())
    value["candidates"][0]["acl_check"] = "unsupported"
    with pytest.raises(ContractError) as refused:
        ContextDecisionLineageV1.from_json(json.dumps(value))
    assert refused.value.code == "unverifiable_valid_source"


def test_an_outcome_other_than_allow_needs_a_reason(lineage: ContextDecisionLineageV1) -> None:
    value = json.loads(lineage.to_json())
    del value["outcomes"][1]["reason_codes"]
    with pytest.raises(ContractError) as refused:
        ContextDecisionLineageV1.from_json(json.dumps(value))
    assert refused.value.code == "reason_required"


def test_an_observation_without_its_admission_is_refused(lineage: ContextDecisionLineageV1) -> None:
    assert _refused(lineage, egress_observations=(digest_of("e"),)) == "observation_without_admission"


def test_another_schema_version_is_refused(lineage: ContextDecisionLineageV1) -> None:
    assert _refused(lineage, schema_version=2) == "unsupported_schema_version"


def test_a_stale_candidate_makes_the_delivery_partial_never_a_clean_hand_off() -> None:
    stale = ContextDecisionLineageV1.for_receipt(
        request(R.CLI),
        [candidate(V.STALE, AclCheckV1.RECHECKED)],
        receipt([decision(D.ALLOW, "a")]),
        True,
    )
    assert stale.receipt_state is S.PARTIAL


@pytest.fixture
def observed() -> ContextDecisionLineageV1:
    return ContextDecisionLineageV1.for_receipt(
        request(R.HOST_EGRESS),
        [],
        receipt([decision(D.ALLOW_REDACTED, "b")]),
        False,
        digest_of("d"),
        [digest_of("e")],
    )


def test_a_redaction_alone_does_not_make_a_delivery_partial(observed: ContextDecisionLineageV1) -> None:
    assert observed.receipt_state is S.OBSERVED_MODEL_EGRESS


def test_the_wire_form_is_snake_case(observed: ContextDecisionLineageV1) -> None:
    value = json.loads(observed.to_json())
    assert value["request"]["route"] == "host_egress"
    assert value["receipt_state"] == "observed_model_egress"
    assert value["outcomes"][0]["outcome"] == "redact"


def test_what_is_written_reads_back_the_same(observed: ContextDecisionLineageV1) -> None:
    assert ContextDecisionLineageV1.from_json(observed.to_json()) == observed


def test_the_wire_form_is_closed(observed: ContextDecisionLineageV1) -> None:
    value = {**json.loads(observed.to_json()), "unexpected": True}
    with pytest.raises(ContractError) as refused:
        ContextDecisionLineageV1.from_json(json.dumps(value))
    assert refused.value.code == "unknown_field"
