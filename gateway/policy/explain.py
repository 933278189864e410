"""Why a decision is what it is: every rule's answer about one object, and the decision they make together."""

from __future__ import annotations

from dataclasses import dataclass

from gateway.context.decisions import Decision, ObjectFacts, RequestFacts
from gateway.policy.compiled import Answer, Scope
from gateway.policy.decide import CompiledPolicy


@dataclass(frozen=True, slots=True)
class Step:
    """One rule's part in a decision: what it added, and the exceptions that lifted it or part of it."""

    rule: str
    source: str
    why: str
    answer: Answer
    decision: Decision | None
    exceptions: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Explanation:
    """The steps in the order of the layers, and the outcome as the gateway would carry it out."""

    steps: tuple[Step, ...]
    decision: Decision

    @property
    def spoke(self) -> tuple[Step, ...]:
        """Only the rules that added something."""
        return tuple(s for s in self.steps if s.decision is not None)


def explain(policy: CompiledPolicy, request: RequestFacts, facts: ObjectFacts) -> Explanation:
    """Ask every rule, not only those the index would ask, and say what each answered."""
    scope = Scope(request)
    steps = []
    for compiled in policy.rules:
        judged = compiled.judge(scope, facts)
        rule = compiled.rule
        steps.append(Step(rule.id, rule.source, rule.why, judged.answer, judged.decision, judged.exceptions))
    return Explanation(tuple(steps), policy.decide(request, facts))


def render(explanation: Explanation, *, everything: bool = False) -> str:
    """Lines for a terminal: the decision first, then who spoke; `everything` adds the silent rules."""
    decision = explanation.decision
    lines = [f"{decision.disposition}  {' '.join(decision.reason_codes) or '-'}"]
    if decision.mask:
        lines.append(f"  masks {', '.join(sorted(decision.mask))}")
    if decision.destinations is not None:
        lines.append(f"  only to {', '.join(sorted(decision.destinations)) or 'nowhere'}")
    for step in explanation.steps if everything else explanation.spoke:
        said = f" -> {step.decision.disposition}" if step.decision is not None else ""
        by = f" ({', '.join(step.exceptions)})" if step.exceptions else ""
        lines.append(f"  {step.rule} [{step.source}]: {step.answer}{by}{said}")
        if step.decision is not None:
            lines.append(f"      {step.why}")
    return "\n".join(lines)
