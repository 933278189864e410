"""Parsing: everything that is wrong is said at once, each with file and place."""

from __future__ import annotations

from typing import Any

import pytest

from gateway.errors import PolicyError
from gateway.policy import load_policy, parse_bundle

RULE = """
[[rule]]
id = "a.rule"
why = "because"
when = { category = "secret" }
then = { disposition = "deny", reason_codes = ["secret.blocked"] }
"""


def _problems(files: dict[str, bytes]) -> tuple[str, ...]:
    with pytest.raises(PolicyError) as raised:
        parse_bundle(files)
    assert raised.value.code == "policy.invalid"
    assert str(raised.value) == "\n".join(raised.value.problems)
    return raised.value.problems


def test_a_small_bundle(write: Any) -> None:
    bundle = parse_bundle(
        write(
            RULE,
            manifest='modes = ["governed"]\n[boundary]\ncross_project_search = true\n[unread]\nmedia = "flag"\n',
            more={
                "roles/admin.toml": "[io]\nallow_cross_project_search = true\n",
                "texts.toml": '[texts]\n"secret.blocked" = "No."\n',
            },
        )
    )
    assert (bundle.name, bundle.version, bundle.modes) == ("test", "1.0.0", ("governed",))
    assert [r.id for r in bundle.rules] == ["a.rule"]
    assert bundle.rules[0].source == "test: rules/rules.toml"
    assert [(r.name, r.allow_cross_project_search) for r in bundle.roles] == [("admin", True)]
    assert bundle.boundary == {"cross_project_search": True}
    assert bundle.unread == {"media": "flag"}
    assert bundle.texts == {"secret.blocked": "No."}


def test_all_problems_at_once_with_their_places(write: Any) -> None:
    files = write(
        """
        [[rule]]
        id = "Bad Id"
        when = { kind = "letter", colour = "red" }
        then = { disposition = "perhaps" }

        [[rule]]
        id = "b.rule"
        why = "because"
        then = { disposition = "deny" }
        surprise = 1
        """,
        more={"roles/dev.toml": "[io]\nfly = true\n", "notes.md": "x", "texts.toml": '[texts]\n"No" = "x"\n'},
    )
    files["bundle.toml"] = b'name = "Bad_Name"\nversion = "v1"\n'
    found = _problems(files)
    for expected in (
        "notes.md: is none of bundle.toml",
        "bundle.toml: name: must be 1 to 63",
        "bundle.toml: version: must be a semantic version",
        "bundle.toml: description: required",
        "rules/rules.toml: rule[0].id: must be",
        "rules/rules.toml: rule[0].why: required",
        "rules/rules.toml: rule[0].when.kind: 'letter' is none of",
        "rules/rules.toml: rule[0].when.colour: unknown key",
        "rules/rules.toml: rule[0].then.disposition: 'perhaps' is none of",
        "rules/rules.toml: rule[1].then.reason_codes: required",
        "rules/rules.toml: rule[1].surprise: unknown key",
        "roles/dev.toml: io.fly: unknown key",
        "texts.toml: texts.No: not a reason code",
    ):
        assert any(p.startswith(expected) for p in found), (expected, found)


@pytest.mark.parametrize(
    ("then", "problem"),
    [
        ('disposition = "allow_redacted", reason_codes = ["a.b"]', "then.mask: required"),
        ('disposition = "deny", reason_codes = ["A-b"]', "then.reason_codes: 'A-b' is not a reason code"),
        ('disposition = "allow", mask = { category = "pii" }', "then.mask: a rule that masks is not allow"),
        (
            'disposition = "deny", reason_codes = ["a.b"], mask = {}',
            "then.mask: names neither type nor category",
        ),
        (
            'disposition = "allow_minimized", reason_codes = ["a.b"]',
            "then.transformations: allow_minimized needs",
        ),
        (
            'disposition = "deny", reason_codes = ["a.b"], transformations = ["selection"]',
            "then.transformations: selection does not go with deny",
        ),
        (
            'disposition = "deny", reason_codes = ["a.b"], parameters = { a = 1.5 }',
            "then.parameters: must be",
        ),
        ('disposition = "deny", reason_codes = ["a.b"], destinations = []', "then.destinations: must be"),
    ],
)
def test_bad_outcomes(write: Any, then: str, problem: str) -> None:
    files = write(f'[[rule]]\nid = "a.rule"\nwhy = "w"\nwhen = {{ kind = "text" }}\nthen = {{ {then} }}\n')
    assert any(p.startswith(f"rules/rules.toml: rule[0].{problem}") for p in _problems(files))


def test_a_finding_may_not_switch_a_rule_off(write: Any) -> None:
    """Otherwise one more finding would let more bytes out."""
    files = write(RULE.replace("then =", 'unless = { type = "jwt" }\nthen ='))
    assert any("unless.type: a finding may not switch a rule off" in p for p in _problems(files))


def test_an_empty_unless_is_an_error(write: Any) -> None:
    assert any(
        "unless: names no condition" in p
        for p in _problems(write(RULE.replace("then =", "unless = {}\nthen =")))
    )


def test_ids_of_the_gateway_are_reserved(write: Any) -> None:
    assert any(
        "the gateway's own" in p for p in _problems(write(RULE.replace("a.rule", "mode.coverage_partial")))
    )


def test_an_id_is_used_once(write: Any) -> None:
    assert any(
        "id 'a.rule' is taken by one in test: rules/rules.toml" in p for p in _problems(write(RULE + RULE))
    )


def test_a_missing_manifest_is_one_problem_of_many(write: Any) -> None:
    files = write(RULE)
    del files["bundle.toml"]
    assert "bundle.toml: missing" in _problems(files)


@pytest.mark.parametrize("content", [b"\xff", b"a = ", b"= 1", b"a=" + b"[" * 5000])
def test_what_is_not_toml_is_a_problem_and_no_crash(write: Any, content: bytes) -> None:
    files = write(RULE)
    files["rules/other.toml"] = content
    assert any(p.startswith("rules/other.toml: not TOML") for p in _problems(files))


def test_the_digest_is_of_the_content_not_of_the_layout(write: Any) -> None:
    digest = parse_bundle(write(RULE)).digest
    assert parse_bundle(write("# a comment\n" + RULE.replace("\n", "\n\n"))).digest == digest
    assert parse_bundle(write(RULE.replace("because", "for that"))).digest != digest
    assert digest.startswith("sha256:")
    assert len(digest) == 71


def test_the_policy_digest_covers_mode_enforcement_and_order(write: Any) -> None:
    other = write(name="other")
    digests = {
        load_policy(bundles, mode=mode, enforcement=enforcement).digest
        for bundles in ([write(RULE)], [write(RULE), other], [other, write(RULE)])
        for mode in ("developer", "governed", "sovereign")
        for enforcement in ("enforce", "shadow")
    }
    assert len(digests) == 18


def test_problems_of_several_bundles_are_told_together(write: Any) -> None:
    with pytest.raises(PolicyError) as raised:
        load_policy([write("[[rule]]\n"), write("x = 1\n")], mode="governed", enforcement="sometimes")
    text = "\n".join(raised.value.problems)
    assert "bundle 1: rules/rules.toml: rule[0].id: required" in text
    assert "bundle 2: rules/rules.toml: x: unknown key" in text
    assert "policy.enforcement: 'sometimes'" in text
