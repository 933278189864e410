"""Every token that begins with letters of its own is found backwards, turned and spaced out, wherever it ends."""

from __future__ import annotations

import pytest

from gateway.context.findings import Category, ScanItem
from gateway.context.views.mirrored import rot47
from gateway.detect.disguises import beginning
from gateway.detect.engine import build
from gateway.detect.rule import Rule, load_rules
from gateway.detect.rules import builtin

ENGINE = build()
RULES = [rule for rule in load_rules(builtin()).rules if any(map(beginning, rule.triggers))]


def _token(rule: Rule) -> str:
    found = rule.pattern.search(rule.positive[0])
    assert found is not None, rule.id
    return found[0]


def _begins(rule: Rule, token: str) -> bool:
    """Whether the token of the example starts with the letters of one of the triggers that have some."""
    return any(token.startswith(beginning(trigger)) for trigger in rule.triggers if beginning(trigger))


TOKENS = [
    (rule, token)
    for rule in RULES
    if rule.category is Category.SECRET and not (rule.near or rule.at or rule.shape)
    for token in [_token(rule)]
    if _begins(rule, token) and not any(c.isspace() or c in "\"'`<>,;" for c in token)
]


CARRIERS = {
    "quoted": 'x = "%s"',
    "alone": "%s",
    "escaped": '{"log": "a\\n%s\\nb"}',
    "prose": "it is %s turned",
}


def _missed(disguised: list[str], carrier: str) -> list[str]:
    items = [ScanItem(carrier % text, "content", "tool") for text in disguised]
    return [
        rule.id
        for (rule, _), item, text, result in zip(TOKENS, items, disguised, ENGINE.scan(items), strict=True)
        for at in [item.text.index(text)]
        if not any(f.start < at + len(text) and f.end > at for f in result.findings)
    ]


@pytest.mark.parametrize("carrier", CARRIERS.values(), ids=CARRIERS)
def test_a_token_backwards(carrier: str) -> None:
    assert not _missed([token[::-1] for _, token in TOKENS], carrier)


@pytest.mark.parametrize("carrier", [CARRIERS["alone"], CARRIERS["prose"]], ids=["alone", "prose"])
def test_a_token_turned_by_47(carrier: str) -> None:
    assert not _missed([rot47(token) for _, token in TOKENS], carrier)


@pytest.mark.parametrize("separator", [" ", "\n", "/", ".", "-", "_", "|", "*", ",", "  ", ", "])
def test_a_token_spaced_out(separator: str) -> None:
    """Also one of which every second character is the separator already."""
    assert not _missed([separator.join(token) for _, token in TOKENS], CARRIERS["prose"])


HEAD, TAIL = "sk_live_4eC39HqL", "yjWDarjtT1zdp7dcQ2"


@pytest.mark.parametrize(
    "joint",
    [
        '"\n     "',
        '" + "',
        '" "',
        "' . '",
        "'.'",
        '" +\n  "',
        '"\n  + "',
        '" \\\n    "',
        "' & '",
        "' ~ '",
        '" || "',
        '"\n\t"',
    ],
)
def test_a_token_cut_by_literals(joint: str) -> None:
    text = f"x = ({joint[0]}{HEAD}{joint}{TAIL}{joint[-1]})"
    [result] = ENGINE.scan([ScanItem(text, "content", "tool")])
    assert "stripe_secret_key" in {f.type for f in result.findings}


@pytest.mark.parametrize("lead", ["password: ", "db_password=", "api_token = "])
def test_a_name_and_its_value_in_two_literals(lead: str) -> None:
    text = f'x = ("{lead}"\n     "Tr0ub4dor3x9Qw7KurOEsz")'
    [result] = ENGINE.scan([ScanItem(text, "content", "tool")])
    assert result.findings


@pytest.mark.parametrize("joint", ['" + "', '"\n      "', "' . '", '" "'])
@pytest.mark.parametrize("cut", [14, 15], ids=["before the blank", "behind it"])
def test_a_number_in_groups_cut_by_literals(joint: str, cut: int) -> None:
    iban = "DE33 9428 2212 8434 2070 14"
    text = f"x = ({joint[0]}{iban[:cut]}{joint}{iban[cut:]}{joint[-1]})"
    [result] = ENGINE.scan([ScanItem(text, "content", "tool")])
    assert "iban" in {f.type for f in result.findings}


def test_every_trigger_is_taken_by_the_engine() -> None:
    """One that Hyperscan refuses would put everything on the fallback, at a twentieth of the speed."""
    assert ENGINE.engine_name == "hyperscan"
