"""`egress up` with several workers, as a process of its own, and its children found by what they are."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from tests.support.lives import Lives


@dataclass
class Fleet:
    """A gateway of several processes that was started for a test."""

    process: subprocess.Popen[bytes]
    lives: Lives

    @property
    def log(self) -> str:
        """What it wrote."""
        return (self.lives.folder / "log").read_text()

    def children(self, kind: str) -> list[int]:
        """Process ids of its workers or of its writer."""
        return [pid for pid, what in processes_of(self.process.pid) if what == kind]

    async def healthy(self, seconds: float = 120.0) -> None:
        """Wait until `/healthz` says that all is well."""
        until = time.monotonic() + seconds
        last: object = None
        while time.monotonic() < until:
            assert self.process.poll() is None, self.log[-3000:]
            with suppress(OSError):
                status, last = await self.lives.health()
                if status == 200:
                    return
            await asyncio.sleep(0.05)
        raise AssertionError(f"not healthy: {last}; {self.log[-3000:]}")

    @contextmanager
    def only(self, number: int) -> Iterator[None]:
        """Inside, one worker alone takes connections: the others are stopped."""
        workers = self.children("worker")
        others = [pid for at, pid in enumerate(workers) if at != number % len(workers)]
        for pid in others:
            os.kill(pid, signal.SIGSTOP)
        try:
            yield
        finally:
            for pid in others:
                os.kill(pid, signal.SIGCONT)

    async def end(self, number: signal.Signals = signal.SIGTERM, seconds: float = 60.0) -> int:
        """Signal the supervisor and wait for its end."""
        self.process.send_signal(number)
        return await asyncio.to_thread(self.process.wait, seconds)


def processes_of(parent: int) -> list[tuple[int, str]]:
    """The children of a process that are parts of a gateway, oldest first, with what they are."""
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            status = folder.joinpath("stat").read_text().rpartition(")")[2].split()
            command = folder.joinpath("cmdline").read_bytes().split(b"\0")
        except OSError:
            continue
        if int(status[1]) == parent and any(b"gateway.app.processes" in part for part in command):
            found.append((int(status[19]), int(folder.name), command[-3].decode()))
    return [(pid, kind) for _, pid, kind in sorted(found)]


def started(lives: Lives) -> Fleet:
    """Start `egress up` on the configuration of these lives; it is not ready yet."""
    with (lives.folder / "log").open("ab") as log:
        process = subprocess.Popen(
            [sys.executable, "-m", "gateway.cli", "up", "--config", str(lives.config)], stdout=log, stderr=log
        )
    return Fleet(process, lives)


def with_workers(lives: Lives, count: int, more: str = "") -> None:
    """Have the configuration ask for so many workers."""
    text = lives.config.read_text().replace("[listen]\n", f"[listen]\nworkers = {count}\n", 1)
    lives.config.write_text(text + more)


@asynccontextmanager
async def fleet(folder: Path, *, workers: int = 2, more: str = "") -> AsyncIterator[Fleet]:
    """A gateway with so many workers before a fake provider, from ready to its clean end."""
    lives = await Lives.begin(folder)
    with_workers(lives, workers, more)
    running = started(lives)
    try:
        await running.healthy()
        yield running
    finally:
        if running.process.poll() is None:
            await running.end()
        await lives.provider.stop()
