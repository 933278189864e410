"""The cross-project audit file: appended, locked, rotated; first the event, then everything else."""

from __future__ import annotations

import json
import multiprocessing
from pathlib import Path

import pytest

from gateway.errors import EvidenceError
from gateway.ports import Record, RequestRow
from gateway.store.crossings import AuditedStore, CrossProjectLog


def _write(path: str, who: int) -> None:
    log = CrossProjectLog(Path(path), max_bytes=4000, kept=20)
    for number in range(50):
        log.append([json.dumps({"who": who, "number": number}).encode()])


def _lines(folder: Path) -> list[dict[str, int]]:
    files = sorted(folder.glob("cross-project.jsonl*"))
    return [json.loads(line) for file in files for line in file.read_bytes().splitlines()]


def test_processes_that_write_at_once_lose_and_tear_nothing(tmp_path: Path) -> None:
    path = tmp_path / "audit" / "cross-project.jsonl"
    spawn = multiprocessing.get_context("spawn")
    writers = [spawn.Process(target=_write, args=(str(path), who)) for who in range(3)]
    for writer in writers:
        writer.start()
    for writer in writers:
        writer.join(60)

    assert sorted((e["who"], e["number"]) for e in _lines(path.parent)) == [
        (w, n) for w in range(3) for n in range(50)
    ]
    assert path.stat().st_mode & 0o077 == 0


def test_a_full_file_is_renamed_and_the_oldest_goes(tmp_path: Path) -> None:
    log = CrossProjectLog(tmp_path / "cross-project.jsonl", max_bytes=30, kept=2)
    for number in range(9):
        log.append([b'{"number": %d}' % number])
    names = sorted(p.name for p in tmp_path.glob("*.jsonl*"))
    assert names == ["cross-project.jsonl", "cross-project.jsonl.1", "cross-project.jsonl.2"]
    assert sorted(e["number"] for e in _lines(tmp_path)) == [4, 5, 6, 7, 8]


def test_half_an_event_of_a_crash_spoils_no_other(tmp_path: Path) -> None:
    path = tmp_path / "cross-project.jsonl"
    path.write_bytes(b'{"number": 1}\n{"numb')
    CrossProjectLog(path).append([b'{"number": 2}'])
    assert path.read_bytes().splitlines() == [b'{"number": 1}', b'{"numb', b'{"number": 2}']


class _Store:
    def __init__(self) -> None:
        self.kinds: list[str] = []

    async def append(self, records: list[Record], row: RequestRow | None = None) -> None:
        self.kinds += [record.kind for record in records]

    async def health(self) -> str:
        return "fine"


async def test_nothing_is_stored_where_the_event_cannot_be(tmp_path: Path) -> None:
    (tmp_path / "audit").write_text("a file where a folder must be")
    inner = _Store()
    store = AuditedStore(inner, CrossProjectLog(tmp_path / "audit" / "cross-project.jsonl"))  # type: ignore[arg-type]
    with pytest.raises(EvidenceError) as caught:
        await store.append(
            [Record("receipt", "sha256:r", (b"{}",)), Record("boundary_event", "sha256:e", (b"{}",))]
        )
    assert caught.value.code == "evidence.unavailable"
    assert inner.kinds == []
    await store.append([Record("receipt", "sha256:r", (b"{}",))])
    assert inner.kinds == ["receipt"]
    assert await store.health() == "fine"
