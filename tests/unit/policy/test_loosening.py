"""Rules of a later layer that could only be meant to loosen, the order of layers, and whom a layer is for."""

from __future__ import annotations

from typing import Any

import pytest

from gateway.context.decisions import FindingFacts, ObjectFacts, RequestFacts
from gateway.contract import ContextDispositionV1 as D
from gateway.errors import PolicyError
from gateway.policy import load_policy

CATEGORIES = {"email": "pii", "phone": "pii", "jwt": "secret"}


def rule(name: str, when: str, disposition: str, more: str = "", unless: str = "") -> str:
    codes = "" if disposition == "allow" and "codes" not in more else 'reason_codes = ["a.code"], '
    silent = f"unless = {{ {unless} }}\n" if unless else ""
    return (
        f'[[rule]]\nid = "{name}"\nwhy = "w"\nwhen = {{ {when} }}\n{silent}'
        f'then = {{ {codes}disposition = "{disposition}"{more.removeprefix("codes")} }}\n'
    )


def problems(write: Any, org: str, team: str, **manifest: str) -> str:
    bundles = [write(org, name="org"), write(team, name="team", **manifest)]
    try:
        load_policy(bundles, mode="governed", enforcement="enforce", categories=lambda: CATEGORIES)
    except PolicyError as error:
        return "\n".join(error.problems)
    return ""


PII = rule(
    "org.pii", 'category = "pii", confidence_min = 300, leaf_role = ["text", "name"]', "allow_redacted"
)
DENY = rule("org.deny", 'type = ["jwt", "aws_*"]', "deny")
HOLD = rule("org.hold", 'kind = "tool_result", project = "acme-*"', "allow_with_approval")


@pytest.mark.parametrize(
    ("org", "team"),
    [
        (PII, rule("team.ok", 'category = "pii"', "allow", "codes")),
        (PII, rule("team.ok", 'type = "email"', "allow")),
        (PII, rule("team.ok", 'type = "email", project = "acme", confidence_min = 500', "allow", "codes")),
        (DENY, rule("team.ok", 'type = "jwt"', "allow_redacted")),
        (DENY, rule("team.ok", 'type = "aws_access_key_id", team = "payments"', "quarantine")),
        (HOLD, rule("team.ok", 'kind = "tool_result", project = "acme-web"', "allow", "codes")),
        (
            HOLD,
            rule(
                "team.ok", 'kind = "tool_result", project = "acme-*", bytes_max = 9', "allow_local_model_only"
            ),
        ),
        (
            rule("org.all", 'kind = ["text", "media"]', "quarantine"),
            rule("team.ok", 'kind = "text"', "allow"),
        ),
        (rule("org.big", "bytes_min = 100", "deny"), rule("team.ok", "bytes_min = 200", "allow")),
        (
            rule("org.mode", 'mode = ["governed", "sovereign"]', "deny"),
            rule("team.ok", 'mode = "governed"', "allow"),
        ),
    ],
)
def test_a_rule_that_could_only_be_meant_to_loosen_names_both(write: Any, org: str, team: str) -> None:
    said = problems(write, org, team)

    assert "team: rules/rules.toml: rule 'team.ok' asks for" in said
    assert "'org." in said
    assert "(org: rules/rules.toml) of an earlier layer" in said


@pytest.mark.parametrize(
    ("org", "team"),
    [
        (PII, rule("team.no", 'category = "pii"', "deny")),
        (PII, rule("team.also", 'category = ["pii", "secret"]', "allow", "codes")),
        (PII, rule("team.other", 'type = "jwt"', "allow", "codes")),
        (PII, rule("team.unknown", 'type = "crm_id"', "allow", "codes")),
        (PII, rule("team.place", 'type = "email", leaf_role = "structural"', "allow", "codes")),
        (PII, rule("team.fewer", 'type = "email"', "allow", ', destinations = ["local"]')),
        (HOLD, rule("team.mask", 'kind = "tool_result", project = "acme-web", type = "email"', "allow_redacted")),
        (HOLD, rule("team.wider", 'kind = "tool_result"', "allow", "codes")),
        (rule("org.few", 'type = "email", count_min = 50', "deny"), rule("team.one", 'type = "email"', "allow", "codes")),
        (rule("org.u", 'category = "pii"', "deny", unless='locality = "local"'),
         rule("team.local", 'category = "pii", locality = "local"', "allow", "codes")),
        (rule("org.big", "bytes_min = 100", "deny"), rule("team.small", "bytes_max = 50", "allow", "codes")),
    ],
)  # fmt: skip
def test_what_may_be_meant_otherwise_is_no_error(write: Any, org: str, team: str) -> None:
    assert problems(write, org, team) == ""


def test_layers_come_in_order(write: Any) -> None:
    team = {"manifest": 'layer = "team"\nfor = ["payments"]\n'}
    project = {"manifest": 'layer = "project"\nfor = ["acme-*"]\n'}
    bundles = [write(name="org"), write(name="p", **project), write(name="t", **team)]
    with pytest.raises(PolicyError) as raised:
        load_policy(bundles, mode="governed", enforcement="enforce")
    assert "t: bundle.toml: layer 'team' comes after p (project)" in "\n".join(raised.value.problems)
    load_policy([bundles[0], bundles[2], bundles[1]], mode="governed", enforcement="enforce")


@pytest.mark.parametrize(
    ("manifest", "more", "said"),
    [
        ('layer = "team"\n', {}, "for: required: the names of the teams"),
        ('for = ["x"]\n', {}, "for: names teams or projects, and needs layer"),
        ('layer = "run"\nfor = ["x"]\n', {}, "for: names teams or projects, and needs layer"),
        ('layer = "department"\n', {}, "layer: 'department' is none of organisation, team, project, run"),
        ('layer = "team"\nfor = ["x"]\n[unread]\nmedia = "deny"\n', {}, "unread: holds for everybody"),
        (
            'layer = "project"\nfor = ["x"]\n[boundary]\naudit_cross_access = true\n',
            {},
            "boundary: holds for everybody",
        ),
        ('layer = "team"\nfor = ["x"]\n', {"roles/a.toml": ""}, "roles hold for everybody"),
    ],
)
def test_a_manifest_says_whom_its_layer_is_for(
    write: Any, manifest: str, more: dict[str, str], said: str
) -> None:
    with pytest.raises(PolicyError) as raised:
        load_policy([write(manifest=manifest, more=more)], mode="governed", enforcement="enforce")
    assert said in "\n".join(raised.value.problems)


EMAIL = FindingFacts("email", "pii", "medium", 900, 1)


def _spoke(policy: Any, **request: str) -> set[str]:
    facts = ObjectFacts("/x", "text", "user", 100, (EMAIL,))
    return set(policy.decide(RequestFacts(**{"project": "p", **request}), facts).rules)


def test_a_layer_speaks_of_those_it_is_for_and_of_nobody_else(write: Any) -> None:
    """The truth table of teams, projects and the layers that are for them."""
    bundles = [
        write(rule("org.pii", 'type = "email"', "allow_redacted"), name="org"),
        write(rule("team.pii", 'type = "email"', "deny"), name="t", manifest='layer = "team"\nfor = "pay*"\n'),
        write(rule("proj.pii", 'type = "email"', "deny"), name="p", manifest='layer = "project"\nfor = ["crm", "erp"]\n'),
        write(rule("run.pii", 'type = "email"', "deny"), name="r", manifest='layer = "run"\n'),
    ]  # fmt: skip
    policy = load_policy(bundles, mode="governed", enforcement="enforce")
    always = {"org.pii", "run.pii"}

    assert _spoke(policy) == always
    assert _spoke(policy, team="payments") == {*always, "team.pii"}
    assert _spoke(policy, team="platform") == always
    assert _spoke(policy, project="crm") == {*always, "proj.pii"}
    assert _spoke(policy, project="crm", team="pay") == {*always, "proj.pii", "team.pii"}
    assert _spoke(policy, project="crm-2") == always


def test_a_rule_for_one_team_is_not_loosened_by_one_for_another(write: Any) -> None:
    bundles = [
        write(name="org"),
        write(rule("a.pii", 'type = "email"', "deny"), name="a", manifest='layer = "team"\nfor = "a"\n'),
        write(
            rule("b.pii", 'type = "email"', "allow", "codes"),
            name="b",
            manifest='layer = "team"\nfor = "b"\n',
        ),
    ]
    policy = load_policy(bundles, mode="governed", enforcement="enforce")
    facts = ObjectFacts("/x", "text", "user", 100, (EMAIL,))

    assert policy.decide(RequestFacts("p", team="b"), facts).disposition is D.ALLOW
    assert policy.decide(RequestFacts("p", team="a"), facts).disposition is D.DENY
