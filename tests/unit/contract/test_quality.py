"""The quality section claims what its counts show, and nothing of the task (contract §4.1)."""

from __future__ import annotations

from typing import Any

import pytest

from gateway.contract import (
    ContextDispositionV1,
    ContextQualitySectionV1,
    ContextRecoveryV1,
    ContextRetentionV1,
)
from gateway.errors import ContractError
from tests.support.contract_fixtures import decision, receipt

ZERO = {"retained": 0, "recoverable": 0, "lost": 0}
KEPT = {"retained": 3, "recoverable": 0, "lost": 0}


def section(
    overall: str, recovery: dict[str, int] | None = None, **retention: Any
) -> ContextQualitySectionV1:
    return ContextQualitySectionV1.from_value(
        {
            "evidence_tier": "mechanism",
            "retention": {
                "critical": ZERO,
                "important": ZERO,
                "lost_critical_kinds": [],
                "critical_unchecked": False,
                "truncated": False,
                "secret_lines_withheld": 0,
                **retention,
            },
            "recovery": recovery,
            "task_quality": "unmeasured",
            "overall": overall,
        }
    )


def handles(emitted: int, verified: int, failures: int, critical: int = 0) -> dict[str, int]:
    return {
        "handles_emitted": emitted,
        "handles_verified": verified,
        "failures": failures,
        "critical_failures": critical,
    }


@pytest.mark.parametrize(
    ("overall", "facts"),
    [
        ("unmeasured", {}),
        ("unmeasured", {"truncated": True, "secret_lines_withheld": 2}),
        ("pass", {"critical": KEPT}),
        ("pass", {"important": {"retained": 0, "recoverable": 0, "lost": 5}}),
        ("pass", {"recovery": handles(0, 0, 0)}),
        ("fail", {"critical": {"retained": 3, "recoverable": 0, "lost": 1}}),
        ("fail", {"critical": KEPT, "critical_unchecked": True}),
        ("fail", {"lost_critical_kinds": ["error_code", "url"]}),
        ("fail", {"critical": KEPT, "recovery": handles(2, 1, 1)}),
    ],
)
def test_overall_follows_from_the_counts(overall: str, facts: dict[str, Any]) -> None:
    assert section(overall, **facts).overall == overall
    for other in {"pass", "fail", "unmeasured"} - {overall}:
        with pytest.raises(ContractError) as refused:
            section(other, **facts)
        assert refused.value.code == "quality_claim"


@pytest.mark.parametrize("counts", [handles(1, 1, 1), handles(3, 1, 1, 2), handles(0, 1, 0)])
def test_handles_are_within_what_was_emitted(counts: dict[str, int]) -> None:
    with pytest.raises(ContractError) as refused:
        ContextRecoveryV1(**counts)
    assert refused.value.code == "quality_claim"


@pytest.mark.parametrize("kinds", [["url", "error_code"], ["url", "url"]])
def test_lost_kinds_are_sorted_and_unique(kinds: list[str]) -> None:
    with pytest.raises(ContractError) as refused:
        section("fail", lost_critical_kinds=kinds)
    assert refused.value.code == "unsorted"


def test_the_quality_of_the_task_is_never_claimed() -> None:
    value = section("unmeasured").model_dump()
    with pytest.raises(ContractError) as refused:
        ContextQualitySectionV1.from_value({**value, "task_quality": "pass"})
    assert refused.value.code == "unknown_value"


def test_retention_members_are_always_written_and_required() -> None:
    value = section("unmeasured").model_dump()["retention"]
    assert set(value) == set(ContextRetentionV1.model_fields)
    for name in value:
        with pytest.raises(ContractError) as refused:
            ContextRetentionV1.from_value({k: v for k, v in value.items() if k != name})
        assert refused.value.code == "missing_field"


def test_a_quality_section_changes_the_receipts_digest() -> None:
    plain = receipt([decision(ContextDispositionV1.ALLOW, "a")])
    assert plain.replace(quality=section("unmeasured")).canonical_digest() != plain.canonical_digest()
