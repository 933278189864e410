"""Deciding about every object of a request: the rules, what they entail, what people released, what was sent before."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final

from gateway.classify.consequences import decide, follow, is_masked
from gateway.classify.lookups import Lookup, Recalled, Reviews
from gateway.classify.masked import MaskedValue, memorable
from gateway.classify.objects import EDITABLE, ContextObject, LeafFinding
from gateway.classify.reading import Reader, spread
from gateway.classify.treatment import Transformers
from gateway.context.decisions import Decision, RequestFacts, combine
from gateway.contract import ContextDispositionV1
from gateway.ports import Policy

_D = ContextDispositionV1
HELD: Final = frozenset({_D.QUARANTINE, _D.ALLOW_WITH_APPROVAL})
STICKY: Final = "history:sticky"
"""Stands among the rules of a decision that a conversation is bound to by what it sent before."""
RELEASED, REFUSED = "released", "refused"
_WAITS = {_D.QUARANTINE: "quarantine.held", _D.ALLOW_WITH_APPROVAL: "approval.pending"}
_LIFTED = {_D.QUARANTINE: "quarantine.released", _D.ALLOW_WITH_APPROVAL: "approval.granted"}
_DECLINED = {_D.QUARANTINE: "quarantine.discarded", _D.ALLOW_WITH_APPROVAL: "approval.denied"}


_WOULD = {
    _D.ALLOW: "would_allow",
    _D.ALLOW_MINIMIZED: "would_minimize",
    _D.ALLOW_REDACTED: "would_redact",
    _D.ALLOW_SUMMARY_ONLY: "would_summarize",
    _D.ALLOW_LOCAL_MODEL_ONLY: "would_keep_local",
    _D.ALLOW_WITH_APPROVAL: "would_hold",
    _D.QUARANTINE: "would_quarantine",
    _D.DENY: "would_deny",
}


def _unnamed(disposition: ContextDispositionV1, item: ContextObject) -> str:
    return f"{disposition}-{item.digest.hex()[:12]}"


@dataclass(frozen=True, slots=True)
class Subject:
    """What surrounds the body: who asks, where it goes, which rules hold.

    `hold_id` names a held object: the same for the same object, project, destination and policy. `transformers` are the
    active minimisers and summarisers.
    """

    request: RequestFacts
    policy: Policy
    reader: Reader
    rewritable: bool = True  # false where the client signed the body (SigV4)
    hold_id: Callable[[ContextDispositionV1, ContextObject], str] = _unnamed
    transformers: Transformers = field(default_factory=Transformers)
    trial: Policy | None = None  # only asked what it would decide


@dataclass(slots=True)
class Decider:
    """Sets `decision` and `edits` of the objects of one request."""

    objects: Sequence[ContextObject]
    subject: Subject
    recalled: Recalled | None
    _reviews: dict[str, str] = field(default_factory=dict)

    def run(self) -> Generator[Lookup, Any, None]:
        """Decide about every object; what one masks is masked in all."""
        self._all()
        yield from self._ask()
        self._mask_everywhere()
        yield from self._ask()
        if self.subject.trial is not None:
            self._try(self.subject.trial)

    def _try(self, trial: Policy) -> None:
        """Note in every decision what the policy on trial would have done otherwise; nothing is done differently."""
        subject = self.subject
        for item in self.objects:
            would = decide(trial, subject.request, item.facts(rewritable=subject.rewritable))
            if would.disposition is not item.decision.disposition:
                codes = {f"shadow.{_WOULD[would.disposition]}", *would.reason_codes}
                item.decision = replace(item.decision, shadow=tuple(sorted({*item.decision.shadow, *codes})))

    def _all(self) -> None:
        # Nearly all objects of a long history are clean and alike to the rules: one answer serves them all.
        alike: dict[tuple[Any, ...], Decision] = {}
        placed, recalled = self.subject.policy.reads_place, self.recalled
        rewritable, classification = self.subject.rewritable, self.subject.request.classification
        sent = {*recalled.edits, *recalled.treatments} if recalled is not None else ()
        for item in self.objects:
            item.rewritable, item.classification = rewritable, classification
            scanned, block = item.scanned, item.block
            if placed or scanned.findings or item.digest in sent:
                self._one(item)
                continue
            key = (
                block.kind, block.channel, scanned.coverage, scanned.coverage_reason, scanned.provenance,
            )  # fmt: skip
            decision = alike.get(key)
            if decision is None:
                self._one(item)
                alike[key] = item.decision
            else:
                item.decision = decision

    def _one(self, item: ContextObject) -> None:
        subject, recalled = self.subject, self.recalled
        decision = subject.policy.decide(subject.request, item.facts(rewritable=subject.rewritable))
        if recalled is not None and item.digest in recalled.treatments:
            decision = _bound(decision, recalled.treatments[item.digest].decision)
        decision = self._reviewed(item, decision)
        masked = tuple(f for f in item.scanned.findings if is_masked(f, decision))
        if recalled is not None and item.digest in recalled.edits:
            before = len(masked)
            masked = _union(masked, recalled.edits[item.digest])
            if len(masked) > before:
                decision = replace(decision, rules=_with(decision.rules, STICKY))
        item.decision = follow(decision, masked, subject.request, rewritable=subject.rewritable)
        # What an object that stays here would have masked is masked in all others all the same: held back in one place,
        # it must not leave from another.
        item.edits = tuple(f for f in masked if f.role in EDITABLE and f.token)

    def _reviewed(self, item: ContextObject, decision: Decision) -> Decision:
        """The decision after what people said: a release lifts the holding and nothing else that rules ask for."""
        for held in (_D.QUARANTINE, _D.ALLOW_WITH_APPROVAL):
            if decision.disposition is not held:
                continue
            hold = self.subject.hold_id(held, item)
            state = self._reviews.get(hold)
            if state != RELEASED:
                code = _DECLINED[held] if state == REFUSED else _WAITS[held]
                return replace(decision, reason_codes=_with(decision.reason_codes, code))
            decision = decision.without(held)
            codes, rules = (
                _with(decision.reason_codes, _LIFTED[held]),
                _with(decision.rules, f"review:{hold}"),
            )
            decision = replace(decision, reason_codes=codes, rules=rules)
        return decision

    def _ask(self) -> Generator[Lookup, Any, None]:
        """Learn what people decided about what is held. A release can bring to light that another one is needed."""
        asked: set[str] = set()
        while True:
            held = [item for item in self.objects if item.decision.disposition in HELD]
            ids = {self.subject.hold_id(item.decision.disposition, item) for item in held} - asked
            ids -= self._reviews.keys()
            if not ids:
                return
            asked |= ids
            self._reviews.update((yield Reviews(tuple(sorted(ids)))))
            for item in held:
                self._one(item)

    def _mask_everywhere(self) -> None:
        """A value that one object masks is masked in every object of the request, also where nothing gives it away."""
        reader = self.subject.reader
        tokens = {f.token: f.category for item in self.objects for f in item.edits}
        new = [
            MaskedValue(token, reader.values[token], category)
            for token, category in sorted(tokens.items())
            if memorable(reader.values.get(token, ""))
        ]
        for item in spread(self.objects, reader, new) if new else ():
            self._one(item)


def _bound(decision: Decision, before: Decision) -> Decision:
    """The decision, tightened to what was asked of the object when it was sent before."""
    both = combine(decision, before)
    asks = [(d.disposition, d.transformations, d.parameters) for d in (decision, both)]
    return decision if asks[0] == asks[1] else replace(both, rules=_with(both.rules, STICKY))


def _with(names: Iterable[str], more: str) -> tuple[str, ...]:
    return tuple(sorted({*names, more}))


def _union(found: tuple[LeafFinding, ...], sticky: tuple[LeafFinding, ...]) -> tuple[LeafFinding, ...]:
    """Edits used before stay; new ones are added."""
    have = {(f.leaf, f.start, f.end) for f in sticky}
    return (*sticky, *(f for f in found if (f.leaf, f.start, f.end) not in have))
