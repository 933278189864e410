"""EvaluationRecordV1: every byte accounted for, facts without content, the shape that listings show."""

from __future__ import annotations

import json
from typing import Any

import pytest

from gateway.contract import (
    EvaluationCoverageV1,
    EvaluationRecordV1,
    digest,
    join_evaluation,
    object_fragment,
)
from gateway.errors import ContractError

HEAD: dict[str, Any] = {
    "schema_version": 1,
    "request_id": "req-1",
    "time": "2026-11-30T09:43:12.123456Z",
    "receipt": digest(b"receipt"),
    "project": "acme-web",
    "principal": {"kind": "unknown"},
    "effect": "forwarded",
    "route": "proxy",
    "transport": "http",
    "provider": "anthropic",
    "locality": "remote",
    "mode": "governed",
    "bundles": [{"id": "default", "version": "1.0.0", "digest": digest(b"bundle")}],
    "enforcement": "enforce",
    "detectors": ["builtin 1.0.0"],
    "evidence_level": "not_attempted",
    "coverage": {"bytes_total": 100, "bytes_inspected": 90, "bytes_opaque": 10, "bytes_refused": 0},
}


def an_object(number: int = 0, **changes: Any) -> dict[str, Any]:
    return {
        "pointer": f"/messages/{number}",
        "kind": "text",
        "channel": "user",
        "digest": digest(b"%d" % number),
        "keyed": False,
        "bytes": 90,
        "disposition": "allow",
        "coverage": "complete",
        **changes,
    }


def _refused(action: Any) -> str:
    with pytest.raises(ContractError) as refused:
        action()
    return refused.value.code


def test_what_listings_show_is_always_written() -> None:
    finding = {"type": "email", "category": "pii", "severity": "medium", "confidence_milli": 900, "count": 2}
    made = EvaluationRecordV1.from_value({**HEAD, "objects": [an_object(findings=[finding])]})
    value = json.loads(made.to_json())
    shown = {
        "pointer", "kind", "channel", "digest", "keyed", "bytes", "disposition", "reason_codes", "findings",
        "coverage", "rules",
    }  # fmt: skip
    assert set(value["objects"][0]) == shown
    assert value["objects"][0]["findings"] == [finding]
    assert set(value["coverage"]) == {"bytes_total", "bytes_inspected", "bytes_opaque", "bytes_refused"}
    assert value["reason_codes"] == []


def test_usage_is_null_where_the_provider_gave_none() -> None:
    response = {
        "complete": True,
        "placeholders_restored": 1,
        "restore_withheld": 0,
        "usage": None,
        "reason_codes": [],
    }
    made = EvaluationRecordV1.from_value({**HEAD, "response": response})
    assert json.loads(made.to_json())["response"] == response
    used = {**response, "usage": {"input_tokens": 12, "output_tokens": 3}}
    assert json.loads(made.replace(response=None).to_json()).get("response") is None
    assert EvaluationRecordV1.from_value({**HEAD, "response": used}).response is not None
    assert (
        _refused(
            lambda: EvaluationRecordV1.from_value({**HEAD, "response": {**response, "usage": {"x": 1.5}}})
        )
        == "bad_type"
    )


@pytest.mark.parametrize("parts", [(90, 10, 1), (90, 9, 0), (101, 0, 0), (0, 0, 0)])
def test_every_byte_is_accounted_for_once(parts: tuple[int, int, int]) -> None:
    inspected, opaque, refused = parts
    assert (
        _refused(
            lambda: EvaluationCoverageV1(
                bytes_total=100, bytes_inspected=inspected, bytes_opaque=opaque, bytes_refused=refused
            )
        )
        == "coverage_sum"
    )


def test_the_key_of_keyed_digests_is_named() -> None:
    keyed = [an_object(keyed=True)]
    assert _refused(lambda: EvaluationRecordV1.from_value({**HEAD, "objects": keyed})) == "missing_field"
    named = EvaluationRecordV1.from_value({**HEAD, "objects": keyed, "digest_key": "key-1"})
    assert named.digest_key == "key-1"


def test_a_decision_other_than_allow_says_why() -> None:
    assert _refused(lambda: object_fragment(**an_object(disposition="deny"))) == "reason_required"


@pytest.mark.parametrize(
    ("changes", "code"),
    [
        ({"project": "Acme"}, "bad_name"),
        ({"time": "yesterday"}, "bad_timestamp"),
        ({"effect": "lost"}, "unknown_value"),
        ({"evidence_level": "sure"}, "unknown_value"),
        ({"prompt": "hunter2"}, "unknown_field"),
        ({"schema_version": 2}, "unsupported_schema_version"),
        ({"objects": [an_object(text="hunter2")]}, "unknown_field"),
        ({"objects": [an_object(kind="Some Text")]}, "bad_name"),
    ],
)
def test_it_is_closed(changes: dict[str, Any], code: str) -> None:
    assert _refused(lambda: EvaluationRecordV1.from_value({**HEAD, **changes})) == code


@pytest.mark.parametrize("count", [0, 1, 5, 300])
def test_a_joined_evaluation_is_the_models_own_bytes(count: int) -> None:
    value = {**HEAD, "response": None, "conversation": "tag", "roles": ["developer"]}
    parts = join_evaluation(value, [object_fragment(**an_object(i)) for i in range(count)])
    read = EvaluationRecordV1.from_json(b"".join(parts))
    assert read.to_json() == b"".join(parts)
    assert [item.pointer for item in read.objects] == [f"/messages/{i}" for i in range(count)]


def test_a_joined_evaluation_is_held_to_its_rules() -> None:
    keyed = [object_fragment(**an_object(keyed=True))]
    assert _refused(lambda: join_evaluation(HEAD, keyed)) == "missing_field"
    assert join_evaluation({**HEAD, "digest_key": "key-1"}, keyed)
    assert _refused(lambda: join_evaluation({**HEAD, "objects": []}, [])) == "unknown_field"
    assert _refused(lambda: join_evaluation(HEAD, keyed * 4097)) == "bounds_exceeded"


def test_a_growing_history_shares_its_parts() -> None:
    history = [object_fragment(**an_object(i)) for i in range(300)]
    before = join_evaluation(HEAD, history)
    after = join_evaluation({**HEAD, "request_id": "req-2"}, [*history, object_fragment(**an_object(300))])
    assert len(set(after) - set(before)) <= 3


def test_facts_at_their_defaults_are_omitted() -> None:
    assert object_fragment(**an_object(rewritable=True)) == object_fragment(**an_object())
    assert b'"rewritable":false' in object_fragment(**an_object(rewritable=False))
