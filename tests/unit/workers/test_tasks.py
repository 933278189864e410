"""spawn keeps a task and reports its failure by type only."""

import asyncio
import gc
from typing import Any

from gateway.workers import spawn


async def test_a_spawned_task_survives_collection() -> None:
    done = asyncio.Event()

    async def work() -> None:
        await asyncio.sleep(0.01)
        done.set()

    spawn(work(), name="work")
    gc.collect()

    await asyncio.wait_for(done.wait(), 5)


async def test_a_failure_is_reported_without_its_text() -> None:
    reports: list[dict[str, Any]] = []
    asyncio.get_running_loop().set_exception_handler(lambda _loop, context: reports.append(context))

    async def work() -> None:
        raise ValueError("canary")

    spawn(work(), name="counting")
    await asyncio.sleep(0.01)

    (report,) = reports
    assert (report["task_name"], report["error_type"]) == ("counting", "ValueError")
    assert "canary" not in str(report)


async def test_a_cancelled_task_is_no_failure() -> None:
    reports: list[dict[str, Any]] = []
    asyncio.get_running_loop().set_exception_handler(lambda _loop, context: reports.append(context))
    task = spawn(asyncio.sleep(60), name="waiting")
    await asyncio.sleep(0)
    task.cancel()
    await asyncio.sleep(0.01)

    assert task.cancelled()
    assert reports == []
