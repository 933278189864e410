"""Admission before the first byte, observation of every attempt, and a host's own egress (contract §7).

Records of one exact request: the admission binds its bytes, observations count its transport attempts from
1. The key of an observation is (`admission_receipt_digest`, `attempt`).
"""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated, Any, ClassVar, Self, override

from pydantic import AfterValidator, Field, WithJsonSchema, model_validator

from gateway.contract.parties import DestinationV1
from gateway.contract.passports import ClassificationV1
from gateway.contract.receipts import ContextDecisionReceiptV1, DeliveryOutcomeV1
from gateway.contract.record import Record, Wire, optional
from gateway.contract.refusals import contract_error, refuse
from gateway.contract.scalars import U64, SchemaVersion1, Sha256Digest

MAX_ATTEMPTS = 32
MAX_ENGINE_REQUEST_BYTES = 32 * 1024 * 1024


class EgressAdmissionStateV1(StrEnum):
    """Whether the exact request may leave."""

    PREPARED = "prepared"
    REFUSED = "refused"


class EgressTransportV1(StrEnum):
    """How a request was carried."""

    HTTP = "http"
    WEBSOCKET = "websocket"


class EgressObserverV1(StrEnum):
    """Who saw it: our own transport, or a calling host whose word nobody else vouches for."""

    ENGINE_OBSERVED = "engine_observed"
    HOST_REPORTED = "host_reported"


class EgressResultV1(StrEnum):
    """Whether a response head was seen. That is no proof that a model read the content."""

    RESPONSE_OBSERVED = "response_observed"
    NO_RESPONSE_OBSERVED = "no_response_observed"


class EgressFailureV1(StrEnum):
    """Why no response was seen."""

    TIMEOUT = "timeout"
    CONNECT = "connect"
    OTHER = "other"


class EngineEgressDispositionV1(StrEnum):
    """What the engine did with a host's request."""

    FORWARD = "forward"
    REWRITTEN = "rewritten"
    REFUSED = "refused"


class EgressAdmissionReceiptV1(Record):
    """One exact request, by the digest and size of the body bytes as they are written after encoding."""

    schema_version: SchemaVersion1
    decision_receipt: Sha256Digest
    request_digest: Sha256Digest
    request_bytes: U64
    destination: DestinationV1
    state: Wire[EgressAdmissionStateV1]

    def validate_for(self, receipt: ContextDecisionReceiptV1) -> None:
        """Hold the admission against its receipt; `receipt_mismatch` when they do not agree.

        A prepared admission needs a delivered receipt whose final context is this request.
        """
        prepared = self.state is EgressAdmissionStateV1.PREPARED
        delivered = receipt.outcome is DeliveryOutcomeV1.DELIVERED
        if (
            self.decision_receipt != receipt.canonical_digest()
            or self.destination != receipt.destination
            or prepared != delivered
            or (delivered and receipt.final_context != self.request_digest)
        ):
            raise contract_error("receipt_mismatch", type(self).__name__)


HttpStatus = Annotated[int, Field(ge=100, le=599)]


class _Attempt(Record):
    """What is said of one transport attempt, whoever says it."""

    schema_version: SchemaVersion1
    admission_receipt_digest: Sha256Digest
    attempt: Annotated[int, Field(ge=1, le=MAX_ATTEMPTS)]
    transport: Wire[EgressTransportV1]
    result: Wire[EgressResultV1]
    http_status: HttpStatus | None = optional()
    failure: Wire[EgressFailureV1] | None = optional()

    @model_validator(mode="after")
    def _result_agrees(self) -> Self:
        if self.result is EgressResultV1.RESPONSE_OBSERVED:
            statusless = self.http_status is None and self.transport is EgressTransportV1.HTTP
            contradictory = self.failure is not None or statusless
        else:
            contradictory = self.failure is None or self.http_status is not None
        if contradictory:
            raise refuse("observation_claim")
        return self


class EgressTransportObservationV1(_Attempt):
    """One transport attempt of an admitted request; append-only."""

    observer: Wire[EgressObserverV1]

    def validate_for(self, admission: EgressAdmissionReceiptV1) -> None:
        """`admission_mismatch` unless it names exactly this admission, and that one was prepared."""
        named = self.admission_receipt_digest == admission.canonical_digest()
        if not named or admission.state is not EgressAdmissionStateV1.PREPARED:
            raise contract_error("admission_mismatch", type(self).__name__)


class EngineEgressHostReportRequestV1(_Attempt):
    """A host's report about a request that the engine had prepared for it."""

    def observation(self) -> EgressTransportObservationV1:
        """The observation that this report makes: on the host's word."""
        return EgressTransportObservationV1(observer=EgressObserverV1.HOST_REPORTED, **dict(self))


def _bounded(limit: int) -> Any:
    def check(value: str) -> str:
        if not value.strip() or len(value.encode()) > limit:
            raise refuse("bad_reference")
        return value

    return AfterValidator(check)


class EngineEgressRequestV1(Record):
    """A host asks the engine to admit a provider's request body; the whole document is at most 32 MiB."""

    carries_foreign_json: ClassVar[bool] = True

    schema_version: SchemaVersion1
    provider: Annotated[
        str, _bounded(64), WithJsonSchema({"type": "string", "minLength": 1, "maxLength": 64})
    ]
    upstream_base: Annotated[
        str, _bounded(2048), WithJsonSchema({"type": "string", "minLength": 1, "maxLength": 2048})
    ]
    body: dict[str, Any]

    @classmethod
    @override
    def from_json(cls, data: bytes | str) -> Self:
        """As every record's, within the bound on the document."""
        size = len(data.encode("utf-8", "surrogatepass")) if isinstance(data, str) else len(data)
        if size > MAX_ENGINE_REQUEST_BYTES:
            raise contract_error("bounds_exceeded", cls.__name__)
        return super().from_json(data)


class EngineEgressResponseV1(Record):
    """The engine's answer: a body to send, or a refusal that names reason codes only.

    An absent classification means that nothing was inspected: unclassified, never public.
    """

    carries_foreign_json: ClassVar[bool] = True

    schema_version: SchemaVersion1
    disposition: Wire[EngineEgressDispositionV1]
    body: dict[str, Any] | None = optional()
    refusal: str | None = optional()
    classification: Wire[ClassificationV1] | None = optional()
    receipt: ContextDecisionReceiptV1 | None = optional()

    @model_validator(mode="after")
    def _body_xor_refusal(self) -> Self:
        refused = self.disposition is EngineEgressDispositionV1.REFUSED
        if refused != (self.body is None) or refused != (self.refusal is not None):
            raise refuse("egress_body")
        return self
