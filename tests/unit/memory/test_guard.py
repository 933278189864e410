"""The guard's decision table, its normalisation, and what it never does."""

from __future__ import annotations

import json
import math
from datetime import UTC, datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.memory import GuardRules, guard

VECTORS = json.loads((Path(__file__).parents[2] / "vectors/memory/guard.json").read_text())
RECORD: dict[str, Any] = VECTORS["record"]
NOW = "2027-01-15T12:00:00Z"
KNOWN = ("acme-web", "zoo-site", "acme")
RULES = GuardRules(redirects={"old-web": "new-web"})


def _record(change: dict[str, Any]) -> dict[str, Any]:
    return {k: v for k, v in (RECORD | change).items() if v is not None}


@pytest.mark.parametrize("case", VECTORS["cases"], ids=lambda c: c["name"])
def test_table(case: dict[str, Any]) -> None:
    result = guard(_record(case["change"]), now=NOW, known_projects=KNOWN, rules=RULES)
    assert (result.decision, result.destination, result.contamination_risk, result.missing_fields) == (
        case["decision"],
        case["destination"],
        case["risk"],
        case["missing"],
    )
    assert result.reason


@pytest.mark.parametrize("record", [None, [], "text", 7])
def test_what_is_no_object_is_rejected(record: object) -> None:
    result = guard(record, now=NOW)
    assert (result.decision, result.destination, result.normalized_record) == ("reject", None, None)
    assert result.contamination_risk == "high"


@pytest.mark.parametrize("confidence", [math.nan, math.inf, -math.inf])
def test_numbers_that_are_none(confidence: float) -> None:
    assert guard(RECORD | {"confidence": confidence}, now=NOW).destination == "inbox"


def test_an_accepted_record() -> None:
    result = guard(RECORD | {"user_email": "x@example.com", "raw": "other"}, now=NOW)
    assert result.normalized_record == {
        "project_id": "acme-web",
        "memory_type": "note",
        "source": "user message",
        "timestamp": "2026-05-03T09:43:12Z",
        "confidence": 0.9,
        "raw": "The build needs node 22.",
        "validated_at": NOW,
        "guard_version": "1.0",
    }


def test_a_rerouted_record_keeps_the_candidate_but_guesses_no_project() -> None:
    result = guard(_record({"confidence": None, "source": None}), now=NOW)
    assert result.normalized_record == {
        "project_id": None,
        "candidate_project_id": "acme-web",
        "memory_type": "note",
        "source": None,
        "timestamp": "2026-05-03T09:43:12Z",
        "confidence": None,
        "raw": "The build needs node 22.",
        "validated_at": NOW,
        "guard_version": "1.0",
    }
    assert result.missing_fields == ["source", "confidence"]


def test_a_known_redirect_names_its_project() -> None:
    result = guard(_record({"candidate_project_id": "old-web"}), now=NOW, rules=RULES)
    assert result.normalized_record is not None
    assert result.normalized_record["project_id"] == "new-web"


def test_the_content_is_kept_as_it_is() -> None:
    raw = "  spaced \r\n\ttext \u0000 \ud83d "
    result = guard(RECORD | {"raw_content": raw}, now=NOW)
    assert result.normalized_record is not None
    assert result.normalized_record["raw"] == raw


@pytest.mark.parametrize(("threshold", "decision"), [(0.9, "accept"), (0.91, "reroute"), (0.0, "accept")])
def test_the_threshold_is_strict(threshold: float, decision: str) -> None:
    assert guard(RECORD, now=NOW, threshold=threshold).decision == decision


def test_a_closed_list_of_types() -> None:
    rules = GuardRules(memory_types={"finding"})
    assert guard(RECORD, now=NOW, rules=rules).destination == "inbox"
    assert guard(RECORD | {"memory_type": "finding"}, now=NOW, rules=rules).decision == "accept"


def test_time_may_be_given_as_a_datetime() -> None:
    for now in (
        datetime(2027, 1, 15, 12, tzinfo=UTC),
        datetime(2027, 1, 15, 14, tzinfo=timezone(timedelta(hours=2))),
    ):
        result = guard(RECORD, now=now)
        assert result.normalized_record is not None
        assert result.normalized_record["validated_at"] == NOW


def test_the_answer_as_json() -> None:
    answer = json.loads(json.dumps(guard(_record({"timestamp": None}), now=NOW).to_json()))
    assert set(answer) == {
        "decision",
        "destination",
        "normalized_record",
        "contamination_risk",
        "missing_fields",
        "reason",
    }
    assert (answer["decision"], answer["missing_fields"]) == ("reject", ["timestamp"])


def test_a_repr_and_a_reason_hold_no_content() -> None:
    record = RECORD | {"raw_content": "canary-in-memory zoo-site"}
    result = guard(record, now=NOW, known_projects=KNOWN)
    assert "canary" not in repr(result)
    assert "zoo-site" not in result.reason


values = (
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=20) | st.just("2026-05-03")
)


@given(st.dictionaries(st.sampled_from([*RECORD, "extra"]), values))
def test_nothing_is_accepted_that_lacks_anything(record: dict[str, Any]) -> None:
    result = guard(record, now=NOW, known_projects=KNOWN)
    if result.decision == "accept":
        assert result.missing_fields is None
        assert result.destination == record["candidate_project_id"].strip()
        assert 0.6 <= record["confidence"] <= 1
    elif result.decision == "reject":
        assert result.destination is None
        assert result.normalized_record is None
        assert result.missing_fields
    else:
        assert result.destination in {"inbox", "cleanup"}
