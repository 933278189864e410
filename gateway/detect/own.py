"""An organisation's own rules: the checks that the built-in ones have, with every problem told at once."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from gateway.context.findings import ScanItem
from gateway.detect.dialect import render, trigger_length
from gateway.detect.engine import build
from gateway.detect.matcher import HyperscanMatcher, Re2Matcher, Trigger
from gateway.detect.rule import Named, Rule, load_rules
from gateway.detect.rules import builtin
from gateway.errors import DetectorError, PolicyError

_OFFSETS = (0, 1, 15, 64)


def problems_of(documents: Sequence[Mapping[str, Any]]) -> list[str]:
    """What is wrong with rule documents that come beside the built-in ones; empty where they can be used.

    A rule must be written in the dialect, must have a name of its own, must find each of its positive examples wherever
    it stands, and none of its negative ones.
    """
    try:
        load_rules([*builtin(), *documents])
        alone = load_rules(documents)
        if refused := [
            f"rule {rule.id}: {why}" for rule in alone.rules if (why := _refused(rule, Re2Matcher))
        ]:
            return refused
        engine = build(rules=documents, engine="re2", views=False)
    except PolicyError as error:
        return [str(error)]
    except (TypeError, AttributeError):
        return ["rules are tables: [[rule]] or [[named]]"]
    problems = []
    rows: tuple[Rule | Named, ...] = (*alone.rules, *alone.named)
    for rule in rows:
        texts = [" " * offset + text for text in rule.positive for offset in _OFFSETS]
        results = engine.scan([ScanItem(text) for text in (*texts, *rule.negative)])
        found = [any(f.type == rule.type for f in result.findings) for result in results]
        if not all(found[: len(texts)]):
            problems.append(f"rule {rule.id}: a positive example is not found")
        if any(found[len(texts) :]):
            problems.append(f"rule {rule.id}: a negative example is found")
    return problems


def slow_rules(documents: Sequence[Mapping[str, Any]]) -> list[str]:
    """The valid rules whose triggers Hyperscan does not take, each with what that costs and what helps.

    One such rule has re2 look for all rules, the built-in ones too.
    """
    return [
        f"rule {rule.id}: {why}; until its `trigger` is shorter, all rules are looked for by re2, more than ten times "
        "slower (a few characters are enough: `pattern` says what else a match has)"
        for rule in load_rules(documents).rules
        if (why := _refused(rule, HyperscanMatcher))
    ]


def _refused(rule: Rule, engine: type[HyperscanMatcher | Re2Matcher]) -> str:
    """Why an engine does not take a rule's triggers; empty where it does, or has none to take (`wide` words alone)."""
    if not rule.triggers:
        return ""
    try:
        engine([Trigger(render(atoms), trigger_length(atoms), rule.caseless) for atoms in rule.triggers])
    except DetectorError as error:
        return str(error)
    return ""
