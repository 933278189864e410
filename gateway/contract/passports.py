"""Passports of context objects, and the lattices that derivation joins over (contract §3.3)."""

from __future__ import annotations

from collections.abc import Sequence
from enum import StrEnum
from itertools import pairwise
from typing import Any, Self

from pydantic import model_validator

from gateway.contract.decisions import MAX_REASON_CODES, MAX_SIGNALS, DetectorSignalV1
from gateway.contract.dispositions import TransformationKindV1
from gateway.contract.parties import DestinationConstraintV1, PolicyRefV1, PrincipalV1, SourceRefV1
from gateway.contract.record import Record, Wire, listed, optional
from gateway.contract.refusals import contract_error, refuse
from gateway.contract.scalars import U64, ReasonCodeV1, SchemaVersion1, Sha256Digest, TaskId

MAX_POLICY_REFS = 32
MAX_LINEAGE_STEPS = 256


class ClassificationV1(StrEnum):
    """How confidential content is, least first. Secrets and credentials are restricted."""

    PUBLIC = "public"
    INTERNAL = "internal"
    CONFIDENTIAL = "confidential"
    RESTRICTED = "restricted"

    @classmethod
    def highest(cls, *classes: ClassificationV1) -> ClassificationV1:
        """The most confidential of all; `public` of none."""
        return max(classes, key=list(cls).index, default=cls.PUBLIC)


class TrustLevelV1(StrEnum):
    """How far content is trusted, least first."""

    UNTRUSTED = "untrusted"
    UNKNOWN = "unknown"
    INTERNAL = "internal"
    TRUSTED = "trusted"

    @classmethod
    def lowest(cls, *levels: TrustLevelV1) -> TrustLevelV1:
        """The least of all; `untrusted` of none."""
        return min(levels, key=list(cls).index, default=cls.UNTRUSTED)


class GatewayModeV1(StrEnum):
    """How strict a gateway is. Governed and sovereign deny what could not be inspected in full."""

    DEVELOPER = "developer"
    GOVERNED = "governed"
    SOVEREIGN = "sovereign"

    @property
    def unclassified(self) -> ClassificationV1:
        """What content without a classification counts as."""
        if self is GatewayModeV1.DEVELOPER:
            return ClassificationV1.PUBLIC
        return ClassificationV1.INTERNAL

    @property
    def requires_detectors(self) -> bool:
        """Whether content that was not fully inspected is denied."""
        return self is not GatewayModeV1.DEVELOPER


class TransformationRecordV1(Record):
    """One step that made `output` from `input`; sizes are token estimates."""

    kind: Wire[TransformationKindV1]
    input: Sha256Digest
    output: Sha256Digest
    tokens_before: U64
    tokens_after: U64
    reason_codes: tuple[ReasonCodeV1, ...] = listed(MAX_REASON_CODES)


def _policy_key(policy: PolicyRefV1) -> tuple[Any, ...]:
    return (policy.id, policy.version is not None, policy.version or "", policy.digest)


def _constraint_key(constraint: DestinationConstraintV1) -> int:
    return list(DestinationConstraintV1).index(constraint)


def _strictly_ascending(keys: Sequence[Any]) -> bool:
    return all(a < b for a, b in pairwise(keys))


class ContextObjectPassportV1(Record):
    """What is known of one object, wherever it travels inside the gateway."""

    schema_version: SchemaVersion1
    object: Sha256Digest
    source: SourceRefV1
    principal: PrincipalV1
    task: TaskId | None = optional()
    classification: Wire[ClassificationV1]
    trust: Wire[TrustLevelV1]
    policy_refs: tuple[PolicyRefV1, ...] = listed(MAX_POLICY_REFS)
    risk_signals: tuple[DetectorSignalV1, ...] = listed(MAX_SIGNALS)
    destination_constraints: tuple[Wire[DestinationConstraintV1], ...] = listed()
    tokens: U64
    bytes: U64
    lineage: tuple[TransformationRecordV1, ...] = listed(MAX_LINEAGE_STEPS)

    @model_validator(mode="after")
    def _strictly_sorted(self) -> Self:
        policies = [_policy_key(policy) for policy in self.policy_refs]
        constraints = [_constraint_key(constraint) for constraint in self.destination_constraints]
        if not (_strictly_ascending(policies) and _strictly_ascending(constraints)):
            raise refuse("unsorted")
        return self

    @classmethod
    def derive(
        cls, inputs: Sequence[ContextObjectPassportV1], steps: Sequence[TransformationRecordV1], **own: Any
    ) -> Self:
        """The passport of an object made from others by `steps`.

        `own` gives what is the new object's alone: object, source, tokens, bytes, and task if it has one.
        Classification joins, trust drops, and policies, signals, constraints and lineage accumulate. Raises
        ContractError: `derivation` without an input or over more than one principal, `bounds_exceeded`
        where too much accumulates.
        """
        principals = {passport.principal for passport in inputs}
        if len(principals) != 1:
            raise contract_error("derivation", cls.__name__)
        policies = {policy for passport in inputs for policy in passport.policy_refs}
        constraints = {c for passport in inputs for c in passport.destination_constraints}
        signals = dict.fromkeys(signal for passport in inputs for signal in passport.risk_signals)
        lineage = dict.fromkeys(step for passport in inputs for step in passport.lineage)
        return cls(
            schema_version=1,
            principal=principals.pop(),
            classification=ClassificationV1.highest(*(passport.classification for passport in inputs)),
            trust=TrustLevelV1.lowest(*(passport.trust for passport in inputs)),
            policy_refs=tuple(sorted(policies, key=_policy_key)),
            risk_signals=tuple(signals),
            destination_constraints=tuple(sorted(constraints, key=_constraint_key)),
            lineage=(*lineage, *steps),
            **own,
        )
