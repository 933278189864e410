"""The golden vectors of the contract, as data files that other implementations can read too."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from gateway import contract
from gateway.contract import (
    ContextDecisionOutcomeV1,
    ContextDispositionV1,
    ContextReceiptStateV1,
    DeliveryOutcomeV1,
    DestinationConstraintV1,
    DestinationV1,
    FactPrivacy,
    IntegrationRouteV1,
    SourceValidityV1,
    conform,
)
from gateway.errors import ContractError
from tests.support.contract_fixtures import vectors


@pytest.mark.parametrize("case", vectors("dispositions")["cases"], ids=lambda c: c["disposition"])
def test_disposition(case: dict[str, Any]) -> None:
    disposition = ContextDispositionV1(case["disposition"])
    outcome = ContextDecisionOutcomeV1.from_disposition(disposition)
    assert outcome == case["outcome"]
    assert disposition.delivers_content is outcome.delivers_content is case["delivers"]


def test_dispositions_are_listed_in_order_of_restriction() -> None:
    ordered = [ContextDispositionV1(c["disposition"]) for c in vectors("dispositions")["cases"]]
    assert [d.order for d in ordered] == list(range(8))
    assert list(ContextDispositionV1) == ordered


@pytest.mark.parametrize("case", vectors("validity")["states"], ids=lambda c: c["state"])
def test_validity(case: dict[str, Any]) -> None:
    state = SourceValidityV1(case["state"])
    assert state.permits_materialization is case["materializes"]
    assert SourceValidityV1.from_reason_code(state.reason_code) is state
    assert conform(contract.ReasonCodeV1, state.reason_code) == state.reason_code


@pytest.mark.parametrize("case", vectors("validity")["codes"], ids=lambda c: c["code"])
def test_validity_of_a_code(case: dict[str, Any]) -> None:
    assert SourceValidityV1.from_reason_code(case["code"]) == case["state"]


@pytest.mark.parametrize("case", vectors("states")["cases"])
def test_state(case: dict[str, Any]) -> None:
    state = ContextReceiptStateV1.derive(
        DeliveryOutcomeV1(case["outcome"]),
        IntegrationRouteV1(case["route"]),
        case["handed_off"],
        case["observations"],
        case["withheld_or_incomplete"],
    )
    assert state == case["state"]


@pytest.mark.parametrize("case", vectors("digests")["cases"], ids=lambda c: c["id"])
def test_digest(case: dict[str, Any]) -> None:
    record = getattr(contract, case["record"]).from_json(json.dumps(case["value"]))
    assert record.canonical_digest() == case["digest"]
    if case["bytes"] is not None:
        assert len(record.to_json()) == case["bytes"]


@pytest.mark.parametrize("case", vectors("digests")["cases"], ids=lambda c: c["id"])
def test_canonical_bytes_are_those_of_the_standard_library(case: dict[str, Any]) -> None:
    record = getattr(contract, case["record"]).from_json(json.dumps(case["value"]))
    omitted = {k: v for k, v in case["value"].items() if v != []}
    expected = json.dumps(omitted, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    assert record.to_json() == expected.encode()


@pytest.mark.parametrize("case", vectors("records")["cases"], ids=lambda c: f"{c['record']}: {c['id']}")
def test_record(case: dict[str, Any]) -> None:
    record = getattr(contract, case["record"])
    data = json.dumps(case["value"], ensure_ascii=False).encode()
    if case["code"] is None:
        read = record.from_json(data)
        assert record.from_json(read.to_json()) == read
    else:
        with pytest.raises(ContractError) as refused:
            record.from_json(data)
        assert refused.value.code == case["code"]


def _scalars(kind: str) -> list[Any]:
    return [
        pytest.param(scalar, text, case["code"], id=f"{scalar}: {text[:40]!r}")
        for scalar, case in vectors("scalars")["cases"].items()
        for text in case[kind]
    ]


@pytest.mark.parametrize(("scalar", "text", "code"), _scalars("accepted"))
def test_scalar_is_kept_as_given(scalar: str, text: str, code: str) -> None:
    assert conform(getattr(contract, scalar), text) == text


@pytest.mark.parametrize(("scalar", "text", "code"), _scalars("refused"))
def test_scalar_is_refused(scalar: str, text: str, code: str) -> None:
    with pytest.raises(ContractError) as refused:
        conform(getattr(contract, scalar), text)
    # An empty revision is the one text that is refused for its length alone.
    assert refused.value.code == code


@pytest.mark.parametrize("case", vectors("destinations")["locality"], ids=lambda c: c["url"])
def test_locality(case: dict[str, Any]) -> None:
    assert DestinationV1.for_url(case["url"]).locality == case["locality"]


@pytest.mark.parametrize("case", vectors("destinations")["satisfies"])
def test_destination_constraints(case: dict[str, Any]) -> None:
    destination = DestinationV1(
        provider="x", locality=case["locality"], organization_managed=case["organization_managed"]
    )
    assert [c for c in DestinationConstraintV1 if destination.satisfies(c)] == case["satisfied"]


@pytest.mark.parametrize("case", vectors("boundary")["fact_privacy"])
def test_fact_privacy(case: dict[str, Any]) -> None:
    if case["privacy"] is None:
        with pytest.raises(ContractError) as refused:
            FactPrivacy.of_fact(case["fact"])
        assert refused.value.code == "unknown_value"
    else:
        assert FactPrivacy.of_fact(case["fact"]) == case["privacy"]


def _lineage(case: dict[str, Any]) -> contract.ContextDecisionLineageV1:
    given = case["input"]
    return contract.ContextDecisionLineageV1.for_receipt(
        contract.ContextRequestV1.from_value(given["request"]),
        [contract.SourceCandidateV1.from_value(value) for value in given["candidates"]],
        contract.ContextDecisionReceiptV1.from_value(given["receipt"]),
        given["handed_off"],
        given["egress_admission"],
        given["egress_observations"],
    )


@pytest.mark.parametrize("case", vectors("lineages")["made"], ids=lambda c: c["id"])
def test_lineage(case: dict[str, Any]) -> None:
    lineage = _lineage(case)
    assert lineage.decision_receipt == case["decision_receipt"]
    assert lineage.receipt_state == case["receipt_state"]
    assert [o.outcome for o in lineage.outcomes] == case["outcomes"]
    assert contract.ContextDecisionLineageV1.from_json(lineage.to_json()) == lineage


@pytest.mark.parametrize("case", vectors("lineages")["refused"], ids=lambda c: c["id"])
def test_lineage_is_refused(case: dict[str, Any]) -> None:
    made = next(c for c in vectors("lineages")["made"] if c["id"] == case["of"])
    value = json.loads(_lineage(made).to_json())
    for path, change in case["changes"]:
        place = value
        for token in path[:-1]:
            place = place[token]
        place[path[-1]] = change
    with pytest.raises(ContractError) as refused:
        contract.ContextDecisionLineageV1.from_json(json.dumps(value))
    assert refused.value.code == case["code"]


NAMES = [*(f"G{n}" for n in range(1, 33)), *(f"R{n}" for n in range(1, 6)), "O1"]


@pytest.mark.parametrize("name", NAMES)
def test_every_golden_vector_is_there(name: str) -> None:
    folder = Path(__file__).parents[2] / "vectors"
    texts = [file.read_text(encoding="utf-8") for file in folder.rglob("*.json")]
    assert any(re.search(rf"\b{name}\b", text) for text in texts)
