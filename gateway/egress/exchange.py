"""What is remembered of one admitted request until its lineage is written, and what its attempts prove."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from gateway.contract import ContextReceiptStateV1, DeliveryOutcomeV1, IntegrationRouteV1
from gateway.contract.canonical import canonical_json
from gateway.contract.fragments import join_lineage
from gateway.egress.records import record
from gateway.ports import Attempt, Ending, Record, RequestRow

_LEVELS = ("not_sent", "maybe", "handed_over", "acknowledged", "answered")


@dataclass(slots=True)
class Exchange:
    """One request after its evaluation. `request` is the wire form of its ContextRequestV1."""

    row: RequestRow
    request: Mapping[str, Any]
    outcome: str
    outcomes: tuple[bytes, ...] = field(repr=False)
    held_back: bool
    request_digest: str = ""
    attempts: list[Attempt] = field(default_factory=list)
    counted: list[str] = field(default_factory=list)

    def observe(self, attempt: Attempt) -> list[Record]:
        """What is recorded of an attempt: what was seen of it, and its observation (contract.md §7.3).

        Written bytes that were not the admitted ones are an alarm and make no observation.
        """
        self.attempts.append(attempt)
        seen = record("event", (canonical_json(_seen(self.row, attempt)),))
        if self._is_alarm(attempt):
            return [seen]
        answered = attempt.http_status is not None
        body: dict[str, Any] = {
            "schema_version": 1,
            "admission_receipt_digest": self.row.admission,
            "attempt": attempt.number,
            "transport": attempt.transport,
            "observer": "engine_observed",
            "result": "response_observed" if answered else "no_response_observed",
        }
        if answered:
            body["http_status"] = attempt.http_status
        else:
            body["failure"] = attempt.failure or "other"
        made = record("observation", (canonical_json(body),))
        if self._counts(attempt):
            self.counted.append(made.digest)
        return [made, seen]

    def unobserve(self) -> None:
        """The last attempt could not be stored: it must not be claimed (contract.md §10.2)."""
        last = self.attempts[-1]
        if self._counts(last) and self.counted:
            self.counted.pop()

    def _is_alarm(self, attempt: Attempt) -> bool:
        return attempt.body_complete and attempt.written_digest != self.request_digest

    def _counts(self, attempt: Attempt) -> bool:
        """contract.md §10.2: exact bytes, all of them, an answer, and the admitted peer."""
        exact = attempt.body_complete and attempt.written_digest == self.request_digest
        return exact and attempt.http_status is not None and attempt.peer_verified

    @property
    def handed_off(self) -> bool:
        """Whether the complete admitted body was written to the admitted destination."""
        written = (a.body_complete and a.written_digest == self.request_digest for a in self.attempts)
        return any(written)

    @property
    def level(self) -> str:
        """The strongest evidence of any attempt."""
        return max((a.level for a in self.attempts), key=_LEVELS.index, default="not_attempted")

    def lineage(self) -> tuple[Record, str]:
        """The lineage (contract.md §5) and its receipt state."""
        state = ContextReceiptStateV1.derive(
            DeliveryOutcomeV1(self.outcome),
            IntegrationRouteV1.PROXY,
            self.handed_off,
            len(self.counted),
            self.held_back,
        )
        head: dict[str, Any] = {
            "schema_version": 1,
            "request": dict(self.request),
            "decision_receipt": self.row.receipt,
            "receipt_state": str(state),
        }
        if self.row.admission:
            head["egress_admission"] = self.row.admission
        if self.counted:
            head["egress_observations"] = self.counted
        return record("lineage", join_lineage(head, self.outcomes)), str(state)

    def conclude(self, ending: Ending) -> tuple[list[Record], RequestRow]:
        """The lineage, what is told of the way back, and the row that names them."""
        made, state = self.lineage()
        response = {
            "event": "response",
            "request_id": self.row.request_id,
            "response": {
                "complete": ending.response_complete,
                "placeholders_restored": ending.placeholders_restored,
                "restore_withheld": ending.restore_withheld,
                "usage": dict(ending.usage) if ending.usage is not None else None,
            },
        }
        told = record("event", (canonical_json(response),))
        return [made, told], replace(self.row, lineage=made.digest, receipt_state=state)


def _seen(row: RequestRow, attempt: Attempt) -> dict[str, Any]:
    return {
        "event": "attempt",
        "request_id": row.request_id,
        "admission": row.admission,
        "attempt": attempt.number,
        "level": attempt.level,
        "written_digest": attempt.written_digest,
        "written_bytes": attempt.written_bytes,
        "body_complete": attempt.body_complete,
        "peer_verified": attempt.peer_verified,
        "via": attempt.via,
    }
