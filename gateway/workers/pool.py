"""The Scanner port: little text where it is, much text in processes that can be killed.

A regular expression engine holds the interpreter lock, and a thread cannot be stopped; a process can. A scan
that overruns its deadline takes its process with it, and a process that dies fails its scan: no outcome is
silent.
"""

from __future__ import annotations

import asyncio
import time
from asyncio import Future, Queue, QueueFull, Task
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from gateway.context.findings import ScanItem, ScanResult
from gateway.errors import DetectorError, GatewayError, SetupError
from gateway.workers.process import ScanProcess, abandon, launch
from gateway.workers.tasks import spawn

if TYPE_CHECKING:  # a scanning process imports this package too, and needs no more than its detector
    from gateway.ports import Detector

RESTART_PAUSE_S: Final = (0.05, 0.5, 2.0)  # after the first, second and every later failed start in a row


@dataclass(frozen=True, slots=True)
class _Job:
    items: Sequence[ScanItem]
    deadline_us: int
    answer: Future[list[ScanResult]]


class ScanPool:
    """Scans for the use case. `start` before the first scan, `close` after the last.

    Args:
        detector: used in this process for little text; None: every scan is a process's, whose revision is learnt.
        factory: `package.module:callable` that builds the same detector in another process.
        arguments: what it is called with; no secrets.
        workers: how many processes, at least one.
        inline_bytes: a batch of at most so many bytes of text is scanned here.
        queue: how many scans may wait for a process; one more is refused.
        monotonic_us: the clock of the deadlines, as `Clock.monotonic_us`.
    """

    def __init__(
        self,
        detector: Detector | None,
        factory: str,
        *,
        arguments: Sequence[str] = (),
        workers: int = 1,
        inline_bytes: int = 65_536,
        queue: int = 64,
        monotonic_us: Callable[[], int] = lambda: time.monotonic_ns() // 1000,
    ) -> None:
        self.revision = "" if detector is None else detector.revision
        self._detector = detector
        self._factory = factory
        self._arguments = tuple(arguments)
        self._workers = workers
        self._inline_bytes = inline_bytes
        self._now = monotonic_us
        self._jobs: Queue[_Job] = Queue(queue)
        self._slots: list[Task[None]] = []

    @property
    def queued(self) -> int:
        """Scans that wait for a process."""
        return self._jobs.qsize()

    def now_us(self) -> int:
        """The clock of the deadlines."""
        return self._now()

    async def start(self) -> None:
        """Start every process and wait until each can scan; SetupError where one cannot."""
        started = [await self._connect() for _ in range(self._workers)]
        self._slots = [spawn(self._serve(process), name="scan process") for process in started]

    async def close(self) -> None:
        """Kill the processes; scans that still wait are failed."""
        slots, self._slots = self._slots, []
        for slot in slots:
            slot.cancel()
        for slot in slots:
            with suppress(asyncio.CancelledError):
                await slot
        while not self._jobs.empty():
            _fail(self._jobs.get_nowait(), "detector.unavailable")

    async def scan(self, items: Sequence[ScanItem], *, deadline_us: int) -> list[ScanResult]:
        """One result an item, in order.

        Args:
            items: the texts.
            deadline_us: when the answer is of no use any more, on the clock of `monotonic_us`.

        Raises:
            DetectorError: `detector.timed_out`, `detector.failed` (it raised, died or answered with what does
                not fit), `detector.unavailable` (no process), `detector.overloaded` (too many scans wait).
        """
        if self._now() >= deadline_us:
            raise DetectorError("detector.timed_out")
        if self._detector is not None and _size(items, self._inline_bytes) <= self._inline_bytes:
            return self._inline(self._detector, items)
        if not self._slots:
            raise DetectorError("detector.unavailable")
        job = _Job(items, deadline_us, asyncio.get_running_loop().create_future())
        try:
            self._jobs.put_nowait(job)
        except QueueFull:
            raise DetectorError("detector.overloaded") from None
        try:
            async with asyncio.timeout((deadline_us - self._now()) / 1e6):
                return await job.answer
        except TimeoutError:
            raise DetectorError("detector.timed_out") from None

    @staticmethod
    def _inline(detector: Detector, items: Sequence[ScanItem]) -> list[ScanResult]:
        try:
            results = detector.scan(items)
        except GatewayError:
            raise
        except Exception as error:  # noqa: BLE001 - a plug-in may raise anything; only our errors cross a port
            raise DetectorError("detector.failed", type(error).__name__) from None
        if len(results) != len(items):
            raise DetectorError("detector.failed", "not one result an item")
        return results

    async def _connect(self) -> ScanProcess:
        launching = spawn(
            asyncio.to_thread(launch, self._factory, self._arguments), name="scan process start"
        )
        try:
            process, channel = await asyncio.shield(launching)
        except asyncio.CancelledError:
            process, channel = await launching  # the thread cannot be stopped; what it started can
            abandon(process, channel)
            raise
        connected = await ScanProcess.connect(process, channel, self.revision)
        self.revision = connected.revision
        return connected

    async def _serve(self, process: ScanProcess | None) -> None:
        """Give one process jobs for as long as the pool is open, and replace it whenever it is lost."""
        failures = 0
        try:
            while True:
                if process is None:
                    try:
                        process = await self._connect()
                        failures = 0
                    except SetupError:
                        await asyncio.sleep(RESTART_PAUSE_S[min(failures, len(RESTART_PAUSE_S) - 1)])
                        failures += 1
                        continue
                job = await self._jobs.get()
                if not job.answer.done() and not await self._run(process, job):
                    await process.end()
                    process = None
        finally:
            if process is not None:
                await process.end()

    async def _run(self, process: ScanProcess, job: _Job) -> bool:
        """Answer one job; False where the process is of no use afterwards."""
        try:
            async with asyncio.timeout((job.deadline_us - self._now()) / 1e6):
                results = await process.scan(job.items)
        except TimeoutError:
            return _fail(job, "detector.timed_out")
        except (OSError, EOFError, ValueError):
            return _fail(job, "detector.failed")
        except asyncio.CancelledError:
            _fail(job, "detector.unavailable")
            raise
        if not job.answer.done():
            job.answer.set_result(results)
        return True


def _fail(job: _Job, code: str) -> bool:
    if not job.answer.done():
        job.answer.set_exception(DetectorError(code))
    return False


def _size(items: Sequence[ScanItem], enough: int) -> int:
    """Bytes of text, not counted on once they are over `enough`."""
    total = 0
    for item in items:
        total += len(item.text) if item.text.isascii() else len(item.text.encode("utf-8", "surrogatepass"))
        if total > enough:
            break
    return total
