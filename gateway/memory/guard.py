"""Project Memory Guard: what may enter a project's memory, where it goes else, and why (contract.md §11).

Pure: the caller brings the time. The text is kept unchanged in `raw`; secrets must have been taken out of
it before (admission, then guard, then boundary: contract.md §13 row 21).
"""

from __future__ import annotations

import math
import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from enum import StrEnum
from typing import Any

GUARD_VERSION = "1.0"
THRESHOLD = 0.6
"""Confidence from which the assignment to a project is believed; the comparison is strict, 0.6 passes."""
SURE = 0.8
"""Confidence below which an accepted record still carries a low risk."""

INBOX = "inbox"
CLEANUP = "cleanup"

FIELDS = ("raw_content", "candidate_project_id", "memory_type", "source", "timestamp", "confidence")
"""Members of the input, all required; everything else is dropped."""

_REQUIRED = ("candidate_project_id", "memory_type", "timestamp")
_ISO = re.compile(
    r"\d{4}-?\d{2}-?\d{2}([T ]\d{2}(:?\d{2}(:?\d{2}([.,]\d{1,9})?)?)?(Z|[+\-]\d{2}(:?\d{2})?)?)?", re.ASCII
)


class GuardDecision(StrEnum):
    """What happens to a write."""

    ACCEPT = "accept"
    REJECT = "reject"
    REROUTE = "reroute"


class ContaminationRisk(StrEnum):
    """How likely the record would have been another project's, least first."""

    NONE = "none"
    LOW = "low"
    MEDIUM = "medium"
    HIGH = "high"


@dataclass(frozen=True, slots=True)
class MemoryGuardResult:
    """The guard's answer. `normalized_record` holds the content, so it stays out of the `repr`."""

    decision: GuardDecision
    destination: str | None
    normalized_record: dict[str, Any] | None = field(repr=False)
    contamination_risk: ContaminationRisk
    missing_fields: list[str] | None
    reason: str

    def to_json(self) -> dict[str, Any]:
        """The output schema of the contract (§11.2)."""
        return {
            "decision": str(self.decision),
            "destination": self.destination,
            "normalized_record": self.normalized_record,
            "contamination_risk": str(self.contamination_risk),
            "missing_fields": self.missing_fields,
            "reason": self.reason,
        }


@dataclass(frozen=True, slots=True)
class GuardRules:
    """What an installation may set.

    `memory_types` closes the list of types where it is given; `redirects` maps a moved project's id to its
    new one.
    """

    memory_types: Collection[str] | None = None
    redirects: Mapping[str, str] = field(default_factory=dict)


def guard(
    record: object,
    *,
    now: str | datetime,
    known_projects: Collection[str] = (),
    threshold: float = THRESHOLD,
    rules: GuardRules | None = None,
    recognised: Collection[str] = (),
) -> MemoryGuardResult:
    """Decide about one write; the first row of the table (contract.md §11.3) that holds decides.

    Args:
        record: the write, a mapping with the members of `FIELDS`; anything else is rejected.
        now: UTC time for `validated_at`.
        known_projects: other names under which content may speak of a project; naming one that is not the
            candidate makes the record ambiguous.
        threshold: confidence from which the assignment is believed, 0 to 1.
        rules: closed list of types and known redirects, where an installation has them.
        recognised: projects whose own text was recognised in the content, which is as good as naming them.
    """
    rules = rules or GuardRules()
    if not isinstance(record, Mapping):
        return _reject(ContaminationRisk.HIGH, FIELDS, "the record is not an object")
    missing = missing_fields(record)
    if any(name in missing for name in _REQUIRED):
        risk = ContaminationRisk.HIGH if "candidate_project_id" in missing else ContaminationRisk.MEDIUM
        return _reject(risk, missing, "a record without project, type or time never enters project memory")
    if "raw_content" in missing:
        return _reject(ContaminationRisk.LOW, missing, "there is no content to keep")
    write = _Write(record, now if isinstance(now, str) else _written(now), missing)
    if doubts := _doubts(record, missing, rules):
        return write.reroute(INBOX, ContaminationRisk.MEDIUM, "uncertain: " + ", ".join(doubts))
    candidate = record["candidate_project_id"].strip()
    others = {*ambiguous_with(record, known_projects), *recognised} - {candidate}
    return _by_confidence(write, sorted(others), threshold, rules)


def missing_fields(record: Mapping[str, Any]) -> tuple[str, ...]:
    """Members that are absent, null, of the wrong type or blank, in the order of `FIELDS`."""
    return tuple(
        name
        for name in FIELDS
        if not (
            _is_number(record.get(name))
            if name == "confidence"
            else isinstance(value := record.get(name), str) and value.strip()
        )
    )


def ambiguous_with(record: Mapping[str, Any], known_projects: Collection[str]) -> tuple[str, ...]:
    """Known projects that content or source name as whole words although they are not the candidate, sorted."""
    candidate = record["candidate_project_id"].strip()
    text = f"{record['raw_content']}\n{record.get('source') or ''}"
    others = {p.strip() for p in known_projects} - {candidate, ""}
    return tuple(sorted(p for p in others if _names(text, p, candidate)))


def _names(text: str, project: str, candidate: str) -> bool:
    """Whether the text names a project: `acme-web` does not name `acme`, nor does `acme/web`'s own name."""
    lowered, wanted = text.lower(), project.lower()
    if wanted in candidate.lower():
        lowered = lowered.replace(candidate.lower(), "\x00")
    return re.search(rf"(?<![\w\-]){re.escape(wanted)}(?![\w\-])", lowered) is not None


def _doubts(record: Mapping[str, Any], missing: Sequence[str], rules: GuardRules) -> list[str]:
    found = []
    if not _is_instant(record["timestamp"]):
        found.append("the timestamp is not ISO 8601")
    if rules.memory_types is not None and record["memory_type"].strip() not in rules.memory_types:
        found.append("the memory type is not known here")
    if "confidence" in missing:
        found.append("confidence is missing")
    elif not 0 <= record["confidence"] <= 1:
        found.append("confidence lies outside 0 to 1")
    if "source" in missing:
        found.append("the source is missing")
    return found


def _by_confidence(
    write: _Write, others: Sequence[str], threshold: float, rules: GuardRules
) -> MemoryGuardResult:
    confidence = float(write.record["confidence"])
    if confidence < threshold:
        risk = ContaminationRisk.HIGH if others else ContaminationRisk.MEDIUM
        return write.reroute(INBOX, risk, "the assignment to the project is not sure enough")
    if others:
        return write.reroute(CLEANUP, ContaminationRisk.HIGH, "the content speaks of another project as well")
    candidate = write.record["candidate_project_id"].strip()
    if moved := rules.redirects.get(candidate):
        return write.keep(GuardDecision.REROUTE, moved, ContaminationRisk.LOW, "the project has moved")
    risk = ContaminationRisk.LOW if confidence < SURE else ContaminationRisk.NONE
    return write.keep(GuardDecision.ACCEPT, candidate, risk, "all fields present and the assignment is sure")


@dataclass(frozen=True, slots=True)
class _Write:
    record: Mapping[str, Any] = field(repr=False)
    now: str
    missing: tuple[str, ...]

    def keep(
        self, decision: GuardDecision, project: str, risk: ContaminationRisk, reason: str
    ) -> MemoryGuardResult:
        """Into a project's memory."""
        normal = {"project_id": project, **self._normal()}
        return MemoryGuardResult(decision, project, normal, risk, list(self.missing) or None, reason)

    def reroute(self, queue: str, risk: ContaminationRisk, reason: str) -> MemoryGuardResult:
        """Into a queue for people: the project is not guessed, the candidate is kept beside it."""
        candidate = self.record["candidate_project_id"].strip()
        normal = {"project_id": None, "candidate_project_id": candidate, **self._normal()}
        return MemoryGuardResult(
            GuardDecision.REROUTE, queue, normal, risk, list(self.missing) or None, reason
        )

    def _normal(self) -> dict[str, Any]:
        absent = set(self.missing)
        kept = {
            name: None if name in absent else self.record[name]
            for name in ("memory_type", "source", "timestamp", "confidence")
        }
        return {
            **kept,
            "raw": self.record["raw_content"],
            "validated_at": self.now,
            "guard_version": GUARD_VERSION,
        }


def _reject(risk: ContaminationRisk, missing: Sequence[str], reason: str) -> MemoryGuardResult:
    return MemoryGuardResult(GuardDecision.REJECT, None, None, risk, list(missing) or None, reason)


def _written(now: datetime) -> str:
    return now.astimezone(UTC).isoformat().replace("+00:00", "Z")


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)


def _is_instant(text: str) -> bool:
    if not _ISO.fullmatch(text.strip()):
        return False
    try:
        datetime.fromisoformat(text.strip().replace(",", "."))
    except ValueError:
        return False
    return True
