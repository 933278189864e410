"""Fragments that are remembered are those that would be made anew, whatever changed between two turns."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

from gateway.cli.demo_script import github_token
from gateway.context.decisions import Decision
from gateway.contract import ContextDispositionV1
from gateway.egress.records import FragmentCache
from tests.support.evaluation import Session, rules_of

DETECTOR = ("egress", "1.0.0")
KEY = b"k" * 32


def body(*texts: str) -> bytes:
    messages = [{"role": ("user", "assistant")[n % 2], "content": text} for n, text in enumerate(texts)]
    return json.dumps({"model": "m", "max_tokens": 9, "messages": messages}).encode()


def test_a_history_has_the_fragments_that_it_would_have_without_a_memory() -> None:
    cache, session = FragmentCache(DETECTOR), Session()
    said = ["Please look into it.", "I will.", f"the token is {github_token()}", "Thanks.", "x" * 100]
    for turn in range(1, len(said) + 1):
        for _ in range(2):
            for item in session.send(body(*said[:turn])).objects:
                assert cache.of(item, KEY) == FragmentCache(DETECTOR).of(item, KEY)


def test_nothing_that_stands_in_a_fragment_is_taken_from_another_one() -> None:
    cache = FragmentCache(DETECTOR)
    item = (
        Session(rules=rules_of())
        .send(body("Please look into it, and tell me what you found there."))
        .objects[0]
    )
    changes: list[dict[str, Any]] = [
        {},
        {"decision": Decision(ContextDispositionV1.DENY, ("policy.blocked",), rules=("a.rule",))},
        {"decision": Decision(ContextDispositionV1.ALLOW, rules=("a.rule",))},
        {"scanned": replace(item.scanned, coverage="partial", coverage_reason="coverage.partial")},
        {"scanned": replace(item.scanned, provenance="own")},
        {"rewritable": False},
        {"classification": "restricted"},
        {"size": item.size + 1},
        {"prefix": ("requests", 3)},
        {"digest": bytes(32)},
        {"block": replace(item.block, channel="system")},
    ]
    seen = set()
    for change in [*changes, *reversed(changes)]:
        changed = replace(item, **change)
        made = cache.of(changed, KEY)
        assert made == FragmentCache(DETECTOR).of(changed, KEY)
        seen.add((made.decision, made.evaluation, made.outcome))
    assert len(seen) == len(changes)
    cache.forget()
    assert cache.of(item, KEY) == FragmentCache(DETECTOR).of(item, KEY)
