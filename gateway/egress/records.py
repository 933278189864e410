"""The evidence of one request in canonical bytes: receipt, evaluation record, admission.

Long lists (decisions, objects) are joined from cached fragments, so that a turn costs what is new in it.
"""

from __future__ import annotations

import hmac
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import orjson

from gateway.classify.objects import ContextObject, LeafFinding, Scanned
from gateway.context.decisions import Decision, FindingFacts
from gateway.contract import (
    AclCheckV1,
    ContextDecisionOutcomeV1,
    ContextDispositionV1,
    CrossProjectEventTypeV1,
    DetectorSignalV1,
    SourceKindV1,
    SourceValidityV1,
)
from gateway.contract.canonical import digest
from gateway.contract.decisions import MAX_REASON_CODES
from gateway.contract.fragments import decision_fragment, object_fragment, outcome_fragment
from gateway.contract.lineage import MAX_CANDIDATES
from gateway.ports import Record, Ruling

_D = ContextDispositionV1
UNCOUNTED = frozenset({"complete", "not_required"})
_MAX_TEMPLATES = 1000


@dataclass(frozen=True, slots=True)
class Fragments:
    """Canonical pieces of one object: its decision, its line in the evaluation record, its outcome in the lineage."""

    decision: bytes
    evaluation: bytes
    outcome: bytes


_DIGEST = "sha256:" + "f" * 64
_POINTER = "/place"
_SIZE = 987_654_321_987


@dataclass(frozen=True, slots=True)
class _Template:
    """The fragments of one shape of object, validated once, with gaps for digest, pointer and size."""

    decision: tuple[bytes, bytes]
    evaluation: tuple[bytes, bytes, bytes, bytes]  # around size, digest and pointer, in canonical order
    outcome: tuple[bytes, bytes]

    @classmethod
    def of(cls, made: Fragments) -> _Template:
        """Cut the fragments of a stand-in at its digest, pointer and size."""
        digest_ = _DIGEST.encode()
        decision, outcome = made.decision.split(digest_), made.outcome.split(digest_)
        head, rest = made.evaluation.split(b"%d" % _SIZE)
        middle, rest = rest.split(digest_)
        before, after = rest.split(orjson.dumps(_POINTER))
        return cls((decision[0], decision[1]), (head, middle, before, after), (outcome[0], outcome[1]))

    def fill(self, name: str, pointer: str, size: int) -> Fragments:
        """The fragments of an object of this shape."""
        given = name.encode()
        head, middle, before, after = self.evaluation
        evaluation = b"".join((head, b"%d" % size, middle, given, before, orjson.dumps(pointer), after))
        return Fragments(given.join(self.decision), evaluation, given.join(self.outcome))


@dataclass(slots=True)
class FragmentCache:
    """Fragments by everything they are made of; bounded, holds no content. May be asked from several threads."""

    detector: tuple[str, str]  # id, version
    max_entries: int = 100_000
    entries: dict[tuple[Any, ...], Fragments] = field(default_factory=dict, repr=False)
    templates: dict[tuple[Any, ...], _Template] = field(default_factory=dict, repr=False)
    _last: dict[tuple[Any, ...], tuple[tuple[Any, ...], Scanned, Decision, Fragments]] = field(
        default_factory=dict, repr=False
    )

    def of(self, item: ContextObject, digest_key: bytes) -> Fragments:
        """The fragments of an object under a project's digest key.

        Nearly all objects of a turn are as they were in the turn before, to the very objects that say so.
        """
        scanned, block, decision = item.scanned, item.block, item.decision
        name = (digest_key, item.digest, item.place)
        also = (item.size, block.kind, block.channel, item.rewritable, item.classification)
        last = self._last.get(name)
        if last is not None and last[1] is scanned and last[0] == also and last[2] == decision:
            return last[3]
        found = self._found(item, digest_key)
        if len(self._last) >= self.max_entries:
            self._last.clear()
        self._last[name] = also, scanned, decision, found
        return found

    def forget(self) -> None:
        """Make every fragment anew."""
        self.entries.clear()
        self._last.clear()

    def _found(self, item: ContextObject, digest_key: bytes) -> Fragments:
        scanned, block = item.scanned, item.block
        shape = (
            block.kind,
            block.channel,
            item.decision,
            scanned.coverage,
            scanned.coverage_reason,
            item.sensitive,
            scanned.provenance,
            item.rewritable,
            item.classification,
        )
        key = (digest_key, item.digest, item.size, item.place, scanned.findings, shape)
        found = self.entries.get(key)
        if found is None:
            if len(self.entries) >= self.max_entries:
                self.entries.clear()  # no order is kept: that of an OrderedDict is not safe where keys compare slowly
            found = self.entries[key] = self._make(item, object_digest(item, digest_key), shape)
        return found

    def _make(self, item: ContextObject, name: str, shape: tuple[Any, ...]) -> Fragments:
        if item.scanned.findings or item.scanned.coverage not in UNCOUNTED:
            return _fragments(item, name, item.pointer, item.size, self.detector)
        template = self.templates.get(shape)
        if template is None:
            if len(self.templates) > _MAX_TEMPLATES:
                self.templates.clear()
            template = self.templates[shape] = _Template.of(
                _fragments(item, _DIGEST, _POINTER, _SIZE, self.detector)
            )
        return template.fill(name, item.pointer, item.size)


def object_digest(item: ContextObject, digest_key: bytes) -> str:
    """Plain SHA-256 of the canonical object; keyed where a plain one could be guessed (contract.md §13 row 2)."""
    if not item.sensitive:
        return f"sha256:{item.digest.hex()}"
    return f"sha256:{hmac.digest(digest_key, b'object' + item.digest, 'sha256').hex()}"


def _fragments(
    item: ContextObject, name: str, pointer: str, size: int, detector: tuple[str, str]
) -> Fragments:
    decision, scanned = item.decision, item.scanned
    codes = decision.reason_codes[:MAX_REASON_CODES]
    facts = item.facts(rewritable=item.rewritable)
    return Fragments(
        decision_fragment(
            name, decision.disposition, codes, _signals(item, detector), decision.transformations
        ),
        object_fragment(
            pointer=pointer,
            kind=str(item.block.kind),
            channel=str(item.block.channel),
            digest=name,
            keyed=item.sensitive,
            bytes=size,
            disposition=decision.disposition,
            reason_codes=codes,
            findings=[finding_row(f) for f in facts.findings],
            coverage=scanned.coverage,
            coverage_reason=scanned.coverage_reason or None,
            provenance=scanned.provenance or None,
            classification=facts.classification or None,
            rewritable=item.rewritable,
            rules=decision.rules,
        ),
        outcome_fragment(name, ContextDecisionOutcomeV1.from_disposition(decision.disposition), codes),
    )


def finding_row(facts: FindingFacts) -> dict[str, Any]:
    """Findings of one type and place as a record shows them."""
    return {
        "type": facts.type,
        "category": facts.category,
        "severity": facts.severity,
        "confidence_milli": facts.confidence_milli,
        "count": facts.count,
        "role": facts.role,
    }


def _signals(item: ContextObject, detector: tuple[str, str]) -> list[DetectorSignalV1]:
    groups: dict[str, list[LeafFinding]] = {}
    for finding in item.scanned.findings:
        groups.setdefault(str(finding.category), []).append(finding)
    if not groups and item.scanned.coverage not in UNCOUNTED:
        groups["classification"] = []  # nothing was seen, and not all of it was looked at
    return [_signal(category, group, item, detector) for category, group in sorted(groups.items())]


def _signal(
    category: str, group: Sequence[LeafFinding], item: ContextObject, detector: tuple[str, str]
) -> DetectorSignalV1:
    coverage = _coverage(item.scanned, item.size)
    failed = coverage["kind"] == "failed"
    return DetectorSignalV1.from_value(
        {
            "detector": {"id": detector[0], "version": detector[1]},
            "category": category,
            "severity": str(max((f.severity for f in group), key=lambda s: s.rank)) if group else "info",
            "confidence_milli": max((f.confidence_milli for f in group), default=None),
            "calibrated": False,
            "evidence_count": len(group),
            "coverage": coverage,
            "status": "failed" if failed else "completed",
            "latency_us": 0,  # not measured an object: the fragment must be the same on every turn
        }
    )


def _coverage(scanned: Scanned, size: int) -> dict[str, Any]:
    kind = scanned.coverage
    seen = size if kind == "complete" else max(size - scanned.opaque_bytes, 0)
    if kind == "partial":
        seen = min(seen, max(size - 1, 0))
    return {
        "kind": kind,
        "bytes_total": size,
        "bytes_inspected": seen,
        "chunks_total": 1,
        "chunks_inspected": int(kind in ("complete", "partial")),
        "reason": scanned.coverage_reason or None,
    }


def source_candidates(rulings: Sequence[Ruling]) -> list[dict[str, Any]]:
    """Sources of other projects as candidates of the lineage (contract.md §5), one a file or a project's traffic.

    The right to see them was checked for this request, so the check is `rechecked`; where it was refused the source is
    `revoked`, which keeps the lineage from claiming a clean delivery, and `valid` else: what was recognised is the
    content itself. Sources that are only named (a path, a remote) are no candidates.
    """
    found: dict[str, dict[str, Any]] = {}
    for ruling in rulings:
        if not ruling.reach.facts:
            continue
        validity = SourceValidityV1.VALID if ruling.allowed else SourceValidityV1.REVOKED
        recalled = ruling.reach.event == CrossProjectEventTypeV1.RECALL
        names = [f"project:{ruling.owner_hash}/{source}" for source in ruling.reach.sources]
        for name in names or [f"project:{ruling.owner_hash}"]:
            kind = SourceKindV1.FILE if names else SourceKindV1.MEMORY if recalled else SourceKindV1.OTHER
            if name not in found or not ruling.allowed:
                found[name] = {
                    "source": {"kind": str(kind), "id": name},
                    "acl_check": str(AclCheckV1.RECHECKED),
                    "validity": str(validity),
                }
    # A refusal is worth more than what was rightly seen, where there are more than a lineage holds.
    return sorted(found.values(), key=lambda c: (c["validity"] == "valid", c["source"]["id"]))[
        :MAX_CANDIDATES
    ]


def record(kind: str, parts: tuple[bytes, ...]) -> Record:
    """A record of joined parts with its canonical digest."""
    return Record(kind, digest(b"".join(parts)), parts)


def receipt_head(
    items: Sequence[ContextObject], outcome: str, final_context: str | None, rest: Mapping[str, Any]
) -> dict[str, Any]:
    """All members of a ContextDecisionReceiptV1 but its decisions (contract.md §4)."""
    counts = Counter(item.decision.disposition for item in items)
    delivering = sum(count for disposition, count in counts.items() if disposition.delivers_content)
    denied = counts[_D.DENY]
    head: dict[str, Any] = {
        "schema_version": 1,
        "sources": {
            "inspected": len(items),
            "permitted": delivering,
            "selected": delivering,
            "blocked": denied,
        },
        "security": {
            "redactions": sum(
                len(item.edits) for item in items if item.edits and item.decision.disposition.delivers_content
            )
            if outcome == "delivered"
            else 0,
            "blocked_objects": denied,
            "quarantined_objects": counts[_D.QUARANTINE],
            "injection_signals": sum(
                f.category == "prompt_injection" for item in items for f in item.scanned.findings
            ),
            "incomplete_coverage": sum(item.scanned.coverage not in UNCOUNTED for item in items),
        },
        "outcome": outcome,
        **rest,
    }
    if final_context is not None:
        head["final_context"] = final_context
    return head


def receipt_outcome(items: Sequence[ContextObject], *, delivered: bool) -> str:
    """delivered, or failed where some objects could have gone, or withheld where none could (contract.md §13 row 6)."""
    if delivered:
        return "delivered"
    return "failed" if any(item.decision.disposition.delivers_content for item in items) else "withheld"
