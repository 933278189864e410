"""What a decision of the rules entails for an object, from facts alone: the same for live traffic and for a replay."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Protocol

from gateway.classify.belonging import FOREIGN_TYPE
from gateway.classify.objects import EDITABLE
from gateway.context.decisions import Decision, ObjectFacts, RequestFacts, combine
from gateway.context.findings import Category
from gateway.context.objects import LeafRole
from gateway.contract import ContextDispositionV1, TransformationKindV1
from gateway.ports import Policy

_D = ContextDispositionV1
MASKABLE = frozenset({Category.SECRET, Category.PII, Category.CUSTOM})
_REDACTED = {
    Category.SECRET: "secret.redacted",
    Category.PII: "pii.redacted",
    Category.POLICY: "project.not_visible",
}
WORKERS = ("minimiser", "summariser")
"""Parameters that name what is done to an object's text (gateway.policy.rule.pack)."""


class Maskable(Protocol):
    """What matters of a finding here; `role` is the LeafRole of its place."""

    @property
    def type(self) -> str:
        """Its type."""
        ...

    @property
    def category(self) -> str:
        """Its category."""
        ...

    @property
    def role(self) -> str:
        """The role of the leaf it stands in."""
        ...


def is_masked(finding: Maskable, decision: Decision) -> bool:
    """Whether a decision says that this finding must not leave in clear."""
    named = bool(decision.mask & {finding.type, str(finding.category), "*"})
    return named and (finding.category in MASKABLE or finding.type == FOREIGN_TYPE)


def workers(decision: Decision, name: str) -> tuple[str, ...]:
    """The minimisers or summarisers that the rules named, each with its packed parameters."""
    return tuple(value for key, value in decision.parameters if key == name)


def follow(
    decision: Decision, masked: Iterable[Maskable], request: RequestFacts, *, rewritable: bool
) -> Decision:
    """The decision with all that it entails; `masked` are the findings that must not leave in clear.

    A redaction, or a denial where nothing may be rewritten; a denial of what may only go to a local model and would
    not. Entails nothing for what does not leave anyway.
    """
    if decision.disposition.delivers_content:
        decision = combine(decision, *_masking(masked, rewritable=rewritable))
        if not rewritable and any(workers(decision, name) for name in WORKERS):
            decision = combine(decision, Decision(_D.DENY, ("egress.signed_body",)))
    if _D.ALLOW_LOCAL_MODEL_ONLY in {decision.disposition, *decision.spoken} and request.locality != "local":
        decision = combine(decision, Decision(_D.DENY, ("destination.remote_restricted",)))
    return decision


def _masking(masked: Iterable[Maskable], *, rewritable: bool) -> list[Decision]:
    decisions = []
    for finding in masked:
        if not rewritable:
            decisions.append(Decision(_D.DENY, ("egress.signed_body",)))
        elif finding.role == LeafRole.THINKING:
            decisions.append(Decision(_D.DENY, ("egress.sealed_content",)))
        elif finding.role not in EDITABLE:
            # What may be said of personal data in fixed places is the policy's; a secret never leaves.
            if finding.category != "pii":
                decisions.append(Decision(_D.DENY, ("secret.blocked",)))
        else:
            code = _REDACTED.get(Category(finding.category), "policy.redacted")
            decisions.append(
                Decision(_D.ALLOW_REDACTED, (code,), frozenset({TransformationKindV1.REDACTION}))
            )
    return decisions


def decide(policy: Policy, request: RequestFacts, facts: ObjectFacts) -> Decision:
    """What happens to an object with these facts, as far as facts decide it."""
    decision = policy.decide(request, facts)
    masked = [f for f in facts.findings if is_masked(f, decision)]
    return follow(decision, masked, request, rewritable=facts.rewritable)
