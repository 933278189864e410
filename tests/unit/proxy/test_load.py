"""Counters that refuse, and work that ends in time."""

from __future__ import annotations

import asyncio

import pytest

from gateway.proxy.load import DRAINING, OVERLOADED, Load
from gateway.proxy.tasks import CancelledWorkError, Tasks, within


def test_bytes_are_taken_whole_or_not_at_all() -> None:
    load = Load(1, 100)
    assert load.reserve(60)
    assert not load.reserve(41)
    assert load.inflight_bytes == 60
    assert load.reserve(40)
    load.release(100)
    assert load.inflight_bytes == 0


def test_refusals() -> None:
    load = Load(1, 1)
    assert load.refusal() is None
    load.connections = 2
    assert load.refusal() is OVERLOADED
    load.draining = True
    assert load.refusal() is DRAINING
    assert all(r.status == 503 and r.retry_after_s for r in (OVERLOADED, DRAINING))


async def test_idle_means_no_request() -> None:
    load = Load(1, 1)
    await load.idle()
    load.begin()
    load.begin()
    waiting = asyncio.ensure_future(load.idle())
    load.finish()
    await asyncio.sleep(0)
    assert not waiting.done()
    load.finish()
    await asyncio.wait_for(waiting, 1)


async def test_within_returns_in_time_although_the_work_resists() -> None:
    late: list[int] = []
    resisted = asyncio.Event()

    async def stubborn() -> int:
        try:
            await asyncio.sleep(60)
        except asyncio.CancelledError:
            await asyncio.sleep(0.01)
            resisted.set()
        return 7

    assert await within(Tasks(), stubborn(), 0.01, late.append) is None
    await resisted.wait()
    await asyncio.sleep(0.01)
    assert late == [7]


async def test_within_passes_results_and_errors_on() -> None:
    async def seven() -> int:
        return 7

    async def fails() -> int:
        raise ZeroDivisionError

    async def cancelled() -> int:
        raise asyncio.CancelledError

    late: list[int] = []
    assert await within(Tasks(), seven(), 1, late.append) == 7
    with pytest.raises(ZeroDivisionError):
        await within(Tasks(), fails(), 1, late.append)
    with pytest.raises(CancelledWorkError):
        await within(Tasks(), cancelled(), 1, late.append)
    assert late == []


async def test_cancelling_the_waiter_cancels_the_work() -> None:
    stopped = asyncio.Event()

    async def work() -> None:
        try:
            await asyncio.sleep(60)
        finally:
            stopped.set()

    waiter = asyncio.ensure_future(within(Tasks(), work(), 60))
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    waiter.cancel()
    await asyncio.wait_for(stopped.wait(), 1)


async def test_finish_waits_then_cancels() -> None:
    tasks = Tasks()
    done: list[str] = []

    async def quick() -> None:
        await asyncio.sleep(0.01)
        done.append("quick")

    async def slow() -> None:
        await asyncio.sleep(60)

    async def broken() -> None:
        raise RuntimeError("dropped")

    for work in (quick(), slow(), broken()):
        tasks.background(work)
    await tasks.finish(0.1)
    await asyncio.sleep(0)
    assert done == ["quick"]
