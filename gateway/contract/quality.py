"""The optional quality section of a receipt (contract §4.1): what survived a transformation, and who says so.

`overall` must follow from the counts, and the quality of the task itself is never claimed here.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Literal, Self

from pydantic import model_validator

from gateway.contract.record import Record, Wire, optional, required_list
from gateway.contract.refusals import refuse
from gateway.contract.scalars import U64


class EvidenceTierV1(StrEnum):
    """What kind of evidence a quality statement rests on, weakest first."""

    MECHANISM = "mechanism"
    DETERMINISTIC_QUALITY = "deterministic_quality"
    RECORDED_REGRESSION = "recorded_regression"
    LIVE_TASK_EVALUATION = "live_task_evaluation"
    PRODUCTION_OUTCOME = "production_outcome"


class CriticalKindV1(StrEnum):
    """Kinds of detail that must not get lost, in the order in which lists of them are sorted."""

    ERROR_CODE = "error_code"
    TEST_RESULT = "test_result"
    STATUS = "status"
    LOCATION = "location"
    PATH = "path"
    HASH = "hash"
    URL = "url"


class QualityStateV1(StrEnum):
    """A verdict, or that nothing was measured."""

    PASS = "pass"  # noqa: S105  # a verdict
    FAIL = "fail"
    UNMEASURED = "unmeasured"


class RetentionCountsV1(Record):
    """How many details of one weight were kept, can be had back, or are gone."""

    retained: U64
    recoverable: U64
    lost: U64

    @property
    def counted(self) -> int:
        """How many details there were at all."""
        return self.retained + self.recoverable + self.lost


class ContextRetentionV1(Record):
    """What a transformation kept."""

    critical: RetentionCountsV1
    important: RetentionCountsV1
    lost_critical_kinds: tuple[Wire[CriticalKindV1], ...] = required_list()
    critical_unchecked: bool
    truncated: bool
    secret_lines_withheld: U64

    @model_validator(mode="after")
    def _kinds_sorted(self) -> Self:
        order = list(CriticalKindV1)
        if list(self.lost_critical_kinds) != sorted(set(self.lost_critical_kinds), key=order.index):
            raise refuse("unsorted")
        return self


class ContextRecoveryV1(Record):
    """Handles by which withheld detail can be had back, and whether they work."""

    handles_emitted: U64
    handles_verified: U64
    failures: U64
    critical_failures: U64

    @model_validator(mode="after")
    def _within_what_was_emitted(self) -> Self:
        if (
            self.handles_verified + self.failures > self.handles_emitted
            or self.critical_failures > self.failures
        ):
            raise refuse("quality_claim")
        return self


class ContextQualitySectionV1(Record):
    """What is claimed of a delivery's quality, with the tier of its evidence."""

    evidence_tier: Wire[EvidenceTierV1]
    retention: ContextRetentionV1
    recovery: ContextRecoveryV1 | None = optional()
    task_quality: Literal["unmeasured"]
    overall: Wire[QualityStateV1]

    @model_validator(mode="after")
    def _overall_follows(self) -> Self:
        if self.overall is not self._derived():
            raise refuse("quality_claim")
        return self

    def _derived(self) -> QualityStateV1:
        kept = self.retention
        failed_recovery = self.recovery is not None and self.recovery.failures > 0
        if kept.critical_unchecked or kept.critical.lost or kept.lost_critical_kinds or failed_recovery:
            return QualityStateV1.FAIL
        if kept.critical.counted or kept.important.counted or self.recovery is not None:
            return QualityStateV1.PASS
        return QualityStateV1.UNMEASURED
