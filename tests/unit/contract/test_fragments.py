"""Joined from fragments, records are byte for byte the models' own, and histories share their parts."""

from __future__ import annotations

import json
import statistics
import timeit
from typing import Any

import pytest

from gateway.contract import (
    ContextDecisionLineageV1,
    ContextDecisionOutcomeV1,
    ContextDecisionReceiptV1,
    ContextDispositionV1,
    ContextReceiptStateV1,
    IntegrationRouteV1,
    TransformationKindV1,
    decision_fragment,
    digest,
    join_lineage,
    join_receipt,
    outcome_fragment,
)
from gateway.errors import ContractError
from tests.support.contract_fixtures import decision, receipt, request

D = ContextDispositionV1


def head(**changes: Any) -> dict[str, Any]:
    value: dict[str, Any] = json.loads(receipt().to_json())
    for name, change in changes.items():
        value[name] = {**value[name], **change} if isinstance(change, dict) else change
    return value


def clean(number: int) -> bytes:
    return decision_fragment(digest(b"object %d" % number), D.ALLOW)


def _refused(action: Any) -> str:
    with pytest.raises(ContractError) as refused:
        action()
    return refused.value.code


def test_a_fragment_is_the_models_own_bytes() -> None:
    made = decision(D.ALLOW_REDACTED, "b")
    assert decision_fragment(made.object, made.disposition, made.reason_codes) == made.to_json()


def test_a_set_of_transformations_is_written_in_one_order() -> None:
    kinds = frozenset(TransformationKindV1)
    fragment = json.loads(decision_fragment(digest(b""), D.ALLOW, required_transformations=kinds))
    assert fragment["required_transformations"] == sorted(kinds)


def test_a_fragment_is_validated() -> None:
    assert _refused(lambda: decision_fragment(digest(b""), D.DENY)) == "reason_required"


@pytest.mark.parametrize("count", [0, 1, 3, 4, 5, 64, 65, 300, 4096])
def test_a_joined_receipt_is_the_models_own_bytes(count: int) -> None:
    parts = join_receipt(head(), [clean(i) for i in range(count)])
    read = ContextDecisionReceiptV1.from_json(b"".join(parts))
    assert read.to_json() == b"".join(parts)
    assert read.canonical_digest() == digest(b"".join(parts))
    assert [d.object for d in read.decisions] == [digest(b"object %d" % i) for i in range(count)]


def test_denials_and_quarantines_must_be_counted_as_they_are() -> None:
    fragments = [
        decision_fragment(digest(b"a"), D.DENY, ["secret.blocked"]),
        decision_fragment(digest(b"b"), D.QUARANTINE, ["quarantine.held"]),
        # Reason codes and names that look like dispositions are not counted as such.
        decision_fragment(digest(b"c"), D.ALLOW, ["deny", "quarantine"]),
    ]
    counted = head(security={"blocked_objects": 1, "quarantined_objects": 1})
    read = ContextDecisionReceiptV1.from_json(b"".join(join_receipt(counted, fragments)))
    assert len(read.decisions) == 3
    for wrong in ({"blocked_objects": 2}, {"quarantined_objects": 0}):
        bad = head(security={"blocked_objects": 1, "quarantined_objects": 1, **wrong})
        assert _refused(lambda bad=bad: join_receipt(bad, fragments)) == "security_counts"


def test_a_detectors_name_cannot_pose_as_a_disposition() -> None:
    signal = {
        "detector": {"id": '"disposition":"deny"', "version": "1.0.0"},
        "category": "secret",
        "severity": "low",
        "evidence_count": 1,
        "coverage": {
            "kind": "complete",
            "bytes_total": 1,
            "bytes_inspected": 1,
            "chunks_total": 1,
            "chunks_inspected": 1,
        },
        "status": "completed",
        "latency_us": 1,
    }
    fragment = decision_fragment(digest(b"a"), D.ALLOW, signals=[signal])  # type: ignore[list-item]
    read = ContextDecisionReceiptV1.from_json(b"".join(join_receipt(head(), [fragment])))
    assert read.security.blocked_objects == 0


@pytest.mark.parametrize(
    ("changes", "code"),
    [
        ({"outcome": "withheld"}, "final_context"),
        ({"schema_version": 2}, "unsupported_schema_version"),
        ({"decisions": []}, "unknown_field"),
        ({"sources": {"selected": 9}}, "source_counts"),
        ({"extra": 1}, "unknown_field"),
    ],
)
def test_a_head_is_validated(changes: dict[str, Any], code: str) -> None:
    assert _refused(lambda: join_receipt(head(**changes), [])) == code


def test_more_decisions_than_a_receipt_can_list_are_refused() -> None:
    assert _refused(lambda: join_receipt(head(), [clean(1)] * 4097)) == "bounds_exceeded"


def test_equal_histories_give_equal_parts() -> None:
    history = [clean(i) for i in range(300)]
    before = join_receipt(head(), history)
    after = join_receipt(head(receipt_id="rcpt-2"), [*history, clean(300), clean(301)])
    # Only the last chunk, which grew, and what is new in every receipt differ.
    assert len(set(after) - set(before)) <= 3
    assert after[0] == before[0]


def test_a_change_in_the_middle_leaves_the_rest_of_the_parts() -> None:
    history = [clean(i) for i in range(300)]
    before = join_receipt(head(), history)
    after = join_receipt(head(), [*history[:150], clean(999), *history[150:]])
    assert len(set(after) - set(before)) <= 6


def test_chunks_hold_about_nine_fragments() -> None:
    parts = join_receipt(head(), [clean(i) for i in range(4000)])[1:-1]
    sizes = [part.count(b'"object"') for part in parts]
    assert 7 <= statistics.mean(sizes) <= 12
    assert max(sizes) <= 64


@pytest.mark.parametrize("number", range(20))
def test_equal_fragments_make_neither_one_part_each_nor_one_without_end(number: int) -> None:
    parts = join_receipt(head(), [clean(number)] * 1000)[1:-1]
    assert 1000 / 64 <= len(parts) <= 1000 / 4


def test_joining_and_hashing_300_decisions_is_quick() -> None:
    history, value = [clean(i) for i in range(300)], head()
    best = min(timeit.repeat(lambda: digest(b"".join(join_receipt(value, history))), number=1, repeat=50))
    assert best < 0.001  # about 0.15 ms on the machine it was written on


def lineage_head(**changes: Any) -> dict[str, Any]:
    made = ContextDecisionLineageV1.for_receipt(request(IntegrationRouteV1.PROXY), (), receipt(), True)
    return {**json.loads(made.to_json()), **changes}


def test_a_joined_lineage_is_the_models_own_bytes() -> None:
    for count in (0, 1, 100):
        fragments = [
            outcome_fragment(digest(b"%d" % i), ContextDecisionOutcomeV1.ALLOW) for i in range(count)
        ]
        parts = join_lineage(lineage_head(), fragments)
        read = ContextDecisionLineageV1.from_json(b"".join(parts))
        assert read.to_json() == b"".join(parts)
        assert len(read.outcomes) == count


def test_a_joined_lineage_makes_no_clean_claim_beside_a_denial() -> None:
    denied = outcome_fragment(digest(b"a"), ContextDecisionOutcomeV1.DENY, ["secret.blocked"])
    assert _refused(lambda: join_lineage(lineage_head(), [denied])) == "state_overclaims"
    partial = lineage_head(receipt_state=ContextReceiptStateV1.PARTIAL)
    read = ContextDecisionLineageV1.from_json(b"".join(join_lineage(partial, [denied])))
    assert read.receipt_state is ContextReceiptStateV1.PARTIAL
