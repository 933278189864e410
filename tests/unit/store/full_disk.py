"""Runs in a process of its own (see test_sqlite): no file can grow, then it can again."""

from __future__ import annotations

import asyncio
import resource
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[3]))

from gateway.errors import EvidenceError
from gateway.store.sqlite import SqliteStore
from tests.support.evidence import TestClock, sample, signer


def limit(size: int) -> None:
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, resource.RLIM_INFINITY))


async def append(store: SqliteStore, number: int) -> str:
    made = sample(number, 30)
    try:
        await store.append(made.records, made.row)
    except EvidenceError as error:
        return error.code
    return "stored"


async def main(folder: Path) -> None:
    clock = TestClock()
    store = SqliteStore(folder / "egress.db", signer(), clock).open()
    assert [await append(store, n) for n in range(3)] == ["stored"] * 3
    for size in (
        0,
        20_000,
    ):  # nothing can be written; then a little can, and a transaction breaks in the middle
        limit(size)
        clock.seconds += 10  # a checkpoint is due as well
        before = len((await store.rows({"limit": 1000}))[0])
        results = await asyncio.gather(*(append(store, 100 + size + n) for n in range(40)))
        assert set(results) == {"evidence.unavailable"}, results
        assert await store.health() != ""
        assert len((await store.rows({"limit": 1000}))[0]) == before
        limit(resource.RLIM_INFINITY)
        assert await append(store, 1000 + size) == "stored"
        assert await store.health() == ""
    rows, _ = await store.rows({"limit": 1000})
    assert len(rows) == 5, len(rows)
    await store.close()


asyncio.run(main(Path(sys.argv[1])))
