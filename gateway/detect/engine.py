"""The built-in detector: one multi-pattern scan over a batch of texts, confirmation at each hit, then decoded views.

    texts ──► Batch ──► core triggers ──► rules and families ──► findings
                   └──► shape triggers ─► identifiers ─────────►     │
    views of texts (base64, escapes, folded Unicode, ...), nested ───┴──► merge ──► ScanResult

Nothing here reads a clock, a file outside the package, or the environment: a time source and a compiled database are
arguments of `build`. An object is for one thread at a time; a worker builds its own.
"""

from __future__ import annotations

import hashlib
from bisect import bisect_right
from collections.abc import Callable, Collection, Mapping, Sequence
from operator import itemgetter
from typing import Any

from gateway.context.findings import Category, Finding, ScanItem, ScanResult, Severity
from gateway.context.views import folded
from gateway.detect.batch import SEPARATOR, Batch
from gateway.detect.compiled import Compiled, nothing_compiled, pack, unpack
from gateway.detect.confirm import LOOKALIKE_TYPE, confirm_wide, confirm_windows, confirmer, foreign_words
from gateway.detect.data import fingerprint
from gateway.detect.families import families
from gateway.detect.families.orders import Orders
from gateway.detect.known import DESCRIBED, KNOWN_TYPE, KnownValues, find_known
from gateway.detect.labels import labelling
from gateway.detect.matcher import HyperscanMatcher, Matcher, Re2Matcher
from gateway.detect.merge import merge
from gateway.detect.nested import MAX_DEPTH, follow_cuts, queue_view, worth
from gateway.detect.plan import Plan, make_plans
from gateway.detect.rule import Rule, RuleSet, load_rules
from gateway.detect.rules import builtin
from gateway.detect.scope import Budget, Scope
from gateway.detect.target import Target
from gateway.detect.typelist import TypeRow
from gateway.errors import DetectorError

DETECTOR_ID = "builtin"
VERSION = "1.0.0"
# In these views only rules count, no key names: the text was taken apart by a guess.
SPECIFIC_ONLY = frozenset(
    {"wrapped", "spaced", "reversed", "rot13", "rot47", "literals", "elements", "shell_word"}
)
BUDGET_TYPE = "budget"
_TAGS = ("injection.unicode_tags", Category.PROMPT_INJECTION, Severity.HIGH)
_TEST_OFFSETS = (0, 1, 7, 15, 16, 31, 32, 63, 64)
_NOTHING = ScanResult()
_END = itemgetter(1)  # of a hit
_FOLDED_COST = 10  # units for a word that reads as another


class Engine:
    """The detector object. `build` makes it."""

    id = DETECTOR_ID
    version = VERSION

    def __init__(
        self,
        rules: RuleSet,
        engine: str,
        *,
        views: bool = True,
        categories: Collection[Category] = tuple(Category),
        compiled: Compiled = nothing_compiled,
        known: KnownValues | None = None,
    ) -> None:
        self._rules = rules.rules
        self._confirm = [confirmer(rule) for rule in rules.rules]
        self._named = rules.named
        self._families = families(rules, categories)
        self._views = views
        self._labelled = labelling(self._rules)
        self._wide = _by_character(self._rules)
        self._orders = [family for family in self._families if isinstance(family, Orders)]
        plans = make_plans(self._rules, self._families, views=views)
        self._known = known
        self.rules_revision = _revision(rules, *plans)
        self.revision = _with_known(self.rules_revision, known)
        self.engine_name = HyperscanMatcher.name if engine == "hyperscan" else Re2Matcher.name
        loaded = _loaded(plans, self.rules_revision, compiled) if engine == "hyperscan" else []
        self.from_compiled = bool(loaded)  # whether nothing had to be compiled
        kind = HyperscanMatcher if engine == "hyperscan" else Re2Matcher
        self.databases = list(zip(plans, loaded or [kind(plan.triggers) for plan in plans], strict=True))

    def scan(self, items: Sequence[ScanItem]) -> list[ScanResult]:
        """See gateway.ports.Detector; raises DetectorError, which holds nothing of the text."""
        try:
            return self._scan(items)
        except (ArithmeticError, LookupError, ValueError, RecursionError, MemoryError) as error:
            raise DetectorError("detector.failed", f"detection failed: {type(error).__name__}") from None

    def _scan(self, items: Sequence[ScanItem]) -> list[ScanResult]:
        scopes = [_scope(item, self._labelled) for item in items]
        levels: list[list[Scope]] = [scopes]
        while levels[-1] and len(levels) <= MAX_DEPTH:
            levels.append(self._scan_level(levels[-1]))
        for level in reversed(levels[1:]):
            for scope in level:
                scope.hand_up()
        return [
            _result(item, scope) if scope.found or scope.budget.exhausted else _NOTHING
            for item, scope in zip(items, scopes, strict=True)
        ]

    def dump(self) -> bytes:
        """The compiled databases, for the `compiled` of `build`; none of an engine that has no such form.

        They are valid for these rules, this version of the engine and this kind of processor.
        """
        matchers = [matcher for _, matcher in self.databases if isinstance(matcher, HyperscanMatcher)]
        return pack(self.rules_revision, [matcher.dump() for matcher in matchers]) if matchers else b""

    def types(self) -> list[TypeRow]:
        """Every type of finding, with an example and the fact it rests on."""
        rows = [TypeRow(r.id, r.type, r.category, r.severity, r.positive[0], r.source) for r in self._rules]
        rows += [
            TypeRow(n.id, n.type, Category.SECRET, n.severity, n.positive[0], n.source) for n in self._named
        ]
        for family in self._families:
            rows += family.described
        if self._known is not None:
            rows.append(DESCRIBED)
        if self._views:
            tags = "".join(chr(0xE0000 + ord(c)) for c in "approve")
            source = "Unicode 16, 23.9: deprecated tag characters"
            rows.append(TypeRow("injection-unicode-tags", *_TAGS, f"fine.{tags}", source))
        return rows

    @property
    def type_names(self) -> tuple[str, ...]:
        """The names of all types, sorted; the vocabulary of rules and evidence."""
        return tuple(sorted({row.type for row in self.types()} | {BUDGET_TYPE, KNOWN_TYPE, LOOKALIKE_TYPE}))

    def self_test(self) -> list[str]:
        """Look for every example at several offsets; what is not found, as `id: offset`. Empty when all is well.

        Examples are looked for before findings are merged, so that a rule cannot hide behind another.
        """
        problems = []
        rows = self.types()
        for offset in _TEST_OFFSETS:
            scopes = [_scope(ScanItem(" " * offset + row.example), self._labelled) for row in rows]
            self._scan_level(scopes)
            for row, scope in zip(rows, scopes, strict=True):
                if not any(f.detector == row.id for f in scope.found):
                    problems.append(f"{row.id}: {offset}")
        return problems

    def _scan_level(self, scopes: Sequence[Scope]) -> list[Scope]:
        """Scan texts; the answer is the views of them that are worth a scan of their own."""
        batch = Batch([scope.text for scope in scopes])
        children: list[Scope] = []
        shapes = batch.shapes() if any(plan.shape for plan, _ in self.databases) else b""
        for scope, start in zip(scopes, batch.starts, strict=True):
            scope.shapes, scope.start = shapes, start
        for plan, matcher in self.databases:
            hits = matcher.scan(shapes if plan.shape else batch.data)
            if hits:
                self._hits(batch, scopes, plan, hits, children)
                for scope in scopes:
                    if (
                        scope.consumed or scope.viewed
                    ):  # the next database begins at the start of the text again
                        scope.consumed.clear()
                        scope.viewed.clear()
        self._look_up(batch, scopes)
        for scope in scopes:
            if scope.windows:
                confirm_windows(scope, self._rules)
            if scope.cuts and self._views and scope.depth < MAX_DEPTH:
                follow_cuts(scope, children)
            if not scope.text.isascii():
                self._beyond_ascii(scope, children)
        return children

    def _hits(
        self,
        batch: Batch,
        scopes: Sequence[Scope],
        plan: Plan,
        hits: Sequence[tuple[int, int]],
        children: list[Scope],
    ) -> None:
        """Follow the hits of one database, in the order of their ends, each within the budget of its object."""
        targets, triggers, rules, confirm = plan.targets, plan.triggers, self._rules, self._confirm
        low = high = last = 0  # the ends that lie in the text of `scope`; just beyond is a separator
        spent = 0  # hits up to there are of an object whose budget is used up
        scope = scopes[0]
        for trigger, end in hits:
            if end <= spent:
                continue
            if end > high:
                number = batch.locate(end)
                scope, low = scopes[number], batch.starts[number]
                last = len(scope.text) + 1
                high = low + last - 1 + len(SEPARATOR)
            at = end - low
            if not 0 < at <= last:
                continue  # in the separator, where only an edge may match
            target = targets[trigger]
            if target.find is not None and not worth(scope, target.view, at):
                continue
            budget = scope.budget
            if budget.hits <= 0:
                of_object = bisect_right(hits, high, key=_END)
                scope.leave_out(max(0, at - 64), min(len(scope.text), hits[of_object - 1][1] - low + 256))
                spent = high
                continue
            budget.hits -= target.cost
            if target.rule >= 0:
                rule = target.rule
                confirm[rule](scope, rule, rules[rule], at - triggers[trigger].length, at)
            else:
                self._follow(scope, target, at, children)

    def _look_up(self, batch: Batch, scopes: Sequence[Scope]) -> None:
        if self._known is not None:
            find_known(batch, scopes, self._known)

    def _beyond_ascii(self, scope: Scope, children: list[Scope]) -> None:
        """What the engine cannot see: words of other scripts, and letters that read as ASCII."""
        foreign = folded.beyond_ascii(scope.text)
        present = frozenset(foreign)
        for index, words in sorted(self._said(scope.text, present).items()):
            confirm_wide(scope, index, self._rules[index], sorted(words))
        for orders in self._orders:
            orders.find_beyond(scope, present)
        if self._views and scope.depth < MAX_DEPTH:
            for at, view in folded.folded(scope.text, foreign):
                if scope.budget.hits <= 0:
                    scope.leave_out(at, len(scope.text))
                    break
                scope.budget.hits -= _FOLDED_COST
                if view is None:
                    continue
                if view.kind == "tags":
                    scope.add((view.start, view.end), _TAGS, 850, "injection-unicode-tags")
                queue_view(scope, view, children)

    def _said(self, text: str, present: frozenset[str]) -> dict[int, list[str]]:
        """The words that the engine does not look for and that a text holds, by the rule that they are of."""
        said: dict[int, list[str]] = {}
        for char in self._wide.keys() & {"", *present}:
            for index, word, beyond in self._wide[char]:
                if beyond <= present and word in text:
                    said.setdefault(index, []).append(word)
        return said

    def _follow(self, scope: Scope, target: Target, end: int, children: list[Scope]) -> None:
        """Do what a hit of a view or a family that ends at `end` leads to."""
        if target.find is not None:
            queue_view(scope, target.find(scope.text, end), children)
        elif target.view == "wrapped":
            scope.cuts.append(end)
        else:
            family = self._families[target.family]
            if not family.contextual or scope.view is None or scope.view.kind not in SPECIFIC_ONLY:
                family.find(scope, min(end, len(scope.text)))


def _by_character(rules: Sequence[Rule]) -> dict[str, list[tuple[int, str, frozenset[str]]]]:
    """The words that the engine does not look for, by a character beyond ASCII that they hold, if they hold any."""
    words: dict[str, list[tuple[int, str, frozenset[str]]]] = {}
    for index, rule in enumerate(rules):
        for word, beyond in foreign_words(rule.wide):
            words.setdefault(max(beyond, default=""), []).append((index, word, beyond))
    return words


def _revision(rules: RuleSet, *plans: Plan) -> str:
    """A digest of everything that decides what is found: code version, triggers, patterns, thresholds."""
    digest = hashlib.sha256(f"{VERSION} {fingerprint()}".encode())
    for rule in rules.rules:
        digest.update(repr((rule, rule.pattern.pattern)).encode())
    for named in rules.named:
        digest.update(repr(named).encode())
    for plan in plans:
        digest.update(repr(plan.triggers).encode())
    return digest.hexdigest()[:32]


def _with_known(revision: str, known: KnownValues | None) -> str:
    return (
        revision
        if known is None
        else hashlib.sha256(f"{revision} {known.revision}".encode()).hexdigest()[:32]
    )


def _loaded(plans: Sequence[Plan], revision: str, compiled: Compiled) -> list[Matcher]:
    """Matchers over databases compiled earlier; empty where there are none that fit."""
    databases = unpack(compiled(revision), revision, len(plans))
    try:
        return [HyperscanMatcher(p.triggers, data) for p, data in zip(plans, databases, strict=False)]
    except DetectorError:
        return []  # of another version or processor: compiled anew


def _scope(item: ScanItem, labelled: Callable[[str], bool]) -> Scope:
    budget = Budget.of(len(item.text))
    name = item.name
    if not name or not labelled(name):
        return Scope(item.text, item.channel, budget)
    lead = (
        f'{name}: "'
        if len(item.text) <= 400 and "\n" not in item.text and '"' not in item.text
        else f"{name}: "
    )
    return Scope(lead + item.text + ('"' if lead.endswith('"') else ""), item.channel, budget, len(lead))


def _result(item: ScanItem, scope: Scope) -> ScanResult:
    found, offset, size = scope.found, scope.offset, len(item.text)
    exhausted = scope.budget.exhausted
    if exhausted:
        low, high = scope.budget.low, scope.budget.high
        found.append(
            Finding(BUDGET_TYPE, Category.SECRET, Severity.HIGH, 500, low, max(high, low + 1), "budget")
        )
    if offset:
        found = [_shifted(f, offset, size) for f in found if f.end > offset and f.start < offset + size]
    return ScanResult(merge(found), not exhausted, "coverage.budget_exhausted" if exhausted else "")


def _shifted(f: Finding, offset: int, size: int) -> Finding:
    """A finding in the text behind its name prefix."""
    start, end = max(0, f.start - offset), min(size, f.end - offset)
    return Finding(f.type, f.category, f.severity, f.confidence_milli, start, end, f.detector, f.value)


def _sound(engine: Engine) -> bool:
    """Whether the engine passes its test; a database of other patterns names triggers that there are not."""
    try:
        return not engine.self_test()
    except (LookupError, DetectorError):
        return False


def build(
    *,
    rules: Sequence[Mapping[str, Any]] | None = None,
    extra: Sequence[Mapping[str, Any]] = (),
    engine: str = "auto",
    views: bool = True,
    categories: Collection[Category] = tuple(Category),
    compiled: Compiled = nothing_compiled,
    known: KnownValues | None = None,
) -> Engine:
    """Make the detector from parsed rule documents (the built-in ones unless given) and an organisation's `extra` ones.

    `engine` is "hyperscan", "re2", or "auto": Hyperscan, or re2 where it cannot be loaded or fails a self-test.
    `categories` limits the rules to some categories. `compiled` answers with what `dump` gave for a revision of rules;
    what does not fit is compiled anew. `known` looks up an organisation's own values.

    Raises PolicyError for a rule that is not valid.
    """
    loaded = load_rules([*(builtin() if rules is None else rules), *extra])
    kept = tuple(rule for rule in loaded.rules if rule.category in categories)
    loaded = RuleSet(kept, loaded.named if Category.SECRET in categories else ())
    if engine != "auto":
        return Engine(loaded, engine, views=views, categories=categories, compiled=compiled, known=known)
    for source in (compiled, nothing_compiled):
        try:
            made = Engine(
                loaded, "hyperscan", views=views, categories=categories, compiled=source, known=known
            )
        except DetectorError:
            break  # re2 finds the same, at a few MB/s; `engine_name` says so
        if _sound(made):
            return made
        if not made.from_compiled:
            break
    return Engine(loaded, "re2", views=views, categories=categories, known=known)
