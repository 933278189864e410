"""ScanPool: every way in which a scan can go wrong ends in a DetectorError, and the next scan works."""

import asyncio
import os
import signal
import sys
import time
from collections.abc import AsyncIterator
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from types import ModuleType

import pytest

from gateway.context.findings import ScanItem
from gateway.errors import DetectorError, SetupError
from gateway.workers import ScanPool

SECOND = 1_000_000


@pytest.fixture
def crafted(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """The crafted detectors under a name that a scanning process can import too: it gets this import path."""
    folder = Path(__file__).parent
    monkeypatch.syspath_prepend(str(folder))
    spec = spec_from_file_location("crafted", folder / "crafted.py")
    assert spec is not None
    assert spec.loader is not None
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture
async def pool(crafted: ModuleType) -> AsyncIterator[ScanPool]:
    pool = ScanPool(crafted.build(), "crafted:build", inline_bytes=8, queue=2)
    await pool.start()
    yield pool
    await pool.close()


def soon(seconds: float = 20.0) -> int:
    return time.monotonic_ns() // 1000 + int(seconds * SECOND)


def big(word: str) -> list[ScanItem]:
    return [ScanItem(word + " " + "x" * 100)]


async def test_large_batches_are_scanned_in_the_process_and_come_back_whole(pool: ScanPool) -> None:
    texts = ["plain " + "y" * 50, "lone surrogate \ud800", "emoji 🙂", ""]
    results = await pool.scan([ScanItem(t, name="partial") for t in texts], deadline_us=soon())

    assert [r.findings[0].value for r in results] == ["y", "\ud800", "🙂", ""]
    assert [(r.findings[0].start, r.findings[0].end) for r in results[:3]] == [(55, 56), (15, 16), (6, 7)]
    assert all(not r.complete and r.reason == "partial" for r in results)


async def test_a_scan_larger_than_every_pipe_buffer_passes(pool: ScanPool) -> None:
    results = await pool.scan([ScanItem("z" * 5_000_000)], deadline_us=soon())

    assert results[0].findings[0].start == 4_999_999


async def test_an_overrunning_process_is_killed_and_replaced(pool: ScanPool) -> None:
    started = time.monotonic()
    with pytest.raises(DetectorError) as caught:
        await pool.scan(big("hang"), deadline_us=soon(0.3))

    assert caught.value.code == "detector.timed_out"
    assert time.monotonic() - started < 3
    assert len(await pool.scan(big("fine"), deadline_us=soon())) == 1


async def test_the_loop_runs_on_while_a_process_hangs(pool: ScanPool) -> None:
    scan = asyncio.ensure_future(pool.scan(big("hang"), deadline_us=soon(0.5)))
    longest = 0.0
    while not scan.done():
        before = time.monotonic()
        await asyncio.sleep(0.005)
        longest = max(longest, time.monotonic() - before)
    with pytest.raises(DetectorError):
        await scan

    assert longest < 0.4


@pytest.mark.parametrize("word", ["die", "raise", "short", "outside"])
async def test_a_failed_scan_is_an_error_and_the_next_one_works(pool: ScanPool, word: str) -> None:
    with pytest.raises(DetectorError) as caught:
        await pool.scan(big(word), deadline_us=soon())

    assert caught.value.code == "detector.failed"
    assert "canary" not in str(caught.value)
    assert len(await pool.scan(big("fine"), deadline_us=soon())) == 1


async def test_a_process_killed_from_outside_fails_its_scan(pool: ScanPool) -> None:
    scan = asyncio.ensure_future(pool.scan(big("hang"), deadline_us=soon()))
    await asyncio.sleep(0.1)
    for pid in _children():
        os.kill(pid, signal.SIGKILL)
    with pytest.raises(DetectorError) as caught:
        await scan

    assert caught.value.code == "detector.failed"
    assert len(await pool.scan(big("fine"), deadline_us=soon())) == 1


async def test_a_group_signal_does_not_end_a_scanning_process(pool: ScanPool) -> None:
    before = _children()
    for pid in before:
        os.kill(pid, signal.SIGINT)
        os.kill(pid, signal.SIGTERM)
    assert len(await pool.scan(big("fine"), deadline_us=soon())) == 1

    assert _children() == before


async def test_the_queue_is_bounded(pool: ScanPool) -> None:
    scans = [asyncio.ensure_future(pool.scan(big("hang"), deadline_us=soon(0.6)))]
    await asyncio.sleep(0.1)  # the first is with the process, the queue is empty again
    scans += [asyncio.ensure_future(pool.scan(big("hang"), deadline_us=soon(0.6))) for _ in range(3)]
    failed = await asyncio.gather(*scans, return_exceptions=True)

    assert [getattr(f, "code", "") for f in failed] == ["detector.timed_out"] * 3 + ["detector.overloaded"]


async def test_closing_fails_what_runs_and_what_waits_and_leaves_no_process(crafted: ModuleType) -> None:
    before = _children()
    pool = ScanPool(crafted.build(), "crafted:build", inline_bytes=8)
    await pool.start()
    scans = [asyncio.ensure_future(pool.scan(big("hang"), deadline_us=soon())) for _ in range(2)]
    await asyncio.sleep(0.1)
    await pool.close()
    failed = await asyncio.gather(*scans, return_exceptions=True)

    assert [getattr(f, "code", "") for f in failed] == ["detector.unavailable"] * 2
    assert _children() == before
    with pytest.raises(DetectorError) as caught:
        await pool.scan(big("fine"), deadline_us=soon())
    assert caught.value.code == "detector.unavailable"


async def test_a_caller_that_goes_away_does_not_stop_the_pool(pool: ScanPool) -> None:
    scan = asyncio.ensure_future(pool.scan(big("hang"), deadline_us=soon(0.3)))
    await asyncio.sleep(0.05)
    scan.cancel()
    with pytest.raises(asyncio.CancelledError):
        await scan

    assert len(await pool.scan(big("fine"), deadline_us=soon())) == 1


async def test_little_text_is_scanned_here_under_the_same_rules(crafted: ModuleType) -> None:
    pool = ScanPool(crafted.build(), "no.such:factory")  # never started: nothing may need a process
    assert len(await pool.scan([ScanItem("fine")], deadline_us=soon())) == 1
    for word in ("raise", "short"):
        with pytest.raises(DetectorError) as caught:
            await pool.scan([ScanItem(word)], deadline_us=soon())
        assert caught.value.code == "detector.failed"
        assert "canary" not in str(caught.value)
    with pytest.raises(DetectorError) as caught:
        await pool.scan([ScanItem("fine")], deadline_us=soon(-1))
    assert caught.value.code == "detector.timed_out"


@pytest.mark.parametrize("text", ["é" * 5, "\ud800" * 3])
async def test_the_inline_bound_counts_bytes(crafted: ModuleType, text: str) -> None:
    pool = ScanPool(crafted.build(), "no.such:factory", inline_bytes=8)
    with pytest.raises(DetectorError) as caught:
        await pool.scan([ScanItem(text)], deadline_us=soon())

    assert caught.value.code == "detector.unavailable"


@pytest.mark.parametrize("name", ["build_other", "build_nothing", "build_and_die", "missing"])
async def test_a_pool_whose_process_is_not_right_does_not_start(crafted: ModuleType, name: str) -> None:
    before = _children()
    pool = ScanPool(crafted.build(), f"crafted:{name}")
    with pytest.raises(SetupError):
        await pool.start()

    assert _children() == before


@pytest.mark.parametrize("name", ["scan", "__main__"])
async def test_a_process_never_runs_the_main_module(
    crafted: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    """Nor a module of the folder it happens to be started in."""
    trap = tmp_path / "json.py"
    trap.write_text("import pathlib\npathlib.Path('trapped').touch()\n")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys.modules["__main__"], "__file__", str(trap), raising=False)
    pool = ScanPool(crafted.build(), "crafted:build", inline_bytes=0)
    await pool.start()
    await pool.scan([ScanItem(name)], deadline_us=soon())
    await pool.close()

    assert not (tmp_path / "trapped").exists()


def _children() -> set[int]:
    """Our scanning processes, from /proc."""
    found = set()
    for entry in Path("/proc").glob("[0-9]*"):
        try:
            parent = int((entry / "stat").read_text().rpartition(")")[2].split()[1])
            command = (entry / "cmdline").read_bytes()
        except (OSError, IndexError):
            continue
        if parent == os.getpid() and b"gateway.workers.child" in command:
            found.add(int(entry.name))
    return found
