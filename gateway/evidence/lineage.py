"""The life of an admitted request: what each transport attempt proves, and the one lineage at the end.

The table of contract §10.2 in code. An attempt becomes an *observation* (the contract's closed record)
and an *attempt event* (ours: evidence level, completeness, what it counts for, which the observation
cannot hold). After the last attempt one *lineage* and one *response event* are written. What a crash
leaves open is closed as what was provable, never more.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

from gateway.contract import (
    AclCheckV1,
    ContextDecisionLineageV1,
    ContextDecisionReceiptV1,
    ContextRequestV1,
    EgressAdmissionReceiptV1,
    EgressAdmissionStateV1,
    EgressFailureV1,
    EgressObserverV1,
    EgressResultV1,
    EgressTransportObservationV1,
    EgressTransportV1,
    IntegrationRouteV1,
    SourceCandidateV1,
    SourceKindV1,
    SourceRefV1,
    SourceValidityV1,
)
from gateway.contract.lineage import MAX_CANDIDATES
from gateway.evidence.entry import canonical, digest_of
from gateway.ports import Attempt, Ending, Record, RequestRow


@dataclass(frozen=True, slots=True)
class Proof:
    """What one attempt proves. `alarm`: other bytes than the admitted ones were written; then nothing is claimed."""

    counts: bool
    handed_off: bool
    alarm: bool = False


@dataclass(frozen=True, slots=True)
class Conclusion:
    """The end of a request: its lineage, how the answer ended, and the state for the index row."""

    lineage: Record
    response: Record | None
    state: str

    @property
    def records(self) -> list[Record]:
        """What to append."""
        return [self.lineage] if self.response is None else [self.lineage, self.response]


def prove(attempt: Attempt, admission: EgressAdmissionReceiptV1) -> Proof:
    """What an attempt proves about the admitted bytes (contract §10.2, conditions 1 to 5).

    `counts` still needs condition 6: that the observation was stored.
    """
    prepared = admission.state is EgressAdmissionStateV1.PREPARED
    exact = attempt.body_complete and attempt.written_digest == admission.request_digest
    too_much = attempt.written_bytes > admission.request_bytes
    if not prepared or too_much or (attempt.body_complete and not exact):
        return Proof(counts=False, handed_off=False, alarm=True)
    answered = attempt.failure is None
    return Proof(
        counts=answered and exact and attempt.peer_verified,
        handed_off=(answered or exact) and attempt.peer_verified,
    )


def observation(attempt: Attempt, admission_digest: str) -> EgressTransportObservationV1:
    """The contract's record of an attempt (contract §7.3); ContractError where the attempt contradicts itself."""
    answered = attempt.failure is None
    return EgressTransportObservationV1(
        schema_version=1,
        admission_receipt_digest=admission_digest,
        attempt=attempt.number,
        transport=EgressTransportV1(attempt.transport),
        observer=EgressObserverV1.ENGINE_OBSERVED,
        result=EgressResultV1.RESPONSE_OBSERVED if answered else EgressResultV1.NO_RESPONSE_OBSERVED,
        http_status=attempt.http_status,
        failure=None if attempt.failure is None else EgressFailureV1(attempt.failure),
    )


def attempt_records(attempt: Attempt, admission: EgressAdmissionReceiptV1) -> list[Record]:
    """What to store of an attempt: the observation, unless the bytes were wrong, and the attempt event.

    The digest of what was written is left out of the event where it is not the admitted one: it could be
    the unkeyed digest of a short piece.
    """
    name = admission.canonical_digest()
    proof = prove(attempt, admission)
    seen = [] if proof.alarm else [_record("observation", observation(attempt, name).to_json())]
    event = {
        "v": 1,
        "event": "attempt",
        "admission": name,
        "observation": seen[0].digest if seen else None,
        "attempt": attempt.number,
        "level": attempt.level,
        "written_bytes": attempt.written_bytes,
        "body_complete": attempt.body_complete,
        "peer_verified": attempt.peer_verified,
        "via": attempt.via,
        "counts": proof.counts,
        "handed_off": proof.handed_off,
        "alarm": proof.alarm,
    }
    return [*seen, _record("event", canonical(event))]


def conclude(
    request: ContextRequestV1,
    receipt: ContextDecisionReceiptV1,
    admission: EgressAdmissionReceiptV1 | None,
    attempts: Sequence[Attempt] = (),
    ending: Ending | None = None,
    *,
    stored: Collection[int] | None = None,
    candidates: Sequence[SourceCandidateV1] = (),
) -> Conclusion:
    """The lineage after the last attempt, and the record of how the answer ended.

    `stored` are the numbers of the attempts whose observation is durable (None: all are); an attempt that
    could not be recorded hands off, and counts for nothing. The lineage lists only observations that
    count. Raises ContractError where request and receipt do not agree.
    """
    proven = [] if admission is None else [(attempt, prove(attempt, admission)) for attempt in attempts]
    name = None if admission is None else admission.canonical_digest()
    counted = [
        observation(attempt, name).canonical_digest()
        for attempt, proof in proven
        if name is not None and proof.counts and (stored is None or attempt.number in stored)
    ]
    lineage = ContextDecisionLineageV1.for_receipt(
        request,
        candidates,
        receipt,
        any(proof.handed_off for _, proof in proven),
        egress_admission=name,
        egress_observations=counted,
    )
    response = None if ending is None else response_event(receipt.canonical_digest(), ending)
    return Conclusion(_record("lineage", lineage.to_json()), response, str(lineage.receipt_state))


def response_event(receipt: str, ending: Ending) -> Record:
    """How the answer of a request ended for the client; listings show it as `evaluation.response`."""
    response: dict[str, Any] = {
        "complete": ending.response_complete,
        "placeholders_restored": ending.placeholders_restored,
        "restore_withheld": ending.restore_withheld,
        "usage": None if ending.usage is None else dict(ending.usage),
    }
    if ending.findings:
        response["findings"] = [asdict(finding) for finding in ending.findings]
    event = {
        "v": 1,
        "event": "response",
        "receipt": receipt,
        "client_gone": ending.client_gone,
        "reason_codes": list(ending.reason_codes),
        "response": response,
    }
    return _record("event", canonical(event))


def close_after_crash(
    row: RequestRow, receipt: bytes, admission: bytes, events: Iterable[Mapping[str, Any]]
) -> tuple[Record, RequestRow]:
    """The lineage of a request that was admitted and never concluded, and its index row with it.

    `events` are the records that were stored with the request. The state is `prepared`, or `handed_off` where a stored
    observation or attempt event shows that the request was handed over (`partial` where the receipt is mixed, or a
    source of another project was there that should not have been). It is never `observed_model_egress`:
    nobody concluded which attempt was the last. Raises ContractError where the stored records are not
    what they should be.
    """
    decided = ContextDecisionReceiptV1.from_json(receipt)
    admitted = EgressAdmissionReceiptV1.from_json(admission)
    request = ContextRequestV1(
        request_id=row.request_id,
        principal=decided.principal,
        purpose=decided.task,
        route=IntegrationRouteV1.PROXY,
        destination=decided.destination,
    )
    known = list(events)
    lineage = ContextDecisionLineageV1.for_receipt(
        request, _revoked(known), decided, _handed_off(known), egress_admission=admitted.canonical_digest()
    )
    record = _record("lineage", lineage.to_json())
    return record, replace(row, lineage=record.digest, receipt_state=str(lineage.receipt_state))


def _revoked(events: Sequence[Mapping[str, Any]]) -> list[SourceCandidateV1]:
    """The projects whose content a request held and its own was not allowed to see, as cross-project events tell."""
    hashes = {
        str(item["target_project_hash"])
        for item in events
        if "event_type" in item and item.get("allowed") is False
    }
    return [
        SourceCandidateV1(
            source=SourceRefV1(kind=SourceKindV1.OTHER, id=f"project:{name}"),
            acl_check=AclCheckV1.RECHECKED,
            validity=SourceValidityV1.REVOKED,
        )
        for name in sorted(hashes)[:MAX_CANDIDATES]
    ]


def _handed_off(events: Sequence[Mapping[str, Any]]) -> bool:
    """Whether stored records show it: the attempt's event where there is one, else a head that was observed."""
    told = {item["attempt"]: item["handed_off"] is True for item in events if item.get("event") == "attempt"}
    return any(told.values()) or any(
        item.get("result") == EgressResultV1.RESPONSE_OBSERVED and item["attempt"] not in told
        for item in events
    )


def _record(kind: str, data: bytes) -> Record:
    return Record(kind, digest_of(data), (data,))
