"""Every condition, by truth table (tests/vectors/policy/conditions.toml)."""

from __future__ import annotations

import tomllib
from dataclasses import fields
from pathlib import Path
from typing import Any

import pytest

from gateway.context.decisions import FindingFacts, ObjectFacts, RequestFacts
from gateway.policy import load_policy
from gateway.policy.compiled import CompiledConditions
from gateway.policy.conditions import (
    Conditions,
    FindingConditions,
    ObjectConditions,
    RequestConditions,
    read_conditions,
)
from gateway.policy.reading import Problems, Table

TABLE = tomllib.loads((Path(__file__).parents[2] / "vectors/policy/conditions.toml").read_text())["condition"]
CASES = [
    pytest.param(row["when"], case, expected, id=f"{row['name']}-{n}-{'holds' if expected else 'fails'}-{i}")
    for n, row in enumerate(TABLE)
    for expected, cases in ((True, row["holds"]), (False, row["fails"]))
    for i, case in enumerate(cases)
]


def _read(when: dict[str, Any]) -> Conditions:
    problems = Problems()
    conditions = read_conditions(Table(when, "when", problems))
    assert problems.found == []
    return conditions


def _holds(when: dict[str, Any], case: dict[str, Any]) -> bool:
    conditions = _read(when)
    mode = case.get("mode", "governed")
    compiled = CompiledConditions.of(conditions, mode)
    request = RequestFacts(
        **{
            "project": "p",
            "provider": "openai",
            "model": "gpt-x",
            "time": "2027-01-15T12:00:00Z",
            **case.get("request", {}),
        }
    )
    finding = FindingFacts(
        **{
            "type": "jwt",
            "category": "secret",
            "severity": "high",
            "confidence_milli": 900,
            "count": 1,
            **case.get("finding", {}),
        }
    )
    target = ObjectFacts(
        **{
            "pointer": "/x",
            "kind": "text",
            "channel": "user",
            "bytes": 100,
            "findings": (finding,),
            **case.get("object", {}),
        }
    )
    seen = [f for f in target.findings if compiled.sees(f)]
    return (
        (not conditions.modes or mode in conditions.modes)
        and all(test(request) for test in compiled.request)
        and all(test(target) for test in compiled.object)
        and (not compiled.asks_findings or (bool(seen) and sum(f.count for f in seen) >= compiled.count_min))
    )


@pytest.mark.parametrize(("when", "case", "expected"), CASES)
def test_truth_table(when: dict[str, Any], case: dict[str, Any], expected: bool) -> None:
    assert _holds(when, case) is expected


@pytest.mark.parametrize(("when", "case", "expected"), CASES)
def test_truth_table_through_a_policy(
    write: Any, when: dict[str, Any], case: dict[str, Any], expected: bool
) -> None:
    """The same table through parsing, index and decision: the rule speaks exactly where its condition holds."""
    files = write(
        f'[[rule]]\nid = "r.x"\nwhy = "w"\nwhen = {_toml(when)}\n'
        'then = { disposition = "deny", reason_codes = ["test.hit"] }\n'
    )
    policy = load_policy([files], mode=case.get("mode", "governed"), enforcement="enforce")
    finding = FindingFacts(
        **{
            "type": "jwt",
            "category": "secret",
            "severity": "high",
            "confidence_milli": 900,
            "count": 1,
            **case.get("finding", {}),
        }
    )
    target = ObjectFacts(
        **{
            "pointer": "/x",
            "kind": "text",
            "channel": "user",
            "bytes": 100,
            "findings": (finding,),
            **case.get("object", {}),
        }
    )
    request = RequestFacts(
        **{
            "project": "p",
            "provider": "openai",
            "model": "gpt-x",
            "time": "2027-01-15T12:00:00Z",
            **case.get("request", {}),
        }
    )
    assert ("r.x" in policy.decide(request, target).rules) is expected


def test_every_condition_has_a_row() -> None:
    named = {key for row in TABLE for key in row["when"]}
    known = {
        f.name for part in (RequestConditions, ObjectConditions, FindingConditions) for f in fields(part)
    } | {"mode"}
    assert named == known


def _toml(value: Any) -> str:
    match value:
        case dict():
            return "{ " + ", ".join(f"{k} = {_toml(v)}" for k, v in value.items()) + " }"
        case list():
            return "[" + ", ".join(map(_toml, value)) + "]"
        case bool():
            return str(value).lower()
        case str():
            return f'"{value}"'
        case _:
            return value.isoformat() if hasattr(value, "isoformat") else str(value)


@pytest.mark.parametrize(
    ("when", "problem"),
    [
        ({"kind": "letter"}, "when.kind: 'letter' is none of"),
        ({"kind": []}, "when.kind: must be a string or a list"),
        ({"colour": "red"}, "when.colour: unknown key"),
        ({"confidence_min": 1001}, "when.confidence_min: must be a whole number from 0 to 1000"),
        ({"confidence_min": True}, "when.confidence_min: must be a whole number"),
        ({"rewritable": "no"}, "when.rewritable: must be true or false"),
        ({"bytes_min": 5, "bytes_max": 4}, "when.bytes_min: is more than bytes_max"),
        ({"time": {}}, "when.time: names no bound"),
        ({"time": {"from": "08:00"}}, "when.time.from: must be a local time"),
        ({"time": {"days": ["someday"]}}, "when.time.days: 'someday' is none of"),
        ({"model": "*a*b*c*d*e*f*g"}, "when.model: more than 6 wildcards"),
        ({"severity_min": "grave"}, "when.severity_min: 'grave' is none of"),
    ],
)
def test_bad_conditions_name_their_place(when: dict[str, Any], problem: str) -> None:
    problems = Problems()
    read_conditions(Table(when, "when", problems))
    assert any(p.startswith(problem) for p in problems.found), problems.found
