"""The store on disk and its twin in memory tell the same after any history, restarts and failures included."""

from __future__ import annotations

import asyncio
import shutil
import tempfile
from collections.abc import Coroutine
from dataclasses import replace
from pathlib import Path
from typing import Any

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from gateway.errors import EvidenceError
from gateway.evidence.verify import verify_log
from gateway.ports import Record, RequestRow
from gateway.store.audit import verify_store
from gateway.store.disk import Batch
from gateway.store.memory import MemoryStore
from gateway.store.sqlite import SqliteStore
from tests.support.evidence import TestClock, record, sample, signer

KEY = signer().public_key
NUMBERS = st.integers(0, 5)
PROJECTS = st.sampled_from(["default", "acme"])


class Twins(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        self.loop = asyncio.new_event_loop()
        self.folder = Path(tempfile.mkdtemp(dir="/dev/shm" if Path("/dev/shm").is_dir() else None))
        self.memory = MemoryStore(None, signer(), TestClock())
        self.disk = self.open()
        self.rows: dict[str, RequestRow] = {}

    def open(self) -> SqliteStore:
        return SqliteStore(self.folder / "egress.db", signer(), TestClock()).open()

    def run[T](self, work: Coroutine[Any, Any, T]) -> T:
        return self.loop.run_until_complete(work)

    def append(self, records: list[Record], row: RequestRow | None = None) -> None:
        for store in (self.memory, self.disk):
            self.run(store.append(records, row))
        if row is not None:
            self.rows[row.request_id] = row

    @rule(number=NUMBERS, count=st.integers(0, 6), project=PROJECTS)
    def request(self, number: int, count: int, project: str) -> None:
        made = sample(number, count, project=project, refused=True)
        self.append(made.records, made.row)

    @rule(number=NUMBERS, state=st.sampled_from(["prepared", "handed_off"]))
    def update(self, number: int, state: str) -> None:
        row = self.rows.get(f"req-{number}")
        if row is not None:
            self.append([], replace(row, receipt_state=state))

    @rule(number=NUMBERS, kind=st.sampled_from(["event", "boundary_event"]), linked=st.booleans())
    def event(self, number: int, kind: str, linked: bool) -> None:
        row = self.rows.get(f"req-{number}") if linked else None
        self.append([record(kind, b'{"n":%d}' % number)], row)

    @rule()
    def several_at_once(self) -> None:
        async def all_of(store: MemoryStore | SqliteStore) -> None:
            await asyncio.gather(*(store.append([record("event", b'{"m":%d}' % n)]) for n in range(5)))

        self.run(all_of(self.memory))
        self.run(all_of(self.disk))

    @rule()
    def refused(self) -> None:
        wrong = Record("event", record("event", b"{}").digest, (b"[]",))
        for store in (self.memory, self.disk):
            try:
                self.run(store.append([wrong]))
            except EvidenceError:
                continue
            raise AssertionError("a record without its digest was taken")

    @rule(number=NUMBERS)
    def broken(self, number: int) -> None:
        """A transaction that fails late leaves nothing."""
        seal = Batch.seal

        def fail(batch: Batch, *arguments: Any) -> None:
            seal(batch, *arguments)
            raise OSError(5, "input/output error")

        Batch.seal = fail  # type: ignore[method-assign]
        made = sample(number + 10, 4, refused=True)
        try:
            self.run(self.disk.append(made.records, made.row))
        except EvidenceError:
            return
        finally:
            Batch.seal = seal  # type: ignore[method-assign]
        raise AssertionError("a transaction that broke was acknowledged")

    @rule()
    def restart(self) -> None:
        self.run(self.disk.close())
        assert verify_store(self.folder / "egress.db", KEY).ok
        self.disk = self.open()

    @invariant()
    def same_rows(self) -> None:
        for query in ({}, {"project": "acme"}, {"limit": 2}, {"state": "rejected"}, {"kind": "event"}):
            ours, theirs = (self.run(store.rows(query)) for store in (self.memory, self.disk))
            for rows in (ours[0], theirs[0]):
                for row in rows:
                    row.pop("log_index", None)
            assert ours[0] == theirs[0]
            assert (ours[1] is None) == (theirs[1] is None)

    @invariant()
    def both_hold(self) -> None:
        assert verify_log(self.memory.view(), KEY, self.memory.published).ok
        assert verify_store(self.folder / "egress.db", KEY).ok

    def teardown(self) -> None:
        self.run(self.disk.close())
        self.loop.close()
        shutil.rmtree(self.folder)


TestTwins = Twins.TestCase
TestTwins.settings = settings(
    max_examples=12, stateful_step_count=20, deadline=None, suppress_health_check=[HealthCheck.too_slow]
)
