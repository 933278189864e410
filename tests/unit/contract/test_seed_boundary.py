"""The memory boundary document's wire forms, one test for each thing it states."""

from __future__ import annotations

import json

from gateway.contract import (
    MEMORY_BOUNDARY_V1_SCHEMA_VERSION,
    BoundaryPolicy,
    CrossProjectEventTypeV1,
    CrossProjectEventV1,
    FactPrivacy,
)

EVENT = b"""{
  "timestamp": "2026-05-03T09:43:12Z",
  "event_type": "search",
  "source_project_hash": "abc123",
  "target_project_hash": "def456",
  "tool": "ctx_knowledge",
  "action": "search",
  "facts_accessed": 3,
  "allowed": false,
  "policy_reason": "cross_project_search disabled"
}"""


def test_the_contract_is_version_1() -> None:
    assert MEMORY_BOUNDARY_V1_SCHEMA_VERSION == 1


def test_facts_have_three_privacies() -> None:
    assert [str(privacy) for privacy in FactPrivacy] == ["project_only", "linked_projects", "team"]


def test_a_fact_from_before_the_field_is_project_only() -> None:
    assert FactPrivacy.of_fact({"text": "a fact"}) is FactPrivacy.PROJECT_ONLY


def test_nothing_crosses_by_default_and_attempts_are_audited() -> None:
    policy = BoundaryPolicy()
    assert not policy.cross_project_search
    assert not policy.cross_project_import
    assert policy.audit_cross_access


def test_a_policy_without_members_reads_as_the_default() -> None:
    assert BoundaryPolicy.from_json(b"{}") == BoundaryPolicy()


def test_the_documents_event_reads_and_keeps_what_it_says() -> None:
    event = CrossProjectEventV1.from_json(EVENT)
    assert event.event_type is CrossProjectEventTypeV1.SEARCH
    assert event.facts_accessed == 3
    assert event.allowed is False
    assert json.loads(event.to_json()) == json.loads(EVENT)
