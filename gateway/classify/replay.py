"""Deciding again from evaluation records alone: what another policy would have done with yesterday's traffic.

Rules are replayed, not detectors: the records hold what was found, never where or what. What people released and what
a conversation was bound to by its own history is left as it was.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from gateway.classify.consequences import decide
from gateway.classify.history import CODE as WITHHELD
from gateway.classify.history import history_end
from gateway.classify.objects import is_chained
from gateway.classify.reshape import RESHAPED
from gateway.classify.treatment import SIGNED
from gateway.context.decisions import Decision, FindingFacts, ObjectFacts, RequestFacts
from gateway.contract import ContextDispositionV1
from gateway.ports import Policy

_D = ContextDispositionV1
HISTORY: Final = ("review:", "history:", "break-glass:")
_BOUND: Final = frozenset({"conversation.signed_prefix", "redaction.incomplete", "transform.impossible"})
_HELD: Final = frozenset({_D.QUARANTINE, _D.ALLOW_WITH_APPROVAL})
_STUBBED: Final = RESHAPED | SIGNED
MAX_EXAMPLES: Final = 20

type Stored = Mapping[str, Any]
"""One evaluation record (contract.evaluation.EvaluationRecordV1) as it was read."""


def request_facts(stored: Stored, mode: str) -> RequestFacts:
    """What rules may know of the request of a record."""
    principal = stored["principal"]
    return RequestFacts(
        project=stored["project"],
        principal=principal.get("id", "unknown"),
        principal_kind=principal["kind"],
        roles=tuple(stored.get("roles", ())),
        team=stored.get("team", ""),
        provider=stored["provider"],
        model=stored.get("model", ""),
        locality=stored["locality"],
        region=stored.get("region", ""),
        organization_managed=bool(stored.get("organization_managed", False)),
        route=stored["route"],
        mode=mode,
        time=stored["time"],
    )


def object_facts(item: Stored) -> ObjectFacts:
    """What rules may know of an object of a record."""
    return ObjectFacts(
        pointer=item["pointer"],
        kind=item["kind"],
        channel=item["channel"],
        bytes=item["bytes"],
        findings=tuple(
            FindingFacts(
                f["type"],
                f["category"],
                f["severity"],
                f["confidence_milli"],
                f["count"],
                f.get("role", "text"),
            )
            for f in item.get("findings", ())
        ),
        coverage=item["coverage"],
        coverage_reason=item.get("coverage_reason", ""),
        classification=item.get("classification", ""),
        provenance=item.get("provenance", ""),
        rewritable=item.get("rewritable", True),
    )


@dataclass(slots=True)
class Difference:
    """One kind of change and how often it was met."""

    change: str  # deny | hold | redact | transform | allow
    before: str
    after: str
    rule: str
    project: str
    provider: str
    count: int = 0
    examples: list[tuple[str, str]] = field(default_factory=list)  # receipt and pointer


@dataclass(slots=True)
class Report:
    """What a replay found. `bound` objects were decided by their conversation or by people, and stay as they were.

    `changes` counts every object that changes once, by its dispositions, project and provider; `differences` counts it
    for each rule that has a part in it.
    """

    requests: int = 0
    objects: int = 0
    same: int = 0
    bound: int = 0
    effects: Counter[tuple[str, str]] = field(
        default_factory=Counter
    )  # (before, after) of requests that change
    changes: Counter[tuple[str, str, str, str]] = field(default_factory=Counter)
    differences: dict[tuple[str, ...], Difference] = field(default_factory=dict)

    def document(self) -> dict[str, Any]:
        """The report as JSON."""
        found = sorted(
            self.differences.values(), key=lambda d: (-d.count, d.change, d.rule, d.project, d.provider)
        )
        return {
            "requests": self.requests,
            "objects": self.objects,
            "same": self.same,
            "bound_by_history": self.bound,
            "effects": [
                {"before": a, "after": b, "requests": count} for (a, b), count in sorted(self.effects.items())
            ],
            "changes": [
                {"before": a, "after": b, "project": p, "provider": v, "objects": count}
                for (a, b, p, v), count in sorted(self.changes.items())
            ],
            "differences": [
                {
                    "change": d.change,
                    "before": d.before,
                    "after": d.after,
                    "rule": d.rule,
                    "project": d.project,
                    "provider": d.provider,
                    "objects": d.count,
                    "examples": [{"receipt": receipt, "pointer": pointer} for receipt, pointer in d.examples],
                }
                for d in found
            ],
        }


def replay(policy: Policy, records: Iterable[Stored]) -> Report:
    """Decide about every object of every record again, and count what would change."""
    report = Report()
    for stored in records:
        report.requests += 1
        request = request_facts(stored, policy.mode)
        after = [_again(policy, request, item, report) for item in stored.get("objects", ())]
        before = stored["effect"]
        decided = [decision.disposition for decision, _ in after]
        effect = _effect(stored.get("objects", ()), decided) if any(c for _, c in after) else before
        if effect != before:
            report.effects[before, effect] += 1
        for item, (decision, changed) in zip(stored.get("objects", ()), after, strict=True):
            if changed:
                _note(report, stored, item, decision)
    return report


def _again(policy: Policy, request: RequestFacts, item: Stored, report: Report) -> tuple[Decision, bool]:
    """The decision of now about an object, and whether it differs from the recorded one."""
    report.objects += 1
    before = _D(item["disposition"])
    if any(rule.startswith(HISTORY) for rule in item.get("rules", ())) or _BOUND & set(item["reason_codes"]):
        report.bound += 1
        return Decision(before), False
    decision = decide(policy, request, object_facts(item))
    changed = decision.disposition is not before
    report.same += not changed
    return decision, changed


def _note(report: Report, stored: Stored, item: Stored, decision: Decision) -> None:
    before, after = item["disposition"], str(decision.disposition)
    report.changes[before, after, stored["project"], stored["provider"]] += 1
    mine, theirs = set(item.get("rules", ())), set(decision.rules)
    blamed = sorted(theirs - mine) or sorted(mine - theirs) or ["(the same rules)"]
    for rule in blamed:
        key = (before, after, rule, stored["project"], stored["provider"])
        found = report.differences.setdefault(key, Difference(_change(decision.disposition), *key))
        found.count += 1
        if len(found.examples) < MAX_EXAMPLES:
            found.examples.append((stored["receipt"], item["pointer"]))


def _change(after: ContextDispositionV1) -> str:
    if after is _D.DENY:
        return "deny"
    if after in _HELD:
        return "hold"
    if after is _D.ALLOW:
        return "allow"
    return "redact" if after is _D.ALLOW_REDACTED else "transform"


def _effect(items: Sequence[Stored], decided: Sequence[ContextDispositionV1]) -> str:
    """What becomes of a request with these objects: a quarantined one leaves a stub, and so does what is history."""
    old = _history(items)
    here = {
        disposition
        for item, disposition in zip(items, decided, strict=True)
        if not disposition.delivers_content
        and (item["kind"] not in _STUBBED or (disposition is not _D.QUARANTINE and id(item) not in old))
    }
    if here:
        return "refused" if _D.DENY in here else "held"
    changed = {*decided} - {_D.ALLOW, _D.ALLOW_LOCAL_MODEL_ONLY}
    return "rewritten" if changed else "forwarded"


def _history(items: Sequence[Stored]) -> frozenset[int]:
    """The objects that are only history (gateway.classify.history), and those that were withheld as such."""
    chained = [item for item in items if is_chained(item["kind"], item["channel"])]
    end = history_end([item["channel"] for item in chained])
    told = [item for item in chained if WITHHELD in item["reason_codes"]]
    return frozenset(map(id, (*chained[:end], *told)))
