"""Passports: derivation joins what must not get lost (contract §3.3)."""

from __future__ import annotations

from typing import Any

import pytest

from gateway.contract import (
    ClassificationV1,
    ContextObjectPassportV1,
    DestinationConstraintV1,
    GatewayModeV1,
    PolicyRefV1,
    PrincipalV1,
    SourceKindV1,
    SourceRefV1,
    TransformationKindV1,
    TransformationRecordV1,
    TrustLevelV1,
)
from gateway.errors import ContractError
from tests.support.contract_fixtures import digest_of

SOURCE = SourceRefV1(kind=SourceKindV1.MEMORY, id="mem:proj-a:42")
OWN: dict[str, Any] = {"object": digest_of("9"), "source": SOURCE, "tokens": 1, "bytes": 4}


def passport(fill: str, **changes: Any) -> ContextObjectPassportV1:
    return ContextObjectPassportV1(
        schema_version=1,
        object=digest_of(fill),
        source=SOURCE,
        principal=PrincipalV1.unknown(),
        classification=ClassificationV1.INTERNAL,
        trust=TrustLevelV1.TRUSTED,
        tokens=10,
        bytes=40,
    ).replace(**changes)


def policy(name: str, version: str | None = None) -> PolicyRefV1:
    return PolicyRefV1(id=name, version=version, digest=digest_of("1"))


def step(fill: str) -> TransformationRecordV1:
    return TransformationRecordV1(
        kind=TransformationKindV1.SUMMARIZATION,
        input=digest_of(fill),
        output=digest_of("9"),
        tokens_before=10,
        tokens_after=1,
    )


def _refused(action: Any) -> str:
    with pytest.raises(ContractError) as refused:
        action()
    return refused.value.code


def test_a_derived_object_keeps_every_restriction() -> None:
    first = passport(
        "a",
        policy_refs=(policy("b"),),
        destination_constraints=(DestinationConstraintV1.ORGANIZATION_PRIVATE,),
        lineage=(step("7"),),
    )
    second = passport(
        "b",
        classification=ClassificationV1.RESTRICTED,
        trust=TrustLevelV1.UNKNOWN,
        policy_refs=(policy("a"), policy("b")),
        destination_constraints=(DestinationConstraintV1.LOCAL_ONLY,),
    )
    made = ContextObjectPassportV1.derive([first, second], [step("a")], **OWN)
    assert made.classification is ClassificationV1.RESTRICTED
    assert made.trust is TrustLevelV1.UNKNOWN
    assert made.policy_refs == (policy("a"), policy("b"))
    assert list(made.destination_constraints) == list(DestinationConstraintV1)
    assert made.lineage == (step("7"), step("a"))


def test_nothing_is_derived_from_nothing() -> None:
    assert _refused(lambda: ContextObjectPassportV1.derive([], [], **OWN)) == "derivation"


def test_nothing_is_derived_over_two_principals() -> None:
    other = passport("b", principal=PrincipalV1(kind="person", id="user-1"))  # type: ignore[arg-type]
    assert _refused(lambda: ContextObjectPassportV1.derive([passport("a"), other], [], **OWN)) == "derivation"


def test_accumulation_stays_within_the_bounds() -> None:
    many = [passport("a", lineage=tuple(step("7") for _ in range(256)))]
    assert _refused(lambda: ContextObjectPassportV1.derive(many, [step("a")] * 256, **OWN)) == (
        "bounds_exceeded"
    )


@pytest.mark.parametrize(
    "changes",
    [
        {"policy_refs": (policy("b"), policy("a"))},
        {"policy_refs": (policy("a"), policy("a"))},
        {"policy_refs": (policy("a", "1.0.0"), policy("a"))},
        {"destination_constraints": (DestinationConstraintV1.LOCAL_ONLY,) * 2},
        {"destination_constraints": tuple(reversed(DestinationConstraintV1))},
    ],
)
def test_lists_are_sorted_and_unique(changes: dict[str, Any]) -> None:
    assert _refused(lambda: passport("a", **changes)) == "unsorted"


def test_modes_differ_in_what_they_assume() -> None:
    assert GatewayModeV1.DEVELOPER.unclassified is ClassificationV1.PUBLIC
    assert not GatewayModeV1.DEVELOPER.requires_detectors
    for mode in (GatewayModeV1.GOVERNED, GatewayModeV1.SOVEREIGN):
        assert mode.unclassified is ClassificationV1.INTERNAL
        assert mode.requires_detectors


def test_joins_of_nothing_are_neutral() -> None:
    assert ClassificationV1.highest() is ClassificationV1.PUBLIC
    assert TrustLevelV1.lowest() is TrustLevelV1.UNTRUSTED
