"""What a label of personal data says beyond the text behind it: of a member's value, and of what stands before it."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from functools import lru_cache
from typing import Final

from gateway.context.findings import Category
from gateway.detect.dialect import render
from gateway.detect.keynames import KeyKind, key_kind
from gateway.detect.rule import Rule

_NAME_LENGTH: Final = 80
BEFORE: Final = 72
"""Characters before a label in which what it names may stand."""
_BETWEEN: Final = re.compile(
    r"[\"'`\]]{0,2}[,?.]?[ ]{0,2}(?:\(?(?:the |their |my )?|-{1,2} (?:the |my )?|= ?"
    r"|(?:(?:it|this|that|which) )?(?:is|was|as|for) (?:(?:the|my|your|our|his|her|their|an?) )?"
    r"(?:[\w'-]{1,16} ){0,2}).?",
    re.IGNORECASE | re.ASCII,
)


def labelled_rules(rules: Sequence[Rule]) -> Iterator[Rule]:
    """The rules that look for personal data behind a label."""
    for rule in rules:
        if rule.category is Category.PII and rule.near is not None and not rule.near[0] and not rule.shape:
            yield rule


def labelling(rules: Sequence[Rule]) -> Callable[[str], bool]:
    """Whether a member's name says what its value is: the name of a secret, or a label that a rule looks behind."""
    sources = {render(trigger) for rule in labelled_rules(rules) for trigger in rule.triggers}
    labels = re.compile("|".join(sorted(sources)) or r"(?!)", re.IGNORECASE)

    def labelled(name: str) -> bool:
        return key_kind(name) is not KeyKind.NONE or labels.search(f' {name[:_NAME_LENGTH]}: "') is not None

    return lru_cache(maxsize=4096)(labelled)


def named_before(text: str, rule: Rule, low: int, start: int) -> re.Match[str] | None:
    """What stands before a label at `start` and is said to be what it names (`2398432510 (NPI)`), from `low` on."""
    for match in rule.pattern.finditer(text, max(low, start - BEFORE), start + 1):
        if match.end() <= start + 1 and _BETWEEN.fullmatch(text, match.end(), start + 1):
            return match
    return None
