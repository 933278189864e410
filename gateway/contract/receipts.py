"""The receipt of one governed delivery (contract §4): written before anything leaves, never rewritten.

Version 1 only. Version 2 exists elsewhere and is refused as `unsupported_schema_version`; its
`object_digest` is not ours to write, and is refused when present (contract §4.5).
"""

from __future__ import annotations

from enum import StrEnum
from typing import Self, override

from pydantic import Field, model_validator

from gateway.contract.decisions import ContextDecisionV1
from gateway.contract.dispositions import ContextDispositionV1
from gateway.contract.parties import DestinationV1, PolicyRefV1, PrincipalV1
from gateway.contract.passports import GatewayModeV1
from gateway.contract.quality import ContextQualitySectionV1
from gateway.contract.record import Record, Wire, listed, optional
from gateway.contract.refusals import refuse
from gateway.contract.scalars import U32, U64, ProtocolReference, SchemaVersion1, Sha256Digest, TaskId

MAX_DECISIONS = 4096


class DeliveryOutcomeV1(StrEnum):
    """What became of a request: delivered, withheld (nothing permitted), failed (some was, none went out)."""

    DELIVERED = "delivered"
    WITHHELD = "withheld"
    FAILED = "failed"


class SourceCountsV1(Record):
    """How many objects were looked at, might go, were chosen, were blocked."""

    inspected: U32
    permitted: U32
    selected: U32
    blocked: U32

    @model_validator(mode="after")
    def _within_inspected(self) -> Self:
        if self.selected > self.permitted or self.permitted + self.blocked > self.inspected:
            raise refuse("source_counts")
        return self


class SecurityCountsV1(Record):
    """What security did. Blocked and quarantined objects are those itemised in the receipt's decisions."""

    redactions: U32
    blocked_objects: U32
    quarantined_objects: U32
    injection_signals: U32
    incomplete_coverage: U32


class TokenAccountV1(Record):
    """Tokens before and after, as estimates; more may be delivered than there was."""

    original: U64
    delivered: U64


class ReceiptHead(Record):
    """A receipt without its decisions: what is new in every request, while most decisions are not."""

    schema_version: SchemaVersion1
    object_digest: None = Field(default=None, exclude=True)
    receipt_id: ProtocolReference
    mode: Wire[GatewayModeV1]
    principal: PrincipalV1
    task: TaskId | None = optional()
    destination: DestinationV1
    policy: PolicyRefV1 | None = optional()
    sources: SourceCountsV1
    security: SecurityCountsV1
    tokens: TokenAccountV1
    final_context: Sha256Digest | None = optional()
    outcome: Wire[DeliveryOutcomeV1]
    duration_us: U64
    quality: ContextQualitySectionV1 | None = optional()

    @model_validator(mode="after")
    def _consistent(self) -> Self:
        self._final_context_iff_delivered()
        return self

    def _final_context_iff_delivered(self) -> None:
        if (self.outcome is DeliveryOutcomeV1.DELIVERED) != (self.final_context is not None):
            raise refuse("final_context")


class ContextDecisionReceiptV1(ReceiptHead):
    """One governed delivery: who, where to, under which policy, what was decided, and what goes out.

    Not checked, on purpose (contract §4.2): decisions against `inspected`, redactions against decisions,
    uniqueness of objects, the outcome against dispositions, the order of the token counts.
    """

    decisions: tuple[ContextDecisionV1, ...] = listed(MAX_DECISIONS)

    @model_validator(mode="after")
    @override
    def _consistent(self) -> Self:
        if (
            self.count(ContextDispositionV1.DENY) != self.security.blocked_objects
            or self.count(ContextDispositionV1.QUARANTINE) != self.security.quarantined_objects
        ):
            raise refuse("security_counts")
        self._final_context_iff_delivered()
        return self

    def count(self, disposition: ContextDispositionV1) -> int:
        """How many itemised decisions have this disposition."""
        return sum(decision.disposition is disposition for decision in self.decisions)
