"""Audit events: every attempt against a foreign project, in the contract's JSON."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from gateway.boundary import (
    Attempt,
    BoundaryPolicy,
    Crossing,
    CrossProjectEventTypeV1,
    check_boundary,
    crossing_event,
    load_events,
)
from gateway.contract import CrossProjectEventV1
from gateway.store.crossings import CrossProjectLog

E = CrossProjectEventTypeV1
ATTEMPT = Attempt(E.SEARCH, "abc123", "def456", "ctx_knowledge", "search", 3)
AT = "2026-05-03T09:43:12Z"
DEFAULT = BoundaryPolicy()


def test_the_event_of_the_contract() -> None:
    crossing = check_boundary("abc123", "def456", DEFAULT, "search")
    event = crossing_event(ATTEMPT, crossing, at=AT, policy=DEFAULT)
    assert event is not None
    assert json.loads(event.to_json()) == {
        "timestamp": AT,
        "event_type": "search",
        "source_project_hash": "abc123",
        "target_project_hash": "def456",
        "tool": "ctx_knowledge",
        "action": "search",
        "facts_accessed": 3,
        "allowed": False,
        "policy_reason": "cross_project_search disabled",
    }


@pytest.mark.parametrize("allowed", [True, False])
def test_allowed_attempts_are_recorded_too(allowed: bool) -> None:
    event = crossing_event(ATTEMPT, Crossing(allowed, "because"), at=AT, policy=DEFAULT)
    assert event is not None
    assert (event.allowed, event.policy_reason, event.facts_accessed) == (allowed, "because", 3)


def test_an_import_comes_from_the_owner() -> None:
    event = crossing_event(replace(ATTEMPT, event=E.IMPORT), Crossing(False, "no"), at=AT, policy=DEFAULT)
    assert event is not None
    assert (event.source_project_hash, event.target_project_hash) == ("def456", "abc123")


def test_a_project_nobody_knows_is_said_so() -> None:
    event = crossing_event(
        replace(ATTEMPT, asking="", owner=""), Crossing(False, "no"), at=AT, policy=DEFAULT
    )
    assert event is not None
    assert (event.source_project_hash, event.target_project_hash) == ("unknown", "unknown")


def test_no_event_at_home_or_where_the_audit_is_off() -> None:
    yes = Crossing(True, "same project")
    assert crossing_event(replace(ATTEMPT, owner="abc123"), yes, at=AT, policy=DEFAULT) is None
    off = BoundaryPolicy(audit_cross_access=False)
    assert crossing_event(ATTEMPT, yes, at=AT, policy=off) is None


def _line(n: int) -> bytes:
    event = crossing_event(replace(ATTEMPT, facts=n), Crossing(False, "no"), at=AT, policy=DEFAULT)
    assert event is not None
    return event.to_json()


def test_loading_gives_the_last_in_file_order_and_passes_over_what_is_torn() -> None:
    data = b"\n".join([_line(1), b"not json", b'{"timestamp":"x"}', _line(2), b"", _line(3)[:40]])
    assert [e.facts_accessed for e in load_events(data, 10)] == [1, 2]
    assert [e.facts_accessed for e in load_events(data, 1)] == [2]
    assert load_events(data, 0) == []
    assert load_events(b"", 10) == []


def test_an_answer_has_at_most_a_thousand() -> None:
    assert len(load_events(b"\n".join([_line(1)] * 1001), 5000)) == 1000


def test_the_published_vector_of_the_audit_file(tmp_path: Path) -> None:
    """G29: two events are stored; the last ones are loaded, with what they say."""
    vector = json.loads((Path(__file__).parents[2] / "vectors/boundary/audit.json").read_text())
    path = tmp_path / "cross-project.jsonl"
    log = CrossProjectLog(path)
    for event in vector["events"]:
        log.append([CrossProjectEventV1.from_json(json.dumps(event).encode()).to_json()])
    for load in vector["loads"]:
        found = load_events(path.read_bytes(), load["limit"])
        assert [event.action for event in found] == load["actions"]
    assert (found[-1].allowed, found[-1].facts_accessed) == (False, 3)
