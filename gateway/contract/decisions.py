"""One object, one decision, and the detector signals behind it (contract §3).

Nothing here holds content: a signal counts hits, an object is named by its digest.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Self

from pydantic import model_validator

from gateway.contract.dispositions import ContextDispositionV1, TransformationKindV1
from gateway.contract.record import Record, Wire, listed, optional
from gateway.contract.refusals import refuse
from gateway.contract.scalars import (
    U32,
    U64,
    Milli,
    ProtocolReference,
    ReasonCodeV1,
    SemanticVersion,
    Sha256Digest,
)

MAX_REASON_CODES = 32
MAX_SIGNALS = 256


class DetectorCategoryV1(StrEnum):
    """What a detector looks for."""

    SECRET = "secret"  # noqa: S105  # the name of a category
    PII = "pii"
    PROMPT_INJECTION = "prompt_injection"
    CLASSIFICATION = "classification"
    POLICY = "policy"
    CUSTOM = "custom"


class DetectorSeverityV1(StrEnum):
    """How much a signal matters, least first."""

    INFO = "info"
    LOW = "low"
    MEDIUM = "medium"
    HIGH = "high"
    CRITICAL = "critical"


class DetectorStatusV1(StrEnum):
    """How a detector's run ended."""

    COMPLETED = "completed"
    FAILED = "failed"
    TIMED_OUT = "timed_out"
    SKIPPED = "skipped"


class CoverageKindV1(StrEnum):
    """How much of an object was looked at."""

    COMPLETE = "complete"
    PARTIAL = "partial"
    UNSUPPORTED = "unsupported"
    FAILED = "failed"
    NOT_REQUIRED = "not_required"


class DetectorRefV1(Record):
    """The detector that spoke, with its version."""

    id: ProtocolReference
    version: SemanticVersion


class DetectorCoverageV1(Record):
    """How many bytes and chunks of an object a detector read (contract §3.2).

    Complete means every byte, partial means fewer: an empty object can be complete, never partial. Chunks
    are only bounded, not compared.
    """

    kind: Wire[CoverageKindV1]
    bytes_total: U64
    bytes_inspected: U64
    chunks_total: U32
    chunks_inspected: U32
    reason: ReasonCodeV1 | None = optional()

    @model_validator(mode="after")
    def _within_the_object(self) -> Self:
        fewer = self.bytes_inspected < self.bytes_total
        if self.bytes_inspected > self.bytes_total or self.chunks_inspected > self.chunks_total:
            raise refuse("coverage_claim")
        if (self.kind is CoverageKindV1.COMPLETE and fewer) or (
            self.kind is CoverageKindV1.PARTIAL and not fewer
        ):
            raise refuse("coverage_claim")
        return self


class DetectorSignalV1(Record):
    """What one detector says of one object: counts and confidence, never hits (contract §3.1)."""

    detector: DetectorRefV1
    category: Wire[DetectorCategoryV1]
    severity: Wire[DetectorSeverityV1]
    confidence_milli: Milli | None = optional()
    calibrated: bool = False
    evidence_count: U32
    coverage: DetectorCoverageV1
    status: Wire[DetectorStatusV1]
    latency_us: U64

    @model_validator(mode="after")
    def _claims_no_unfinished_work(self) -> Self:
        unfinished = self.status in {DetectorStatusV1.FAILED, DetectorStatusV1.TIMED_OUT}
        if unfinished and self.coverage.kind is CoverageKindV1.COMPLETE:
            raise refuse("coverage_claim")
        return self

    @property
    def satisfies_requirement(self) -> bool:
        """Whether a mandatory detector has done its work: completed, over the complete object."""
        return self.status is DetectorStatusV1.COMPLETED and self.coverage.kind is CoverageKindV1.COMPLETE


class ContextDecisionV1(Record):
    """What was decided about one object, named by the digest of its original content (contract §3).

    Anything but a plain `allow` says why; an `allow` may (flagged, not fully inspected).
    """

    object: Sha256Digest
    disposition: Wire[ContextDispositionV1]
    reason_codes: tuple[ReasonCodeV1, ...] = listed(MAX_REASON_CODES)
    signals: tuple[DetectorSignalV1, ...] = listed(MAX_SIGNALS)
    required_transformations: tuple[Wire[TransformationKindV1], ...] = listed()

    @model_validator(mode="after")
    def _says_why(self) -> Self:
        if self.disposition is not ContextDispositionV1.ALLOW and not self.reason_codes:
            raise refuse("reason_required")
        return self
