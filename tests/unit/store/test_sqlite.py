"""What only the store on disk can get wrong: full disks, locks, two gateways, crashes, other hands."""

from __future__ import annotations

import asyncio
import os
import shutil
import stat
import subprocess
import sys
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import closing
from pathlib import Path

import apsw
import pytest

from gateway.contract import ContextDecisionLineageV1
from gateway.errors import EvidenceError, SetupError
from gateway.evidence import lineage
from gateway.evidence.checkpoint import open_note
from gateway.evidence.entry import read_entry
from gateway.evidence.sign import verifier_key
from gateway.store import disk, writer
from gateway.store.audit import verify_store
from gateway.store.export import Selection, export_bundle, verify_bundle
from gateway.store.reader import SqliteReader
from gateway.store.sqlite import SqliteStore
from tests.support.evidence import TestClock, attempt, record, sample, signer
from tests.support.waiting import eventually

KEY = signer().public_key


@pytest.fixture
def clock() -> TestClock:
    return TestClock()


@pytest.fixture
async def store(tmp_path: Path, clock: TestClock) -> AsyncIterator[SqliteStore]:
    made = SqliteStore(tmp_path / "egress.db", signer(), clock).open()
    yield made
    await made.close()


def reopened(folder: Path) -> SqliteStore:
    return SqliteStore(folder / "egress.db", signer(), TestClock())


def refused(folder: Path) -> SetupError:
    with pytest.raises(SetupError) as caught:
        reopened(folder).open()
    assert caught.value.hint
    return caught.value


def edit(folder: Path, statement: str) -> None:
    """With the library that the store uses: two of them in one process would not see each other's locks."""
    with closing(apsw.Connection(str(folder / "egress.db"))) as connection:
        connection.execute(statement)


# -- one writer ---------------------------------------------------------------------------------------------------


async def test_a_second_gateway_is_told_what_to_do(store: SqliteStore, tmp_path: Path) -> None:
    assert refused(tmp_path).code == "state.in_use"
    await store.append([record("event", b"{}")])  # the first one is not disturbed
    await store.close()
    again = reopened(tmp_path).open()
    await again.close()


async def test_the_lock_goes_with_a_killed_process(tmp_path: Path) -> None:
    code = (
        "import sys, time, pathlib; sys.path.insert(0, '.')\n"
        "from tests.support.evidence import TestClock, signer\n"
        "from gateway.store.sqlite import SqliteStore\n"
        "SqliteStore(pathlib.Path(sys.argv[1]), signer(), TestClock()).open(); print('ready', flush=True); time.sleep(60)"
    )
    process = subprocess.Popen(
        [sys.executable, "-c", code, str(tmp_path / "egress.db")], stdout=subprocess.PIPE
    )
    try:
        assert process.stdout is not None
        assert process.stdout.readline() == b"ready\n"
        assert refused(tmp_path).code == "state.in_use"
    finally:
        process.kill()
        process.communicate()
    again = reopened(tmp_path).open()
    await again.close()


def test_files_are_for_the_owner_only(tmp_path: Path) -> None:
    async def run() -> None:
        store = reopened(tmp_path / "state").open()
        await store.append([record("event", b"{}")])
        modes = {p.name: stat.S_IMODE(p.stat().st_mode) for p in (tmp_path / "state").iterdir()}
        assert set(modes) >= {"egress.db", "egress.db-wal", "checkpoint", "lock"}
        assert all(mode & 0o077 == 0 for mode in modes.values()), modes
        await store.close()

    asyncio.run(run())


# -- checkpoints --------------------------------------------------------------------------------------------------


async def test_a_receipt_is_logged_once_a_checkpoint_covers_it(
    store: SqliteStore, tmp_path: Path, clock: TestClock
) -> None:
    first, second = sample(1), sample(2)
    await store.append(first.records, first.row)
    (row,), _ = await store.rows({})
    assert row["log_index"] is None
    report = verify_store(tmp_path / "egress.db", KEY)
    assert (report.ok, report.entries, report.not_yet_logged) == (True, 1, 1)
    clock.seconds += disk.CHECKPOINT_SECONDS
    await store.append(second.records, second.row)
    rows, _ = await store.rows({})
    assert rows[1]["log_index"] == 0
    clock.seconds += disk.CHECKPOINT_SECONDS
    await eventually(lambda: store.rows({}), lambda found: [row["log_index"] for row in found[0]] == [1, 0])
    await store.close()
    assert open_note((tmp_path / "checkpoint").read_bytes(), [KEY]).size == 2
    report = verify_store(tmp_path / "egress.db", KEY)
    assert (report.entries, report.not_yet_logged) == (2, 0)


async def test_a_checkpoint_comes_by_number_and_by_time(
    store: SqliteStore, tmp_path: Path, clock: TestClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(disk, "CHECKPOINT_ENTRIES", 3)
    for number in range(4):
        await store.append([record("event", b"%d" % number)])
    await store.health()  # the writer has been round once more
    assert open_note((tmp_path / "checkpoint").read_bytes(), [KEY]).size in {3, 4}
    clock.seconds += disk.CHECKPOINT_SECONDS
    await asyncio.sleep(disk.CHECKPOINT_SECONDS + 0.3)  # nobody appends: the writer wakes by itself
    assert open_note((tmp_path / "checkpoint").read_bytes(), [KEY]).size == 4


# -- crashes ------------------------------------------------------------------------------------------------------


async def crashed(folder: Path, *requests: object) -> Path:
    """A copy of the state while the store is open: what a kill leaves behind."""
    copy = folder / "crashed"
    shutil.copytree(folder / "live", copy)
    (copy / "egress.db-shm").unlink()
    return copy


@pytest.mark.parametrize(
    ("tries", "state"),
    [
        ([], "prepared"),
        ([attempt(http_status=None, failure="connect", body_complete=False, level="not_sent")], "prepared"),
        ([attempt(http_status=None, failure="timeout", level="handed_over")], "handed_off"),
        ([attempt()], "handed_off"),  # never more than that, however much was seen
    ],
)
async def test_what_a_crash_left_open_is_closed_as_what_was_provable(
    tmp_path: Path, tries: list[lineage.Attempt], state: str
) -> None:
    live = SqliteStore(tmp_path / "live" / "egress.db", signer(), TestClock()).open()
    made, other = sample(1), sample(2, refused=True)
    assert made.admission is not None
    await live.append(made.records, made.row)
    await live.append(other.records, other.row)
    for tried in tries:
        await live.append(lineage.attempt_records(tried, made.admission), made.row)
    copy = await crashed(tmp_path)
    await live.close()
    again = reopened(copy).open()
    (refusal, row), _ = await again.rows({})
    assert (row["receipt_state"], refusal["lineage"]) == (state, None)
    written = ContextDecisionLineageV1.from_json(await again.record(row["lineage"]) or b"")
    written.validate_for(made.receipt)
    assert (written.receipt_state, written.egress_observations) == (state, ())
    assert written.egress_admission == made.row.admission
    await again.close()
    assert verify_store(copy / "egress.db", KEY).ok


async def test_killed_while_writing(tmp_path: Path) -> None:
    """What was acknowledged is there after SIGKILL, and the log holds; three kills at different moments."""
    for wait in (0.05, 0.15, 0.3):
        folder = tmp_path / str(wait)
        process = subprocess.Popen(
            [sys.executable, "-m", "tests.support.evidence_writer", str(folder / "egress.db")],
            stdout=subprocess.PIPE,
        )
        assert process.stdout is not None
        acknowledged = [process.stdout.readline()]
        await asyncio.sleep(wait)
        process.kill()
        rest, _ = process.communicate()
        acknowledged += [line for line in rest.splitlines(keepends=True) if line.endswith(b"\n")]
        assert len(acknowledged) > 1
        store = reopened(folder).open()
        for line in acknowledged:
            assert await store.record(line.decode().strip()) is not None
        rows, _ = await store.rows({"limit": 1000})
        assert all(row["lineage"] for row in rows)
        await store.close()
        report = verify_store(folder / "egress.db", KEY)
        assert report.ok
        assert report.entries >= len(acknowledged)


# -- failures that pass -------------------------------------------------------------------------------------------


def test_a_full_disk_refuses_and_recovers_by_itself(tmp_path: Path) -> None:
    """In a process of its own: a file size limit of zero stands for the full disk."""
    code = Path(__file__).with_name("full_disk.py")
    done = subprocess.run(
        [sys.executable, str(code), str(tmp_path)], check=False, capture_output=True, text=True, timeout=60
    )
    assert done.returncode == 0, done.stderr
    assert verify_store(tmp_path / "egress.db", KEY).ok


async def test_a_locked_database_refuses_and_recovers(
    store: SqliteStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(disk, "BUSY_MS", 100)
    first = sample(1)
    await store.append(first.records, first.row)
    with closing(apsw.Connection(str(tmp_path / "egress.db"))) as other:
        other.execute("BEGIN IMMEDIATE")
        second = sample(2)
        with pytest.raises(EvidenceError) as caught:
            await store.append(second.records, second.row)
        assert caught.value.code == "evidence.unavailable"
        assert "locked" in await store.health()
        assert len((await store.rows({}))[0]) == 1
        other.execute("ROLLBACK")
    await store.append(second.records, second.row)
    assert await store.health() == ""
    await store.close()
    assert verify_store(tmp_path / "egress.db", KEY).ok


async def test_a_failed_commit_leaves_memory_and_disk_as_they_were(
    store: SqliteStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    await store.append([record("event", b"1")])
    original = disk.Batch.seal

    def broken(self: disk.Batch, *arguments: object) -> None:
        original(self, *arguments)  # type: ignore[arg-type]  # passed on as they came
        raise OSError(28, "no space")

    monkeypatch.setattr(disk.Batch, "seal", broken)
    results = await asyncio.gather(
        *(store.append([record("event", b"x%d" % n)]) for n in range(5)), return_exceptions=True
    )
    assert all(isinstance(result, EvidenceError) for result in results)
    assert await store.health() != ""
    monkeypatch.undo()
    await store.append([record("event", b"2")])
    assert await store.record(record("event", b"x1").digest) is None
    await store.close()
    report = verify_store(tmp_path / "egress.db", KEY)
    assert (report.ok, report.entries) == (True, 2)


@pytest.mark.parametrize("pages", [2, 20, 50])
async def test_a_disk_with_room_for_a_word_and_not_for_an_append_is_not_well(
    store: SqliteStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, pages: int
) -> None:
    await store.append([record("event", b"1")])
    with closing(apsw.Connection(str(tmp_path / "egress.db"))) as other:
        limit = int(other.pragma("page_count")) + pages
    with monkeypatch.context() as small:
        small.setattr(disk, "_PRAGMAS", (*disk._PRAGMAS, f"PRAGMA max_page_count = {limit}"))
        await store._writer.submit(None, store._disk.drop)
        with pytest.raises(EvidenceError):
            await store.append([record("event", os.urandom(disk.ROOM_BYTES))])
        assert "full" in await store.health()
    assert await store.health() == ""
    await store.append([record("event", b"2")])
    await store.close()
    assert verify_store(tmp_path / "egress.db", KEY).ok


async def test_the_checkpoint_file_is_made_good_later(
    store: SqliteStore, tmp_path: Path, clock: TestClock
) -> None:
    beside = tmp_path / f"checkpoint.{os.getpid()}.new"
    beside.mkdir()  # the file beside it cannot be written
    clock.seconds += disk.CHECKPOINT_SECONDS
    await store.append([record("event", b"1")])
    await store.append([record("event", b"2")])
    assert "checkpoint" in await store.health()
    beside.rmdir()
    await store.append([record("event", b"3")])
    await store.append([record("event", b"4")])
    assert await store.health() == ""


# -- other hands --------------------------------------------------------------------------------------------------


async def test_a_log_cut_while_the_gateway_runs_is_not_written_to(store: SqliteStore, tmp_path: Path) -> None:
    for number in range(3):
        await store.append([record("event", b"%d" % number)])
    edit(tmp_path, "DELETE FROM entries WHERE seq = 2")
    with pytest.raises(EvidenceError):
        await store.append([record("event", b"next")])
    assert "altered" in await store.health() or "not the one" in await store.health()
    with pytest.raises(EvidenceError):  # nor after it started over from the database
        await store.append([record("event", b"next")])


async def test_a_database_replaced_while_the_gateway_runs_is_not_written_to(
    store: SqliteStore, tmp_path: Path
) -> None:
    await store.append([record("event", b"1")])
    (tmp_path / "egress.db").rename(tmp_path / "taken.db")
    with pytest.raises(EvidenceError):
        await store.append([record("event", b"2")])
    with pytest.raises(EvidenceError):
        await store.append([record("event", b"3")])
    (tmp_path / "taken.db").rename(tmp_path / "egress.db")
    await store.append([record("event", b"4")])


@pytest.fixture
async def closed(tmp_path: Path) -> Path:
    store = reopened(tmp_path).open()
    for number in range(4):
        made = sample(number, refused=True)
        await store.append(made.records, made.row)
    await store.close()
    return tmp_path


async def test_a_damaged_log_is_not_opened(closed: Path) -> None:
    kept = (closed / "checkpoint").read_bytes()
    (closed / "checkpoint").write_bytes(b"")
    assert "does not hold" in str(refused(closed))
    (closed / "checkpoint").unlink()
    assert "gone" in str(refused(closed))
    (closed / "checkpoint").write_bytes(kept)
    other = SqliteStore(closed / "egress.db", signer(2), TestClock())
    with pytest.raises(SetupError) as caught:
        other.open()
    assert caught.value.code == "evidence.damaged"
    edit(closed, "UPDATE entries SET leaf = zeroblob(32) WHERE seq = 1")
    assert "altered" in str(refused(closed))
    edit(closed, "DELETE FROM entries WHERE seq = 3")
    assert "cut short" in str(refused(closed))


@pytest.mark.parametrize(
    "damage",
    [
        "UPDATE entries SET body = 'x' WHERE seq = 5",
        "DELETE FROM entries WHERE seq = 5",
        "UPDATE entries SET leaf = zeroblob(32) WHERE seq = 6",
    ],
)
async def test_entries_since_the_last_checkpoint_must_join(tmp_path: Path, damage: str) -> None:
    live = SqliteStore(tmp_path / "live" / "egress.db", signer(), TestClock()).open()
    for number in range(8):
        await live.append([record("event", b"%d" % number)])
    copy = await crashed(tmp_path)
    await live.close()
    edit(copy, damage)
    assert refused(copy).code == "evidence.damaged"


async def test_files_that_are_no_database_are_refused(closed: Path) -> None:
    (closed / "egress.db").write_bytes(b"no database " * 1000)
    assert refused(closed).code == "store.unusable"
    (closed / "egress.db").write_bytes(b"")
    assert "cut short" in str(refused(closed))


async def test_a_newer_schema_is_refused(closed: Path) -> None:
    edit(closed, "INSERT INTO migrations VALUES (99, '')")
    assert refused(closed).code == "store.newer"


def test_an_unusable_folder_is_refused(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(SetupError) as caught:
        SqliteStore(tmp_path / "file" / "egress.db", signer(), TestClock()).open()
    assert caught.value.code == "state.unusable"


# -- the queue ----------------------------------------------------------------------------------------------------


async def test_a_full_queue_refuses_at_once(store: SqliteStore, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(store._writer, "_limit", 3)
    appends = [store.append([record("event", b"%d" % number)]) for number in range(50)]
    results = await asyncio.gather(*appends, return_exceptions=True)
    refusals = [r for r in results if isinstance(r, EvidenceError)]
    assert 0 < len(refusals) < 50
    assert {r.code for r in refusals} == {"evidence.unavailable"}
    await store.append([record("event", b"later")])


async def test_a_caller_that_gives_up_takes_nothing_back(store: SqliteStore) -> None:
    event = record("event", b"given up")
    task = asyncio.ensure_future(store.append([event]))
    await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    await store.append([record("event", b"next")])
    assert await store.record(event.digest) == b"given up"


async def test_a_writer_that_dies_refuses_everybody(
    store: SqliteStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("threading.excepthook", lambda arguments: None)
    monkeypatch.setattr(store._disk, "commit", lambda batch: 1 / 0)
    results = await asyncio.gather(
        *(store.append([record("event", b"%d" % n)]) for n in range(writer.MAX_BATCH + 5)),
        return_exceptions=True,
    )
    assert all(isinstance(result, EvidenceError) for result in results)
    with pytest.raises(EvidenceError):
        await store.append([record("event", b"later")])
    assert await store.health() != ""


async def test_a_disk_that_hangs_is_seen(
    store: SqliteStore, clock: TestClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    release = asyncio.Event()
    loop = asyncio.get_running_loop()
    original = store._disk.commit

    def hang(batch: list[object]) -> None:
        asyncio.run_coroutine_threadsafe(release.wait(), loop).result()
        original(batch)  # type: ignore[arg-type]  # passed on as it came

    monkeypatch.setattr(store._disk, "commit", hang)
    waiting = asyncio.ensure_future(store.append([record("event", b"1")]))
    await asyncio.sleep(0.05)
    behind = asyncio.ensure_future(store.append([record("event", b"2")]))
    await asyncio.sleep(0)
    await store.health()
    clock.seconds += 6
    assert await store.health() == "the disk does not answer"
    release.set()
    await asyncio.gather(waiting, behind)
    assert await store.health() == ""


# -- change of keys -----------------------------------------------------------------------------------------------


async def test_the_log_is_handed_over_to_a_new_key(store: SqliteStore, tmp_path: Path) -> None:
    old, new = signer(1), signer(2)
    await store.append([record("event", b"1")])
    during = [store.append([record("event", b"during %d" % n)]) for n in range(20)]
    await asyncio.gather(*during[:10], store.hand_over(new), *during[10:])
    await store.append([record("event", b"2")])
    await store.close()
    for key in (old.public_key, new.public_key):
        assert verify_store(tmp_path / "egress.db", key).ok
    assert open_note((tmp_path / "checkpoint").read_bytes(), [new.public_key]).size == 23
    with pytest.raises(SetupError) as caught:
        SqliteStore(tmp_path / "egress.db", old, TestClock()).open()
    assert caught.value.code == "keys.handed_over"
    again = SqliteStore(tmp_path / "egress.db", new, TestClock()).open()
    await again.append([record("event", b"3")])
    await again.close()
    lines = b"".join(
        export_bundle(tmp_path / "egress.db", verifier_key(new.name, new.public_key), Selection())
    )
    assert verify_bundle(lines, old.public_key).ok
    assert verify_bundle(lines, new.public_key).ok
    assert not verify_bundle(lines, signer(3).public_key).ok


async def test_a_key_takes_over_under_the_same_name(store: SqliteStore) -> None:
    with pytest.raises(EvidenceError) as caught:
        await store.hand_over(signer(2, "another"))
    assert caught.value.code == "evidence.key"
    await store.append([record("event", b"1")])


# -- torn pages ---------------------------------------------------------------------------------------------------

PAGE = 4096


def everything(path: Path) -> dict[str, bytes | None]:
    """Every record that the log covers, as it can be read."""
    reader = SqliteReader(path)
    try:
        bodies = reader.connection.execute("SELECT body FROM entries ORDER BY seq").fetchall()
        names = [name for (body,) in bodies for _, name in read_entry(bytes(body)).records]  # type: ignore[arg-type]
        return {name: reader.record(name) for name in names}
    finally:
        reader.close()


def torn(data: bytes, page: int, how: str) -> bytes:
    start, half, end = page * PAGE, page * PAGE + PAGE // 2, (page + 1) * PAGE
    if how == "cut":
        return data[:half]
    middle = data[start:half] if how == "half old" else bytes(PAGE // 2)
    rest = bytes(PAGE // 2) if how == "half old" else data[half:end]
    return data[:start] + middle + rest + data[end:]


async def opening(folder: Path) -> str:
    """What comes of starting on a folder: `opened`, or the code of the refusal, which says what to do."""
    try:
        store = reopened(folder).open()
    except SetupError as error:
        return error.code if error.hint else "no hint"
    await store.close()
    return "opened"


@pytest.mark.parametrize("how", ["cut", "half old", "half new"])
async def test_any_page_may_be_torn(closed: Path, tmp_path_factory: pytest.TempPathFactory, how: str) -> None:
    """Whatever holds after a torn page is whole, and what is not is refused: nothing but SetupError escapes."""
    whole, intact = (closed / "egress.db").read_bytes(), everything(closed / "egress.db")
    found = Counter[str]()
    for page in range(len(whole) // PAGE):
        folder = tmp_path_factory.mktemp("torn")
        shutil.copy(closed / "checkpoint", folder / "checkpoint")
        (folder / "egress.db").write_bytes(torn(whole, page, how))
        if verify_store(folder / "egress.db", KEY).ok:
            assert everything(folder / "egress.db") == intact, page
        else:
            found["not verified"] += 1
        found[await opening(folder)] += 1
    assert found["not verified"] > len(whole) // PAGE // 2
    assert set(found) <= {"not verified", "opened", "store.unusable", "evidence.damaged"}, found
    assert found["evidence.damaged"] + found["store.unusable"] > 0


async def test_a_torn_end_of_the_write_ahead_log_is_what_was_never_acknowledged(tmp_path: Path) -> None:
    """A crash in the middle of a write leaves half a frame behind the last commit; it is passed over."""
    live = SqliteStore(tmp_path / "live" / "egress.db", signer(), TestClock()).open()
    for number in range(5):
        await live.append([record("event", b"%d" % number)])
    copy = await crashed(tmp_path)
    await live.close()
    wal = copy / "egress.db-wal"
    wal.write_bytes(wal.read_bytes() + wal.read_bytes()[32 : 32 + 24 + PAGE // 2])
    store = reopened(copy).open()
    await store.append([record("event", b"6")])
    assert await store.record(record("event", b"4").digest) == b"4"
    await store.close()
    assert verify_store(copy / "egress.db", KEY).ok
