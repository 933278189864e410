"""EvaluationRecordV1: what the closed receipt cannot hold, ours to version.

One stands beside each receipt, made at admission. It holds the facts that rules read (kinds, channels,
sizes, counts, never content), so that another policy can be replayed over it, and it accounts for every
byte of the body. Digests of objects with a finding, or shorter than 64 bytes, are keyed; `keyed` says so
and `digest_key` names the key.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Self

from pydantic import Field, model_validator

from gateway.contract.decisions import (
    MAX_REASON_CODES,
    CoverageKindV1,
    DetectorCategoryV1,
    DetectorSeverityV1,
)
from gateway.contract.dispositions import ContextDispositionV1
from gateway.contract.egress import EgressTransportV1
from gateway.contract.lineage import IntegrationRouteV1
from gateway.contract.parties import DestinationLocalityV1, PolicyRefV1, PrincipalV1
from gateway.contract.passports import GatewayModeV1
from gateway.contract.receipts import MAX_DECISIONS
from gateway.contract.record import Record, Wire, kept_list, listed, optional
from gateway.contract.refusals import refuse
from gateway.contract.scalars import (
    U32,
    U64,
    Instant,
    Milli,
    Name,
    PlacePointer,
    ProjectName,
    ProtocolReference,
    ReasonCodeV1,
    SchemaVersion1,
    Sha256Digest,
)

# More than there are finding types: text that holds one of each must still get its record.
MAX_FINDINGS = 4096


class EffectV1(StrEnum):
    """What became of a request, in the words of listings."""

    FORWARDED = "forwarded"
    REWRITTEN = "rewritten"
    REFUSED = "refused"
    HELD = "held"


class EnforcementV1(StrEnum):
    """Whether the policy's verdict was applied, or only noted."""

    ENFORCE = "enforce"
    SHADOW = "shadow"


class EvidenceLevelV1(StrEnum):
    """How surely the bytes left, strongest first; `not_attempted` while a record is made at admission."""

    ANSWERED = "answered"
    ACKNOWLEDGED = "acknowledged"
    HANDED_OVER = "handed_over"
    MAYBE = "maybe"
    NOT_SENT = "not_sent"
    NOT_ATTEMPTED = "not_attempted"


class DialectRefV1(Record):
    """The wire dialect that read the body, with the revision of our reader."""

    id: ProtocolReference
    version: ProtocolReference


class EvaluationCoverageV1(Record):
    """Every byte of the body: inspected, opaque (the objects say why) or refused.

    Of the body without its content coding, where it could be undone; else as it was received, and then all is refused.
    """

    bytes_total: U64
    bytes_inspected: U64
    bytes_opaque: U64
    bytes_refused: U64

    @model_validator(mode="after")
    def _every_byte_once(self) -> Self:
        if self.bytes_inspected + self.bytes_opaque + self.bytes_refused != self.bytes_total:
            raise refuse("coverage_sum")
        return self


class EvaluationFindingV1(Record):
    """Findings of one type in one object: how many, how sure, never where or what."""

    type: Name
    category: Wire[DetectorCategoryV1]
    severity: Wire[DetectorSeverityV1]
    confidence_milli: Milli
    count: U32
    role: Name = Field(default="text", exclude_if=lambda role: role == "text")


class EvaluationObjectV1(Record):
    """The facts and the decision of one object, enough to decide again without its content."""

    pointer: PlacePointer
    kind: Name
    channel: Name
    digest: Sha256Digest
    keyed: bool
    bytes: U64
    disposition: Wire[ContextDispositionV1]
    reason_codes: tuple[ReasonCodeV1, ...] = kept_list(MAX_REASON_CODES)
    findings: tuple[EvaluationFindingV1, ...] = kept_list(MAX_FINDINGS)
    coverage: Wire[CoverageKindV1]
    rules: tuple[ProtocolReference, ...] = kept_list(256)
    coverage_reason: ReasonCodeV1 | None = optional()
    classification: Name | None = optional()
    provenance: Name | None = optional()
    rewritable: bool = Field(default=True, exclude_if=lambda rewritable: rewritable is True)

    @model_validator(mode="after")
    def _says_why(self) -> Self:
        if self.disposition is not ContextDispositionV1.ALLOW and not self.reason_codes:
            raise refuse("reason_required")
        return self


class EvaluationResponseV1(Record):
    """What happened on the way back.

    `usage` is the provider's own count of tokens, null without one; `findings` are those in what the model said.
    """

    complete: bool
    placeholders_restored: U32
    restore_withheld: U32
    usage: dict[Name, U64] | None
    findings: tuple[EvaluationFindingV1, ...] = listed(MAX_FINDINGS)
    reason_codes: tuple[ReasonCodeV1, ...] = kept_list(MAX_REASON_CODES)


class EvaluationHead(Record):
    """An evaluation record without its objects: what is new in every request."""

    schema_version: SchemaVersion1
    request_id: ProtocolReference
    time: Instant
    receipt: Sha256Digest
    project: ProjectName
    team: ProtocolReference | None = optional()
    principal: PrincipalV1
    roles: tuple[ProtocolReference, ...] = listed(256)
    effect: Wire[EffectV1]
    route: Wire[IntegrationRouteV1]
    transport: Wire[EgressTransportV1]
    provider: ProtocolReference
    model: ProtocolReference | None = optional()
    locality: Wire[DestinationLocalityV1]
    region: ProtocolReference | None = optional()
    organization_managed: bool = False
    dialect: DialectRefV1 | None = optional()
    mode: Wire[GatewayModeV1]
    bundles: tuple[PolicyRefV1, ...] = kept_list(64)
    enforcement: Wire[EnforcementV1]
    shadow_reason_codes: tuple[ReasonCodeV1, ...] = listed(MAX_REASON_CODES)
    detectors: tuple[ProtocolReference, ...] = kept_list(256)
    engine: ProtocolReference | None = optional()
    plugins: tuple[ProtocolReference, ...] = listed(256)
    exceptions_used: tuple[ProtocolReference, ...] = listed(256)
    evidence_level: Wire[EvidenceLevelV1]
    conversation: ProtocolReference | None = optional()
    digest_key: ProtocolReference | None = optional()
    coverage: EvaluationCoverageV1
    reason_codes: tuple[ReasonCodeV1, ...] = kept_list(MAX_REASON_CODES)
    response: EvaluationResponseV1 | None = optional()


class EvaluationRecordV1(EvaluationHead):
    """How one request was judged, object by object."""

    objects: tuple[EvaluationObjectV1, ...] = kept_list(MAX_DECISIONS)

    @model_validator(mode="after")
    def _names_its_key(self) -> Self:
        if self.digest_key is None and any(item.keyed for item in self.objects):
            raise refuse("missing_field")
        return self
