"""`receipts verify` on damaged copies of a real log: each damage is named at the first bad entry."""

from __future__ import annotations

import asyncio
import shutil
import sqlite3
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import apsw
import pytest

from gateway.errors import EvidenceError
from gateway.evidence import lineage
from gateway.evidence.merkle import leaf_hash
from gateway.evidence.verify import Report
from gateway.ports import Ending
from gateway.store.audit import verify_store
from gateway.store.sqlite import SqliteStore
from tests.support.evidence import TestClock, attempt, context_request, sample, signer

REQUESTS = 12  # three entries each: opened, observed, concluded


async def fill(folder: Path) -> None:
    store = SqliteStore(folder / "egress.db", signer(), TestClock()).open()
    for number in range(REQUESTS):
        made = sample(number, 4)
        await store.append(made.records, made.row)
        assert made.admission is not None
        await store.append(lineage.attempt_records(attempt(), made.admission), made.row)
        end = lineage.conclude(
            context_request(number), made.receipt, made.admission, [attempt()], Ending(response_complete=True)
        )
        row = replace(made.row, lineage=end.lineage.digest, receipt_state=end.state)
        await store.append(end.records, row)
    await store.close()


@pytest.fixture(scope="module")
def original(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("original")
    asyncio.run(fill(folder))
    return folder


@pytest.fixture
def state(original: Path, tmp_path: Path) -> Path:
    shutil.copytree(original, tmp_path / "state")
    return tmp_path / "state"


def verify(state: Path) -> Report:
    return verify_store(state / "egress.db", signer().public_key)


def edit(state: Path, *statements: str) -> None:
    with closing(sqlite3.connect(state / "egress.db")) as connection, connection:
        for statement in statements:
            connection.execute(statement)


def test_an_undamaged_log_holds(state: Path) -> None:
    assert verify(state).document() == {
        "ok": True,
        "entries": 3 * REQUESTS,
        "not_yet_logged": 0,
        "torn": 0,
        "first_bad": None,
    }


def test_another_key_vouches_for_nothing(state: Path) -> None:
    report = verify_store(state / "egress.db", signer(2).public_key)
    assert report.document()["first_bad"] == {"index": 0, "kind": "signature"}


EDITS = {
    "entry body": (
        "UPDATE entries SET body = replace(body, 'request', 'REQUEST') WHERE seq = 5",
        5,
        "modified",
    ),
    "entry body as text": ("UPDATE entries SET body = 'x' WHERE seq = 5", 5, "modified"),
    "entry leaf": ("UPDATE entries SET leaf = zeroblob(32) WHERE seq = 6", 6, "modified"),
    "entry signature": (
        "UPDATE entries SET signature = (SELECT signature FROM entries WHERE seq = 3) WHERE seq = 7",
        7,
        "signature",
    ),
    "entry removed": ("DELETE FROM entries WHERE seq = 8", 8, "modified"),
    "entries exchanged": (
        "UPDATE entries SET body = (SELECT e.body FROM entries e WHERE e.seq = 9 - entries.seq) WHERE seq IN (4, 5)",
        4,
        "modified",
    ),
    "last entry removed": ("DELETE FROM entries WHERE seq = 35", 35, "truncated"),
    "last entries removed": ("DELETE FROM entries WHERE seq >= 30", 30, "truncated"),
    "all entries removed": ("DELETE FROM entries", 0, "truncated"),
    "record removed": ("DELETE FROM records WHERE entry = 9 AND kind = 'receipt'", 9, "modified"),
    "record emptied": (
        "UPDATE records SET layout = zeroblob(3) WHERE entry = 9 AND kind = 'receipt'",
        9,
        "modified",
    ),
    "record cut": (
        "UPDATE records SET layout = substr(layout, 1, length(layout) - 1) WHERE entry = 12 AND kind = 'receipt'",
        12,
        "modified",
    ),
    "part altered": (
        "UPDATE parts SET body = CAST(substr(body, 1, length(body) - 1) || x'00' AS BLOB) WHERE id = 1",
        0,
        "modified",
    ),
    "part replaced": ("UPDATE parts SET codec = 0, body = CAST('{}' AS BLOB) WHERE id = 1", 0, "modified"),
    "part of an unknown codec": ("UPDATE parts SET codec = 9 WHERE id = 1", 0, "modified"),
    "record of another codec": ("UPDATE records SET codec = 0 WHERE entry = 9 AND codec = 1", 9, "modified"),
    "part of a codec that is none": ("UPDATE parts SET codec = 'x' WHERE id = 1", 0, "modified"),
    "part of another type": ("UPDATE parts SET body = 'x' WHERE id = 1", 0, "modified"),
    "row cell of another type": (
        "UPDATE requests SET project = CAST(project AS BLOB) WHERE id = 2",
        3,
        "modified",
    ),
    "row digest of another type": ("UPDATE requests SET lineage = 'x' WHERE id = 2", 3, "modified"),
    "part removed": ("DELETE FROM parts WHERE id = 3", 0, "modified"),
    "row altered": ("UPDATE requests SET effect = 'refused' WHERE request_id = 'req-2'", 8, "modified"),
    "row state altered": (
        "UPDATE requests SET receipt_state = 'prepared' WHERE request_id = 'req-3'",
        11,
        "modified",
    ),
    "row removed": ("DELETE FROM requests WHERE request_id = 'req-4'", 12, "modified"),
    "row points back": ("UPDATE requests SET latest = 6 WHERE request_id = 'req-2'", 6, "modified"),
    "row points elsewhere": ("UPDATE requests SET latest = 30 WHERE request_id = 'req-2'", 6, "modified"),
    "row points nowhere": ("UPDATE requests SET latest = 99 WHERE request_id = 'req-2'", 6, "modified"),
    "checkpoint altered": (
        "UPDATE checkpoints SET note = CAST(replace(CAST(note AS TEXT), '36', '35') AS BLOB) WHERE size = 36",
        34,
        "signature",
    ),
    # -- what no entry covers must not be listed, dated or joined otherwise than the log says
    "record that no entry covers": (
        "INSERT INTO records SELECT 999, zeroblob(32), 'boundary_event', 9, NULL, codec, layout, NULL FROM records WHERE id = 1",
        9,
        "modified",
    ),
    "record that no entry covers, and no entry is there": (
        "INSERT INTO records SELECT 999, zeroblob(32), 'boundary_event', 77, NULL, codec, layout, NULL FROM records WHERE id = 1",
        36,
        "modified",
    ),
    "record before all": (
        "INSERT INTO records SELECT -1, zeroblob(32), 'boundary_event', -5, NULL, codec, layout, NULL FROM records WHERE id = 1",
        0,
        "modified",
    ),
    "record of another kind": (
        "UPDATE records SET kind = 'event' WHERE entry = 9 AND kind = 'receipt'",
        9,
        "modified",
    ),
    "observation of another request": (
        "UPDATE records SET request = 2 WHERE kind = 'observation' AND entry = 10",
        10,
        "modified",
    ),
    "event taken from its request": (
        "UPDATE records SET request = NULL WHERE kind = 'event' AND entry = 10",
        10,
        "modified",
    ),
    "record of a later entry": (
        "UPDATE records SET entry = 11 WHERE kind = 'observation' AND entry = 10",
        11,
        "modified",
    ),
    "request that no entry opened": (
        "INSERT INTO requests SELECT 99, 'req-x', receipt, time, project, effect, receipt_state, evaluation, admission,"
        " lineage, provider, 9, 9 FROM requests WHERE id = 2",
        9,
        "modified",
    ),
    "request that is said to be opened later": ("UPDATE requests SET entry = 4 WHERE id = 2", 3, "modified"),
    "request that is said to be opened elsewhere": (
        "UPDATE requests SET entry = 0 WHERE id = 2",
        0,
        "modified",
    ),
    "request of another number": ("UPDATE requests SET id = 77 WHERE id = 2", 3, "modified"),
    "entry of another time": (
        "UPDATE entries SET time = '2020-01-01T00:00:00.000000Z' WHERE seq = 8",
        8,
        "modified",
    ),
    "checkpoint that is said to cover more": (
        "INSERT INTO checkpoints SELECT 99, note FROM checkpoints WHERE size = 36",
        36,
        "modified",
    ),
    "checkpoint that is none": ("UPDATE checkpoints SET note = 'hello' WHERE size = 36", 0, "signature"),
}


@pytest.mark.parametrize("name", EDITS)
def test_the_first_bad_entry_is_named(state: Path, name: str) -> None:
    statement, index, kind = EDITS[name]
    edit(state, statement)
    bad = verify(state).document()["first_bad"]
    assert bad == {"index": index, "kind": kind}


def test_an_entry_rewritten_with_its_hash_is_found_by_its_signature(state: Path) -> None:
    with closing(sqlite3.connect(state / "egress.db")) as connection, connection:
        (body,) = connection.execute("SELECT body FROM entries WHERE seq = 10").fetchone()
        body = body.replace(b'"time":"2026', b'"time":"2025')
        connection.execute("UPDATE entries SET body = ?, leaf = ? WHERE seq = 10", (body, leaf_hash(body)))
    assert verify(state).document()["first_bad"] == {"index": 10, "kind": "modified"}


def test_unsigned_rewriting_is_found_by_the_chain(state: Path) -> None:
    with closing(sqlite3.connect(state / "egress.db")) as connection, connection:
        (body,) = connection.execute("SELECT body FROM entries WHERE seq = 10").fetchone()
        body = body.replace(b'"time":"2026', b'"time":"2025')
        connection.execute(
            "UPDATE entries SET body = ?, leaf = ?, signature = NULL WHERE seq = 10", (body, leaf_hash(body))
        )
    assert verify(state).document()["first_bad"] == {"index": 10, "kind": "modified"}


def test_the_end_put_back_together_with_its_checkpoints_is_truncation(state: Path) -> None:
    edit(
        state,
        "DELETE FROM entries WHERE seq >= 33",
        "DELETE FROM records WHERE entry >= 33",
        "DELETE FROM requests WHERE entry >= 33",
        "DELETE FROM checkpoints WHERE size > 33",
    )
    assert verify(state).document()["first_bad"] == {"index": 33, "kind": "truncated"}


def test_an_older_database_put_back_is_truncation(state: Path, tmp_path: Path) -> None:
    shutil.copy(state / "checkpoint", tmp_path / "newer")
    older = tmp_path / "older"
    older.mkdir()

    async def short() -> None:
        store = SqliteStore(older / "egress.db", signer(), TestClock()).open()
        made = sample(0, 4)
        await store.append(made.records, made.row)
        await store.close()

    asyncio.run(short())
    shutil.copy(tmp_path / "newer", older / "checkpoint")
    assert verify(older).document()["first_bad"] == {"index": 1, "kind": "truncated"}


@pytest.mark.parametrize("emptied", [("egress.db", "checkpoint"), ("egress.db",), ("checkpoint",)])
def test_emptied_files_are_truncation(state: Path, emptied: tuple[str, ...]) -> None:
    for name in emptied:
        (state / name).write_bytes(b"")
    report = verify(state)
    assert not report.ok
    assert report.first_bad is not None
    assert report.first_bad.kind == "truncated"


def test_a_missing_checkpoint_file_is_truncation(state: Path) -> None:
    (state / "checkpoint").unlink()
    assert verify(state).document()["first_bad"] == {"index": 36, "kind": "truncated"}


def test_a_missing_database_is_truncation_and_no_store_at_all_is_an_error(state: Path) -> None:
    (state / "egress.db").unlink()
    assert verify(state).document()["first_bad"] == {"index": 0, "kind": "truncated"}
    (state / "checkpoint").unlink()
    with pytest.raises(EvidenceError) as caught:
        verify(state)
    assert caught.value.code == "evidence.none"


@pytest.mark.parametrize(
    "junk", [b"not a database at all, but long enough to be read as one" * 100, b"SQLite format 3\0"]
)
def test_a_file_that_is_no_database_does_not_verify(state: Path, junk: bytes) -> None:
    (state / "egress.db").write_bytes(junk)
    assert not verify(state).ok


def test_a_torn_page_does_not_verify(state: Path) -> None:
    path = state / "egress.db"
    data = bytearray(path.read_bytes())
    data[len(data) // 2 : len(data) // 2 + 6000] = bytes(6000)
    path.write_bytes(data)
    assert not verify(state).ok


def test_five_rows_gone_from_every_long_table(state: Path) -> None:
    """The shared harness damages a copy like this."""
    with closing(sqlite3.connect(state / "egress.db")) as connection, connection:
        for (table,) in connection.execute("select name from sqlite_master where type = 'table'").fetchall():
            try:
                if connection.execute(f"select count(*) from {table}").fetchone()[0] > 20:
                    last = f"select rowid from {table} order by rowid desc limit 5"
                    connection.execute(f"delete from {table} where rowid in ({last})")
            except sqlite3.OperationalError:
                continue  # a table without rowid
    assert not verify(state).ok


def test_a_published_checkpoint_of_another_log_does_not_fit(state: Path, tmp_path: Path) -> None:
    other = tmp_path / "other"
    other.mkdir()

    async def make() -> None:
        store = SqliteStore(other / "egress.db", signer(), TestClock(ticks=7)).open()
        for number in range(36):
            made = sample(number + 100)
            await store.append(made.records, made.row)
        await store.close()

    asyncio.run(make())
    shutil.copy(other / "checkpoint", state / "checkpoint")
    assert not verify(state).ok


async def test_text_that_is_none_any_more_is_a_modification(tmp_path: Path) -> None:
    """A page that was overwritten may leave a cell that says it is text."""
    store = SqliteStore(tmp_path / "egress.db", signer(), TestClock()).open()
    for number in range(3):
        made = sample(number, 2)
        await store.append(made.records, made.row)
    await store.close()
    database = apsw.Connection(str(tmp_path / "egress.db"))
    database.execute("UPDATE entries SET body = CAST(x'ff80fe' AS TEXT) WHERE seq = 1")
    database.close()
    report = verify_store(tmp_path / "egress.db", signer().public_key)
    assert not report.ok
    assert report.first_bad is not None
    assert report.first_bad.kind == "modified"
