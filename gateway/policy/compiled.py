"""Rules as predicates, and the one place where a rule is asked about an object."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from enum import StrEnum

from gateway.context.decisions import ALLOW, Decision, FindingFacts, ObjectFacts, RequestFacts, combine
from gateway.contract import ContextDispositionV1
from gateway.policy.breaking import BREAK_GLASS, SOURCE
from gateway.policy.conditions import Conditions, FindingTest, ObjectTest, RequestTest
from gateway.policy.globs import matcher
from gateway.policy.rule import REASON_CODE, PolicyException, Rule

EXCEPTION_USED = "policy.exception"
RULE_ERROR = "policy.rule_error"


class Answer(StrEnum):
    """Why a rule spoke or kept silent about one object; the value is what a trace shows."""

    SPOKE = "spoke"
    REQUEST = "the request does not match"
    OBJECT = "the object does not match"
    FINDINGS = "no finding matches"
    UNLESS = "silent by its `unless`"
    LIFTED = "lifted by an exception"
    ERROR = "the rule failed, which denies"


@dataclass(frozen=True, slots=True)
class Judgement:
    """A rule's answer, and what it adds to the decision (nothing where it kept silent)."""

    answer: Answer
    decision: Decision | None = None
    exceptions: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class CompiledConditions:
    """A conjunction, split by what it looks at."""

    request: tuple[RequestTest, ...]
    object: tuple[ObjectTest, ...]
    finding: tuple[FindingTest, ...]
    asks_findings: bool
    count_min: int

    @classmethod
    def of(cls, conditions: Conditions, mode: str) -> CompiledConditions:
        """Compile for a gateway in `mode`; that the mode itself matches is the caller's to check."""
        finding = conditions.finding
        return cls(
            conditions.request.tests(),
            conditions.object.tests(mode),
            finding.tests(),
            finding.asks,
            finding.count_min or 1,
        )

    def sees(self, finding: FindingFacts) -> bool:
        """Whether one finding satisfies every finding condition."""
        return all(test(finding) for test in self.finding)


@dataclass(frozen=True, slots=True)
class CompiledException:
    """An exception as predicates, with the note it leaves in every decision that used it."""

    source: PolicyException
    when: CompiledConditions
    note: Decision

    @classmethod
    def of(cls, exception: PolicyException, mode: str) -> CompiledException:
        """Compile for a gateway in `mode`."""
        broken = exception.source == SOURCE
        name = f"{'break-glass' if broken else 'exception'}:{exception.id}"
        until = exception.expires.astimezone(UTC).isoformat().replace("+00:00", "Z")
        note = Decision(
            ContextDispositionV1.ALLOW,
            (BREAK_GLASS if broken else EXCEPTION_USED,),
            rules=(name,),
            parameters=((name, f"{exception.owner}, until {until}"),),
        )
        return cls(exception, CompiledConditions.of(exception.when, mode), note)

    def in_force(self, request: RequestFacts) -> bool:
        """Whether it holds for this request now; where the time is not known it has expired."""
        try:
            now = datetime.fromisoformat(request.time)
            current = now < self.source.expires
        except (ValueError, TypeError):
            return False
        return current and all(test(request) for test in self.when.request)


@dataclass(slots=True)
class Scope:
    """What is known of one request: filled in as rules ask, so that a rule nobody needs costs nothing."""

    request: RequestFacts
    holds: dict[int, bool] = field(default_factory=dict)
    silent: dict[int, bool] = field(default_factory=dict)
    in_force: dict[str, bool] = field(default_factory=dict)
    decided: dict[tuple[object, ...], Decision] = field(default_factory=dict)

    def exception_holds(self, exception: CompiledException) -> bool:
        """Whether an exception is in force for the request."""
        found = self.in_force.get(exception.source.id)
        if found is None:
            found = self.in_force[exception.source.id] = exception.in_force(self.request)
        return found


@dataclass(frozen=True, slots=True)
class CompiledRule:
    """One rule as predicates. `position` is its number in the policy, under which a Scope remembers it."""

    position: int
    rule: Rule
    when: CompiledConditions
    unless: CompiledConditions | None
    exceptions: tuple[CompiledException, ...]
    fixed: Decision | None

    @classmethod
    def of(
        cls, position: int, rule: Rule, exceptions: Mapping[str, tuple[CompiledException, ...]], mode: str
    ) -> CompiledRule:
        """Compile for a gateway in `mode`; `exceptions` are those of the policy by the rule they lift."""
        unless = rule.unless
        if unless is not None and unless.modes and mode not in unless.modes:
            unless = None
        varies = bool(rule.then.mask) or rule.then.coverage_reason
        return cls(
            position,
            rule,
            _scoped(CompiledConditions.of(rule.when, mode), rule),
            None if unless is None else CompiledConditions.of(unless, mode),
            exceptions.get(rule.id, ()),
            None if varies else _decision(rule, frozenset(), ()),
        )

    def judge(self, scope: Scope, facts: ObjectFacts) -> Judgement:
        """What the rule says of an object. A rule that fails denies (`policy.rule_error`)."""
        try:
            return self._judge(scope, facts)
        except Exception:  # noqa: BLE001  (closed first: whatever went wrong, the object does not leave)
            denial = Decision(ContextDispositionV1.DENY, (RULE_ERROR,), rules=(self.rule.id,))
            return Judgement(Answer.ERROR, denial)

    def _judge(self, scope: Scope, facts: ObjectFacts) -> Judgement:
        if not all(test(facts) for test in self.when.object):
            return Judgement(Answer.OBJECT)
        matched: tuple[FindingFacts, ...] = ()
        if self.when.asks_findings:
            matched = tuple(f for f in facts.findings if self.when.sees(f))
            if not self._enough(matched):
                return Judgement(Answer.FINDINGS)
        if not self._request_holds(scope):
            return Judgement(Answer.REQUEST)
        if self._is_silent(scope, facts):
            return Judgement(Answer.UNLESS)
        if self.exceptions:
            return self._judge_exceptions(scope, facts, matched)
        return Judgement(Answer.SPOKE, self.fixed or self._speak(facts, facts.findings, matched))

    def _judge_exceptions(
        self, scope: Scope, facts: ObjectFacts, matched: tuple[FindingFacts, ...]
    ) -> Judgement:
        used: list[CompiledException] = []
        left = matched
        for exception in self.exceptions:
            if not scope.exception_holds(exception) or not all(t(facts) for t in exception.when.object):
                continue
            if not exception.when.asks_findings:
                return Judgement(Answer.LIFTED, exception.note, (exception.source.id,))
            rest = tuple(f for f in left if not exception.when.sees(f))
            if len(rest) < len(left):
                used.append(exception)
                left = rest
        notes, names = [e.note for e in used], tuple(e.source.id for e in used)
        if self.when.asks_findings and not self._enough(left):
            return Judgement(Answer.LIFTED, combine(*notes), names)
        lifted = set(matched) - set(left)
        seen = [f for f in facts.findings if f not in lifted]
        spoken = self.fixed or self._speak(facts, seen, left)
        return Judgement(Answer.SPOKE, combine(spoken, *notes) if notes else spoken, names)

    def _enough(self, matched: tuple[FindingFacts, ...]) -> bool:
        return bool(matched) and sum(f.count for f in matched) >= self.when.count_min

    def _request_holds(self, scope: Scope) -> bool:
        if not self.when.request:
            return True
        found = scope.holds.get(self.position)
        if found is None:
            found = scope.holds[self.position] = all(test(scope.request) for test in self.when.request)
        return found

    def _is_silent(self, scope: Scope, facts: ObjectFacts) -> bool:
        if self.unless is None or not all(test(facts) for test in self.unless.object):
            return False
        found = scope.silent.get(self.position)
        if found is None:
            found = scope.silent[self.position] = all(test(scope.request) for test in self.unless.request)
        return found

    def _speak(
        self, facts: ObjectFacts, findings: Iterable[FindingFacts], matched: Iterable[FindingFacts]
    ) -> Decision:
        reason = facts.coverage_reason if self.rule.then.coverage_reason else ""
        more = (reason,) if REASON_CODE.fullmatch(reason) else ()
        return _decision(self.rule, self.rule.then.mask.of(findings, matched), more)


def _scoped(when: CompiledConditions, rule: Rule) -> CompiledConditions:
    """The conditions of a rule, and that its layer is for whoever asks."""
    if rule.scope is None:
        return when
    of, names = rule.scope.of, matcher(rule.scope.names)
    return replace(when, request=(*when.request, lambda request: names(getattr(request, of))))


def _decision(rule: Rule, mask: frozenset[str], more_codes: tuple[str, ...]) -> Decision:
    then = rule.then
    return combine(
        ALLOW,
        Decision(
            then.disposition,
            (*then.reason_codes, *more_codes),
            then.transformations,
            mask,
            then.destinations,
            (rule.id,),
            then.parameters,
        ),
    )
