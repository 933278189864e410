"""Decisions: what a compiled policy does with what its rules say."""

from __future__ import annotations

from dataclasses import fields, replace
from typing import Any

import pytest

from gateway.context.decisions import ALLOW, Decision, FindingFacts, ObjectFacts, RequestFacts, combine
from gateway.contract import ContextDispositionV1, TransformationKindV1
from gateway.policy import load_policy
from gateway.policy.compiled import Scope
from gateway.policy.decide import (
    MAX_REMEMBERED,
    MAX_SCOPES,
    SHADOW_CODES,
    CompiledPolicy,
    _memo_key,
    settle,
    shadowed,
)

D = ContextDispositionV1
REQUEST = RequestFacts("p", provider="openai", time="2027-01-15T12:00:00Z")
TEXT = ObjectFacts("/x", "text", "user", 100)
JWT = FindingFacts("jwt", "secret", "high", 900, 1)
EMAIL = FindingFacts("email", "pii", "medium", 900, 2)


def _policy(
    files: dict[str, bytes], *, mode: str = "governed", enforcement: str = "enforce"
) -> CompiledPolicy:
    return load_policy([files], mode=mode, enforcement=enforcement)


def _rule(name: str, when: str, then: str, more: str = "") -> str:
    return f'[[rule]]\nid = "{name}"\nwhy = "w"\nwhen = {{ {when} }}\n{more}\nthen = {{ {then} }}\n'


def test_clean_objects_share_one_decision(shipped: Any) -> None:
    assert _policy(shipped("default")).decide(REQUEST, TEXT) is ALLOW


def test_decisions_combine(write: Any) -> None:
    policy = _policy(
        write(
            _rule(
                "a",
                'category = "secret"',
                'disposition = "allow_redacted", reason_codes = ["secret.redacted"]',
            ).replace('"a"', '"a.1"')
            + _rule(
                "b.1",
                'kind = "text"',
                'disposition = "allow_minimized", reason_codes = ["budget.cut"], transformations = ["selection"], parameters = { lines = 5, keep = true }',
            )
            + _rule("c.1", 'project = "p"', 'disposition = "allow", destinations = ["openai", "anthropic"]')
            + _rule("d.1", 'project = "p"', 'disposition = "allow", destinations = ["openai", "local"]')
        )
    )
    assert policy.decide(REQUEST, replace(TEXT, findings=(JWT, EMAIL))) == Decision(
        D.ALLOW_REDACTED,
        ("budget.cut", "secret.redacted"),
        frozenset({TransformationKindV1.REDACTION, TransformationKindV1.SELECTION}),
        frozenset({"jwt"}),
        frozenset({"openai"}),
        ("a.1", "b.1", "c.1", "d.1"),
        (("minimiser", "head_tail?keep=true&lines=5"),),
    )


def test_a_mask_can_name_types_and_categories(write: Any) -> None:
    policy = _policy(
        write(
            _rule(
                "a.1",
                'kind = "text"',
                'disposition = "allow_summary_only", reason_codes = ["budget.summary"], mask = { category = "pii", type = "jw*" }',
            )
        )
    )
    decision = policy.decide(REQUEST, replace(TEXT, findings=(JWT, EMAIL, replace(JWT, type="aws"))))
    assert decision.disposition is D.ALLOW_SUMMARY_ONLY
    assert decision.mask == {"jwt", "email"}
    assert decision.transformations == {TransformationKindV1.REDACTION, TransformationKindV1.SUMMARIZATION}


def test_counts_add_up_over_the_findings_that_match(write: Any) -> None:
    policy = _policy(
        write(
            _rule(
                "a.1",
                'category = "pii", count_min = 5',
                'disposition = "deny", reason_codes = ["pii.blocked"]',
            )
        )
    )
    four = (EMAIL, replace(EMAIL, type="phone"), replace(JWT, count=9))
    assert policy.decide(REQUEST, replace(TEXT, findings=four)) is ALLOW
    five = (*four, replace(EMAIL, type="iban", count=1))
    assert policy.decide(REQUEST, replace(TEXT, findings=five)).disposition is D.DENY


def test_unless_keeps_a_rule_silent_only_where_all_of_it_holds(write: Any) -> None:
    policy = _policy(
        write(
            _rule(
                "a.1",
                'category = "secret"',
                'disposition = "deny", reason_codes = ["secret.blocked"]',
                'unless = { locality = "local", kind = "text" }',
            )
        )
    )
    target = replace(TEXT, findings=(JWT,))
    local = replace(REQUEST, locality="local")
    assert policy.decide(local, target) is ALLOW
    assert policy.decide(REQUEST, target).disposition is D.DENY
    assert policy.decide(local, replace(target, kind="system")).disposition is D.DENY


@pytest.mark.parametrize(
    "facts",
    [
        replace(TEXT, findings=(replace(JWT, severity="grave"),)),
        replace(TEXT, findings=(JWT,), bytes=None),  # type: ignore[arg-type]
    ],
)
def test_a_rule_that_fails_denies(write: Any, facts: ObjectFacts) -> None:
    policy = _policy(
        write(
            _rule("a.1", 'severity_min = "high"', 'disposition = "allow", reason_codes = ["x.flagged"]')
            + _rule("b.1", "bytes_min = 1", 'disposition = "allow", reason_codes = ["x.flagged"]')
        )
    )
    decision = policy.decide(REQUEST, facts)
    assert decision.disposition is D.DENY
    assert "policy.rule_error" in decision.reason_codes


@pytest.mark.parametrize("time", ["", "yesterday", "2027-13-01T00:00:00Z"])
def test_a_time_window_without_a_time_denies(write: Any, time: str) -> None:
    policy = _policy(
        write(
            _rule("a.1", 'time = { days = ["mon"] }', 'disposition = "allow", reason_codes = ["x.flagged"]')
        )
    )
    assert policy.decide(replace(REQUEST, time=time), TEXT).reason_codes == ("policy.rule_error",)


@pytest.mark.parametrize(
    ("locality", "disposition", "codes"),
    [
        ("local", D.ALLOW_LOCAL_MODEL_ONLY, ("a.local",)),
        ("remote", D.DENY, ("a.local", "destination.remote_restricted")),
        ("unknown", D.DENY, ("a.local", "destination.remote_restricted")),
    ],
)
def test_local_only_is_denied_elsewhere(
    write: Any, locality: str, disposition: ContextDispositionV1, codes: tuple[str, ...]
) -> None:
    policy = _policy(
        write(
            _rule(
                "a.1", 'kind = "text"', 'disposition = "allow_local_model_only", reason_codes = ["a.local"]'
            )
        )
    )
    decision = policy.decide(replace(REQUEST, locality=locality), TEXT)
    assert (decision.disposition, decision.reason_codes) == (disposition, codes)


@pytest.mark.parametrize(
    ("destinations", "provider", "locality", "allowed"),
    [
        (None, "openai", "remote", True),
        (frozenset({"openai"}), "openai", "remote", True),
        (frozenset({"openai"}), "gemini", "remote", False),
        (frozenset({"openai"}), "", "remote", False),
        (frozenset({"local"}), "ollama", "local", True),
        (frozenset({"local"}), "ollama", "remote", False),
        (frozenset(), "openai", "local", False),
    ],
)
def test_destinations(
    destinations: frozenset[str] | None, provider: str, locality: str, allowed: bool
) -> None:
    request = replace(REQUEST, provider=provider, locality=locality)
    settled = settle(Decision(D.ALLOW, destinations=destinations), request)
    assert settled.disposition is (D.ALLOW if allowed else D.DENY)
    assert ("destination.not_allowed" in settled.reason_codes) is not allowed


def test_a_decision_has_at_most_32_reasons() -> None:
    many = combine(*(Decision(D.DENY, (f"a.code_{n:02}",)) for n in range(40)))
    assert settle(many, REQUEST).reason_codes[-1] == "policy.more_reasons"
    assert len(settle(many, REQUEST).reason_codes) == 32
    exact = combine(*(Decision(D.DENY, (f"a.code_{n:02}",)) for n in range(32)))
    assert settle(exact, REQUEST) == exact


@pytest.mark.parametrize("disposition", list(D))
def test_shadow_never_withholds_and_says_what_it_would(disposition: ContextDispositionV1) -> None:
    real = Decision(disposition, ("a.code",), mask=frozenset({"jwt"}), rules=("r.1",))
    shadow = shadowed(real)
    if disposition is D.ALLOW:
        assert shadow is real
        return
    would = SHADOW_CODES[disposition]
    assert shadow == Decision(D.ALLOW, (would,), rules=("r.1",), shadow=tuple(sorted(("a.code", would))))


def test_shadow_enforcement_end_to_end(shipped: Any) -> None:
    policy = _policy(shipped("default"), enforcement="shadow")
    decision = policy.decide(REQUEST, replace(TEXT, findings=(JWT,)))
    assert decision.disposition is D.ALLOW
    assert decision.reason_codes == ("shadow.would_redact",)
    assert decision.mask == frozenset()
    assert decision.transformations == frozenset()


def test_the_index_asks_every_rule_that_could_speak(shipped: Any) -> None:
    policy = _policy(shipped("default"))
    findings = [
        replace(JWT, category=category, role=role, type=name)
        for category in ("secret", "pii", "custom", "policy", "classification", "prompt_injection")
        for role in ("text", "structural", "thinking", "reference")
        for name in ("jwt", "cross_project")
    ]
    for kind in ("text", "system", "media", "header", "a kind from tomorrow"):
        for coverage in ("complete", "partial", "unsupported"):
            for finding in findings:
                facts = replace(TEXT, kind=kind, coverage=coverage, findings=(finding,))
                said = [r.judge(Scope(REQUEST), facts).decision for r in policy.rules]
                assert policy.decide(REQUEST, facts) == settle(combine(*(d for d in said if d)), REQUEST)


def test_requests_do_not_mix(write: Any) -> None:
    """What was remembered of one request is not used for another."""
    policy = _policy(write(_rule("a.1", 'project = "p"', 'disposition = "deny", reason_codes = ["a.code"]')))
    other = replace(REQUEST, project="q")
    answers = [policy.decide(r, TEXT).disposition for r in (REQUEST, other, REQUEST, replace(REQUEST), other)]
    assert answers == [D.DENY, D.ALLOW, D.DENY, D.DENY, D.ALLOW]


@pytest.mark.parametrize("field", [f.name for f in fields(ObjectFacts)])
def test_what_is_remembered_tells_every_fact_apart(field: str) -> None:
    """A fact that is left out of the key would give one object the decision of another."""
    value = getattr(TEXT, field)
    other: object = (JWT,) if field == "findings" else not value if isinstance(value, bool) else f"{value}x"
    changed = replace(TEXT, **{field: other})  # type: ignore[arg-type]
    assert _memo_key(changed, placed=True) != _memo_key(TEXT, placed=True)


@pytest.mark.parametrize("condition", ['pointer = "/x"', "bytes_min = 50", "bytes_max = 150"])
@pytest.mark.parametrize("table", ["when", "unless", "exception"])
def test_place_and_size_are_told_apart_wherever_a_rule_asks(write: Any, condition: str, table: str) -> None:
    other = f"{condition}"
    when = f'kind = "text", {other}' if table == "when" else 'kind = "text"'
    unless = f"unless = {{ {other} }}" if table == "unless" else ""
    text = _rule("a.1", when, 'disposition = "deny", reason_codes = ["a.code"]', unless)
    if table == "exception":
        text += (
            '[[exception]]\nid = "x.1"\nowner = "o"\nreason = "r"\nexpires = 2028-01-01T00:00:00Z\n'
            f'rules = ["a.1"]\nwhen = {{ {other} }}\n'
        )
    policy = _policy(write(text))
    elsewhere = replace(TEXT, pointer="/y", bytes=10 if "min" in condition else 1000)
    warm = [policy.decide(REQUEST, facts) for facts in (TEXT, elsewhere, TEXT)]
    assert warm[0] == warm[2] != warm[1]
    assert warm[1] == _policy(write(text)).decide(REQUEST, elsewhere)


NIGHT, DAY = "2027-01-15T03:00:00Z", "2027-01-15T12:00:00Z"


@pytest.mark.parametrize("table", ["when", "unless"])
def test_what_was_decided_at_one_time_is_not_told_at_another(write: Any, table: str) -> None:
    window = "time = { from = 09:00:00, to = 17:00:00 }"
    when = f'kind = "text", {window}' if table == "when" else 'kind = "text"'
    unless = f"unless = {{ {window} }}" if table == "unless" else ""
    policy = _policy(write(_rule("a.1", when, 'disposition = "deny", reason_codes = ["a.code"]', unless)))
    order = [D.DENY, D.ALLOW] if table == "when" else [D.ALLOW, D.DENY]
    requests = [replace(REQUEST, time=time) for time in (DAY, NIGHT, DAY, NIGHT)]
    assert [policy.decide(r, TEXT).disposition for r in requests] == order * 2


def test_an_exception_expires_also_where_its_rule_was_asked_before(write: Any) -> None:
    policy = _policy(
        write(
            _rule("a.1", 'kind = "text"', 'disposition = "deny", reason_codes = ["a.code"]')
            + '[[exception]]\nid = "x.1"\nowner = "o"\nreason = "r"\nexpires = 2027-01-15T09:00:00Z\n'
            + 'rules = ["a.1"]\n'
        )
    )
    requests = [replace(REQUEST, time=time) for time in (NIGHT, DAY, NIGHT)]
    assert [policy.decide(r, TEXT).disposition for r in requests] == [D.ALLOW, D.DENY, D.ALLOW]


@pytest.mark.parametrize("field", [f.name for f in fields(RequestFacts)])
def test_requests_that_differ_share_no_decisions_but_for_the_time(shipped: Any, field: str) -> None:
    """A fact that is left out of the key would give one request the decision of another."""
    policy, value = _policy(shipped("default")), getattr(REQUEST, field)
    other: object = not value if isinstance(value, bool) else ("r",) if field == "roles" else f"{value}x"
    scopes = [policy._scope_of(r) for r in (REQUEST, replace(REQUEST, **{field: other}))]  # type: ignore[arg-type]
    assert (scopes[0] is scopes[1]) == (field == "time")


def test_kinds_of_requests_that_are_remembered_are_bounded(shipped: Any) -> None:
    policy = _policy(shipped("default"))
    for number in range(MAX_SCOPES + 9):
        policy.decide(replace(REQUEST, project=f"p{number}"), TEXT)
    assert len(policy._scopes) <= MAX_SCOPES


def test_what_is_remembered_is_bounded(write: Any) -> None:
    policy = _policy(write(_rule("a.1", "bytes_min = 1", 'disposition = "deny", reason_codes = ["a.code"]')))
    for size in range(MAX_REMEMBERED + 10):
        policy.decide(REQUEST, replace(TEXT, bytes=size))
    assert len(policy._last.scope.decided) <= MAX_REMEMBERED
    assert policy.decide(REQUEST, replace(TEXT, bytes=0)) is ALLOW


@pytest.mark.parametrize(
    ("code", "starts"),
    [
        ("secret.blocked", "The model egress gateway found a key"),
        ("secret.something_new", "The model egress gateway of your organisation found a key"),
        ("quite.unknown", "The model egress gateway of your organisation decided this"),
        ("", "The model egress gateway of your organisation decided this"),
    ],
)
def test_texts(shipped: Any, code: str, starts: str) -> None:
    assert _policy(shipped("default")).text(code).startswith(starts)


def test_a_later_layer_may_reword(shipped: Any, write: Any) -> None:
    later = write(name="team", more={"texts.toml": '[texts]\n"secret.blocked" = "Ask Ann."\n'})
    policy = load_policy([shipped("default"), later], mode="governed", enforcement="enforce")
    assert policy.text("secret.blocked") == "Ask Ann."
    assert (policy.id, policy.version) == ("default+team", "1.0.0")
