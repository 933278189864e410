"""A gateway of several processes under load loses one of them at any moment: its evidence still says what was seen.

Workers, the writer, both at once and the supervisor are killed in turn. The invariants are those of `test_crash`; a request that a
dead worker had admitted is closed while the others go on. `CRASH_KILLS` sets how often (`make test-crash`).
"""

from __future__ import annotations

import asyncio
import os
import random
import signal
from pathlib import Path

import pytest

from tests.integration.test_crash import verdict
from tests.support.fleet import Fleet, processes_of, started, with_workers
from tests.support.lives import Lives, alive
from tests.support.waiting import eventually

KILLS = max(3, int(os.environ.get("CRASH_KILLS", "3")) // 5)
CLIENTS = 4
ORDER = ("worker", "both", "supervisor", "writer")


async def restarted(before: Fleet) -> Fleet:
    """Kill the supervisor: the others finish by themselves, and a new gateway can begin."""
    children = [pid for pid, _ in processes_of(before.process.pid)]
    await before.end(signal.SIGKILL)
    await eventually(lambda: not any(alive(pid) for pid in children), seconds=40)
    return started(before.lives)


@pytest.mark.timeout(240 + 30 * KILLS)
async def test_any_process_is_killed_at_any_moment(tmp_path: Path) -> None:
    dice = random.Random(KILLS)
    lives = await Lives.begin(tmp_path, seed=3)
    with_workers(lives, 2)
    running = started(lives)
    clients: list[asyncio.Future[None]] = []
    try:
        await running.healthy()
        clients += [asyncio.ensure_future(lives.traffic.client()) for _ in range(CLIENTS)]
        for number in range(KILLS):
            await lives.work(12)
            await asyncio.sleep(dice.random() * 0.2)
            kind = ORDER[number % len(ORDER)]
            if kind == "supervisor":
                running = await restarted(running)
            else:
                for each in ("worker", "writer") if kind == "both" else (kind,):
                    os.kill(dice.choice(running.children(each)), signal.SIGKILL)
            lives.kills += 1
            await running.healthy()
        await lives.work(12)
        assert await running.end() == 0
    finally:
        for client in clients:
            client.cancel()
        await asyncio.gather(*clients, return_exceptions=True)
        if running.process.poll() is None:
            running.process.kill()
        await lives.provider.stop()
    found, states = verdict(lives)
    print(f"{lives.kills} kills, {len(lives.traffic.asked)} requests: {dict(states)}")
    assert found == []
    assert states["observed_model_egress"] > KILLS
    assert states["rejected"] > 0
