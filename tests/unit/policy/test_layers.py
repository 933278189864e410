"""Later layers can only tighten; each attempt to loosen is an error that names both sides."""

from __future__ import annotations

from typing import Any

import pytest

from gateway.context.decisions import FindingFacts, ObjectFacts, RequestFacts
from gateway.contract import ContextDispositionV1
from gateway.errors import PolicyError
from gateway.policy import load_policy

RULE = """
[[rule]]
id = "{id}"
why = "because"
when = {{ category = "secret" }}
then = {{ disposition = "{disposition}", reason_codes = ["a.code"] }}
"""
EXCEPTION = """
[[exception]]
id = "x.one"
owner = "ann@example.com"
reason = "ticket 1"
expires = 2027-06-30T00:00:00Z
rules = ["{rule}"]
"""


def _problems(*bundles: dict[str, bytes], mode: str = "governed") -> str:
    with pytest.raises(PolicyError) as raised:
        load_policy(bundles, mode=mode, enforcement="enforce")
    return "\n".join(raised.value.problems)


def test_a_rule_cannot_be_replaced(write: Any) -> None:
    first = write(RULE.format(id="a.rule", disposition="deny"), name="org")
    second = write(RULE.format(id="a.rule", disposition="allow"), name="team")
    found = _problems(first, second)
    assert (
        "team: rules/rules.toml: rule 'a.rule' is defined by an earlier layer (org: rules/rules.toml)"
        in found
    )


def test_an_exception_stands_in_the_first_layer_only(write: Any) -> None:
    first = write(RULE.format(id="a.rule", disposition="deny"), name="org")
    second = write(EXCEPTION.format(rule="a.rule"), name="team")
    found = _problems(first, second)
    assert "exception 'x.one' would loosen 'a.rule' of an earlier layer" in found
    assert "(org)" in found


def test_an_exception_lifts_rules_of_its_own_layer(write: Any) -> None:
    first = write(EXCEPTION.format(rule="b.rule"), name="org")
    second = write(RULE.format(id="b.rule", disposition="deny"), name="team")
    assert "lifts 'b.rule', which is no rule here" in _problems(first, second)


def test_an_exception_cannot_lift_what_the_mode_decides(write: Any) -> None:
    assert "lifts 'mode.coverage_partial'" in _problems(write(EXCEPTION.format(rule="mode.coverage_partial")))


def test_an_exception_needs_owner_reason_and_expiry(write: Any) -> None:
    found = _problems(write('[[exception]]\nid = "x.one"\nrules = ["a.rule"]\n'))
    for field in ("owner: required", "reason: required", "expires: must be a date-time with an offset"):
        assert f"exception[0].{field}" in found


def test_an_exception_by_findings_needs_a_rule_that_looks_at_findings(write: Any) -> None:
    rules = """
    [[rule]]
    id = "a.rule"
    why = "because"
    when = { kind = "text" }
    then = { disposition = "deny", reason_codes = ["a.code"] }
    """
    found = _problems(write(rules + EXCEPTION.format(rule="a.rule") + 'when = { type = "jwt" }\n'))
    assert "'a.rule' (test: rules/rules.toml) sees none" in found


def test_a_role_cannot_be_widened(write: Any) -> None:
    allow = {"roles/admin.toml": "[io]\nallow_cross_project_search = true\n"}
    refuse = {"roles/admin.toml": "[io]\nallow_cross_project_search = false\n"}
    found = _problems(write(name="org", more=refuse), write(name="team", more=allow))
    assert "role 'admin' permits allow_cross_project_search, which no earlier layer does (org)" in found
    assert "role 'admin'" in _problems(write(name="org"), write(name="team", more=allow))
    kept = load_policy(
        [write(name="org", more=allow), write(name="team", more=refuse)],
        mode="governed",
        enforcement="enforce",
    )
    assert kept.allows_cross_project_search(["admin"]) is False


def test_roles_that_nobody_defines_allow_nothing(write: Any) -> None:
    policy = load_policy(
        [write(more={"roles/admin.toml": "[io]\nallow_cross_project_search = true\n", "roles/dev.toml": ""})],
        mode="governed",
        enforcement="enforce",
    )
    assert policy.allows_cross_project_search(["dev", "admin"]) is True
    assert policy.allows_cross_project_search(["dev"]) is False
    assert policy.allows_cross_project_search(["nobody"]) is False
    assert policy.allows_cross_project_search([]) is False


@pytest.mark.parametrize(
    ("switch", "loose"),
    [
        ("cross_project_search", True),
        ("cross_project_import", True),
        ("audit_cross_access", False),
        ("universal_gotchas_enabled", True),
    ],
)
@pytest.mark.parametrize("first", [None, False, True])
@pytest.mark.parametrize("second", [None, False, True])
def test_boundary_switches(
    write: Any, switch: str, loose: bool, first: bool | None, second: bool | None
) -> None:
    """Left out, false and true in both layers: the second may only take the tight side, or repeat the first."""
    defaults = {"audit_cross_access": True, "universal_gotchas_enabled": True}

    def layer(name: str, value: bool | None) -> Any:
        return write(
            name=name, manifest="" if value is None else f"[boundary]\n{switch} = {str(value).lower()}\n"
        )

    before = defaults.get(switch, False) if first is None else first
    bundles = [layer("org", first), layer("team", second)]
    if second is loose and before is not loose:
        assert f"boundary.{switch} = {str(loose).lower()} loosens an earlier layer (org)" in _problems(
            *bundles
        )
        return
    policy = load_policy(bundles, mode="governed", enforcement="enforce")
    assert policy.boundary[switch] is (before if second is None else second)


def test_unread_switches_cannot_be_loosened(write: Any) -> None:
    strict = write(name="org", manifest='[unread]\nmedia = "deny"\n')
    loose = write(name="team", manifest='[unread]\nmedia = "flag"\n')
    assert "unread.media = 'flag' loosens an earlier layer (org)" in _problems(strict, loose)
    assert "unread.media = 'flag' loosens" in _problems(write(name="org"), loose)
    policy = load_policy([loose, strict], mode="governed", enforcement="enforce")
    assert policy.layers.unread == {"media": "deny"}


def test_a_bundle_names_its_modes(write: Any) -> None:
    strict = write(name="strict", manifest='modes = ["governed", "sovereign"]\n')
    assert "strict: is not made for mode developer" in _problems(strict, mode="developer")


def test_there_must_be_a_bundle_and_a_mode(write: Any) -> None:
    assert "policy.bundles: names no bundle" in _problems()
    assert "policy.mode: 'lax' is none of" in _problems(write(), mode="lax")
    assert "two bundles have this name" in _problems(write(), write())


def test_what_is_asked_of_answers_cannot_be_loosened(write: Any) -> None:
    strict = write(name="org", manifest='[answers]\nsecret = "mask"\n')
    loose = write(name="team", manifest='[answers]\nsecret = "report"\npii = "block"\n')
    assert (
        "team: bundle.toml: answers.secret = 'report' loosens 'mask' of an earlier layer (org)"
        in _problems(strict, loose)
    )
    joined = load_policy([loose, strict], mode="governed", enforcement="enforce").answers
    assert joined.levels == (("pii", "block"), ("secret", "mask"))
    assert (joined.scans, joined.holds, joined.level("custom")) == (True, True, "off")


def test_a_level_of_answers_that_is_not_known_is_an_error(write: Any) -> None:
    found = _problems(write(name="org", manifest='[answers]\nsecret = "loud"\nwords = "off"\n'))
    assert "'loud' is none of off, report, mask, block" in found
    assert "words" in found


THEN = {
    "allow": 'disposition = "allow", reason_codes = ["a.code"]',
    "allow_minimized": 'disposition = "allow_minimized", reason_codes = ["a.code"], transformations = ["selection"]',
    "allow_redacted": 'disposition = "allow_redacted", reason_codes = ["a.code"]',
    "allow_summary_only": 'disposition = "allow_summary_only", reason_codes = ["a.code"]',
    "allow_local_model_only": 'disposition = "allow_local_model_only", reason_codes = ["a.code"]',
    "allow_with_approval": 'disposition = "allow_with_approval", reason_codes = ["a.code"]',
    "quarantine": 'disposition = "quarantine", reason_codes = ["a.code"]',
    "deny": 'disposition = "deny", reason_codes = ["a.code"]',
}


@pytest.mark.parametrize("second", THEN)
@pytest.mark.parametrize("first", THEN)
def test_two_layers_about_the_same_thing_combine_or_are_an_error(write: Any, first: str, second: str) -> None:
    """Eight dispositions in each of two layers: the strictest and the union, or, for what only loosens, an error."""

    def layer(name: str, disposition: str) -> Any:
        text = f'[[rule]]\nid = "{name}.r"\nwhy = "w"\nwhen = {{ type = "email" }}\nthen = {{ {THEN[disposition]} }}\n'
        return write(text, name=name)

    order = list(ContextDispositionV1)
    weaker = order.index(ContextDispositionV1(second)) < order.index(ContextDispositionV1(first))
    adds = second in {"allow_minimized", "allow_redacted", "allow_summary_only"}
    bundles = [layer("org", first), layer("team", second)]
    if weaker and (first == "deny" or not adds):
        assert f"rule 'team.r' asks for {second} where 'org.r' (org: rules/rules.toml)" in _problems(*bundles)
        return
    policy = load_policy(bundles, mode="governed", enforcement="enforce")
    facts = ObjectFacts("/x", "text", "user", 9, (FindingFacts("email", "pii", "medium", 900, 1),))
    decision = policy.decide(RequestFacts("p", provider="local", locality="local"), facts)

    assert decision.disposition is ContextDispositionV1.combine(
        ContextDispositionV1(first), ContextDispositionV1(second)
    )
    assert decision.rules == ("org.r", "team.r")
    assert ("email" in decision.mask) is bool({first, second} & {"allow_redacted", "deny"})
    assert len(decision.transformations) == len(
        {first, second} & {"allow_minimized", "allow_redacted", "allow_summary_only"}
    )


def test_in_shadow_answers_are_only_reported(write: Any) -> None:
    bundle = write(name="org", manifest='[answers]\nsecret = "mask"\npii = "block"\ncustom = "off"\n')
    shadowed = load_policy([bundle], mode="governed", enforcement="shadow").answers

    assert shadowed.levels == (("custom", "off"), ("pii", "report"), ("secret", "report"))
    assert not shadowed.holds
