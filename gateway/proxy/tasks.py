"""Background work of one proxy: referenced, awaited at the end, never able to raise into a hook."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any


class Tasks:
    """The tasks that are not done yet; the loop itself keeps weak references only."""

    def __init__(self) -> None:
        self._running: set[asyncio.Task[Any]] = set()

    def background(self, work: Coroutine[Any, Any, None]) -> None:
        """Run `work` by itself; nobody waits for it but `finish`."""
        self._running.add(self.spawn(work))

    def spawn[T](self, work: Coroutine[Any, Any, T]) -> asyncio.Task[T]:
        """Run `work` by itself; its exception, if any, is taken and dropped by `finish` or its awaiter."""
        task = asyncio.get_running_loop().create_task(work)
        self._running.add(task)
        task.add_done_callback(self._done)
        return task

    def _done(self, task: asyncio.Task[Any]) -> None:
        self._running.discard(task)
        if not task.cancelled():
            task.exception()  # looked at, so that the loop does not print it: its text may quote content

    async def finish(self, grace_s: float) -> None:
        """Wait for everything under way, then cancel what is left."""
        if self._running:
            await asyncio.wait(set(self._running), timeout=grace_s)
        for task in set(self._running):
            task.cancel()


class CancelledWorkError(Exception):
    """Work ended as cancelled although nobody who waits for it was."""


async def within[T](
    tasks: Tasks, work: Coroutine[Any, Any, T], seconds: float, late: Callable[[T], None] | None = None
) -> T | None:
    """The result of `work`, or None when it takes longer: then it is cancelled, and not waited for.

    Unlike `asyncio.timeout` this returns in time although `work` swallows its cancellation; a result that comes
    after all goes to `late`. Raises what `work` raises, and CancelledWorkError where it was cancelled from within.
    When the caller is cancelled, so is `work`.
    """

    def finished(task: asyncio.Task[T]) -> None:
        if late is not None and overdue and not task.cancelled() and task.exception() is None:
            late(task.result())

    overdue = False
    task = tasks.spawn(work)
    task.add_done_callback(finished)
    try:
        done, _ = await asyncio.wait({task}, timeout=seconds)
    except asyncio.CancelledError:
        overdue = True
        task.cancel()
        raise
    if not done:
        overdue = True
        task.cancel()
        return None
    if task.cancelled():
        raise CancelledWorkError
    return task.result()
