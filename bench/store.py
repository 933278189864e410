"""What durable evidence costs: records a second, what one client waits for, bytes as a history grows, verification."""

from __future__ import annotations

import asyncio
import hashlib
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from bench.table import Suite, percentile
from gateway.app.clock import SystemClock
from gateway.contract import EgressAdmissionReceiptV1
from gateway.contract.fragments import decision_fragment, join_evaluation, join_receipt, object_fragment
from gateway.egress.records import record
from gateway.evidence.disclosure import Commitments
from gateway.ports import Record, RequestRow
from gateway.store.audit import verify_store
from gateway.store.keys import Keyring
from gateway.store.sqlite import SqliteStore

DESTINATION = {"provider": "anthropic", "model": "m", "locality": "remote", "organization_managed": False}
POLICY = {"id": "default", "version": "1.0.0", "digest": "sha256:" + "0" * 64}


@dataclass
class Maker:
    """Evidence of made-up requests, joined as the gateway joins it: `new` decisions of each request are its own."""

    decisions: int
    new: int
    number: int = 0

    def __post_init__(self) -> None:
        self.commitments = Commitments()
        self.history = [self._pair(f"history {at}") for at in range(self.decisions - self.new)]

    def _pair(self, text: str) -> tuple[bytes, bytes]:
        name = f"sha256:{hashlib.sha256(text.encode()).hexdigest()}"
        evaluation = object_fragment(
            pointer=f"/messages/{self.number}/content/0",
            kind="text",
            channel="user",
            digest=name,
            keyed=True,
            bytes=2000,
            disposition="allow",
            reason_codes=(),
            findings=[],
            coverage="complete",
            rules=(),
        )
        return decision_fragment(name, "allow"), evaluation  # type: ignore[arg-type]  # names are read as members

    def make(self) -> tuple[list[Record], RequestRow]:
        """Receipt, evaluation record, commitment and admission of one more request."""
        self.number += 1
        pairs = [*self.history, *(self._pair(f"{self.number} {at}") for at in range(self.new))]
        body = f"sha256:{hashlib.sha256(str(self.number).encode()).hexdigest()}"
        request_id, moment = f"{self.number:032x}", "2026-01-01T00:00:00.000000Z"
        count = len(pairs)
        head = {
            "schema_version": 1,
            "receipt_id": f"rcpt-{request_id}",
            "mode": "governed",
            "principal": {"kind": "unknown"},
            "destination": DESTINATION,
            "policy": POLICY,
            "sources": {"inspected": count, "permitted": count, "selected": count, "blocked": 0},
            "security": dict.fromkeys(
                (
                    "redactions",
                    "blocked_objects",
                    "quarantined_objects",
                    "injection_signals",
                    "incomplete_coverage",
                ),
                0,
            ),
            "tokens": {"original": 9, "delivered": 9},
            "outcome": "delivered",
            "duration_us": 900,
            "final_context": body,
        }
        receipt = record("receipt", join_receipt(head, [decision for decision, _ in pairs]))
        evaluation = record(
            "evaluation", join_evaluation(self._head(request_id, moment, receipt), [o for _, o in pairs])
        )
        admitted = EgressAdmissionReceiptV1.from_value(
            {
                "schema_version": 1,
                "decision_receipt": receipt.digest,
                "request_digest": body,
                "request_bytes": 14,
                "destination": DESTINATION,
                "state": "prepared",
            }
        )
        admission = record("admission", (admitted.to_json(),))
        row = RequestRow(
            request_id, receipt.digest, moment, "default", "forwarded", "prepared", evaluation.digest, admission.digest,
            provider="anthropic",
        )  # fmt: skip
        return [receipt, evaluation, self.commitments.record(b"k" * 32, pairs), admission], row

    def _head(self, request_id: str, moment: str, receipt: Record) -> dict[str, object]:
        return {
            "schema_version": 1,
            "request_id": request_id,
            "time": moment,
            "receipt": receipt.digest,
            "project": "default",
            "principal": {"kind": "unknown"},
            "roles": [],
            "effect": "forwarded",
            "route": "proxy",
            "transport": "http",
            "provider": "anthropic",
            "locality": "remote",
            "mode": "governed",
            "bundles": [POLICY],
            "enforcement": "enforce",
            "shadow_reason_codes": [],
            "detectors": ["bench"],
            "engine": "none",
            "evidence_level": "not_attempted",
            "coverage": {"bytes_total": 0, "bytes_inspected": 0, "bytes_opaque": 0, "bytes_refused": 0},
            "reason_codes": [],
            "digest_key": "k-" + "0" * 16,
            "dialect": {"id": "anthropic", "version": "1"},
        }


def _open(folder: Path) -> SqliteStore:
    return SqliteStore(folder / "egress.db", Keyring(folder / "keys").signing_key(), SystemClock()).open()


async def _append(
    store: SqliteStore, made: Sequence[tuple[list[Record], RequestRow]], in_flight: int
) -> list[float]:
    """Milliseconds of each append, with so many clients that append one after the other."""
    waits: list[float] = []
    queue = iter(made)

    async def client() -> None:
        for records, row in queue:
            began = time.perf_counter()
            await store.append(records, row)
            waits.append((time.perf_counter() - began) * 1000)

    await asyncio.gather(*(client() for _ in range(in_flight)))
    return waits


async def _throughput(suite: Suite, decisions: int, new: int, rounds: int) -> None:
    for in_flight in (1, 16, 64):
        best: tuple[float, list[float]] = (0.0, [])
        for _ in range(max(2, rounds // 3)):
            maker = Maker(decisions, new)
            with tempfile.TemporaryDirectory() as name:
                store = _open(Path(name))
                await store.append(*maker.make())
                made = [maker.make() for _ in range(500 if in_flight == 1 else 2000)]
                began = time.perf_counter()
                waits = await _append(store, made, in_flight)
                rate = len(made) / (time.perf_counter() - began)
                await store.close()
            best = max(best, (rate, waits))
        suite.add(decisions, new, in_flight, best[0], percentile(best[1], 0.5), percentile(best[1], 0.99))


def _making(suite: Suite) -> None:
    for decisions, new in ((8, 8), (200, 3)):
        maker = Maker(decisions, new)
        times = []
        for _ in range(300):
            began = time.perf_counter()
            maker.make()
            times.append((time.perf_counter() - began) * 1000)
        suite.add(decisions, new, percentile(times, 0.5), percentile(times, 0.99))


async def _verify(suite: Suite) -> None:
    for decisions, new, count in ((8, 8, 4000), (200, 3, 1500)):
        maker = Maker(decisions, new)
        with tempfile.TemporaryDirectory() as name:
            store = _open(Path(name))
            await _append(store, [maker.make() for _ in range(count)], 64)
            await store.close()
            key = Keyring(Path(name) / "keys").signing_key().public_key
            began = time.perf_counter()
            report = verify_store(Path(name) / "egress.db", key)
            took = time.perf_counter() - began
        assert report.ok
        suite.add(decisions, report.entries, report.entries / took)


def run(rounds: int) -> Iterator[Suite]:
    """The suites; how a store grows with a conversation is the suite `evidence`."""
    suite = Suite(
        "durable evidence: receipt, evaluation record, commitment and admission of a request in one synced append",
        ("decisions", "new ones", "in flight", "requests a second (best)", "ms p50", "ms p99"),
    )
    asyncio.run(_throughput(suite, 8, 8, rounds))
    asyncio.run(_throughput(suite, 200, 3, rounds))
    yield suite
    suite = Suite("making that evidence, in milliseconds", ("decisions", "new ones", "p50", "p99"))
    _making(suite)
    yield suite
    suite = Suite("verifying a log", ("decisions a request", "entries", "entries a second"))
    asyncio.run(_verify(suite))
    yield suite
