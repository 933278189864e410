"""Power loss: a file layer that forgets writes which no sync followed, cut at every sync and between them.

What was acknowledged must be in what is left, and what is left must verify and open. Kills alone show nothing of
this: the kernel keeps what a killed process wrote.
"""

from __future__ import annotations

import random
import shutil
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

import apsw
import pytest

from gateway.errors import GatewayError
from gateway.evidence import lineage
from gateway.store import disk, published
from gateway.store.audit import verify_store
from gateway.store.disk import EvidenceDisk
from gateway.store.log import prepare
from gateway.store.reader import SqliteReader
from tests.support.evidence import TestClock, attempt, sample, signer

KEY = signer().public_key


@dataclass
class History:
    """Everything that happened to the files, in order: (what, file, offset, bytes)."""

    events: list[tuple[str, str, int, bytes]] = field(default_factory=list)

    def add(self, what: str, name: str | Path, offset: int = 0, data: bytes = b"") -> None:
        self.events.append((what, Path(name).name, offset, data))


class RecordingVFS(apsw.VFS):
    def __init__(self, history: History) -> None:
        self.history = history
        super().__init__("recording", "unix", makedefault=True)

    def xOpen(self, name: str | apsw.URIFilename | None, flags: list[int]) -> RecordingFile:  # noqa: N802
        return RecordingFile(self.history, name, flags)

    def xDelete(self, filename: str, syncdir: bool) -> None:  # noqa: N802
        super().xDelete(filename, syncdir)
        self.history.add("delete", filename)


class RecordingFile(apsw.VFSFile):
    def __init__(self, history: History, name: str | apsw.URIFilename | None, flags: list[int]) -> None:
        super().__init__("unix", name, flags)
        self.history = history
        self.name = name.filename() if isinstance(name, apsw.URIFilename) else str(name)
        history.add("open", self.name)

    def xWrite(self, data: bytes, offset: int) -> None:  # noqa: N802
        super().xWrite(data, offset)
        self.history.add("write", self.name, offset, bytes(data))

    def xTruncate(self, newsize: int) -> None:  # noqa: N802
        super().xTruncate(newsize)
        self.history.add("truncate", self.name, newsize)

    def xSync(self, flags: int) -> None:  # noqa: N802
        super().xSync(flags)
        self.history.add("sync", self.name)


def apply(data: bytearray, event: tuple[str, str, int, bytes]) -> None:
    what, _, offset, written = event
    if what == "truncate":
        del data[offset:]
        data.extend(bytes(offset - len(data)))
    elif what == "write":
        data.extend(bytes(max(offset - len(data), 0)))
        data[offset : offset + len(written)] = written


def after_loss(events: list[tuple[str, str, int, bytes]], survives: Callable[[], bool]) -> dict[str, bytes]:
    """The files after the power went: all that was synced, and of the rest what `survives`."""
    durable: dict[str, bytearray] = {}
    pending: dict[str, list[tuple[str, str, int, bytes]]] = {}
    for event in events:
        what, name = event[0], event[1]
        if what == "sync":
            for waiting in pending.pop(name, []):
                apply(durable.setdefault(name, bytearray()), waiting)
            durable.setdefault(name, bytearray())
        elif what == "replace":  # written, synced and renamed before this is told
            durable[name] = bytearray(event[3])
        elif what in {"write", "truncate"}:
            pending.setdefault(name, []).append(event)
        elif what == "delete":
            durable.pop(name, None)
            pending.pop(name, None)
    for name, waiting in pending.items():
        for event in waiting:
            if survives():
                apply(durable.setdefault(name, bytearray()), event)
    return {name: bytes(data) for name, data in durable.items()}


@pytest.fixture(scope="module")
def history(tmp_path_factory: pytest.TempPathFactory) -> History:
    made = History()
    with pytest.MonkeyPatch.context() as patch:
        # This file layer has no shared memory; exclusive locking does without, and syncs just the same.
        pragmas = ("PRAGMA locking_mode = EXCLUSIVE", *disk._PRAGMAS, "PRAGMA wal_autocheckpoint = 20")
        patch.setattr(disk, "_PRAGMAS", pragmas)

        def publish(path: Path, note: bytes) -> None:
            published.publish(path, note)
            made.add("replace", path, 0, note)

        patch.setattr(disk, "publish", publish)
        layer = RecordingVFS(made)
        try:
            live(tmp_path_factory.mktemp("life"), made)
        finally:
            layer.unregister()
    return made


def live(folder: Path, made: History) -> None:
    """A short life of the store: requests, attempts, checkpoints; the write-ahead log is folded back in between."""
    clock = TestClock()
    store = EvidenceDisk(folder / "egress.db", signer(), clock)
    store.begin()
    made.add("ready", "")
    for number in range(14):
        one = sample(number, 3)
        assert one.admission is not None
        jobs = [prepare(one.records, one.row)]
        if number % 3 == 0:
            tried = attempt(http_status=None, failure="timeout", level="handed_over")
            jobs.append(prepare(lineage.attempt_records(tried, one.admission), one.row))
        store.commit(jobs)
        for job in jobs:
            for record in job.records:
                made.add("acknowledged", record.digest)
        clock.seconds += 0.4
        store.idle()
    store.shut()


@pytest.fixture
def memory() -> Iterator[Path]:
    """A folder where syncing costs nothing; the layer above says what is durable."""
    shared = Path("/dev/shm")
    with tempfile.TemporaryDirectory(dir=shared if shared.is_dir() else None) as folder:
        yield Path(folder)


def problem(folder: Path, files: dict[str, bytes], acknowledged: list[str]) -> str:
    """What is wrong with what was left over, empty where nothing is."""
    folder.mkdir()
    for name, data in files.items():
        (folder / name).write_bytes(data)
    path = folder / "egress.db"
    try:
        again = EvidenceDisk(path, signer(), TestClock())
        again.begin()
        again.shut()
    except GatewayError as error:
        return str(error)
    report = verify_store(path, KEY)
    reader = SqliteReader(path)
    lost = [name for name in acknowledged if reader.record(name) is None]
    reader.close()
    return f"{len(lost)} records lost" if lost else "" if report.ok else str(report)


@pytest.mark.parametrize("chance", [0.0, 0.3, 0.7, 1.0])
def test_acknowledged_appends_outlive_the_power(history: History, memory: Path, chance: float) -> None:
    """`chance` is how much of what was not synced survives all the same."""
    dice = random.Random(chance)
    events = history.events
    start = next(at for at, event in enumerate(events) if event[0] == "ready")
    cuts = [
        at + 1 for at in range(start, len(events)) if events[at][0] in {"sync", "replace", "acknowledged"}
    ]
    cuts += dice.sample(range(start + 1, len(events)), 25)
    assert len(cuts) > 60
    for cut in cuts if chance == 0.0 else dice.sample(cuts, 25):
        before = events[:cut]
        acknowledged = [name for what, name, _, _ in before if what == "acknowledged"]
        files = after_loss(before, lambda: dice.random() < chance)
        assert problem(memory / str(cut), files, acknowledged) == "", f"cut at {cut}"
        shutil.rmtree(memory / str(cut))


def test_the_layer_tells_a_store_that_does_not_sync(history: History, memory: Path) -> None:
    """Without syncs of the write-ahead log, acknowledged appends are lost: so the test above can fail."""
    events = [e for e in history.events if not (e[0] == "sync" and e[1].endswith("-wal"))]
    last = max(at for at, event in enumerate(events) if event[0] == "acknowledged")
    acknowledged = [name for what, name, _, _ in events if what == "acknowledged"]
    assert problem(memory / "copy", after_loss(events[: last + 1], lambda: False), acknowledged) != ""
