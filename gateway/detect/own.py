"""An organisation's own rules: the checks that the built-in ones have, with every problem told at once."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from gateway.context.findings import ScanItem
from gateway.detect.engine import build
from gateway.detect.rule import Named, Rule, load_rules
from gateway.detect.rules import builtin
from gateway.errors import PolicyError

_OFFSETS = (0, 1, 15, 64)


def problems_of(documents: Sequence[Mapping[str, Any]]) -> list[str]:
    """What is wrong with rule documents that come beside the built-in ones; empty where they can be used.

    A rule must be written in the dialect, must have a name of its own, must find each of its positive examples wherever
    it stands, and none of its negative ones.
    """
    try:
        load_rules([*builtin(), *documents])
        alone = load_rules(documents)
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
