"""Rules as data: every example is a test, every type is documented, every rule obeys the dialect."""

from __future__ import annotations

import json
import random
import re
from pathlib import Path

import pytest

from gateway.context.findings import Category, ScanItem
from gateway.detect.dialect import compile_pattern, parse_trigger, ways_in
from gateway.detect.engine import Engine, build
from gateway.detect.own import problems_of, slow_rules
from gateway.detect.rule import RuleSet, load_rules
from gateway.detect.rules import builtin
from gateway.errors import PolicyError

VECTORS = Path(__file__).parents[2] / "vectors" / "detect"


@pytest.fixture(scope="module")
def engine() -> Engine:
    return build()


@pytest.fixture(scope="module")
def rules() -> RuleSet:
    return load_rules(builtin())


def test_every_positive_example_is_found_by_its_own_rule(engine: Engine) -> None:
    assert engine.self_test() == []


def test_no_negative_example_is_a_finding_of_its_rule(engine: Engine, rules: RuleSet) -> None:
    cases = [(rule.id, text) for rule in rules.rules for text in rule.negative]
    assert len(cases) > 40
    results = engine.scan([ScanItem(text) for _, text in cases])
    wrong = [
        (rule, [f.type for f in result.findings])
        for (rule, _), result in zip(cases, results, strict=True)
        if any(f.detector == rule and f.category is not Category.CLASSIFICATION for f in result.findings)
    ]
    assert wrong == []


def test_every_rule_says_what_it_rests_on(rules: RuleSet) -> None:
    assert all(rule.source and rule.positive for rule in rules.rules)
    assert all(named.source and named.positive for named in rules.named)


def test_the_types_of_the_corpus_and_fifteen_countries_are_known(engine: Engine) -> None:
    wanted = json.loads((VECTORS / "types.json").read_text("utf-8"))
    assert set(wanted) <= set(engine.type_names)
    rows = engine.types()
    countries = {
        row.type[:2] for row in rows if row.category is Category.PII and re.match(r"[a-z]{2}_", row.type)
    }
    assert len(countries) >= 15
    assert all(row.example and row.source for row in rows)


@pytest.mark.parametrize(
    "pattern",
    ["a*", "a+", "a{2,}", "(a)\\1", "a.b", "(?s:a)", "(a{1,9}){1,99}", "(?P<x>a", "[ab", "a)b", "(?#x)a"],
)
def test_unbounded_or_unknown_syntax_is_refused(pattern: str) -> None:
    with pytest.raises(PolicyError):
        compile_pattern(pattern)


@pytest.mark.parametrize(
    "trigger", ["ab", "[a-z]{4}", "gh(p|o)_", "ghp_[A-Z]{2,9}", "\\bghp_", "ghp_\\", "ghp_[", "^ghp_"]
)
def test_a_trigger_is_selective_and_of_fixed_length(trigger: str) -> None:
    with pytest.raises(PolicyError):
        parse_trigger(trigger)


_GOOD = {
    "id": "acme-key",
    "type": "acme_key",
    "category": "custom",
    "severity": "high",
    "trigger": ["ACME-[0-9]{4}"],
    "pattern": "ACME-[0-9]{4}-[A-Z]{8}",
    "positive": ["ACME-1234-ABCDEFGH"],
    "source": "the handbook of ACME",
}


def test_an_organisation_adds_a_rule_with_one_table() -> None:
    engine = build(extra=[{"rule": [_GOOD]}])
    [result] = engine.scan([ScanItem("key ACME-1234-ABCDEFGH.")])
    assert [(f.type, f.category, f.start, f.end) for f in result.findings] == [
        ("acme_key", Category.CUSTOM, 4, 22)
    ]
    assert "acme_key" in engine.type_names
    assert engine.self_test() == []
    assert engine.revision != build().revision


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"colour": "red"}, "unknown keys"),
        ({"category": "wish"}, "category"),
        ({"trigger": []}, "trigger"),
        ({"trigger": ["A"]}, "selective"),
        ({"pattern": "ACME.*"}, "not allowed"),
        ({"positive": []}, "positive"),
        ({"check": "astrology"}, "known name"),
        ({"near": [1]}, "near"),
        ({"confidence": 2000}, "confidence"),
        ({"id": "Not An Id"}, "id"),
        ({"caseless": "yes"}, "caseless"),
        ({"id": "github-token"}, "declared twice"),
    ],
)
def test_a_rule_that_is_not_valid_is_refused_and_named(change: dict[str, object], said: str) -> None:
    with pytest.raises(PolicyError, match=said):
        build(extra=[{"rule": [{**_GOOD, **change}]}])


@pytest.mark.parametrize(
    "pattern",
    [
        "kelvin|strasse|ignore",
        "(?:a|b)k{2}|(?-i:K)s|\\bs[ij]",
        "i{1,2}x(?:s|Ä)|[ks]o",
        "(?<=k)s|(?:é|\u0431)t|q?s",
    ],
)
def test_case_does_not_matter_as_in_the_engine_of_re(pattern: str) -> None:
    """Letters with which an alternative begins are compiled as classes of both cases, for speed: nothing else changes."""
    plain, made = re.compile(pattern, re.IGNORECASE), compile_pattern(pattern, flags=re.IGNORECASE)
    letters = "aAbBiI\u0131\u0130jJkK\u212asS\u017foOxXeElLvVnNtTrRqQgGéÉäÄ\u0431\u0411"
    rng = random.Random(5)
    words = ["".join(rng.choices(letters, k=6)) for _ in range(4000)]
    words += ["\u212aelvin", "\u017ftrasse", "\u0130gnore", "KELVIN", "Strasse", "IGNORE", "bKK", "Ks"]
    assert [made.findall(word) for word in words] == [plain.findall(word) for word in words]


@pytest.mark.parametrize(
    ("pattern", "ways"),
    [("abc", 1), ("a|b|c", 3), ("(?:a|b)(?:c|d)", 2), ("x?(?:a|b)", 3), ("(?=x)(?:a|b)", 2)],
)
def test_the_ways_in_which_a_pattern_can_begin_are_counted(pattern: str, ways: int) -> None:
    assert ways_in(pattern) >= ways
    assert ways_in(pattern) <= ways + 1


def test_unknown_tables_are_refused() -> None:
    with pytest.raises(PolicyError, match="unknown tables"):
        load_rules([{"rules": []}])


def test_words_that_the_engine_sees_are_triggers() -> None:
    """A word in ASCII among those beyond it would be looked for in few texts, and cost each of them a search."""
    rules = load_rules(builtin()).rules
    assert not {word for rule in rules for word in rule.wide if word.isascii()}


def test_a_rule_with_words_that_no_engine_looks_for_is_not_slow() -> None:
    rule = {
        "id": "acme-wide", "type": "acme_id", "category": "pii", "severity": "low", "trigger": [], "wide": ["\u043a\u043e\u0434"],
        "pattern": "\u043a\u043e\u0434[^0-9]{0,4}(?P<v>[0-9]{6})", "near": [8, 40], "positive": ["\u043a\u043e\u0434 123456"],
        "negative": [], "source": "own",
    }  # fmt: skip
    assert problems_of([{"rule": [rule]}]) == []
    assert slow_rules([{"rule": [rule]}]) == []
