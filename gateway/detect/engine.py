"""The built-in detector: one multi-pattern scan over a batch of texts, confirmation at each hit, then decoded views.

    texts ──► Batch ──► core triggers ──► rules and families ──► findings
                   └──► shape triggers ─► identifiers ─────────►     │
    views of texts (base64, escapes, folded Unicode, ...), nested ───┴──► merge ──► ScanResult

Nothing here reads a clock, a file outside the package, or the environment: a time source and a compiled database are
arguments of `build`. An object is for one thread at a time; a worker builds its own.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from gateway.context.findings import Finding, ScanItem, ScanResult
from gateway.detect.batch import Batch
from gateway.detect.confirm import confirm
from gateway.detect.dialect import render, trigger_length
from gateway.detect.families import Family, families
from gateway.detect.keynames import KeyKind, key_kind
from gateway.detect.matcher import HyperscanMatcher, Matcher, Re2Matcher, Trigger
from gateway.detect.merge import merge
from gateway.detect.rule import Rule, RuleSet, load_rules
from gateway.detect.rules import builtin
from gateway.detect.scope import Scope
from gateway.detect.typelist import TypeRow

DETECTOR_ID = "builtin"
VERSION = "1.0.0"


class Plan:
    """What each trigger of one database leads to: a rule (with the length of its trigger) or a family."""

    def __init__(self) -> None:
        self.triggers: list[Trigger] = []
        self.rule_index: list[int] = []
        self.family_index: list[int] = []

    def add_rule(self, index: int, rule: Rule) -> None:
        """Register the triggers of a rule."""
        for atoms in rule.triggers:
            self.triggers.append(Trigger(render(atoms), trigger_length(atoms), rule.caseless))
            self.rule_index.append(index)
            self.family_index.append(-1)

    def add_family(self, index: int, family: Family) -> None:
        """Register the triggers of a family."""
        for trigger in family.triggers:
            self.triggers.append(trigger)
            self.rule_index.append(-1)
            self.family_index.append(index)


class Engine:
    """The detector object. `build` makes it."""

    id = DETECTOR_ID
    version = VERSION

    def __init__(self, rules: RuleSet, engine: str) -> None:
        self._rules = rules.rules
        self._families = families(rules)
        self._core, self._shape = Plan(), Plan()
        for index, rule in enumerate(self._rules):
            (self._shape if rule.shape else self._core).add_rule(index, rule)
        for index, family in enumerate(self._families):
            self._core.add_family(index, family)
        self.revision = _revision(rules, self._core, self._shape)
        kind = HyperscanMatcher if engine == "hyperscan" else Re2Matcher
        self.engine_name = kind.name
        self._matchers: list[tuple[Plan, Matcher]] = [
            (self._core, kind(self._core.triggers)),
            (self._shape, kind(self._shape.triggers)),
        ]

    def scan(self, items: Sequence[ScanItem]) -> list[ScanResult]:
        """See gateway.ports.Detector."""
        scopes = [_scope(item) for item in items]
        self._scan_scopes(scopes)
        return [_result(item, scope) for item, scope in zip(items, scopes, strict=True)]

    def types(self) -> list[TypeRow]:
        """Every type of finding, with an example and the fact it rests on."""
        rows = [TypeRow(r.id, r.type, r.category, r.severity, r.positive[0], r.source) for r in self._rules]
        for family in self._families:
            rows += family.described
        return rows

    def self_test(self) -> list[str]:
        """Look for every example at several offsets; what is not found, as `id: offset`. Empty when all is well."""
        problems = []
        offsets = (0, 1, 7, 15, 16, 31, 32, 63, 64)
        cases = [(row.id, row.type, row.example) for row in self.types()]
        for offset in offsets:
            results = self.scan([ScanItem(" " * offset + example) for _, _, example in cases])
            for (rule, kind, _), result in zip(cases, results, strict=True):
                if not any(f.detector == rule or f.type == kind for f in result.findings):
                    problems.append(f"{rule}: {offset}")
        return problems

    def _scan_scopes(self, scopes: Sequence[Scope]) -> None:
        batch = Batch([scope.text for scope in scopes])
        for plan, matcher in self._matchers:
            data = batch.data if plan is self._core else batch.shapes()
            for trigger, end in matcher.scan(data):
                number = batch.locate(end)
                self._hit(plan, trigger, scopes[number], end - batch.starts[number])

    def _hit(self, plan: Plan, trigger: int, scope: Scope, end: int) -> None:
        rule = plan.rule_index[trigger]
        if rule >= 0:
            confirm(scope, rule, self._rules[rule], end - plan.triggers[trigger].length, end)
        else:
            self._families[plan.family_index[trigger]].find(scope, end)


def _revision(rules: RuleSet, *plans: Plan) -> str:
    """A digest of everything that decides what is found: code version, triggers, patterns, thresholds."""
    digest = hashlib.sha256(VERSION.encode())
    for rule in rules.rules:
        digest.update(repr((rule, rule.pattern.pattern)).encode())
    for named in rules.named:
        digest.update(repr(named).encode())
    for plan in plans:
        digest.update(repr(plan.triggers).encode())
    return digest.hexdigest()[:32]


def _scope(item: ScanItem) -> Scope:
    name = item.name
    if not name or key_kind(name) is KeyKind.NONE:
        return Scope(item.text, item.channel)
    lead = (
        f'{name}: "'
        if len(item.text) <= 400 and "\n" not in item.text and '"' not in item.text
        else f"{name}: "
    )
    return Scope(lead + item.text + ('"' if lead.endswith('"') else ""), item.channel, len(lead))


def _result(item: ScanItem, scope: Scope) -> ScanResult:
    if not scope.found:
        return ScanResult()
    size, offset = len(item.text), scope.offset
    inside = scope.found
    if offset:
        inside = [
            Finding(
                f.type,
                f.category,
                f.severity,
                f.confidence_milli,
                max(0, f.start - offset),
                min(size, f.end - offset),
                f.detector,
                f.value,
            )
            for f in scope.found
            if f.end > offset and f.start < offset + size
        ]
    return ScanResult(merge(inside))


def build(
    *,
    rules: Sequence[Mapping[str, Any]] | None = None,
    extra: Sequence[Mapping[str, Any]] = (),
    engine: str = "auto",
    monotonic: Callable[[], float] | None = None,
) -> Engine:
    """Make the detector from parsed rule documents (the built-in ones unless given) and an organisation's `extra` ones.

    Raises PolicyError for a rule that is not valid.
    """
    loaded = load_rules([*(builtin() if rules is None else rules), *extra])
    return Engine(loaded, "hyperscan" if engine == "auto" else engine)
