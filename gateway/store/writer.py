"""The one thread that writes, and the bounded queue in front of it.

Appends that wait while a transaction is being synced become the next transaction together (group commit):
the disk is asked once for all of them, and each caller is told after the sync. Appends that nothing waits for
(what became of a request that left) are in no hurry: for a moment they wait for one that is, and share its sync.
A full queue refuses at once; that is the back-pressure.
"""

from __future__ import annotations

import asyncio
import threading
import time
from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import Future as ThreadFuture
from dataclasses import dataclass
from typing import Protocol

from gateway.errors import EvidenceError, GatewayError
from gateway.store.log import Prepared

MAX_BATCH = 256
PATIENCE_S = 0.025
"""For so long an append that is in no hurry waits for company."""

GATHER_S = 0.0005
"""For so long a transaction waits for those who shared the last one: told of it together, they come back together."""


@dataclass(frozen=True, slots=True)
class Job:
    """One append that waits. Without `prepared` it is a probe, which writes nothing to the log.

    `alone` is work that shares its transaction with nobody and is done in place of an append. `due` is when it has to
    be written on the monotonic clock, 0 for at once.
    """

    prepared: Prepared | None
    loop: asyncio.AbstractEventLoop
    done: asyncio.Future[None]
    alone: Callable[[], None] | None = None
    due: float = 0.0


class Disk(Protocol):
    """What the thread drives. Neither method may raise anything but GatewayError."""

    def commit(self, batch: Sequence[Prepared]) -> None:
        """Make all appends durable in one transaction, or none of them and EvidenceError."""
        ...

    def idle(self) -> float:
        """Do what is due between transactions; returns in how many seconds to be called again."""
        ...

    def shut(self) -> None:
        """Close for good, on the writer's thread."""
        ...


class Writer:
    """The thread and its queue."""

    def __init__(self, disk: Disk, limit: int) -> None:
        """`limit` appends may wait."""
        self._disk = disk
        self._limit = limit
        self._waiting: deque[Job] = deque()
        self._hurried = 0  # of those that wait
        self._shared = 0  # by how many the last transaction was
        self._wake = threading.Condition()
        self._stopping = False
        self._batches = 0
        self._finished: ThreadFuture[None] = ThreadFuture()
        self._thread = threading.Thread(target=self._run, name="evidence-writer", daemon=True)

    def start(self) -> None:
        """Begin to write."""
        self._thread.start()

    @property
    def progress(self) -> tuple[int, int]:
        """(transactions ended so far, appends that wait): a watcher that sees no change knows of a hanging disk."""
        return self._batches, len(self._waiting)

    @property
    def ended(self) -> bool:
        """Whether nothing will be written any more."""
        return self._stopping

    def submit(
        self, prepared: Prepared | None, alone: Callable[[], None] | None = None, *, patient: bool = False
    ) -> asyncio.Future[None]:
        """Queue an append; the future is done after the sync. EvidenceError where the queue is full or closed.

        One that is `patient` may wait up to `PATIENCE_S` for others.
        """
        loop = asyncio.get_running_loop()
        due = time.monotonic() + PATIENCE_S if patient else 0.0
        job = Job(prepared, loop, loop.create_future(), alone, due)
        with self._wake:
            if self._stopping:
                raise EvidenceError("evidence.unavailable", "the evidence store is closed")
            if len(self._waiting) >= self._limit:
                raise EvidenceError("evidence.unavailable", "too many appends wait for the disk")
            self._waiting.append(job)
            self._hurried += not patient
            if not patient or len(self._waiting) == 1:  # else the thread has its alarm set already
                self._wake.notify()
        return job.done

    async def stop(self) -> None:
        """Write what waits, close the disk, end the thread."""
        with self._wake:
            self._stopping = True
            self._wake.notify()
        if self._thread.ident is not None:
            await asyncio.wrap_future(self._finished)
            self._thread.join()

    def _run(self) -> None:
        try:
            pause = 0.0
            while (jobs := self._next(pause)) is not None:
                if jobs:
                    self._write(jobs)
                pause = self._disk.idle()
            self._disk.shut()
        finally:
            self._abandon()
            self._finished.set_result(None)

    def _next(self, pause: float) -> list[Job] | None:
        """The next batch, empty when only time has passed; None at the end."""
        until = time.monotonic() + pause
        with self._wake:
            while not self._hurried and not self._stopping:
                left = (self._waiting[0].due if self._waiting else until) - time.monotonic()
                if left <= 0:
                    break
                self._wake.wait(left)
            early = self._hurried and 1 < self._shared > len(self._waiting)
        if early and not self._stopping:
            time.sleep(GATHER_S)
        with self._wake:
            batch = self._batch()
            self._shared = len(batch)
            return batch if batch or not self._stopping else None

    def _batch(self) -> list[Job]:
        batch: list[Job] = []
        while self._waiting and len(batch) < MAX_BATCH:
            if self._waiting[0].alone is not None:
                return batch or [self._take()]
            batch.append(self._take())
        return batch

    def _take(self) -> Job:
        job = self._waiting.popleft()
        self._hurried -= not job.due
        return job

    def _write(self, jobs: Sequence[Job]) -> None:
        outcome: GatewayError | None = EvidenceError("evidence.unavailable", "the evidence writer has ended")
        try:
            if jobs[0].alone is not None:
                jobs[0].alone()
            else:
                self._disk.commit([job.prepared for job in jobs if job.prepared is not None])
            outcome = None
        except GatewayError as error:
            outcome = error
        finally:  # nobody is left waiting, whatever went wrong
            _settle(jobs, outcome)
            self._batches += 1

    def _abandon(self) -> None:
        """Refuse what is left when the thread ends for a reason nobody foresaw."""
        with self._wake:
            self._stopping = True
            left = list(self._waiting)
            self._waiting.clear()
        _settle(left, EvidenceError("evidence.unavailable", "the evidence writer has ended"))


def _settle(jobs: Sequence[Job], error: GatewayError | None) -> None:
    """Tell every caller on its own loop, with one call a loop."""
    by_loop: dict[asyncio.AbstractEventLoop, list[asyncio.Future[None]]] = {}
    for job in jobs:
        by_loop.setdefault(job.loop, []).append(job.done)
    for loop, futures in by_loop.items():
        try:
            loop.call_soon_threadsafe(_resolve, futures, error)
        except RuntimeError:  # that loop is closed: nobody waits there any more
            continue


def _resolve(futures: Sequence[asyncio.Future[None]], error: GatewayError | None) -> None:
    for future in futures:
        if future.done():  # the caller gave up; the append stands all the same
            continue
        if error is None:
            future.set_result(None)
        else:
            future.set_exception(EvidenceError(error.code, str(error)))
