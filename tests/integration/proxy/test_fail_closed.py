"""Whatever breaks, the provider gets nothing and the client gets an answer (mitmproxy's traps 1, 11, 13, 14, 25)."""

from __future__ import annotations

import asyncio
import json
from dataclasses import replace
from typing import Any

import pytest

from gateway.ports import Admitted, OutboundRequest, Refusal
from tests.integration.proxy.conftest import Start, World
from tests.support.client import post
from tests.support.usecase import RECEIPT, admitted, hanging, raising

CANARY = b"sk-canary-0123456789"


async def _nothing_left(world: World) -> None:
    assert world.provider.arrived == []
    assert world.use_case.attempts == []
    assert CANARY.decode() not in json.dumps(world.reported)


@pytest.mark.parametrize(
    "error",
    [
        RuntimeError(CANARY.decode()),
        asyncio.CancelledError(),
        TimeoutError(),
        KeyError(CANARY.decode()),
        RecursionError(),
        MemoryError(),
        StopAsyncIteration(),
    ],
    ids=lambda e: type(e).__name__,
)
async def test_an_exception_in_the_use_case_refuses(world: World, error: BaseException) -> None:
    world.use_case.behaviour = raising(error)
    client = await world.client()
    reply = await client.ask(post(CANARY))
    assert reply.status == 400
    assert json.loads(reply.body)["error"]["codes"] == ["gateway.error"]
    assert CANARY not in reply.body
    assert reply.header("x-egress-receipt") == RECEIPT
    assert [f.reason_codes for _, f in world.use_case.rejected] == [("gateway.error",)]
    await _nothing_left(world)


async def test_an_overrun_deadline_refuses_in_time_and_takes_no_late_verdict(start: Start) -> None:
    world = await start(limits={"deadline_ms": 100})
    world.use_case.behaviour = hanging()
    client = await world.client()
    began = asyncio.get_running_loop().time()
    reply = await client.ask(post(CANARY))
    assert asyncio.get_running_loop().time() - began < 1.5
    assert (reply.status, reply.header("x-egress-receipt") is not None) == (503, True)
    assert json.loads(reply.body)["error"]["codes"] == ["deadline.exceeded"]
    await asyncio.sleep(0.1)  # the late Admitted of `hanging`
    assert (await client.ask(post(b"{}", path="/again"))).status == 503
    await _nothing_left(world)


async def test_a_use_case_that_cannot_even_refuse_still_refuses(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(host: str, path: str, refusal: Refusal) -> Any:
        raise RuntimeError(CANARY.decode())

    monkeypatch.setattr(world.use_case, "refuse", broken)
    world.use_case.behaviour = raising(RuntimeError())
    reply = await (await world.client()).ask(post(CANARY))
    assert (reply.status, reply.body) == (400, b"")
    await _nothing_left(world)


@pytest.mark.parametrize("broken", ["none", "text", "digest"])
async def test_a_verdict_that_is_not_one_refuses(world: World, broken: str) -> None:
    async def behaviour(request: OutboundRequest) -> Any:
        good = admitted(request)
        return {
            "none": None,
            "text": "admitted",
            "digest": replace(good, request_digest="sha256:" + "0" * 64),
        }[broken]

    world.use_case.behaviour = behaviour
    reply = await (await world.client()).ask(post(CANARY))
    assert reply.status in {400, 503}
    await _nothing_left(world)


async def test_a_client_that_leaves_during_the_evaluation_sends_nothing(world: World) -> None:
    entered, leave = asyncio.Event(), asyncio.Event()

    async def behaviour(request: OutboundRequest) -> Admitted:
        entered.set()
        await leave.wait()
        return admitted(request)

    world.use_case.behaviour = behaviour
    client = await world.client()
    await client.send(post(CANARY))
    await entered.wait()
    client.abort()
    await asyncio.sleep(0.05)
    leave.set()
    await world.use_case.until(lambda: bool(world.use_case.endings))
    ending = world.use_case.endings[0][1]
    assert (ending.client_gone, ending.response_complete) == (True, False)
    await _nothing_left(world)


class _Meddler:
    """An addon that runs after ours and changes what was decided."""

    def __init__(self, what: str) -> None:
        self.what = what

    def request(self, flow: Any) -> None:
        if self.what == "body":
            flow.request.data.content = b"smuggled"
        elif self.what == "header":
            flow.request.headers["x-more"] = "smuggled"
        elif self.what == "path":
            flow.request.path = "/smuggled"
        elif self.what == "answer":
            flow.response = None
        elif self.what == "trailers":
            flow.request.trailers = type(flow.request.headers)([(b"x-t", b"smuggled")])


@pytest.mark.parametrize("what", ["body", "header", "path", "trailers"])
@pytest.mark.parametrize("alpn", ["http/1.1", "h2"])
async def test_what_changes_after_admission_never_leaves(start: Start, what: str, alpn: str) -> None:
    world = await start(alpn=(alpn,))
    world.proxy._master.addons.add(_Meddler(what))
    if alpn == "h2":
        client = await world.http2()
        reply = await client.finish(await client.begin(b"{}"))
    else:
        reply = await (await world.client()).ask(post(b"{}"))
    assert reply.status == 502
    assert [a for a in world.provider.arrived if a.complete or a.body] == []
    assert b"smuggled" not in b"".join(bytes(a.wire) for a in world.provider.arrived)
    assert ("proxy.integrity_alarm", {"reason": "unadmitted"}) in world.reported
    await world.use_case.until(lambda: bool(world.use_case.endings))
    assert world.use_case.attempts == []


async def test_a_refusal_taken_off_by_another_addon_still_sends_nothing(world: World) -> None:
    world.use_case.behaviour = raising(RuntimeError())
    world.proxy._master.addons.add(_Meddler("answer"))
    reply = await (await world.client()).ask(post(CANARY))
    assert reply.status >= 400
    await _nothing_left(world)


async def test_a_second_request_hook_decides_nothing(world: World) -> None:
    class Repeat:
        async def request(self, flow: Any) -> None:
            await world.proxy._addon.request(flow)

    world.proxy._master.addons.add(Repeat())
    reply = await (await world.client()).ask(post(CANARY))
    assert reply.status == 400
    assert len(world.use_case.handled) == 1
    await _nothing_left(world)


async def test_evidence_that_cannot_be_recorded_after_the_fact_does_not_break_the_answer(
    world: World,
) -> None:
    world.use_case.observe_fails = True
    reply = await (await world.client()).ask(post(b"{}"))
    assert (reply.status, reply.complete) == (200, True)
    await world.use_case.until(lambda: bool(world.use_case.endings))


async def test_a_failing_hook_of_ours_refuses(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    addon = world.proxy._addon

    def broken(*_: Any, **__: Any) -> Any:
        raise RuntimeError(CANARY.decode())

    client = await world.client()
    monkeypatch.setattr(addon.sessions, "refusal", broken)
    reply = await client.ask(post(CANARY))
    assert reply.status == 400
    monkeypatch.undo()
    monkeypatch.setattr(addon.dialler, "begin", broken)
    reply = await (await world.client()).ask(post(CANARY))
    assert reply.status in {400, 502}
    assert world.provider.arrived == []
    assert CANARY.decode() not in json.dumps(world.reported)
