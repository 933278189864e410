"""The compiled policy: facts of one object in, one decision out.

Speed comes from asking few rules: those without finding conditions are filed by object kind, the others
also by the finding type or category they name, so that a clean object meets only the few rules that could
speak of it.
"""

from __future__ import annotations

import hashlib
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain

import orjson

from gateway.context.decisions import ALLOW, Decision, ObjectFacts, RequestFacts, combine
from gateway.context.objects import ObjectKind
from gateway.contract import ContextDispositionV1
from gateway.errors import PolicyError
from gateway.policy.breaking import Breakage
from gateway.policy.bundle import parse_bundle
from gateway.policy.compiled import CompiledException, CompiledRule, Scope
from gateway.policy.globs import matcher
from gateway.policy.layers import Layers, broken_glass, join_layers

ENFORCEMENTS = ("enforce", "shadow")
MAX_REASON_CODES = 32
"""Reason codes a decision may carry (contract.md §1)."""

MAX_REMEMBERED = 4096
MAX_SCOPES = 64  # kinds of requests whose decisions are remembered
"""Decisions kept for one request's facts, and finding types kept in an index; a replay may bring any number."""

_D = ContextDispositionV1

SHADOW_CODES = {
    _D.ALLOW_MINIMIZED: "shadow.would_minimize",
    _D.ALLOW_REDACTED: "shadow.would_redact",
    _D.ALLOW_SUMMARY_ONLY: "shadow.would_summarize",
    _D.ALLOW_LOCAL_MODEL_ONLY: "shadow.would_keep_local",
    _D.ALLOW_WITH_APPROVAL: "shadow.would_hold",
    _D.QUARANTINE: "shadow.would_quarantine",
    _D.DENY: "shadow.would_deny",
}

GENERAL_TEXT = (
    "The model egress gateway of your organisation decided this, not the model provider. Reason code and"
    " receipt id tell those who run the gateway why; sending the same content again will not help."
)


@dataclass(frozen=True, slots=True)
class _Index:
    """The rules that can speak of one kind of object.

    `named` fills up as finding types are met: the rules that name a type, by itself or by a glob. Detectors have a few
    hundred types, so each glob is tried a few hundred times in the life of a policy.
    """

    plain: tuple[CompiledRule, ...]
    typed: tuple[tuple[Callable[[str], bool], CompiledRule], ...]
    by_category: Mapping[str, tuple[CompiledRule, ...]]
    any_finding: tuple[CompiledRule, ...]
    named: dict[str, tuple[CompiledRule, ...]] = field(default_factory=dict)

    def candidates(self, facts: ObjectFacts) -> Iterator[CompiledRule]:
        """Every rule that could speak of an object with these facts; twice does no harm."""
        yield from self.plain
        if not facts.findings:
            return
        yield from self.any_finding
        for name in {f.type for f in facts.findings}:
            yield from self._of_type(name)
        for name in {f.category for f in facts.findings}:
            yield from self.by_category.get(name, ())

    def _of_type(self, name: str) -> tuple[CompiledRule, ...]:
        found = self.named.get(name)
        if found is None:
            if len(self.named) >= MAX_REMEMBERED:
                self.named.clear()
            found = self.named[name] = tuple(rule for names, rule in self.typed if names(name))
        return found


@dataclass(frozen=True, slots=True)
class _Last:
    """The request that was asked about last, and what is known of requests like it."""

    request: RequestFacts
    scope: Scope


class CompiledPolicy:
    """The rules of all layers; implements the Policy port. May be asked from several threads."""

    def __init__(self, layers: Layers, enforcement: str) -> None:
        self.layers = layers
        self.mode = layers.mode
        self.enforcement = enforcement
        self.id = _name([b.name for b in layers.bundles])
        self.version = layers.bundles[0].version
        self.digest = _digest(layers, enforcement)
        self.rules = _compile(layers)
        self._indexes = {kind: _index(self.rules, kind) for kind in map(str, ObjectKind)}
        self._everything = _index(self.rules, "")
        self.reads_place = _reads_place(layers)
        self.answers = layers.answers if enforcement == "enforce" else layers.answers.reported()
        self._is_timeless = not _reads_time(layers)
        self._scopes: dict[RequestFacts, Scope] = {}
        nobody = RequestFacts("")
        self._last = _Last(nobody, Scope(nobody))

    def decide(self, request: RequestFacts, facts: ObjectFacts) -> Decision:
        """The combined decision of every rule; a rule that errors denies (`policy.rule_error`)."""
        last = self._last  # read once: a request on another thread may put its own there meanwhile
        scope = last.scope if request is last.request else self._scope_of(request)
        key = _memo_key(facts, placed=self.reads_place)
        found = scope.decided.get(key)
        if found is None:
            if len(scope.decided) >= MAX_REMEMBERED:
                scope.decided.clear()
            found = scope.decided[key] = self._judge(scope, request, facts)
        return found

    def _scope_of(self, request: RequestFacts) -> Scope:
        """What was decided for requests like this one; they differ in time alone where no rule asks for it."""
        alike = replace(request, roles=tuple(request.roles), time="" if self._is_timeless else request.time)
        scope = self._scopes.get(alike)
        if scope is None:
            if len(self._scopes) >= MAX_SCOPES:
                self._scopes.clear()
            scope = self._scopes[alike] = Scope(request)
        self._last = _Last(request, scope)
        return scope

    def _judge(self, scope: Scope, request: RequestFacts, facts: ObjectFacts) -> Decision:
        index = self._indexes.get(facts.kind, self._everything)
        holds = scope.holds
        said = [
            decision
            for rule in index.candidates(facts)
            if holds.get(rule.position) is not False  # known not to match this request: nothing to ask
            and (decision := rule.judge(scope, facts).decision) is not None
        ]
        if not said:
            return ALLOW
        decision = settle(combine(*said), request)
        return shadowed(decision) if self.enforcement == "shadow" else decision

    def text(self, reason_code: str) -> str:
        """A sentence for people about a reason code, else that of its family, else a general one."""
        texts = self.layers.texts
        family = reason_code
        while family:
            if family in texts:
                return texts[family]
            family = family.rpartition(".")[0]
        return GENERAL_TEXT

    def allows_cross_project_search(self, roles: Sequence[str]) -> bool:
        """Whether any of a principal's roles sets `[io] allow_cross_project_search` (contract.md §9.1)."""
        return any(self.layers.roles.get(role, False) for role in roles)

    @property
    def boundary(self) -> Mapping[str, bool]:
        """The BoundaryPolicy switches of all layers (contract.md §9.1)."""
        return self.layers.boundary


def _reads_place(layers: Layers) -> bool:
    """Whether any rule or exception asks where an object stands or how large it is."""
    conditions = [c for rule in layers.rules for c in (rule.when, rule.unless) if c is not None]
    conditions += [exception.when for exception in layers.exceptions]
    objects = [c.object for c in conditions]
    return any(o.pointer or o.bytes_min is not None or o.bytes_max is not None for o in objects)


def _reads_time(layers: Layers) -> bool:
    """Whether any rule asks what time it is; exceptions do, as they expire."""
    conditions = [c for rule in layers.rules for c in (rule.when, rule.unless) if c is not None]
    return bool(layers.exceptions) or any(c.request.time is not None for c in conditions)


def _memo_key(facts: ObjectFacts, *, placed: bool) -> tuple[object, ...]:
    """Everything about an object that the rules can tell apart: most objects of a request are alike to them."""
    return (
        facts.kind,
        facts.channel,
        facts.findings,
        facts.coverage,
        facts.coverage_reason,
        facts.classification,
        facts.provenance,
        facts.rewritable,
        (facts.pointer, facts.bytes) if placed else None,
    )


def load_policy(
    bundles: Sequence[Mapping[str, bytes]],
    *,
    mode: str,
    enforcement: str,
    broken: Sequence[Breakage] = (),
    categories: Callable[[], Mapping[str, str]] = dict,
) -> CompiledPolicy:
    """Parse, join and compile bundles, the organisation's first; each maps relative file names to bytes.

    `broken` are the rules that people have lifted for a while; `categories` as `join_layers` takes them.

    Raises:
        PolicyError: `policy.invalid`; `problems` holds every one of every bundle (numbered where there are
        several).
    """
    parsed, problems = [], []
    for number, files in enumerate(bundles, 1):
        try:
            parsed.append(parse_bundle(files))
        except PolicyError as error:
            place = f"bundle {number}: " if len(bundles) > 1 else ""
            problems += [f"{place}{p}" for p in error.problems]
    if enforcement not in ENFORCEMENTS:
        problems.append(f"policy.enforcement: {enforcement!r} is none of {', '.join(ENFORCEMENTS)}")
    if problems:
        raise PolicyError("policy.invalid", "\n".join(problems), problems=problems)
    return CompiledPolicy(join_layers(parsed, mode, broken, categories), enforcement)


def settle(decision: Decision, request: RequestFacts) -> Decision:
    """Hold a decision against where the request goes, and bound its reason codes.

    What may only stay local, or only go to named destinations, is denied for this one (contract.md §13.14), also
    where something stricter than "local only" would let the rest of the request go on.
    Rerouting means to decide again with the facts of the local destination.
    """
    local = request.locality == "local"
    if _D.ALLOW_LOCAL_MODEL_ONLY in {decision.disposition, *decision.spoken} and not local:
        decision = combine(decision, Decision(_D.DENY, ("destination.remote_restricted",)))
    allowed = decision.destinations
    if allowed is not None and request.provider not in allowed and not (local and "local" in allowed):
        decision = combine(decision, Decision(_D.DENY, ("destination.not_allowed",)))
    if len(decision.reason_codes) > MAX_REASON_CODES:
        kept = (*decision.reason_codes[: MAX_REASON_CODES - 1], "policy.more_reasons")
        decision = replace(decision, reason_codes=kept)
    return decision


def shadowed(decision: Decision) -> Decision:
    """What shadow enforcement carries out: the object leaves as it is; the record says what would be."""
    if decision.disposition is _D.ALLOW:
        return decision
    would = SHADOW_CODES[decision.disposition]
    return Decision(
        _D.ALLOW, (would,), rules=decision.rules, shadow=tuple(sorted({would, *decision.reason_codes}))
    )


def _compile(layers: Layers) -> tuple[CompiledRule, ...]:
    lifted: dict[str, list[CompiledException]] = defaultdict(list)
    for exception in layers.exceptions:
        if not exception.when.modes or layers.mode in exception.when.modes:
            compiled = CompiledException.of(exception, layers.mode)
            for name in exception.rules:
                lifted[name].append(compiled)
    exceptions = {name: tuple(found) for name, found in lifted.items()}
    return tuple(CompiledRule.of(n, r, exceptions, layers.mode) for n, r in enumerate(layers.rules))


def _index(rules: Sequence[CompiledRule], kind: str) -> _Index:
    """File the rules that can speak of `kind`; the empty kind is one that no rule names."""
    plain: list[CompiledRule] = []
    any_finding: list[CompiledRule] = []
    typed: list[tuple[Callable[[str], bool], CompiledRule]] = []
    by_category: dict[str, list[CompiledRule]] = defaultdict(list)
    for compiled in rules:
        when = compiled.rule.when
        if when.object.kind and kind not in when.object.kind:
            continue
        finding = when.finding
        if not finding.asks:
            plain.append(compiled)
        elif finding.type:
            typed.append((matcher(finding.type), compiled))
        elif finding.category:
            for name in finding.category:
                by_category[name].append(compiled)
        else:
            any_finding.append(compiled)
    return _Index(tuple(plain), tuple(typed), _frozen(by_category), tuple(any_finding))


def _frozen(lists: Mapping[str, list[CompiledRule]]) -> dict[str, tuple[CompiledRule, ...]]:
    return {name: tuple(found) for name, found in lists.items()}


def _name(names: Sequence[str]) -> str:
    joined = "+".join(names)
    return joined if len(joined) <= 256 else f"{names[0]}+{len(names) - 1}"


def _digest(layers: Layers, enforcement: str) -> str:
    content: dict[str, object] = {
        "bundles": [[b.name, b.version, b.digest] for b in layers.bundles],
        "mode": layers.mode,
        "enforcement": enforcement,
        "rules": list(chain.from_iterable([[r.id, r.source] for r in layers.rules])),
    }
    if broken := [[e.id, *e.rules] for e in broken_glass(layers)]:
        content["broken"] = broken
    return f"sha256:{hashlib.sha256(orjson.dumps(content, option=orjson.OPT_SORT_KEYS)).hexdigest()}"
