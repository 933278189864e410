"""From a trigger hit to a finding: match the pattern at the hit, then ask what a match alone cannot tell."""

from __future__ import annotations

import re

from gateway.context.findings import Category, Finding, Severity
from gateway.detect.checks import CHECKS
from gateway.detect.rule import Rule
from gateway.detect.samples import PUBLISHED, is_repeated
from gateway.detect.scope import Scope, as_value, left_edge

_CONTEXT = 80
_UNLESS = 24


def confirm(scope: Scope, index: int, rule: Rule, start: int, end: int) -> None:
    """Try `rule` at a trigger hit that spans `start..end` of the scope's text."""
    consumed = scope.consumed.get(index, 0)
    if rule.near is None:
        begin = start - rule.at
        if begin < consumed or begin < 0 or (rule.edge == "word" and not left_edge(scope.text, begin)):
            return
        match = rule.pattern.match(scope.text, begin)
        if match is not None:
            _accept(scope, index, rule, match)
        return
    low = max(consumed, start - rule.near[0], 0)
    high = min(len(scope.text), end + rule.near[1])
    for match in rule.pattern.finditer(scope.text, low, high):
        if match.start() > end and rule.near[0]:
            return
        if match.end() > start:
            _accept(scope, index, rule, match)
            if not rule.near[0]:
                return


def _accept(scope: Scope, index: int, rule: Rule, match: re.Match[str]) -> None:
    scope.consumed[index] = match.end()
    group = match.lastgroup
    value, span = (match[group], match.span(group)) if group else (match[0], match.span())
    if value in PUBLISHED or (rule.category is Category.SECRET and is_repeated(value)):
        return
    if rule.edge == "word" and rule.near is not None and not left_edge(scope.text, span[0]):
        return
    confidence, severity = rule.confidence, rule.severity
    kind, category = rule.type, rule.category
    if rule.context and not _has_context(scope, rule, match.start()):
        return
    if rule.unless and any(word in scope.before(span[0], _UNLESS).lower() for word in rule.unless):
        return
    if rule.check:
        if CHECKS[rule.check](value):
            confidence = rule.checked
        elif rule.unchecked == "drop":
            return
        elif rule.unchecked == "lookalike" and not as_value(scope.text, span[0]):
            kind, category, severity, confidence = (
                "token_lookalike",
                Category.CLASSIFICATION,
                Severity.LOW,
                300,
            )
        else:
            severity = min(severity, Severity.HIGH, key=lambda s: s.rank)
    scope.found.append(Finding(kind, category, severity, confidence, span[0], span[1], rule.id))


def _has_context(scope: Scope, rule: Rule, at: int) -> bool:
    around = scope.before(at, _CONTEXT).lower()
    return any(word in around for word in rule.context)
