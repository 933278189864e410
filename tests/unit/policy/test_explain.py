"""A trace names every rule with its answer, and never disagrees with the decision."""

from __future__ import annotations

from typing import Any

from gateway.context.decisions import FindingFacts, ObjectFacts, RequestFacts
from gateway.policy import explain, load_policy, render
from gateway.policy.compiled import Answer

REQUEST = RequestFacts("support-desk", time="2027-01-15T12:00:00Z")
TEXT = ObjectFacts(
    "/x",
    "text",
    "user",
    100,
    (FindingFacts("email", "pii", "medium", 900, 1), FindingFacts("jwt", "secret", "high", 900, 1)),
)


def test_answers(shipped: Any) -> None:
    policy = load_policy([shipped("examples/uploads")], mode="governed", enforcement="enforce")
    explained = explain(policy, REQUEST, TEXT)
    answers = {step.rule: step.answer for step in explained.steps}
    assert answers["uploads.secret"] is Answer.SPOKE
    assert answers["uploads.secret.elsewhere"] is Answer.FINDINGS
    assert answers["uploads.pii"] is Answer.LIFTED
    assert answers["uploads.secret.fixed"] is Answer.OBJECT
    assert answers["mode.coverage_partial"] is Answer.OBJECT
    assert explained.decision == policy.decide(REQUEST, TEXT)
    assert [s.rule for s in explained.spoke] == ["uploads.secret", "uploads.pii"]


def test_unless_and_request(write: Any) -> None:
    rules = """
    [[rule]]
    id = "a.1"
    why = "w"
    when = { project = "other" }
    then = { disposition = "deny", reason_codes = ["a.code"] }

    [[rule]]
    id = "b.1"
    why = "w"
    when = { kind = "text" }
    unless = { project = "support-desk" }
    then = { disposition = "deny", reason_codes = ["a.code"] }
    """
    policy = load_policy([write(rules)], mode="governed", enforcement="enforce")
    answers = {s.rule: s.answer for s in explain(policy, REQUEST, TEXT).steps}
    assert answers["a.1"] is Answer.REQUEST
    assert answers["b.1"] is Answer.UNLESS


def test_render(shipped: Any) -> None:
    policy = load_policy([shipped("examples/uploads")], mode="governed", enforcement="enforce")
    text = render(explain(policy, REQUEST, TEXT))
    assert text.splitlines()[0] == "allow_redacted  policy.exception secret.redacted"
    assert "masks jwt" in text
    assert "uploads.pii [uploads: rules/data.toml]: lifted by an exception (support-mailbox)" in text
    assert "mode.coverage_partial" not in text
    assert "mode.coverage_partial" in render(explain(policy, REQUEST, TEXT), everything=True)
