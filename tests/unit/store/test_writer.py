"""What shares a transaction with what: appends that are in no hurry wait for company, and not for long."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence

import pytest

from gateway.errors import EvidenceError
from gateway.store import writer as store_writer
from gateway.store.log import Prepared, prepare
from gateway.store.writer import PATIENCE_S, Writer
from tests.support.evidence import record


class Disk:
    """Remembers what was committed together."""

    def __init__(self) -> None:
        self.batches: list[list[bytes]] = []
        self.shuts = 0

    def commit(self, batch: Sequence[Prepared]) -> None:
        self.batches.append([job.records[0].parts[0] for job in batch])

    def idle(self) -> float:
        return 3600.0

    def shut(self) -> None:
        self.shuts += 1


def job(name: str) -> Prepared:
    return prepare([record("event", name.encode())], None)


async def test_a_patient_append_rides_with_the_next_hurried_one() -> None:
    disk = Disk()
    writer = Writer(disk, 99)
    writer.start()
    patient = [writer.submit(job(name), patient=True) for name in ("a", "b")]
    hurried = writer.submit(job("c"))
    await asyncio.gather(*patient, hurried)
    assert disk.batches == [[b"a", b"b", b"c"]]  # one sync, in the order in which they were given
    await writer.stop()
    assert disk.shuts == 1


async def test_a_patient_append_that_stays_alone_is_written_soon() -> None:
    disk = Disk()
    writer = Writer(disk, 99)
    writer.start()
    began = time.monotonic()
    first = writer.submit(job("a"), patient=True)
    second = writer.submit(job("b"), patient=True)
    await asyncio.gather(first, second)
    assert time.monotonic() - began >= PATIENCE_S
    assert disk.batches == [[b"a", b"b"]]
    await writer.submit(job("c"), patient=True)  # and again, from a thread that sleeps
    assert disk.batches[1:] == [[b"c"]]
    await writer.stop()


async def test_nothing_patient_is_left_behind_at_the_end() -> None:
    disk = Disk()
    writer = Writer(disk, 99)
    writer.start()
    waiting = writer.submit(job("a"), patient=True)
    await writer.stop()
    await waiting
    assert disk.batches == [[b"a"]]
    with pytest.raises(EvidenceError):
        writer.submit(job("b"), patient=True)


async def test_work_that_is_alone_keeps_its_place_behind_patient_appends() -> None:
    disk = Disk()
    writer = Writer(disk, 99)
    writer.start()
    done: list[int] = []
    patient = writer.submit(job("a"), patient=True)
    alone = writer.submit(None, lambda: done.append(len(disk.batches)))
    last = writer.submit(job("b"))
    await asyncio.gather(patient, alone, last)
    assert (disk.batches, done) == ([[b"a"], [b"b"]], [1])
    await writer.stop()


async def test_those_who_were_told_together_share_the_next_sync_as_well(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The first of them to come back would else have a sync of its own, which all others have to wait for."""
    monkeypatch.setattr(store_writer, "GATHER_S", 0.05)
    disk = Disk()
    writer = Writer(disk, 99)
    writer.start()

    async def client(name: str) -> None:
        for _ in range(20):
            await writer.submit(job(name))

    await asyncio.gather(*(client(str(number)) for number in range(8)))
    await writer.stop()
    assert sum(map(len, disk.batches)) == 160
    assert len(disk.batches) <= 22  # 20 but for how it begins
