"""Old evidence goes, the log stays: what is left verifies, is listed and exported; what others delete is found."""

from __future__ import annotations

import asyncio
import random
import sqlite3
from collections.abc import AsyncIterator
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import apsw
import pytest

from gateway.evidence import lineage
from gateway.evidence.sign import verifier_key
from gateway.evidence.verify import Report
from gateway.ports import Ending
from gateway.store import retention
from gateway.store import sqlite as store_module
from gateway.store.audit import verify_store
from gateway.store.export import Selection, export_bundle, verify_bundle
from gateway.store.reader import SqliteReader
from gateway.store.sqlite import SqliteStore
from tests.support.evidence import Sample, TestClock, attempt, context_request, sample, signer

KEY = signer().public_key


@pytest.fixture
async def store(tmp_path: Path) -> AsyncIterator[SqliteStore]:
    made = SqliteStore(tmp_path / "egress.db", signer(), TestClock()).open()
    yield made
    await made.close()


async def conclude(store: SqliteStore, made: Sample) -> None:
    assert made.admission is not None
    ending = Ending(response_complete=True)
    end = lineage.conclude(context_request(made.number), made.receipt, made.admission, [attempt()], ending)
    await store.append(end.records, replace(made.row, lineage=end.lineage.digest, receipt_state=end.state))


async def live(store: SqliteStore, numbers: range) -> None:
    """Requests that overlap: each is concluded when the next two have begun."""
    made = [sample(number, 30) for number in numbers]
    for at, one in enumerate(made):
        await store.append(one.records, one.row)
        if at >= 2:
            await conclude(store, made[at - 2])
    for one in made[-2:]:
        await conclude(store, one)
    await covered(store)


async def covered(store: SqliteStore) -> None:
    """Let everything be checkpointed."""
    assert isinstance(store._clock, TestClock)
    store._clock.seconds += 10
    await store._writer.submit(None)
    await asyncio.sleep(0.05)


def verify(path: Path) -> Report:
    return verify_store(path / "egress.db", KEY)


def ask(path: Path, sql: str, *values: int) -> Any:
    connection = apsw.Connection(str(path / "egress.db"), flags=apsw.SQLITE_OPEN_READONLY)
    try:
        return connection.execute(sql, values).get
    finally:
        connection.close()


def count(path: Path, table: str, where: str = "1") -> int:
    return int(ask(path, f"SELECT count(*) FROM {table} WHERE {where}"))


def instant(path: Path, seq: int) -> str:
    return str(ask(path, "SELECT time FROM entries WHERE seq = ?", seq))


async def test_the_log_holds_and_what_is_left_is_whole(store: SqliteStore, tmp_path: Path) -> None:
    await live(store, range(20))
    done = await store.prune(older_than=instant(tmp_path, 25))
    assert done.entries == 25
    await covered(store)
    report = verify(tmp_path)
    assert (report.ok, report.pruned, report.entries) == (True, 25, 41)
    rows, _ = await store.rows({"limit": 1000})
    assert len(rows) == 9  # all of which an entry is left
    assert {row["receipt_state"] for row in rows} == {"observed_model_egress"}
    assert count(tmp_path, "entries", "length(body) = 0") == 25
    await store.close()
    again = SqliteStore(tmp_path / "egress.db", signer(), TestClock()).open()
    await live(again, range(20, 25))
    await again.close()
    assert verify(tmp_path).ok


async def test_parts_that_nothing_names_are_swept_and_the_others_stay(
    store: SqliteStore, tmp_path: Path
) -> None:
    await live(store, range(4))
    other = sample(50, 30)
    fresh = replace(
        other.records[0], parts=tuple(p.replace(b"allow", b"ALLOW") for p in other.records[0].parts)
    )
    from gateway.evidence.entry import digest_of

    fresh = replace(fresh, digest=digest_of(b"".join(fresh.parts)), kind="event")
    await store.append([fresh])
    before = count(tmp_path, "parts")
    await covered(store)
    await live(store, range(4, 6))
    done = await store.prune(older_than=instant(tmp_path, count(tmp_path, "entries") - 2))
    assert done.parts == 30  # those of the event alone
    assert count(tmp_path, "parts") == before - 30
    await store.append([fresh])  # what is gone is written again when it comes again
    assert await store.record(fresh.digest) == b"".join(fresh.parts)
    await covered(store)
    assert verify(tmp_path).ok


async def test_a_size_is_kept(store: SqliteStore, tmp_path: Path) -> None:
    await live(store, range(120))
    reader = SqliteReader(tmp_path / "egress.db")
    before = retention.used_bytes(reader.connection)
    await store.prune(keep_bytes=before // 2)
    after = retention.used_bytes(reader.connection)
    reader.close()
    assert after < before * 0.75
    await covered(store)
    assert verify(tmp_path).ok
    assert (await store.prune(keep_bytes=before)).entries == 0


async def test_nothing_is_let_go_of_that_no_checkpoint_covers(store: SqliteStore, tmp_path: Path) -> None:
    await live(store, range(3))
    done = await store.prune(older_than="2999-01-01T00:00:00.000000Z")
    assert done.entries == 5  # one stays, to which the next is chained
    await covered(store)
    assert verify(tmp_path).ok


async def test_slices(store: SqliteStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(store_module, "SLICE", 4)
    await live(store, range(12))
    assert (await store.prune(older_than=instant(tmp_path, 18))).entries == 18
    assert count(tmp_path, "records", "kind = 'retention'") == 5
    assert verify(tmp_path).ok


async def test_appends_go_on_while_old_ones_go(store: SqliteStore, tmp_path: Path) -> None:
    await live(store, range(30))
    stop = instant(tmp_path, 40)
    await asyncio.gather(
        store.prune(older_than=stop), *(store.append(s.records, s.row) for s in map(sample, range(100, 160)))
    )
    rows, _ = await store.rows({"limit": 1000})
    assert len(rows) >= 60
    await covered(store)
    assert verify(tmp_path).ok


async def test_what_is_left_is_exported_and_verifies_with_the_key_alone(
    store: SqliteStore, tmp_path: Path
) -> None:
    await live(store, range(10))
    older = (tmp_path / "checkpoint").read_bytes()
    await store.prune(older_than=instant(tmp_path, 11))
    await covered(store)
    key = verifier_key(signer().name, KEY)
    data = b"".join(export_bundle(tmp_path / "egress.db", key, Selection(), older))
    report = verify_bundle(data, KEY)
    assert (report.ok, report.entries) == (True, 20 + 1 - 11)


FORGERIES = {
    "more hashes than the log says": ("UPDATE entries SET body = x'', signature = NULL WHERE seq < 15", 10),
    "a hash that was another": ("UPDATE entries SET leaf = zeroblob(32) WHERE seq = 3", 0),
    "a hole": ("UPDATE entries SET body = x'', signature = NULL WHERE seq = 12", 12),
    "a pruned entry is gone": ("DELETE FROM entries WHERE seq = 4", 4),
}


@pytest.mark.parametrize("name", FORGERIES)
async def test_what_others_let_go_of_is_found(store: SqliteStore, tmp_path: Path, name: str) -> None:
    statement, index = FORGERIES[name]
    await live(store, range(10))
    await store.prune(older_than=instant(tmp_path, 10))
    await covered(store)
    await store.close()
    with closing(sqlite3.connect(tmp_path / "egress.db")) as connection, connection:
        connection.execute(statement)
    bad = verify(tmp_path).document()["first_bad"]
    assert bad["kind"] == "modified"
    assert bad["index"] == index or name == "a hash that was another"


async def test_a_key_that_was_handed_over_before_what_is_left(store: SqliteStore, tmp_path: Path) -> None:
    await live(store, range(4))
    await store.hand_over(signer(2))
    await live(store, range(4, 8))
    await store.prune(older_than=instant(tmp_path, 12))
    await covered(store)
    assert verify(tmp_path).ok
    assert verify_store(tmp_path / "egress.db", signer(2).public_key).ok
    assert not verify_store(tmp_path / "egress.db", signer(3).public_key).ok


async def test_any_place_to_cut_is_right(tmp_path: Path) -> None:
    dice = random.Random(5)
    store = SqliteStore(tmp_path / "egress.db", signer(), TestClock()).open()
    for start in range(0, 40, 5):
        await live(store, range(start, start + 5))
        entries = count(tmp_path, "entries")
        await store.prune(older_than=instant(tmp_path, dice.randrange(entries)))
        report = verify(tmp_path)
        assert report.ok, report
        rows, _ = await store.rows({"limit": 1000})
        assert rows
    await store.close()
