"""Dispositions and states as lattices: combining never loosens, claiming never grows (contract §2, §5.1)."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from gateway.contract import (
    ContextDecisionLineageV1,
    ContextDecisionOutcomeV1,
    ContextDecisionReceiptV1,
    ContextDispositionV1,
    ContextReceiptStateV1,
    DeliveryOutcomeV1,
    IntegrationRouteV1,
)
from gateway.errors import ContractError
from tests.support.contract_strategies import lineages_with_receipts

D = ContextDispositionV1
S = ContextReceiptStateV1
ALL = list(D)


def test_combining_is_commutative_associative_and_idempotent() -> None:
    for a, b, c in itertools.product(ALL, repeat=3):
        assert D.combine(a, b) is D.combine(b, a)
        assert D.combine(D.combine(a, b), c) is D.combine(a, D.combine(b, c)) is D.combine(a, b, c)
    assert all(D.combine(a, a) is a for a in ALL)
    assert D.combine() is D.ALLOW


@given(st.lists(st.sampled_from(ALL)), st.sampled_from(ALL))
def test_another_rule_never_delivers_more(before: list[D], another: D) -> None:
    combined = D.combine(*before, another)
    assert combined.order >= D.combine(*before).order
    assert combined.delivers_content <= D.combine(*before).delivers_content


def test_the_outcome_delivers_exactly_when_the_disposition_does() -> None:
    for disposition in ALL:
        outcome = ContextDecisionOutcomeV1.from_disposition(disposition)
        assert outcome.delivers_content is disposition.delivers_content


_FACTS = list(
    itertools.product(DeliveryOutcomeV1, IntegrationRouteV1, (False, True), range(4), (False, True))
)


def test_a_state_is_never_stronger_than_its_facts() -> None:
    for outcome, route, handed_off, observations, mixed in _FACTS:
        state = S.derive(outcome, route, handed_off, observations, mixed)
        delivered = outcome is DeliveryOutcomeV1.DELIVERED
        clean = delivered and not mixed
        seen = observations > 0 and route.observes_model_egress
        assert (state is S.REJECTED) == (not delivered)
        assert (state is S.PARTIAL) == (delivered and mixed)
        assert (state is S.OBSERVED_MODEL_EGRESS) == (clean and seen)
        assert (state is S.HANDED_OFF) == (clean and not seen and handed_off)
        assert (state is S.PREPARED) == (clean and not seen and not handed_off)


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(lineages_with_receipts(), st.sampled_from(list(S)))
def test_no_other_claim_holds_against_the_receipt(
    pair: tuple[ContextDecisionLineageV1, ContextDecisionReceiptV1], claim: S
) -> None:
    lineage, receipt = pair
    lineage.validate_for(receipt)
    # Whether it was handed off is not in the records: prepared and handed_off are both provable from them.
    indistinguishable = {S.PREPARED, S.HANDED_OFF}
    if claim is lineage.receipt_state or {claim, lineage.receipt_state} <= indistinguishable:
        return
    with pytest.raises(ContractError):
        lineage.replace(receipt_state=claim).validate_for(receipt)
