"""What is claimed of the bytes that left: every row of contract.md §10.2 over real sockets (traps 17-19, 27, 28)."""

from __future__ import annotations

import asyncio
import hashlib
import json
from typing import Any

import pytest

from gateway.ports import Attempt, Ending
from tests.integration.proxy.conftest import Start, World
from tests.support.client import Reply, post
from tests.support.provider import Answer, ResetError, reset
from tests.support.usecase import RECEIPT
from tests.support.waiting import eventually

BODY = b'{"a":1}'
BIG = b"x" * 20_000_000  # more than both kernels buffer on loopback


async def _outcome(world: World, request: bytes) -> tuple[Reply, list[Attempt], Ending]:
    client = await world.client()
    await client.send(request)
    reply = await client.reply()
    await world.use_case.until(lambda: bool(world.use_case.endings))
    (ending,) = [e for _, e in world.use_case.endings]
    return reply, [a for _, a in world.use_case.attempts], ending


def _codes(reply: Reply) -> Any:
    assert reply.header("x-egress-receipt") == RECEIPT
    return json.loads(reply.body)["error"]["codes"]


@pytest.mark.parametrize("status", [200, 201, 400, 401, 429, 500, 529])
async def test_any_status_answers(world: World, status: int) -> None:
    world.provider.script(Answer(status))
    reply, (attempt,), ending = await _outcome(world, post(BODY))
    assert (reply.status, attempt.http_status, attempt.failure) == (status, status, None)
    assert (attempt.level, attempt.body_complete, ending.response_complete) == ("answered", True, True)


async def test_connect_refused(world: World) -> None:
    await world.provider.stop()
    reply, (attempt,), ending = await _outcome(world, post(BODY))
    assert (reply.status, _codes(reply)) == (502, ["upstream.unreachable"])
    assert (attempt.failure, attempt.level, attempt.written_bytes) == ("connect", "not_sent", 0)
    assert (attempt.http_status, attempt.body_complete, attempt.peer_verified) == (None, False, False)
    assert not ending.response_complete


async def test_reset_in_the_handshake(start: Start) -> None:
    async def resetting(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read(100)
        reset(writer)

    server = await asyncio.start_server(resetting, "127.0.0.1", 0)
    world = await start(connect_to={("api.test", 443): server.sockets[0].getsockname()})
    reply, (attempt,), _ = await _outcome(world, post(BODY))
    assert (reply.status, attempt.failure, attempt.level) == (502, "connect", "not_sent")
    server.close()


async def test_reset_right_after_the_handshake(world: World) -> None:
    world.provider.reset_connections = True
    reply, (attempt,), _ = await _outcome(world, post(BODY))
    # The client's side of a TLS 1.3 handshake is over first: the request may be on its way when the reset comes.
    assert (reply.status, attempt.http_status, attempt.level == "answered") == (502, None, False)
    assert (attempt.failure == "connect") == (attempt.level == "not_sent")


async def test_a_certificate_that_does_not_verify(start: Start) -> None:
    world = await start(rogue=True)
    reply, (attempt,), _ = await _outcome(world, post(BODY))
    assert (reply.status, _codes(reply)) == (502, ["upstream.unreachable"])
    assert (attempt.failure, attempt.level, attempt.peer_verified) == ("connect", "not_sent", False)
    assert world.provider.arrived == []


async def test_a_name_that_does_not_resolve(start: Start) -> None:
    world = await start(connect_to={})
    reply, (attempt,), _ = await _outcome(world, post(BODY))
    assert (reply.status, attempt.failure, attempt.level) == (502, "connect", "not_sent")


@pytest.mark.parametrize("alpn", ["http/1.1", "h2"])
async def test_reset_after_the_request(start: Start, alpn: str) -> None:
    world = await start(alpn=("h2", "http/1.1") if alpn == "h2" else ("http/1.1",))
    world.provider.script(Answer(reset="body"))
    if alpn == "h2":
        client = await world.http2()
        reply = await client.finish(await client.begin(BODY))
        await world.use_case.until(lambda: bool(world.use_case.endings))
        attempts = [a for _, a in world.use_case.attempts]
    else:
        reply, attempts, _ = await _outcome(world, post(BODY))
    (attempt,) = attempts
    assert world.provider.arrived[0].complete
    assert (reply.status, attempt.failure, attempt.http_status) == (502, "other", None)
    assert attempt.level in {"handed_over", "acknowledged"}
    assert attempt.body_complete
    assert attempt.written_digest == "sha256:" + hashlib.sha256(BODY).hexdigest()


async def test_reset_in_the_middle_of_the_body_is_never_called_complete(world: World) -> None:
    world.provider.script(Answer(reset="head"))
    reply, (attempt,), _ = await _outcome(world, post(BIG))
    assert not world.provider.arrived[0].complete
    assert (reply.status, attempt.failure, attempt.level) == (502, "other", "maybe")
    assert not attempt.body_complete


async def test_no_head_in_time(start: Start) -> None:
    world = await start(limits={"head_timeout_s": 0.3})
    world.provider.script(Answer(silent=True))
    reply, (attempt,), _ = await _outcome(world, post(BODY))
    assert (reply.status, _codes(reply)) == (504, ["upstream.timeout"])
    assert (attempt.failure, attempt.level, attempt.body_complete) == ("timeout", "acknowledged", True)


async def test_a_peer_that_never_finishes_its_handshake(start: Start) -> None:
    async def silent(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read(-1)
        writer.close()

    server = await asyncio.start_server(silent, "127.0.0.1", 0)
    where = server.sockets[0].getsockname()
    world = await start(
        limits={"connect_timeout_s": 0.2, "handshake_timeout_s": 0.2}, connect_to={("api.test", 443): where}
    )
    reply, (attempt,), _ = await _outcome(world, post(BODY))
    assert (reply.status, attempt.failure, attempt.level) == (502, "connect", "not_sent")
    server.close()


@pytest.mark.parametrize("alpn", ["http/1.1", "h2"])
async def test_an_early_answer_does_not_prove_the_body(start: Start, alpn: str) -> None:
    world = await start(alpn=(alpn,))
    world.provider.script(Answer(413, early=True))
    if alpn == "h2":
        client = await world.http2()
        stream = await client.begin(BIG)
        reply = await client.finish(stream)
        await world.use_case.until(lambda: bool(world.use_case.endings))
        attempts = [a for _, a in world.use_case.attempts]
    else:
        reply, attempts, _ = await _outcome(world, post(BIG))
    (attempt,) = attempts
    assert (reply.status, attempt.http_status, attempt.level) == (413, 413, "answered")
    assert not attempt.body_complete
    assert not world.provider.arrived[0].complete


async def test_a_stream_that_breaks_was_answered(world: World) -> None:
    world.provider.script(Answer(framing="chunked", pieces=(b"data: 1\n\n", 0.05, ResetError)))
    reply, (attempt,), ending = await _outcome(world, post(BODY))
    assert (reply.status, reply.complete) == (200, False)
    assert reply.body == b"data: 1\n\n"
    assert (attempt.http_status, attempt.level, attempt.body_complete) == (200, "answered", True)
    assert (ending.response_complete, ending.client_gone) == (False, False)


async def test_a_client_that_leaves_during_the_answer(world: World) -> None:
    world.provider.script(Answer(framing="chunked", pieces=(b"data: 1\n\n", *([0.05, b"data: 2\n\n"] * 40))))
    client = await world.client()
    await client.send(post(BODY))
    await client.reader.readuntil(b"data: 1")
    client.abort()
    await world.use_case.until(lambda: bool(world.use_case.endings))
    ((_, attempt),) = world.use_case.attempts
    ((_, ending),) = world.use_case.endings
    assert (attempt.level, attempt.http_status) == ("answered", 200)
    assert (ending.client_gone, ending.response_complete) == (True, False)


async def test_a_client_that_leaves_before_the_head(world: World) -> None:
    world.provider.script(Answer(silent=True))
    client = await world.client()
    await client.send(post(BODY))
    await eventually(lambda: world.provider.arrived and world.provider.arrived[0].complete)
    await asyncio.sleep(0.05)
    client.abort()
    await world.use_case.until(lambda: bool(world.use_case.endings))
    ((_, attempt),) = world.use_case.attempts
    assert (attempt.level, attempt.body_complete, attempt.http_status) == ("acknowledged", True, None)
    assert world.use_case.endings[0][1].client_gone


async def test_early_hints_are_not_the_answer(world: World) -> None:
    world.provider.script(Answer(informational=(103, 102, 103)))
    reply, (attempt,), ending = await _outcome(world, post(BODY))
    assert (reply.status, reply.body, attempt.http_status) == (200, b'{"ok":true}', 200)
    assert ending.response_complete


async def test_a_connection_closed_while_idle_is_dialled_anew(world: World) -> None:
    world.provider.script(Answer(framing="length"), Answer(framing="length"))
    client = await world.client()
    assert (await client.ask(post(BODY))).status == 200
    for writer in list(world.provider._writers):
        writer.close()
    await asyncio.sleep(0.1)
    assert (await client.ask(post(BODY))).status == 200
    assert world.provider.connections == 2
    await world.use_case.until(lambda: len(world.use_case.endings) == 2)
    assert [a.level for _, a in world.use_case.attempts] == ["answered", "answered"]


async def test_every_attempt_is_recorded_before_its_ending(world: World) -> None:
    client = await world.client()
    for _ in range(3):
        await client.ask(post(BODY))
    await world.use_case.until(lambda: len(world.use_case.endings) == 3)
    ids = [i for i, _ in world.use_case.attempts]
    assert ids == [i for i, _ in world.use_case.endings] == [r.request_id for r in world.use_case.handled]
    assert len(set(ids)) == 3
