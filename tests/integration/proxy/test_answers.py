"""The way back: streamed as it comes, restored where asked, visibly cut where that fails (traps 15, 16, 27)."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Mapping

import pytest

from gateway.ports import BodyRestorer, Headers, OutboundRequest
from tests.integration.proxy.conftest import Start, World
from tests.support.client import post
from tests.support.provider import Answer
from tests.support.usecase import Verdict, admitted

SSE = (("content-type", "text/event-stream"),)


class Upper:
    """A restorer that changes length, holds bytes back, and may break."""

    def __init__(self, breaks_at: int = 0) -> None:
        self.calls, self.breaks_at, self.ended = 0, breaks_at, False

    def feed(self, data: bytes) -> bytes:
        self.calls += 1
        if self.calls == self.breaks_at:
            raise RuntimeError("restorer")
        return data.replace(b"<ph>", b"a longer value")

    def end(self) -> bytes:
        self.ended = True
        return b"tail"

    @property
    def alters(self) -> bool:
        return True

    @property
    def broken(self) -> bool:
        return False

    @property
    def restored(self) -> int:
        return 3

    @property
    def withheld(self) -> int:
        return 1

    @property
    def refused(self) -> int:
        return 1

    @property
    def usage(self) -> Mapping[str, int] | None:
        return {"input_tokens": 7}


class Restoring:
    def __init__(self, restorer: BodyRestorer | None, *, breaks: bool = False) -> None:
        self.restorer, self.breaks = restorer, breaks
        self.opened: list[tuple[int, Headers]] = []
        self.holds = False

    def open(self, status: int, headers: Headers) -> tuple[Headers, BodyRestorer] | None:
        self.opened.append((status, headers))
        if self.breaks:
            raise RuntimeError("open")
        return None if self.restorer is None else (headers, self.restorer)


def restoring(world: World, restoration: Restoring) -> None:
    async def behaviour(request: OutboundRequest) -> Verdict:
        return admitted(request, b"{}", restoration=restoration)

    world.use_case.behaviour = behaviour


@pytest.mark.parametrize("framing", ["length", "chunked", "close"])
async def test_a_restored_answer_has_one_true_framing(world: World, framing: str) -> None:
    world.provider.script(Answer(pieces=(b'{"t":"<ph>"}',), framing=framing))
    restorer = Upper()
    restoring(world, Restoring(restorer))
    reply = await (await world.client()).ask(post(b"{}"))
    assert (reply.body, reply.complete) == (b'{"t":"a longer value"}tail', True)
    assert reply.header("content-length") is None
    assert reply.header("transfer-encoding") == "chunked"
    await world.use_case.until(lambda: bool(world.use_case.endings))
    ending = world.use_case.endings[0][1]
    assert (ending.placeholders_restored, ending.restore_withheld, ending.response_complete) == (3, 2, True)
    assert ending.usage == {"input_tokens": 7}


async def test_a_restored_answer_over_http2(start: Start) -> None:
    world = await start(alpn=("h2",))
    world.provider.script(Answer(pieces=(b"<ph>", b"<ph>"), headers=[*SSE]))
    restoring(world, Restoring(Upper()))
    client = await world.http2()
    reply = await client.finish(await client.begin(b"{}"))
    assert (reply.body, reply.complete) == (b"a longer valuea longer valuetail", True)
    assert reply.header("content-length") is None


async def test_an_http10_client_gets_a_body_that_ends_with_the_connection(world: World) -> None:
    world.provider.script(Answer(pieces=(b"<ph>",), framing="chunked"))
    restoring(world, Restoring(Upper()))
    client = await world.client()
    reply = await client.ask(post(b"{}").replace(b"HTTP/1.1", b"HTTP/1.0"))
    assert reply.body == b"a longer valuetail"
    assert (reply.header("transfer-encoding"), reply.header("content-length")) == (None, None)


@pytest.mark.parametrize("status", [204, 304])
async def test_a_bodiless_answer_is_left_alone(world: World, status: int) -> None:
    world.provider.script(Answer(status, pieces=(), framing="none"))
    restoration = Restoring(Upper())
    restoring(world, restoration)
    client = await world.client()
    reply = await client.ask(post(b"{}"))
    assert (reply.status, reply.complete, restoration.opened) == (status, True, [])
    assert (await client.ask(post(b"{}"))).status == 200


async def test_an_answer_to_head_has_no_body(world: World) -> None:
    world.provider.script(Answer(headers=[("content-length", "5")], pieces=(), framing="none"))
    client = await world.client()
    await client.send(post(b"", method="HEAD", length=False))
    reply = await client.reply(bodiless=True)
    assert (reply.status, reply.header("content-length")) == (200, "5")
    assert (await client.ask(post(b"{}"))).status == 200


async def test_events_pass_as_they_come(world: World) -> None:
    pieces = [b"data: 0\n\n"]
    for n in range(1, 4):
        pieces += [0.15, b"data: %d\n\n" % n]  # type: ignore[list-item]
    world.provider.script(Answer(headers=SSE, pieces=pieces, framing="chunked"))
    client = await world.client()
    await client.send(post(b"{}"))
    await client.reader.readuntil(b"data: 0")
    first = time.monotonic()
    await client.reader.readuntil(b"data: 3")
    assert time.monotonic() - first > 0.3


async def test_held_bytes_never_end_a_chunked_answer_early(world: World) -> None:
    class Holding(Upper):
        def feed(self, data: bytes) -> bytes:
            return b""

    world.provider.script(Answer(headers=SSE, pieces=(b"one", 0.05, b"two"), framing="chunked"))
    restoring(world, Restoring(Holding()))
    reply = await (await world.client()).ask(post(b"{}"))
    assert (reply.body, reply.complete) == (b"tail", True)


async def test_a_restorer_that_breaks_cuts_the_answer_visibly(world: World) -> None:
    world.provider.script(
        Answer(headers=SSE, pieces=(b"one", 0.05, b"two", 0.05, b"three"), framing="chunked")
    )
    restoring(world, Restoring(Upper(breaks_at=2)))
    client = await world.client()
    began = time.monotonic()
    reply = await client.ask(post(b"{}"))
    assert (reply.status, reply.body, reply.complete) == (200, b"one", False)
    assert time.monotonic() - began < 2
    await world.use_case.until(lambda: bool(world.use_case.endings))
    assert not world.use_case.endings[0][1].response_complete
    assert (await (await world.client()).ask(post(b"{}"))).status == 200


async def test_a_restorer_that_breaks_resets_only_its_http2_stream(start: Start) -> None:
    world = await start(alpn=("h2",))
    world.provider.script(Answer(headers=SSE, pieces=(b"one", 0.05, b"two", 0.05, b"three")))
    restoring(world, Restoring(Upper(breaks_at=2)))
    client = await world.http2()
    reply = await client.finish(await client.begin(b"{}"))
    assert (reply.status, reply.complete) == (200, False)
    restoring(world, Restoring(None))
    assert (await client.finish(await client.begin(b"{}"))).complete


async def test_a_restoration_that_cannot_open_passes_the_answer_unrestored(world: World) -> None:
    world.provider.script(Answer(pieces=(b"<ph>",)))
    restoring(world, Restoring(None, breaks=True))
    reply = await (await world.client()).ask(post(b"{}"))
    assert (reply.body, reply.complete) == (b"<ph>", True)
    assert ("proxy.hook_failed", {"hook": "responseheaders", "error": "RuntimeError"}) in world.reported


async def test_an_unrestored_answer_is_byte_identical(world: World) -> None:
    body = bytes(range(256)) * 300
    headers = [("content-type", "x/y"), ("X-Mixed-Case", "Yes"), ("X-Egress-Receipt", "forged")]
    world.provider.script(Answer(headers=headers, pieces=(body,)))
    restoring(world, Restoring(None))
    reply = await (await world.client()).ask(post(b"{}"))
    assert (reply.body, reply.header("content-length")) == (body, str(len(body)))
    assert ("X-Mixed-Case", "Yes") in reply.headers
    assert "forged" not in str(reply.headers)


async def test_trailers_of_a_provider_do_not_hang_the_client(world: World) -> None:
    world.provider.script(Answer(pieces=(b"abc",), framing="chunked", trailers=[("x-sum", "1")]))
    client = await world.client()
    reply = await client.ask(post(b"{}"))
    assert (reply.body, reply.complete) == (b"abc", True)
    assert (await client.ask(post(b"{}"))).status == 200


async def test_an_endless_answer_head_is_cut(start: Start) -> None:
    world = await start(limits={"max_header_bytes": 8192})
    world.provider.script(Answer(headers=[("x-big", "a" * 200_000)]))
    reply = await (await world.client()).ask(post(b"{}"))
    assert reply.status == 502


async def test_a_malformed_answer_is_refused_in_the_providers_shape(world: World) -> None:
    world.provider.script(
        Answer(headers=[("content-length", "5"), ("transfer-encoding", "chunked")], framing="none")
    )
    reply = await (await world.client()).ask(post(b"{}"))
    assert reply.status == 502
    assert b"gateway_blocked" in reply.body
    await world.use_case.until(lambda: bool(world.use_case.endings))


async def test_a_switch_of_protocols_nobody_asked_for_is_not_followed(world: World) -> None:
    world.provider.script(
        Answer(101, headers=[("upgrade", "websocket"), ("connection", "upgrade")], pieces=(), framing="none")
    )
    client = await world.client()
    await client.send(post(b"{}"))
    await client.reply(bodiless=True)
    await client.send(b"smuggled")
    await client.closed()
    await asyncio.sleep(0.05)
    assert b"smuggled" not in b"".join(bytes(a.wire) for a in world.provider.arrived)
