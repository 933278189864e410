"""What all records share: valid when they exist, frozen, and no way round the validation."""

from __future__ import annotations

import copy
import pickle
from typing import Any

import pytest
from pydantic import ValidationError

from gateway.contract import (
    ContextDecisionReceiptV1,
    ContextDecisionV1,
    ContextDispositionV1,
    DetectorCoverageV1,
    PrincipalV1,
    conform,
)
from gateway.contract.record import Record
from gateway.contract.schemas import records
from gateway.errors import ContractError
from tests.support.contract_fixtures import decision, digest_of, receipt

ALLOW = decision(ContextDispositionV1.ALLOW, "a")


@pytest.mark.parametrize(
    ("members", "code"),
    [
        ({"kind": "person"}, "principal_identity"),
        ({"kind": "nobody", "id": "x"}, "unknown_value"),
        ({"kind": "person", "id": 7}, "bad_type"),
        ({"kind": "person", "id": "x", "name": "y"}, "unknown_field"),
        ({"id": "x"}, "missing_field"),
        ({"kind": "person", "id": "\ud800"}, "bad_type"),
    ],
)
def test_the_constructor_refuses_with_a_contract_error(members: dict[str, Any], code: str) -> None:
    with pytest.raises(ContractError) as refused:
        PrincipalV1(**members)
    assert refused.value.code == code


def test_numbers_are_never_coerced_in_python_either() -> None:
    for wrong in (True, 1.0, "1"):
        with pytest.raises(ContractError) as refused:
            DetectorCoverageV1(
                kind="complete",  # type: ignore[arg-type]
                bytes_total=wrong,  # type: ignore[arg-type]
                bytes_inspected=1,
                chunks_total=1,
                chunks_inspected=1,
            )
        assert refused.value.code == "bad_type"


def test_a_record_cannot_be_changed() -> None:
    with pytest.raises(ValidationError):
        ALLOW.object = digest_of("b")


def test_replace_gives_another_record_and_validates_it() -> None:
    denied = ALLOW.replace(disposition=ContextDispositionV1.DENY, reason_codes=("secret.blocked",))
    assert denied.object == ALLOW.object
    assert ALLOW.disposition is ContextDispositionV1.ALLOW
    with pytest.raises(ContractError) as refused:
        ALLOW.replace(disposition=ContextDispositionV1.DENY)
    assert refused.value.code == "reason_required"


def test_pydantics_own_ways_round_are_closed() -> None:
    with pytest.raises(ContractError):
        ALLOW.model_copy(update={"disposition": ContextDispositionV1.DENY})
    with pytest.raises(ContractError):
        ContextDecisionV1.model_construct(object="x", disposition=ContextDispositionV1.ALLOW)
    assert ALLOW.model_copy() == ALLOW


def test_records_copy_and_pickle() -> None:
    assert copy.deepcopy(ALLOW) == ALLOW
    assert pickle.loads(pickle.dumps(ALLOW)) == ALLOW


def test_records_are_hashable_by_value() -> None:
    assert {ALLOW, decision(ContextDispositionV1.ALLOW, "a")} == {ALLOW}


def test_lists_and_wire_strings_may_be_given() -> None:
    given = ContextDecisionV1(
        object=digest_of("a"),
        disposition="deny",  # type: ignore[arg-type]
        reason_codes=["secret.blocked"],  # type: ignore[arg-type]
    )
    assert given.reason_codes == ("secret.blocked",)
    assert given.disposition is ContextDispositionV1.DENY


def test_from_value_takes_objects_only() -> None:
    wrong: tuple[object, ...] = (None, [], "x", ALLOW)
    for value in wrong:
        with pytest.raises(ContractError) as refused:
            ContextDecisionV1.from_value(value)
        assert refused.value.code == "bad_type"


@pytest.mark.parametrize(("name", "record"), records().items())
def test_every_record_is_closed_frozen_and_built_in_the_core(name: str, record: type[Record]) -> None:
    assert record.model_config["extra"] == "forbid"
    assert record.model_config["frozen"]
    assert record.model_config["strict"]
    # A private promise of pydantic, on which the speed and the strictness of nested records rest.
    assert record.__pydantic_custom_init__ is False
    assert record.__doc__


def test_a_validation_error_of_a_nested_record_is_a_contract_error_with_its_place() -> None:
    good = receipt([ALLOW])
    value = good.model_dump()
    value["destination"]["locality"] = "moon"
    with pytest.raises(ContractError) as refused:
        ContextDecisionReceiptV1.from_value(value)
    assert (refused.value.code, refused.value.pointer) == ("unknown_value", "/destination/locality")


def test_quality_is_named_before_the_decisions() -> None:
    value = receipt([ALLOW]).model_dump()
    value["decisions"] = [{**ALLOW.model_dump(), "disposition": "deny"}]
    value["quality"] = {
        "evidence_tier": "mechanism",
        "retention": {
            "critical": {"retained": 0, "recoverable": 0, "lost": 1},
            "important": {"retained": 0, "recoverable": 0, "lost": 0},
            "lost_critical_kinds": [],
            "critical_unchecked": False,
            "truncated": False,
            "secret_lines_withheld": 0,
        },
        "task_quality": "unmeasured",
        "overall": "pass",
    }
    with pytest.raises(ContractError) as refused:
        ContextDecisionReceiptV1.from_value(value)
    assert refused.value.code == "quality_claim"


def test_conform_checks_single_values() -> None:
    with pytest.raises(ContractError) as refused:
        conform(str, 1)
    assert refused.value.code == "bad_type"
