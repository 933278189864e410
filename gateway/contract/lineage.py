"""The lineage of a delivery (contract §5, §6): how far it provably got, over records it names by digest.

A state never claims more than was observed. `for_receipt` derives everything that can be derived; a lineage
that is read must not claim more than its own parts allow.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from enum import StrEnum
from typing import Self

from pydantic import model_validator

from gateway.contract.decisions import MAX_REASON_CODES, ContextDecisionV1
from gateway.contract.dispositions import ContextDecisionOutcomeV1
from gateway.contract.parties import DestinationV1, PrincipalV1, SourceRefV1
from gateway.contract.receipts import MAX_DECISIONS, ContextDecisionReceiptV1, DeliveryOutcomeV1
from gateway.contract.record import Record, Wire, listed, optional
from gateway.contract.refusals import contract_error, refuse
from gateway.contract.scalars import (
    ProtocolReference,
    ReasonCodeV1,
    Revision,
    SchemaVersion1,
    Sha256Digest,
    TaskId,
)

MAX_SCOPE = 256
MAX_CANDIDATES = 256
MAX_OBSERVATIONS = 32


class IntegrationRouteV1(StrEnum):
    """The way by which context reaches a model."""

    MCP = "mcp"
    CLI = "cli"
    HOOK = "hook"
    PROXY = "proxy"
    TOOL_SESSION = "tool_session"
    ENGINE_INTERFACE = "engine_interface"
    HOST_EGRESS = "host_egress"
    SDK = "sdk"

    @property
    def observes_model_egress(self) -> bool:
        """Whether this route carries the model request itself; the others hand over context only."""
        return self in {IntegrationRouteV1.PROXY, IntegrationRouteV1.HOST_EGRESS}


class AclCheckV1(StrEnum):
    """Whether the right to read a source was checked again at decision time."""

    RECHECKED = "rechecked"
    UNSUPPORTED = "unsupported"


class SourceValidityV1(StrEnum):
    """What a re-check of a source said. Revoked is never reported as merely stale."""

    VALID = "valid"
    REVALIDATE_REQUIRED = "revalidate_required"
    STALE = "stale"
    REVOKED = "revoked"
    DELETED = "deleted"
    UNAVAILABLE = "unavailable"
    UNSUPPORTED = "unsupported"

    @property
    def permits_materialization(self) -> bool:
        """Whether content of the source may be used: only when it is valid."""
        return self is SourceValidityV1.VALID

    @property
    def reason_code(self) -> str:
        """The one stable code of this state."""
        return f"source.{self}"

    @classmethod
    def from_reason_code(cls, code: str) -> SourceValidityV1 | None:
        """The state a code stands for, codes of older families included; None for a code that is no state."""
        return _VALIDITY_OF_CODE.get(code)


_VALIDITY_OF_CODE: Mapping[str, SourceValidityV1] = {
    **{state.reason_code: state for state in SourceValidityV1},
    "store.source_changed": SourceValidityV1.STALE,
    "store.source_unavailable": SourceValidityV1.DELETED,  # of that family: gone, not out of reach
    "lineage.source_no_longer_admitted": SourceValidityV1.REVOKED,
    "store.no_source_authority": SourceValidityV1.UNSUPPORTED,
    "policy.changed": SourceValidityV1.REVALIDATE_REQUIRED,
}


class ContextReceiptStateV1(StrEnum):
    """How far a delivery provably got."""

    PREPARED = "prepared"
    HANDED_OFF = "handed_off"
    OBSERVED_MODEL_EGRESS = "observed_model_egress"
    REJECTED = "rejected"
    PARTIAL = "partial"

    @property
    def claims_clean_delivery(self) -> bool:
        """Whether the state says that everything which was asked for went on its way."""
        return self in {ContextReceiptStateV1.HANDED_OFF, ContextReceiptStateV1.OBSERVED_MODEL_EGRESS}

    @classmethod
    def derive(
        cls,
        outcome: DeliveryOutcomeV1,
        route: IntegrationRouteV1,
        handed_off: bool,
        observations: int,
        withheld_or_incomplete: bool,
    ) -> ContextReceiptStateV1:
        """The strongest state that these facts allow (contract §5.1).

        `observations` counts only those that show exactly the admitted bytes going out. That a mixed
        delivery which was neither handed off nor observed is `partial` is our reading of an open case.
        """
        if outcome is not DeliveryOutcomeV1.DELIVERED:
            return cls.REJECTED
        if withheld_or_incomplete:
            return cls.PARTIAL
        if route.observes_model_egress and observations >= 1:
            return cls.OBSERVED_MODEL_EGRESS
        return cls.HANDED_OFF if handed_off else cls.PREPARED


class ContextRequestV1(Record):
    """The request that a delivery answers; its principal is authenticated by the gateway, else unknown."""

    request_id: ProtocolReference
    principal: PrincipalV1
    purpose: TaskId | None = optional()
    source_scope: tuple[SourceRefV1, ...] = listed(MAX_SCOPE)
    route: Wire[IntegrationRouteV1]
    destination: DestinationV1


class SourceCandidateV1(Record):
    """A source that the gateway fetched or recognised, and what its re-check said."""

    source: SourceRefV1
    revision: Revision | None = optional()
    acl_check: Wire[AclCheckV1]
    validity: Wire[SourceValidityV1]

    @model_validator(mode="after")
    def _valid_only_when_checked(self) -> Self:
        if self.validity is SourceValidityV1.VALID and self.acl_check is AclCheckV1.UNSUPPORTED:
            raise refuse("unverifiable_valid_source")
        return self


class ObjectOutcomeV1(Record):
    """What became of one object, in the receipt's order."""

    object: Sha256Digest
    outcome: Wire[ContextDecisionOutcomeV1]
    reason_codes: tuple[ReasonCodeV1, ...] = listed(MAX_REASON_CODES)

    @model_validator(mode="after")
    def _says_why(self) -> Self:
        if self.outcome is not ContextDecisionOutcomeV1.ALLOW and not self.reason_codes:
            raise refuse("reason_required")
        return self

    @classmethod
    def from_decision(cls, decision: ContextDecisionV1) -> Self:
        """The outcome of a decision, its reasons copied."""
        return cls(
            object=decision.object,
            outcome=ContextDecisionOutcomeV1.from_disposition(decision.disposition),
            reason_codes=decision.reason_codes,
        )


class ContextDecisionLineageV1(Record):
    """One record over a receipt, its admission and its observations, which it references and never copies."""

    schema_version: SchemaVersion1
    request: ContextRequestV1
    candidates: tuple[SourceCandidateV1, ...] = listed(MAX_CANDIDATES)
    decision_receipt: Sha256Digest
    outcomes: tuple[ObjectOutcomeV1, ...] = listed(MAX_DECISIONS)
    receipt_state: Wire[ContextReceiptStateV1]
    egress_admission: Sha256Digest | None = optional()
    egress_observations: tuple[Sha256Digest, ...] = listed(MAX_OBSERVATIONS)
    execution_receipt: ProtocolReference | None = optional()

    @model_validator(mode="after")
    def _claims_no_more_than_it_shows(self) -> Self:
        code = self._overclaim()
        if code:
            raise refuse(code)
        return self

    def _overclaim(self) -> str:
        """The first of contract §5.3's refusals that applies, in its order."""
        observed = self.receipt_state is ContextReceiptStateV1.OBSERVED_MODEL_EGRESS
        context_only = not self.request.route.observes_model_egress
        seen = self.egress_observations
        if observed and context_only:
            return "egress_claim_route"
        if observed and not seen:
            return "egress_claim_unobserved"
        if seen and self.egress_admission is None:
            return "observation_without_admission"
        # Ours (contract §5.3, 9): a clean claim beside something withheld, double counting, observations that
        # a route without model requests cannot have made.
        if self.receipt_state.claims_clean_delivery and self._mixed():
            return "state_overclaims"
        if len(set(seen)) != len(seen):
            return "duplicate_observation"
        return "egress_claim_route" if seen and context_only else ""

    def _mixed(self) -> bool:
        return any(not outcome.outcome.delivers_content for outcome in self.outcomes) or any(
            not candidate.validity.permits_materialization for candidate in self.candidates
        )

    @classmethod
    def for_receipt(
        cls,
        request: ContextRequestV1,
        candidates: Sequence[SourceCandidateV1],
        receipt: ContextDecisionReceiptV1,
        handed_off: bool,
        egress_admission: str | None = None,
        egress_observations: Sequence[str] = (),
    ) -> Self:
        """The lineage of a receipt (contract §5.2): outcomes projected, state derived.

        `egress_observations` are digests of the observations that count. Raises ContractError, with
        `receipt_mismatch` where request and receipt name different principals or destinations.
        """
        lineage = cls(
            schema_version=1,
            request=request,
            candidates=tuple(candidates),
            decision_receipt=receipt.canonical_digest(),
            outcomes=tuple(ObjectOutcomeV1.from_decision(decision) for decision in receipt.decisions),
            receipt_state=ContextReceiptStateV1.derive(
                receipt.outcome,
                request.route,
                handed_off,
                len(egress_observations),
                _withheld_or_incomplete(candidates, receipt),
            ),
            egress_admission=egress_admission,
            egress_observations=tuple(egress_observations),
        )
        lineage.validate_for(receipt)
        return lineage

    def validate_for(self, receipt: ContextDecisionReceiptV1) -> None:
        """Hold the lineage against the receipt it names; ContractError when they do not agree.

        `receipt_mismatch`: other digest, principal, destination or outcomes. `state_overclaims`: another
        state than these facts allow, whether or not the content was handed off.
        """
        projected = tuple(ObjectOutcomeV1.from_decision(decision) for decision in receipt.decisions)
        if (
            self.decision_receipt != receipt.canonical_digest()
            or self.request.principal != receipt.principal
            or self.request.destination != receipt.destination
            or self.outcomes != projected
        ):
            raise contract_error("receipt_mismatch", type(self).__name__)
        mixed = _withheld_or_incomplete(self.candidates, receipt)
        allowed = {
            ContextReceiptStateV1.derive(
                receipt.outcome, self.request.route, handed_off, len(self.egress_observations), mixed
            )
            for handed_off in (False, True)
        }
        if self.receipt_state not in allowed:
            raise contract_error("state_overclaims", type(self).__name__)


def _withheld_or_incomplete(
    candidates: Sequence[SourceCandidateV1], receipt: ContextDecisionReceiptV1
) -> bool:
    """Whether a delivery is mixed.

    Blocked sources alone, redactions and transformations do not make it so.
    """
    return (
        any(not decision.disposition.delivers_content for decision in receipt.decisions)
        or any(not candidate.validity.permits_materialization for candidate in candidates)
        or receipt.security.incomplete_coverage > 0
    )
