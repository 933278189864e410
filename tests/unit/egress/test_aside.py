"""Big requests: what of them runs beside the event loop, how many at once, and that nothing comes out otherwise."""

from __future__ import annotations

import asyncio
import gzip
import threading
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio

from gateway.classify.objects import ScanCache
from gateway.context import jsontext
from gateway.egress import dossier as dossiers
from gateway.egress import drive
from gateway.egress.aside import BIG, Aside, weight
from gateway.egress.use_case import Egress
from gateway.ports import Admitted, OutboundRequest
from tests.support.cores import cores
from tests.support.cores import request as posted

SECRET = "ghp_" + "16C7e42F292c6912E7710c838347Ae178B4a"
SMALL: dict[str, Any] = {
    "model": "m",
    "max_tokens": 1,
    "messages": [{"role": "user", "content": "hello there"}],
}


def big(extra: str = "") -> OutboundRequest:
    said = [
        {"role": ("user", "assistant")[n % 2], "content": f"{n} " + "word " * 10_000 + extra}
        for n in range(9)
    ]
    return posted("default", {**SMALL, "messages": said})


@pytest_asyncio.fixture
async def egress(tmp_path: Path) -> AsyncIterator[Egress]:
    async with cores(tmp_path / "gateway", {"limits": {"inline_scan_bytes": 1 << 30}}, 1) as (core,):
        yield core.egress


@pytest.fixture
def places(monkeypatch: pytest.MonkeyPatch) -> dict[str, set[int]]:
    """The threads in which bodies are read, evaluations go on, and evidence is made."""
    seen: dict[str, set[int]] = {"reading": set(), "evaluating": set(), "evidence": set()}

    def watch(target: Any, name: str, stage: str) -> None:
        before = getattr(target, name)

        def watched(*args: Any, **kwargs: Any) -> Any:
            seen[stage].add(threading.get_ident())
            return before(*args, **kwargs)

        monkeypatch.setattr(target, name, watched)

    watch(jsontext, "parse_text", "reading")
    watch(drive, "_step", "evaluating")
    watch(dossiers.Dossier, "evidence", "evidence")
    return seen


async def test_every_long_stretch_of_a_big_request_runs_beside_the_loop(
    egress: Egress, places: dict[str, set[int]]
) -> None:
    assert isinstance(await egress.handle(big()), Admitted)
    assert all(places.values())
    assert threading.get_ident() not in set().union(*places.values())


async def test_a_small_request_stays_on_the_loop(egress: Egress, places: dict[str, set[int]]) -> None:
    assert isinstance(await egress.handle(posted("default", SMALL)), Admitted)
    assert set().union(*places.values()) == {threading.get_ident()}


async def test_the_loop_goes_on_while_a_big_request_is_worked_on(egress: Egress) -> None:
    turns = 0
    entered, leave = threading.Event(), threading.Event()

    def held() -> bool:
        entered.set()
        return leave.wait(60)

    work = asyncio.create_task(egress.aside.run(BIG, held))
    while not entered.is_set():
        await asyncio.sleep(0)
    for _ in range(100):
        await asyncio.sleep(0)
        turns += 1
    assert not work.done()
    assert isinstance(await egress.handle(posted("default", SMALL)), Admitted)
    leave.set()
    assert await work
    assert turns == 100


@pytest.mark.parametrize("extra", ["", f" token {SECRET}"])
async def test_what_comes_out_is_the_same_beside_the_loop_and_on_it(egress: Egress, extra: str) -> None:
    asked, results = big(extra), []
    for limit in (BIG, 1 << 40):
        egress.aside = Aside(big=limit)
        egress.cache = ScanCache()
        verdict = await egress.handle(replace(asked, request_id=str(limit)))
        assert isinstance(verdict, Admitted)
        results.append((verdict.body, verdict.headers, verdict.request_digest, verdict.effect))
    assert results[0] == results[1]


def test_what_is_packed_weighs_what_it_may_come_to() -> None:
    packed = gzip.compress(b"a" * 1000)
    plain = replace(big(), body=b"{}" * 500)
    assert weight(plain, 1 << 20) == 1000
    assert weight(replace(plain, body=packed), 1 << 20) == 16 * len(packed)
    assert weight(replace(plain, body=packed), 100) == 100


async def test_big_requests_wait_for_room_and_leave_it_when_they_are_cancelled() -> None:
    aside, order = Aside(big=1, room=10), []
    leave = [asyncio.Event() for _ in range(4)]

    async def one(number: int, size: int) -> None:
        async with aside.turn(size):
            order.append(number)
            await leave[number].wait()

    tasks = [asyncio.create_task(one(number, size)) for number, size in enumerate((6, 6, 4, 50))]
    await _settled()
    assert order == [0, 2]
    leave[0].set()
    await _settled()
    assert order == [0, 2, 1]
    tasks[1].cancel()
    leave[2].set()
    await _settled()
    assert order == [0, 2, 1, 3]  # bigger than the room: alone
    leave[3].set()
    await asyncio.gather(*tasks, return_exceptions=True)
    async with aside.turn(10):
        pass


async def _settled() -> None:
    for _ in range(20):
        await asyncio.sleep(0)


async def test_what_the_work_raises_reaches_the_caller() -> None:
    with pytest.raises(ZeroDivisionError):
        await Aside().run(BIG, lambda: 1 // 0)
