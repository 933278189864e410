"""Real records of small requests, a clock that can be set, and signers, for the tests of evidence and stores."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from gateway.contract import ContextDecisionReceiptV1, ContextRequestV1, EgressAdmissionReceiptV1
from gateway.evidence.entry import canonical, digest_of
from gateway.evidence.sign import Ed25519Signer
from gateway.ports import Attempt, Record, RequestRow

DESTINATION = {"provider": "anthropic", "model": "m", "locality": "remote", "organization_managed": False}
BODY = digest_of(b"the exact body")


def signer(seed: int = 1, name: str = "egress/test") -> Ed25519Signer:
    return Ed25519Signer(Ed25519PrivateKey.from_private_bytes(bytes([seed]) * 32), name)


@dataclass
class TestClock:
    """Stands still unless told to move; every look at wall time is one microsecond later."""

    __test__ = False
    seconds: float = 1_000.0
    ticks: int = 0

    def now(self) -> str:
        self.ticks += 1
        return f"2026-01-01T00:{self.ticks // 60_000_000:02}:{self.ticks // 1_000_000 % 60:02}.{self.ticks % 1_000_000:06}Z"

    def monotonic_us(self) -> int:
        return int(self.seconds * 1e6)


def decisions(count: int, disposition: str = "allow", start: int = 0) -> list[dict[str, Any]]:
    codes = {} if disposition == "allow" else {"reason_codes": ["secret.detected"]}
    return [
        {"object": digest_of(str(start + i).encode()), "disposition": disposition, **codes}
        for i in range(count)
    ]


def receipt(number: int, made: list[dict[str, Any]], outcome: str = "delivered") -> ContextDecisionReceiptV1:
    denied = sum(item["disposition"] == "deny" for item in made)
    document: dict[str, Any] = {
        "schema_version": 1,
        "receipt_id": f"rcpt-{number}",
        "mode": "governed",
        "principal": {"kind": "person", "id": "alice"},
        "destination": DESTINATION,
        "sources": {"inspected": len(made), "permitted": 0, "selected": 0, "blocked": 0},
        "decisions": made,
        "security": {
            "redactions": 0,
            "blocked_objects": denied,
            "quarantined_objects": 0,
            "injection_signals": 0,
            "incomplete_coverage": 0,
        },
        "tokens": {"original": 9, "delivered": 9},
        "outcome": outcome,
        "duration_us": 10,
    }
    if outcome == "delivered":
        document["final_context"] = BODY
    return ContextDecisionReceiptV1.from_json(canonical(document))


def admission(of: ContextDecisionReceiptV1, size: int = 14) -> EgressAdmissionReceiptV1:
    document = {
        "schema_version": 1,
        "decision_receipt": of.canonical_digest(),
        "request_digest": BODY,
        "request_bytes": size,
        "destination": DESTINATION,
        "state": "prepared",
    }
    return EgressAdmissionReceiptV1.from_json(canonical(document))


def context_request(number: int) -> ContextRequestV1:
    document = {
        "request_id": f"req-{number}",
        "principal": {"kind": "person", "id": "alice"},
        "route": "proxy",
        "destination": DESTINATION,
    }
    return ContextRequestV1.from_json(canonical(document))


def attempt(number: int = 1, **changes: Any) -> Attempt:
    """A complete exchange that was answered with 200, unless told otherwise."""
    values: dict[str, Any] = {
        "number": number,
        "transport": "http",
        "http_status": 200,
        "failure": None,
        "written_digest": BODY,
        "written_bytes": 14,
        "body_complete": True,
        "level": "answered",
        "peer_verified": True,
    }
    return Attempt(**(values | changes))


def record(kind: str, *parts: bytes) -> Record:
    return Record(kind, digest_of(b"".join(parts)), parts)


def parts_of(data: bytes, made: list[dict[str, Any]]) -> tuple[bytes, ...]:
    """A record cut where its decisions stand, as the joiner of fragments cuts it."""
    pieces: list[bytes] = []
    for item in made:
        fragment = canonical(item)
        before, found, data = data.partition(fragment)
        pieces += [before, found]
    return tuple(piece for piece in [*pieces, data] if piece)


@dataclass
class Sample:
    """The evidence of one request: what is appended first, and its row."""

    number: int
    receipt: ContextDecisionReceiptV1
    admission: EgressAdmissionReceiptV1 | None
    records: list[Record] = field(default_factory=list)
    row: RequestRow = field(default=None)  # type: ignore[assignment]  # set by `sample`


def sample(
    number: int,
    count: int = 2,
    *,
    project: str = "default",
    refused: bool = False,
    effect: str = "",
    time: str = "",
) -> Sample:
    made = decisions(count, "deny" if refused else "allow")
    decided = receipt(number, made, "withheld" if refused else "delivered")
    admitted = None if refused else admission(decided)
    evaluation = record(
        "evaluation",
        canonical({"schema_version": 1, "request_id": f"req-{number}", "evidence_level": "not_attempted"}),
    )
    records = [Record("receipt", decided.canonical_digest(), parts_of(decided.to_json(), made)), evaluation]
    if admitted is not None:
        records.append(record("admission", admitted.to_json()))
    row = RequestRow(
        request_id=f"req-{number}",
        receipt=decided.canonical_digest(),
        time=time or f"2026-01-01T00:00:{number % 60:02}.000000Z",
        project=project,
        effect=effect or ("refused" if refused else "forwarded"),
        receipt_state="rejected" if refused else "prepared",
        evaluation=evaluation.digest,
        admission=None if admitted is None else admitted.canonical_digest(),
        provider="anthropic",
    )
    return Sample(number, decided, admitted, records, row)
