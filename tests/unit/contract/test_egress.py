"""Admissions, observations and host reports belong together by digest (contract §7)."""

from __future__ import annotations

from typing import Any

import pytest

from gateway.contract import (
    ContextDispositionV1,
    DeliveryOutcomeV1,
    DestinationV1,
    EgressAdmissionReceiptV1,
    EgressAdmissionStateV1,
    EgressFailureV1,
    EgressObserverV1,
    EgressResultV1,
    EgressTransportObservationV1,
    EgressTransportV1,
    EngineEgressHostReportRequestV1,
)
from gateway.errors import ContractError
from tests.support.contract_fixtures import decision, digest_of, receipt

DELIVERED = receipt([decision(ContextDispositionV1.ALLOW, "a")])
WITHHELD = receipt((), DeliveryOutcomeV1.WITHHELD)


def admission(**changes: Any) -> EgressAdmissionReceiptV1:
    return EgressAdmissionReceiptV1(
        schema_version=1,
        decision_receipt=DELIVERED.canonical_digest(),
        request_digest=digest_of("f"),
        request_bytes=17,
        destination=DELIVERED.destination,
        state=EgressAdmissionStateV1.PREPARED,
    ).replace(**changes)


def observation(of: EgressAdmissionReceiptV1) -> EgressTransportObservationV1:
    return EgressTransportObservationV1(
        schema_version=1,
        admission_receipt_digest=of.canonical_digest(),
        attempt=1,
        transport=EgressTransportV1.HTTP,
        result=EgressResultV1.RESPONSE_OBSERVED,
        http_status=200,
        observer=EgressObserverV1.ENGINE_OBSERVED,
    )


def _mismatch(action: Any) -> str:
    with pytest.raises(ContractError) as refused:
        action()
    return refused.value.code


def test_a_prepared_admission_holds_against_its_receipt() -> None:
    admission().validate_for(DELIVERED)


@pytest.mark.parametrize(
    "changes",
    [
        {"decision_receipt": digest_of("0")},
        {"request_digest": digest_of("0")},
        {"destination": DestinationV1.for_url("https://api.openai.com")},
        {"state": EgressAdmissionStateV1.REFUSED},
    ],
)
def test_an_admission_for_anything_else_is_refused(changes: dict[str, Any]) -> None:
    assert _mismatch(lambda: admission(**changes).validate_for(DELIVERED)) == "receipt_mismatch"


def test_a_withheld_receipt_has_a_refused_admission_only() -> None:
    named = {"decision_receipt": WITHHELD.canonical_digest()}
    assert _mismatch(lambda: admission(**named).validate_for(WITHHELD)) == "receipt_mismatch"
    admission(**named, state=EgressAdmissionStateV1.REFUSED).validate_for(WITHHELD)


def test_an_observation_belongs_to_one_prepared_admission() -> None:
    prepared = admission()
    observation(prepared).validate_for(prepared)
    assert (
        _mismatch(lambda: observation(prepared).validate_for(admission(request_bytes=18)))
        == "admission_mismatch"
    )
    refused = admission(state=EgressAdmissionStateV1.REFUSED)
    assert _mismatch(lambda: observation(refused).validate_for(refused)) == "admission_mismatch"


def test_a_hosts_report_becomes_an_observation_on_its_word() -> None:
    report = EngineEgressHostReportRequestV1(
        schema_version=1,
        admission_receipt_digest=digest_of("d"),
        attempt=2,
        transport=EgressTransportV1.WEBSOCKET,
        result=EgressResultV1.NO_RESPONSE_OBSERVED,
        failure=EgressFailureV1.TIMEOUT,
    )
    made = report.observation()
    assert made.observer is EgressObserverV1.HOST_REPORTED
    assert (made.attempt, made.failure) == (2, EgressFailureV1.TIMEOUT)


def test_a_hosts_report_does_not_name_its_observer() -> None:
    data = observation(admission()).to_json()
    with pytest.raises(ContractError) as refused:
        EngineEgressHostReportRequestV1.from_json(data)
    assert refused.value.code == "unknown_field"
