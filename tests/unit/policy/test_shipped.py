"""The bundles that are shipped: their own tests, and what must hold of them whatever they say."""

from __future__ import annotations

from dataclasses import replace
from itertools import product
from pathlib import Path
from typing import Any

import pytest

from gateway.boundary import FOREIGN_TYPE
from gateway.classify.remembering import MEMORY_TYPES
from gateway.context.decisions import FindingFacts, ObjectFacts, RequestFacts
from gateway.context.objects import LeafRole, ObjectKind
from gateway.contract import ContextDispositionV1
from gateway.detect.engine import build
from gateway.errors import PolicyError
from gateway.policy import load_policy, parse_bundle, run_trials
from gateway.policy.decide import GENERAL_TEXT
from gateway.policy.globs import matcher

D = ContextDispositionV1
POLICIES = Path(__file__).parents[3] / "policies"
LAYERS = (
    "payments-team",
    "night-shift",
    "eu-personal-data",
    "source-code-local",
    "approvals",
    "secrets-refused",
    "test-values",
)
STACKS = (
    ("default",),
    ("strict",),
    ("default", "strict"),
    *(("default", f"examples/{name}") for name in LAYERS),
    *(("strict", f"examples/{name}") for name in ("eu-personal-data", "approvals", "secrets-refused")),
    ("examples/uploads",),
)


@pytest.mark.parametrize("stack", STACKS, ids="+".join)
def test_their_own_tests_pass(shipped: Any, stack: tuple[str, ...]) -> None:
    results = run_trials([shipped(name) for name in stack])
    assert len(results) >= 3
    assert [(r.name, r.mode, r.problems) for r in results if not r.passed] == []


def test_every_example_is_in_a_stack() -> None:
    examples = {path.parent.name for path in (POLICIES / "examples").glob("*/bundle.toml")}
    assert examples == {*LAYERS, "uploads"}


@pytest.mark.parametrize("name", ["default", "strict"])
def test_every_reason_code_has_a_text(shipped: Any, name: str) -> None:
    bundle = parse_bundle(shipped(name))
    codes = {code for rule in bundle.rules for code in rule.then.reason_codes}
    assert {c for c in codes if c not in bundle.texts} == set()


@pytest.mark.parametrize("name", ["default", "strict"])
@pytest.mark.parametrize(
    "code",
    ["policy.kill_switch", "account.not_allowed", "account.missing", "budget.requests", "budget.unavailable"],
)
def test_what_no_rule_decided_has_a_text_that_says_so(shipped: Any, name: str, code: str) -> None:
    policy = _cached(shipped, name, "governed")
    assert policy.text(code) not in {GENERAL_TEXT, policy.text("policy")}


@pytest.mark.parametrize("name", ["default", "strict"])
@pytest.mark.parametrize("mode", ["governed", "sovereign"])
@pytest.mark.parametrize("kind", list(ObjectKind))
def test_no_secret_leaves_in_clear(shipped: Any, name: str, mode: str, kind: str) -> None:
    """Wherever a secret stands it is masked in a place that can be rewritten, or the object does not leave."""
    policy = _cached(shipped, name, mode)
    for role, rewritable in product(LeafRole, (True, False)):
        secret = FindingFacts("jwt", "secret", "high", 300, 1, role)
        facts = ObjectFacts("/x", kind, "user", 100, (secret,), rewritable=rewritable)
        decision = policy.decide(RequestFacts("p", time="2027-01-15T12:00:00Z"), facts)
        editable = rewritable and role in {"text", "encoded", "name", "number"}
        held = not decision.disposition.delivers_content
        assert held or (editable and "jwt" in decision.mask), (role, rewritable)


_policies: dict[tuple[str, str], Any] = {}


def _cached(shipped: Any, name: str, mode: str) -> Any:
    if (name, mode) not in _policies:
        _policies[name, mode] = load_policy([shipped(name)], mode=mode, enforcement="enforce")
    return _policies[name, mode]


def test_default_keeps_identifiers_that_look_like_personal_data(shipped: Any) -> None:
    policy = _cached(shipped, "default", "governed")
    finding = FindingFacts("phone", "pii", "medium", 800, 1, "structural")
    facts = ObjectFacts("/tools/0", "tool_definition", "other", 100, (finding,))
    decision = policy.decide(RequestFacts("p"), facts)
    assert (decision.disposition, decision.mask) == (D.ALLOW, frozenset())
    beside = replace(facts, findings=(finding, replace(finding, role="text")))
    assert policy.decide(RequestFacts("p"), beside).mask == {"phone"}


def test_strict_is_not_for_developer_mode(shipped: Any) -> None:
    with pytest.raises(PolicyError):
        load_policy([shipped("strict")], mode="developer", enforcement="enforce")


def test_a_bundle_that_says_nothing_about_what_is_unread_refuses_it(write: Any) -> None:
    policy = load_policy([write()], mode="governed", enforcement="enforce")
    for kind in ("media", "document", "opaque", "form_part", "text"):
        facts = ObjectFacts("/x", kind, "user", 100, coverage="unsupported")
        assert policy.decide(RequestFacts("p"), facts).disposition is D.DENY


def test_a_failing_test_is_told(write: Any) -> None:
    test = '[[test]]\nname = "wrong"\nobject = { kind = "text" }\nexpect = { disposition = "deny", reason_codes = ["a.code"], mask = ["x"], rules = ["r"] }\n'
    (result,) = run_trials([write(more={"tests/t.toml": test})])
    assert result.problems == (
        "disposition: expected deny, got allow",
        "reason_codes: expected a.code, got none",
        "mask: expected x, got none",
        "rules: expected r, got none",
    )


def test_a_test_for_a_mode_the_bundle_is_not_made_for_fails(write: Any) -> None:
    test = '[[test]]\nname = "t"\nmode = "developer"\nobject = { kind = "text" }\nexpect = { disposition = "allow" }\n'
    (result,) = run_trials([write(manifest='modes = ["governed"]\n', more={"tests/t.toml": test})])
    assert result.problems == ("the bundle is not made for mode developer",)


@pytest.mark.parametrize("name", sorted({name for stack in STACKS for name in stack}))
def test_types_that_bundles_name_are_types_that_detectors_give(shipped: Any, name: str) -> None:
    """A misspelt type is a rule that never speaks, and its own test would be misspelt the same way."""
    bundle = parse_bundle(shipped(name))
    given = {row.type for row in build(extra=bundle.detectors).types()} | {FOREIGN_TYPE} | MEMORY_TYPES
    for rule in bundle.rules:
        for pattern in (*rule.when.finding.type, *rule.when.finding.not_type, *rule.then.mask.types):
            assert any(matcher([pattern])(t) for t in given), (rule.id, pattern)
    for trial in bundle.trials:
        for finding in trial.object.findings:
            if finding.category in {"secret", "pii"}:
                assert finding.type in given, (trial.name, finding.type)
