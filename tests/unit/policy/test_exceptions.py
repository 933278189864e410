"""Exceptions: the only way to loosen, one finding at a time, for as long as they last, never silently."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from gateway.context.decisions import FindingFacts, ObjectFacts, RequestFacts
from gateway.contract import ContextDispositionV1
from gateway.policy import load_policy

D = ContextDispositionV1
RULE = """
[[rule]]
id = "pii.redact"
why = "w"
when = { category = "pii" }
then = { disposition = "allow_redacted", reason_codes = ["pii.redacted"] }

[[exception]]
id = "support"
owner = "ann@example.com"
reason = "ticket 1"
expires = 2027-06-30T00:00:00Z
rules = ["pii.redact"]
"""
NOW = "2027-01-15T12:00:00Z"
REQUEST = RequestFacts("support-desk", time=NOW)
EMAIL = FindingFacts("email", "pii", "medium", 900, 1)
IBAN = FindingFacts("iban", "pii", "medium", 900, 1)
TEXT = ObjectFacts("/x", "text", "user", 100, (EMAIL, IBAN))


def _decide(files: dict[str, bytes], request: RequestFacts = REQUEST, facts: ObjectFacts = TEXT) -> Any:
    return load_policy([files], mode="governed", enforcement="enforce").decide(request, facts)


def test_a_whole_rule_can_be_lifted_and_the_decision_says_by_whom(write: Any) -> None:
    decision = _decide(write(RULE))
    assert decision.disposition is D.ALLOW
    assert decision.reason_codes == ("policy.exception",)
    assert decision.rules == ("exception:support",)
    assert decision.parameters == (("exception:support", "ann@example.com, until 2027-06-30T00:00:00Z"),)


def test_by_finding_it_covers_only_those_findings(write: Any) -> None:
    decision = _decide(write(RULE + 'when = { type = "email" }\n'))
    assert decision.disposition is D.ALLOW_REDACTED
    assert decision.mask == {"iban"}
    assert decision.rules == ("exception:support", "pii.redact")
    alone = _decide(write(RULE + 'when = { type = "email" }\n'), facts=replace(TEXT, findings=(EMAIL,)))
    assert alone.disposition is D.ALLOW


def test_it_is_silent_where_the_rule_would_have_been(write: Any) -> None:
    assert _decide(write(RULE), facts=replace(TEXT, findings=())).reason_codes == ()


@pytest.mark.parametrize(
    ("when", "request_facts", "lifted"),
    [
        ('when = { project = "support-*" }', REQUEST, True),
        ('when = { project = "support-*" }', replace(REQUEST, project="web"), False),
        ('when = { kind = "text" }', REQUEST, True),
        ('when = { kind = "system" }', REQUEST, False),
        ('when = { mode = "developer" }', REQUEST, False),
        ('when = { mode = "governed" }', REQUEST, True),
        ("", replace(REQUEST, time="2027-06-29T23:59:59.999999Z"), True),
        ("", replace(REQUEST, time="2027-06-30T00:00:00Z"), False),
        ("", replace(REQUEST, time="2027-06-30T01:00:00+02:00"), True),
        ("", replace(REQUEST, time=""), False),
        ("", replace(REQUEST, time="2027-01-01T00:00:00"), False),
    ],
)
def test_its_conditions_and_its_end(write: Any, when: str, request_facts: RequestFacts, lifted: bool) -> None:
    decision = _decide(write(RULE + when + "\n"), request_facts)
    assert decision.disposition is (D.ALLOW if lifted else D.ALLOW_REDACTED)


def test_a_later_layer_still_tightens(write: Any) -> None:
    later = write(
        '[[rule]]\nid = "team.pii"\nwhy = "w"\nwhen = { category = "pii" }\n'
        'then = { disposition = "deny", reason_codes = ["pii.blocked"] }\n',
        name="team",
    )
    policy = load_policy([write(RULE), later], mode="governed", enforcement="enforce")
    assert policy.decide(REQUEST, TEXT).disposition is D.DENY
