"""Start, overload, drain, stop."""

from __future__ import annotations

import asyncio
import json
import logging
import socket
from pathlib import Path

import pytest

from gateway.errors import SetupError
from gateway.ports import OutboundRequest
from tests.integration.proxy.conftest import Start, World
from tests.support.client import RefusedError, chunked, post
from tests.support.provider import Answer
from tests.support.usecase import Verdict, admitted
from tests.support.waiting import eventually


async def test_draining_refuses_the_new_and_finishes_the_old(world: World) -> None:
    world.provider.script(Answer(framing="chunked", pieces=(b"one", 0.4, b"two")))
    busy, other = await world.client(), await world.client()
    await busy.send(post(b"{}"))
    await busy.reader.readuntil(b"one")
    stopping = asyncio.ensure_future(world.proxy.stop(5))
    await asyncio.sleep(0.05)
    reply = await other.ask(post(b"{}"))
    assert (reply.status, reply.header("retry-after")) == (503, "2")
    assert json.loads(reply.body)["error"]["codes"] == ["gateway.draining"]
    await busy.reader.readuntil(b"two")
    await stopping
    assert len(world.use_case.endings) == 1
    assert world.use_case.endings[0][1].response_complete
    with pytest.raises(ConnectionRefusedError):
        await world.raw()


async def test_a_drain_that_runs_out_settles_what_is_left(world: World) -> None:
    world.provider.script(Answer(silent=True))
    client = await world.client()
    await client.send(post(b"{}"))
    await eventually(lambda: world.provider.arrived)
    await world.proxy.stop(0.2)
    ((_, attempt),) = world.use_case.attempts
    ((_, ending),) = world.use_case.endings
    assert (attempt.http_status, ending.response_complete) == (None, False)
    assert world.proxy.requests_in_flight == 0
    assert await client.closed()


async def test_stopping_during_an_evaluation_sends_nothing(world: World) -> None:
    entered = asyncio.Event()

    async def behaviour(request: OutboundRequest) -> Verdict:
        entered.set()
        await asyncio.sleep(0.3)
        return admitted(request)

    world.use_case.behaviour = behaviour
    client = await world.client()
    await client.send(post(b"{}"))
    await entered.wait()
    await world.proxy.stop(0)
    await asyncio.sleep(0.4)
    assert world.provider.arrived == []


@pytest.mark.parametrize("framing", ["length", "chunked"])
async def test_bodies_in_flight_are_bounded(start: Start, framing: str) -> None:
    world = await start(limits={"max_inflight_bytes": 100_000})
    hold = asyncio.Event()

    async def behaviour(request: OutboundRequest) -> Verdict:
        await hold.wait()
        return admitted(request)

    world.use_case.behaviour = behaviour
    one, two = await world.client(), await world.client()
    await one.send(post(b"x" * 80_000))
    await eventually(lambda: world.use_case.handled)
    await two.send(post(b"y" * 40_000) if framing == "length" else chunked(*[b"y" * 10_000] * 4))
    reply = await two.reply()
    assert (reply.status, reply.header("retry-after")) == (503, "1")
    assert json.loads(reply.body)["error"]["codes"] == ["gateway.overloaded"]
    hold.set()
    assert (await one.reply()).status == 200
    three = await world.client()
    assert (await three.ask(post(b"z" * 80_000))).status == 200
    assert world.proxy._addon.load_state.inflight_bytes == 0


async def test_connections_are_bounded(start: Start) -> None:
    world = await start(limits={"max_connections": 2})
    first, second = await world.client(), await world.client()
    third = await world.client()
    reply = await third.ask(post(b"{}"))
    assert (reply.status, reply.header("retry-after")) == (503, "1")
    first.abort()
    third.abort()
    await eventually(lambda: world.proxy._addon.load_state.connections == 1)
    assert (await second.ask(post(b"{}"))).status == 200
    for _ in range(3):
        await world.raw()
    extra = await world.raw()
    await extra.send(b"CONNECT api.test:443 HTTP/1.1\r\nHost: api.test:443\r\n\r\n")
    assert await extra.closed()


async def test_a_port_that_is_taken_is_a_setup_error(start: Start) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        with pytest.raises(SetupError) as raised:
            await start(listen_port=taken.getsockname()[1])
    assert raised.value.code == "listen.unavailable"


async def test_nothing_of_a_request_is_logged(
    world: World, caplog: pytest.LogCaptureFixture, capfd: pytest.CaptureFixture[str]
) -> None:
    caplog.set_level(logging.DEBUG)
    canary = "canary-7f3a"
    world.provider.script(
        Answer(headers=[("x-c", canary), ("content-length", "1"), ("content-length", "2")], framing="none")
    )
    client = await world.client()
    await client.ask(
        post(canary.encode(), path=f"/v1/{canary}?key={canary}", headers=f"X-C: {canary}\r\n".encode())
    )
    await client.send(f"{canary} {canary}\r\n\r\n".encode())
    await client.reply()
    raw = await world.raw()
    await raw.send(f"CONNECT {canary}.test:443 HTTP/1.1\r\nX: {canary}\r\n\r\n".encode())
    await raw.reply()
    await world.proxy.stop(0)
    out, err = capfd.readouterr()
    assert canary not in caplog.text + out + err + json.dumps(world.reported)


async def test_no_session_keys_are_written(
    start: Start, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from mitmproxy.net import tls as net_tls

    monkeypatch.setenv("SSLKEYLOGFILE", str(tmp_path / "keys.log"))
    monkeypatch.setattr(
        net_tls, "log_master_secret", net_tls.make_master_secret_logger(str(tmp_path / "keys.log"))
    )
    net_tls.create_client_proxy_context.cache_clear()
    net_tls.create_proxy_server_context.cache_clear()
    world = await start()
    monkeypatch.delenv("SSLKEYLOGFILE")
    assert (await (await world.client()).ask(post(b"{}"))).status == 200
    assert not (tmp_path / "keys.log").exists()


async def test_one_proxy_after_another_in_one_process(start: Start) -> None:
    for _ in range(2):
        world = await start()
        assert (await (await world.client()).ask(post(b"{}"))).status == 200
        for connection in world.connections:
            connection.abort()
        await world.proxy.stop(1)


async def test_a_client_that_leaves_in_the_middle_of_its_body_leaves_nothing_behind(world: World) -> None:
    for request in (post(b"x" * 50_000)[:-10_000], chunked(b"x" * 50_000)[:-10_000]):
        client = await world.client()
        await client.send(request)
        await asyncio.sleep(0.05)
        client.abort()
    load = world.proxy._addon.load_state
    await eventually(lambda: (load.inflight_bytes, load.requests, load.connections) == (0, 0, 0))
    assert (world.use_case.handled, world.provider.connections) == ([], 0)


async def test_nothing_is_kept_of_what_is_over(world: World) -> None:
    world.provider.script(Answer(), Answer(reset="body"), Answer(reset="head"), Answer(framing="close"))
    for _ in range(5):
        client = await world.client()
        await client.ask(post(b"{}"))
        client.abort()
    with pytest.raises(RefusedError):
        await (await world.raw()).connect("denied.test:443")
    for connection in world.connections:
        connection.abort()
    addon = world.proxy._addon
    await eventually(lambda: addon.load_state.connections == 0 and not addon.tasks._running)
    assert list(addon.ledger.all()) == list(addon.sessions.all()) == []
    assert (addon.dialler._timers, addon.dialler._named) == ({}, {})


async def test_one_slow_evaluation_delays_no_other(world: World) -> None:
    hold = asyncio.Event()

    async def behaviour(request: OutboundRequest) -> Verdict:
        if request.target == "/slow":
            await hold.wait()
        return admitted(request)

    world.use_case.behaviour = behaviour
    slow, quick = await world.client(), await world.client()
    await slow.send(post(b"{}", path="/slow"))
    assert (await quick.ask(post(b"{}", path="/quick"))).status == 200
    hold.set()
    assert (await slow.reply()).status == 200
