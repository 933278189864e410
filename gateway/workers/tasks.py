"""Background tasks. The event loop keeps weak references only: a task nobody holds may vanish in flight."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any

_running: set[asyncio.Task[Any]] = set()


def spawn[T](work: Coroutine[Any, Any, T], *, name: str) -> asyncio.Task[T]:
    """Start `work` on the running loop and hold it until it ends.

    A failure goes to the loop's exception handler as `name` and the exception's type: its text may hold
    content.
    """
    task = asyncio.get_running_loop().create_task(work, name=name)
    _running.add(task)
    task.add_done_callback(_ended)
    return task


def _ended(task: asyncio.Task[Any]) -> None:
    _running.discard(task)
    if task.cancelled():
        return
    error = task.exception()
    if error is not None:
        name, kind = task.get_name(), type(error).__name__
        task.get_loop().call_exception_handler(
            {"message": f"background task {name} failed: {kind}", "task_name": name, "error_type": kind}
        )
