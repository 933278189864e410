"""The memory guard as a service: admission, guard, boundary, queue, in this order (contract.md §13 row 21).

What a project's memory is to hold never passes unscanned: secrets and personal data are taken out first, and the text
that is judged, returned and queued is the one after that.
"""

from __future__ import annotations

import hmac
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from gateway.app.ownership import Fingerprints
from gateway.classify.objects import ContextObject
from gateway.classify.remembering import put_aside
from gateway.config import DEFAULT_PROJECT, Config
from gateway.context.findings import Category, Finding, ScanItem
from gateway.contract import CrossProjectEventTypeV1
from gateway.memory import GuardRules, MemoryGuardResult, guard
from gateway.ports import CONTENT_EVIDENCE, Detector, Peer, Reach
from gateway.store.keys import Keyring
from gateway.store.queues import QUEUES, MemoryQueues

_TAKEN_OUT = frozenset({Category.SECRET, Category.PII, Category.CUSTOM})


@dataclass(slots=True)
class MemoryDesk:
    """Judges memory records. `audit` keeps cross-project events; `digest_key` keys the digest of what came in."""

    detector: Detector
    ownership: Fingerprints
    queues: MemoryQueues
    audit: Callable[[Sequence[bytes]], None]
    digest_key: bytes = field(repr=False)
    rules: GuardRules = field(default_factory=GuardRules)

    def put_aside(self, peer: Peer, objects: Sequence[ContextObject]) -> None:
        """Queue the writes of a request that the guard did not accept; its evidence tells what was reached for."""
        for write in put_aside(objects, peer.project):
            self.judge(
                {
                    "raw_content": write.text,
                    "candidate_project_id": peer.project,
                    "memory_type": write.memory_type,
                    "source": write.source,
                    "timestamp": self.ownership.now(),
                    "confidence": write.confidence,
                }
            )

    def __call__(self, record: object) -> dict[str, Any]:
        """`judge` for whoever asks, with an event for every other project whose text the record holds."""
        return self.judge(record, tell=True)

    def judge(self, record: object, *, tell: bool = False) -> dict[str, Any]:
        """The guard's answer (contract.md §11.2); what is rerouted to a queue is in it when this returns.

        `normalized_record` has members of its own besides: `raw_digest`, the keyed digest of the text as it came in;
        `redactions`, how many values were taken out of it; `queue_id` where it was queued.
        """
        raw = record.get("raw_content") if isinstance(record, Mapping) else None
        redactions = 0
        if isinstance(record, Mapping) and isinstance(raw, str):
            admitted, redactions = self.admit(raw)
            record = {**record, "raw_content": admitted}
        recognised = self._recognised(record)
        result = guard(
            record,
            now=self.ownership.now(),
            known_projects=self.ownership.projects.keys() - {DEFAULT_PROJECT},
            rules=self.rules,
            recognised=recognised,
        )
        if tell:
            self._tell(record, recognised)
        if result.normalized_record is not None and isinstance(raw, str):
            data = raw.encode("utf-8", "surrogatepass")
            result.normalized_record["raw_digest"] = (
                f"sha256:{hmac.digest(self.digest_key, data, 'sha256').hex()}"
            )
            if redactions:
                result.normalized_record["redactions"] = redactions
            self._queue(result)
        return result.to_json()

    def admit(self, text: str) -> tuple[str, int]:
        """The text with what the detectors found taken out, and how many values that were."""
        (found,) = self.detector.scan([ScanItem(text, "", "user")])
        kept: list[Finding] = []
        for finding in sorted(found.findings, key=lambda f: (f.start, -f.end)):
            if finding.category in _TAKEN_OUT and (not kept or finding.start >= kept[-1].end):
                kept.append(finding)
        for finding in reversed(kept):
            text = f"{text[: finding.start]}[REDACTED:{finding.type}]{text[finding.end :]}"
        return text, len(kept)

    def _recognised(self, record: object) -> dict[str, int]:
        """Projects whose own text stands in a record, with the number of places."""
        raw = record.get("raw_content") if isinstance(record, Mapping) else None
        found: dict[str, int] = {}
        self.ownership.follow()
        for claim in self.ownership.claims_of(raw) if isinstance(raw, str) else ():
            if claim.evidence in CONTENT_EVIDENCE:
                found[claim.project] = found.get(claim.project, 0) + len(claim.spans)
        return found

    def _tell(self, record: object, recognised: Mapping[str, int]) -> None:
        """One event for each project whose text was to be taken into another's memory (contract.md §9.1)."""
        candidate = record.get("candidate_project_id") if isinstance(record, Mapping) else None
        if not isinstance(candidate, str):
            return
        peer = Peer(project=candidate.strip())
        reaches = [
            Reach(owner, CrossProjectEventTypeV1.IMPORT, count)
            for owner, count in sorted(recognised.items())
            if owner != peer.project
        ]
        rulings = self.ownership.rule(peer, reaches, self.ownership.now())
        if events := [ruling.audit for ruling in rulings if ruling.audit]:
            self.audit(events)

    def _queue(self, result: MemoryGuardResult) -> None:
        record = result.normalized_record
        if record is None or result.destination not in QUEUES:
            return
        candidate = record.get("candidate_project_id")
        known = isinstance(candidate, str) and candidate in self.ownership.projects
        project = str(candidate) if known else DEFAULT_PROJECT
        record["queue_id"] = self.queues.put(
            result.destination, project, record, at=self.ownership.now(), reason=result.reason
        )


def memory_queues(config: Config, keys: Keyring) -> MemoryQueues:
    """The queues of an installation."""
    return MemoryQueues(config.state.dir / "vault" / "memory", keys.vault_key)
