"""What may happen to one object, and how it shows to the outside (contract §2, §3).

Eight dispositions in order of restriction; combining rules keeps the strictest. Four outcomes that lineages
show.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from typing import Self


class ContextDispositionV1(StrEnum):
    """A decision about one object, from least to most restrictive."""

    ALLOW = "allow"
    ALLOW_MINIMIZED = "allow_minimized"
    ALLOW_REDACTED = "allow_redacted"
    ALLOW_SUMMARY_ONLY = "allow_summary_only"
    ALLOW_LOCAL_MODEL_ONLY = "allow_local_model_only"
    ALLOW_WITH_APPROVAL = "allow_with_approval"
    QUARANTINE = "quarantine"
    DENY = "deny"

    @property
    def order(self) -> int:
        """0 for `allow` to 7 for `deny`."""
        return _ORDER[self]

    @property
    def delivers_content(self) -> bool:
        """Whether the object, in some form, goes out now. What waits for approval does not."""
        return _ORDER[self] <= _ORDER[ContextDispositionV1.ALLOW_LOCAL_MODEL_ONLY]

    @classmethod
    def combine(cls, *dispositions: ContextDispositionV1) -> ContextDispositionV1:
        """The strictest of all; `allow`, the neutral one, of none."""
        return max(dispositions, key=_ORDER.__getitem__, default=cls.ALLOW)


_ORDER: Mapping[ContextDispositionV1, int] = {d: i for i, d in enumerate(ContextDispositionV1)}


class ContextDecisionOutcomeV1(StrEnum):
    """What a lineage shows of a decision.

    `allow` also stands for local-only: enforcement must use the disposition.
    """

    ALLOW = "allow"
    REDACT = "redact"
    TRANSFORM = "transform"
    DENY = "deny"

    @property
    def delivers_content(self) -> bool:
        """False for `deny` alone; agrees with the disposition it came from."""
        return self is not ContextDecisionOutcomeV1.DENY

    @classmethod
    def from_disposition(cls, disposition: ContextDispositionV1) -> Self:
        """The one outcome of a disposition (contract §2)."""
        return cls(_OUTCOME[disposition])


_OUTCOME: Mapping[ContextDispositionV1, str] = {
    ContextDispositionV1.ALLOW: "allow",
    ContextDispositionV1.ALLOW_MINIMIZED: "transform",
    ContextDispositionV1.ALLOW_REDACTED: "redact",
    ContextDispositionV1.ALLOW_SUMMARY_ONLY: "transform",
    ContextDispositionV1.ALLOW_LOCAL_MODEL_ONLY: "allow",
    ContextDispositionV1.ALLOW_WITH_APPROVAL: "deny",
    ContextDispositionV1.QUARANTINE: "deny",
    ContextDispositionV1.DENY: "deny",
}


class TransformationKindV1(StrEnum):
    """What was or must be done to an object."""

    REDACTION = "redaction"
    CLASSIFICATION = "classification"
    SELECTION = "selection"
    DEDUPLICATION = "deduplication"
    STRUCTURAL_EXTRACTION = "structural_extraction"
    COMPRESSION = "compression"
    SUMMARIZATION = "summarization"
    RECOVERY = "recovery"
    RERANKING = "reranking"
