"""WebSocket messages through the proxy over real sockets: admitted and exact, or never out."""

from __future__ import annotations

import asyncio
import gc
import json
import ssl
import tracemalloc
import zlib
from collections.abc import AsyncIterator, Callable
from contextlib import suppress
from dataclasses import replace
from typing import Any

import pytest
from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import ConnectionClosed, InvalidStatus
from wsproto import events as ws
from wsproto.connection import Connection as Protocol

from gateway.classify.conversing import Conversation
from gateway.ports import OutboundRequest
from gateway.proxy import talk as talks
from gateway.proxy.frames import Message
from gateway.proxy.settings import ParentProxy
from gateway.proxy.talk import Talk, Verdict
from tests.integration.proxy.conftest import Start, World
from tests.support.client import Connection
from tests.support.parent import Parent
from tests.support.provider import Answer
from tests.support.sockets import Socket, create, echo, events_of, frames, upgrade
from tests.support.usecase import Behaviour, admitted, hanging, raising, refusing
from tests.support.waiting import eventually

SECRET = "zebra-crossing-quartz"


async def talk(world: World, target: str = "/v1/responses", **options: Any) -> ClientConnection:
    """A real client's connection through the proxy."""
    return await connect(
        f"wss://api.test{target}",
        proxy=f"http://127.0.0.1:{world.proxy.port}",
        ssl=ssl.create_default_context(cafile=str(world.ca)),
        max_size=None,
        ping_interval=None,
        **options,
    )


@pytest.fixture
async def echoing(start: Start) -> World:
    world = await start()
    assert isinstance(world, World)
    world.provider.speak = echo
    return world


async def answer(socket: ClientConnection) -> list[dict[str, Any]]:
    """The events of one response."""
    events: list[dict[str, Any]] = []
    async with asyncio.timeout(10):
        while not events or events[-1]["type"] not in {"response.completed", "response.failed"}:
            events.append(json.loads(await socket.recv()))
    return events


async def close_code(socket: ClientConnection) -> int | None:
    """With which code the connection ends; what comes before that is let by."""
    async with asyncio.timeout(5):
        with suppress(ConnectionClosed):
            while True:
                await socket.recv()
    return socket.close_code


def arrived(world: World) -> list[str | bytes]:
    return [message for socket in world.provider.sockets for message in socket.messages]


def after_the_upgrade(behaviour: Behaviour) -> Behaviour:
    async def decide(request: OutboundRequest) -> Any:
        return await behaviour(request) if request.transport == "websocket" else admitted(request)

    return decide


class TestAdmitted:
    @pytest.mark.parametrize("compression", ["deflate", None])
    async def test_a_message_is_a_request_of_its_own_and_arrives_as_it_was_admitted(
        self, echoing: World, compression: Any
    ) -> None:
        socket = await talk(echoing, "/v1/responses?x=1", compression=compression)
        await socket.send(create("hello"))
        events = await answer(socket)
        await socket.close()

        assert arrived(echoing) == [create("hello")]
        assert events == events_of("hello")
        assert echoing.provider.sockets[0].deflated is (compression is not None)
        head, message = echoing.use_case.handled
        assert (head.transport, head.method, head.target, head.body) == (
            "http",
            "GET",
            "/v1/responses?x=1",
            b"",
        )
        assert (message.transport, message.target) == ("websocket", "/v1/responses?x=1")
        assert message.body == create("hello").encode()

    async def test_attempts_are_claimed_as_far_as_they_were_seen(self, echoing: World) -> None:
        socket = await talk(echoing)
        await socket.send(create("hello"))
        await answer(socket)
        await echoing.use_case.until(lambda: len(echoing.use_case.endings) == 2)

        (_, head), (name, message) = echoing.use_case.attempts
        assert (head.transport, head.http_status, head.body_complete) == ("http", 101, True)
        assert (message.transport, message.http_status, message.failure) == ("websocket", None, None)
        assert (message.level, message.body_complete, message.peer_verified) == ("answered", True, True)
        assert message.written_digest == admitted(echoing.use_case.handled[1]).request_digest
        assert message.written_bytes == len(create("hello"))
        assert echoing.use_case.endings[1][0] == name
        assert echoing.use_case.endings[1][1].response_complete
        assert echoing.use_case.endings[1][1].usage == {"input_tokens": 5, "output_tokens": 7}
        assert echoing.use_case.order[-2:] == ["observe", "conclude"]
        assert echoing.proxy.requests_in_flight == 0
        await socket.close()

    async def test_what_leaves_is_the_admitted_body(self, echoing: World) -> None:
        async def rewrite(request: OutboundRequest) -> Any:
            return admitted(request, request.body.replace(SECRET.encode(), b"***"))

        echoing.use_case.behaviour = rewrite
        socket = await talk(echoing)
        await socket.send(create(f"say {SECRET}"))
        await answer(socket)
        assert arrived(echoing) == [create("say ***")]
        await socket.close()

    async def test_messages_keep_their_order_however_long_each_is_judged(self, echoing: World) -> None:
        async def dawdle(request: OutboundRequest) -> Any:
            await asyncio.sleep(0.05 if b"even" in request.body else 0)
            return admitted(request)

        echoing.use_case.behaviour = after_the_upgrade(dawdle)
        socket = await talk(echoing)
        sent = [create(f"{n} {'even' if n % 2 == 0 else 'odd'}") for n in range(10)]
        for message in sent:
            await socket.send(message)
        for _ in sent:
            await answer(socket)
        assert arrived(echoing) == sent
        await echoing.use_case.until(lambda: len(echoing.use_case.endings) == 11)
        assert {a.level for _, a in echoing.use_case.attempts} == {"answered"}
        await socket.close()

    async def test_the_provider_is_heard_while_a_message_is_judged(self, echoing: World) -> None:
        judging = asyncio.Event()

        async def wait(request: OutboundRequest) -> Any:
            await judging.wait()
            return admitted(request)

        async def first(socket: Socket) -> None:
            await socket.send({"type": "session.created"})
            await echo(socket)

        echoing.use_case.behaviour = after_the_upgrade(wait)
        echoing.provider.speak = first
        socket = await talk(echoing)
        await socket.send(create("hello"))
        assert json.loads(await socket.recv()) == {"type": "session.created"}
        assert arrived(echoing) == []
        judging.set()
        await answer(socket)
        await socket.close()

    async def test_through_a_parent_proxy(self, start: Start) -> None:
        parent = Parent()
        await parent.start()
        world = await start(parent=ParentProxy("127.0.0.1", parent.port))
        world.provider.speak = echo
        socket = await talk(world)
        await socket.send(create("hello"))
        assert await answer(socket) == events_of("hello")
        await world.use_case.until(lambda: len(world.use_case.endings) == 2)
        attempt = world.use_case.attempts[1][1]
        assert attempt.via == f"127.0.0.1:{parent.port}"
        assert (attempt.level, attempt.peer_verified, attempt.body_complete) == ("answered", True, True)
        await socket.close()
        await parent.stop()

    async def test_a_close_waits_for_the_verdict_on_the_last_message(self, echoing: World) -> None:
        async def dawdle(request: OutboundRequest) -> Any:
            await asyncio.sleep(0.1)
            return admitted(request)

        echoing.use_case.behaviour = after_the_upgrade(dawdle)
        socket = await talk(echoing)
        await socket.send(create("hello"))
        await socket.close()
        assert arrived(echoing) == [create("hello")]


class TestRefused:
    async def test_the_client_gets_the_dialects_refusal_and_the_message_never_leaves(
        self, echoing: World
    ) -> None:
        behaviour = refusing("secret.denied")

        async def some(request: OutboundRequest) -> Any:
            return await behaviour(request) if SECRET.encode() in request.body else admitted(request)

        echoing.use_case.behaviour = some
        socket = await talk(echoing)
        await socket.send(create(f"say {SECRET}", stream_id="s1"))
        (event,) = await answer(socket)
        assert event["type"] == "response.failed"
        assert event["response"]["error"]["code"] == "invalid_prompt"
        assert event["stream_id"] == "s1"
        await socket.send(create("hello"))
        await answer(socket)
        assert arrived(echoing) == [create("hello")]
        await socket.close()
        assert echoing.proxy.requests_in_flight == 0

    async def test_a_realtime_session_gets_an_error_event(self, echoing: World) -> None:
        echoing.use_case.behaviour = after_the_upgrade(refusing("secret.denied"))
        socket = await talk(echoing, "/v1/realtime?model=gpt-realtime")
        await socket.send(
            json.dumps({"type": "session.update", "event_id": "e1", "session": {"instructions": SECRET}})
        )
        event = json.loads(await socket.recv())
        assert (event["type"], event["error"]["event_id"]) == ("error", "e1")
        assert event["error"]["code"] == "gateway_blocked"
        assert arrived(echoing) == []
        await socket.close()

    @pytest.mark.parametrize("error", [RuntimeError(SECRET), asyncio.CancelledError(), KeyError(SECRET)])
    async def test_a_use_case_that_raises_or_is_cancelled_lets_nothing_out(
        self, echoing: World, error: BaseException
    ) -> None:
        echoing.use_case.behaviour = after_the_upgrade(raising(error))
        socket = await talk(echoing)
        await socket.send(create(SECRET))
        (event,) = await answer(socket)
        assert event["response"]["error"]["code"] == "invalid_prompt"
        assert [f.reason_codes for _, f in echoing.use_case.rejected] == [("gateway.error",)]
        assert arrived(echoing) == []
        assert SECRET not in str(echoing.reported)
        await socket.close()

    async def test_a_refusal_that_cannot_be_said_closes_the_connection(
        self, echoing: World, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        def broken(self: object, message: bytes, refused: object) -> bytes | None:
            raise RuntimeError(SECRET)

        monkeypatch.setattr(Conversation, "refusal", broken)
        echoing.use_case.behaviour = after_the_upgrade(refusing("secret.denied"))
        socket = await talk(echoing)
        await socket.send(create(SECRET))
        assert await close_code(socket) == 1011
        assert arrived(echoing) == []

    async def test_a_use_case_that_hangs_lets_nothing_out(self, start: Start) -> None:
        world = await start(limits={"deadline_ms": 100})
        world.provider.speak = echo
        world.use_case.behaviour = after_the_upgrade(hanging())
        socket = await talk(world)
        await socket.send(create(SECRET))
        (event,) = await answer(socket)
        assert event["type"] == "response.failed"
        assert [f.reason_codes for _, f in world.use_case.rejected] == [("deadline.exceeded",)]
        await world.use_case.until(lambda: len(world.use_case.endings) == 2)  # the late verdict, as unsent
        assert not world.use_case.endings[1][1].response_complete
        await asyncio.sleep(0.1)
        assert arrived(world) == []
        await socket.close()

    async def test_a_verdict_whose_digest_is_not_that_of_its_body_lets_nothing_out(
        self, echoing: World
    ) -> None:
        async def lie(request: OutboundRequest) -> Any:
            return replace(admitted(request), request_digest="sha256:" + "00" * 32)

        echoing.use_case.behaviour = after_the_upgrade(lie)
        socket = await talk(echoing)
        await socket.send(create(SECRET))
        assert (await answer(socket))[0]["type"] == "response.failed"
        assert arrived(echoing) == []
        assert ("proxy.integrity_alarm", {"reason": "digest"}) in echoing.reported
        await socket.close()

    async def test_a_binary_message_is_judged_as_such_and_closes_the_connection_when_refused(
        self, echoing: World
    ) -> None:
        echoing.use_case.behaviour = after_the_upgrade(refusing("body.opaque"))
        socket = await talk(echoing)
        await socket.send(b"\x00\x01" + SECRET.encode())
        assert await close_code(socket) == 1008
        assert dict(echoing.use_case.handled[1].headers)[b"content-type"] == b"application/octet-stream"
        assert arrived(echoing) == []

    async def test_a_binary_message_that_is_admitted_stays_binary(self, echoing: World) -> None:
        socket = await talk(echoing)
        await socket.send(b"\x00\x01")
        await socket.send(create("hello"))
        await answer(socket)
        assert arrived(echoing) == [b"\x00\x01", create("hello")]
        await socket.close()

    async def test_a_gateway_that_is_too_busy_asks_to_come_again(self, start: Start) -> None:
        world = await start(limits={"max_inflight_bytes": 4096, "deadline_ms": 300})
        world.provider.speak = echo
        world.use_case.behaviour = after_the_upgrade(hanging())
        socket = await talk(world)
        for _ in range(3):
            await socket.send(create("x" * 1500))
        assert await close_code(socket) == 1013
        assert [f.reason_codes for _, f in world.use_case.rejected] == [("gateway.overloaded",)]
        assert arrived(world) == []

    async def test_more_waiting_messages_than_are_kept_close_the_connection(
        self, echoing: World, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(talks, "MAX_WAITING", 2)
        echoing.use_case.behaviour = after_the_upgrade(slow(0.1, admitted))
        socket = await talk(echoing)
        for n in range(5):
            await socket.send(create(str(n)))
        assert await close_code(socket) == 1013
        assert all("4" not in str(json.loads(m)["input"]) for m in arrived(echoing))


def slow(seconds: float, then: Callable[[OutboundRequest], Any]) -> Behaviour:
    async def decide(request: OutboundRequest) -> Any:
        await asyncio.sleep(seconds)
        return then(request)

    return decide


async def settled(world: World) -> None:
    await eventually(lambda: not world.proxy.requests_in_flight)


class Raw:
    """A client that writes its frames itself."""

    def __init__(self, connection: Connection, protocol: Protocol) -> None:
        self.connection, self.protocol = connection, protocol

    @classmethod
    async def open(cls, world: World, *, deflate: bool = False) -> Raw:
        connection = await world.client()
        offer = ["Sec-WebSocket-Extensions: permessage-deflate"] if deflate else []
        await connection.send(upgrade("api.test", "/v1/responses", *offer))
        reply = await connection.reply(bodiless=True)
        assert reply.status == 101, reply.raw
        return cls(connection, frames(deflate=reply.header("sec-websocket-extensions") or ""))

    async def send(self, *events: ws.Event) -> None:
        for event in events:
            await self.connection.send(bytes(self.protocol.send(event)))

    async def hear(self) -> AsyncIterator[ws.Event]:
        async with asyncio.timeout(5):
            while data := await self.connection.reader.read(1 << 16):
                self.protocol.receive_data(data)
                for event in self.protocol.events():
                    yield event

    async def until(self, kind: type[ws.Event]) -> Any:
        async for event in self.hear():
            if isinstance(event, kind):
                return event
        raise AssertionError("the connection ended")


class TestFrames:
    @pytest.mark.parametrize("deflate", [False, True])
    async def test_fragments_with_control_frames_between_them_are_one_message(
        self, echoing: World, deflate: bool
    ) -> None:
        raw = await Raw.open(echoing, deflate=deflate)
        whole = create("Grüße " * 200)
        middle = len(whole) // 2
        await raw.send(ws.TextMessage(whole[:middle], message_finished=False))
        await raw.send(ws.Ping(b"between"))
        await raw.send(ws.TextMessage(whole[middle:], message_finished=True))
        assert (await raw.until(ws.Pong)).payload == b"between"
        await raw.until(ws.Message)
        assert arrived(echoing) == [whole]
        assert [r.body for r in echoing.use_case.handled[1:]] == [whole.encode()]

    async def test_byte_by_byte_is_the_same_message(self, echoing: World) -> None:
        raw = await Raw.open(echoing, deflate=True)
        for byte in bytes(raw.protocol.send(ws.TextMessage(create("slow")))):
            await raw.connection.send(bytes([byte]))
        await raw.until(ws.Message)
        assert arrived(echoing) == [create("slow")]

    async def test_nothing_that_a_client_chooses_leaves_in_a_control_frame(self, echoing: World) -> None:
        raw = await Raw.open(echoing)
        await raw.send(ws.Pong(SECRET.encode()), ws.Ping(SECRET.encode()))
        assert (await raw.until(ws.Pong)).payload == SECRET.encode()
        await raw.send(ws.CloseConnection(4001, SECRET))
        await raw.until(ws.CloseConnection)
        ping, close = await eventually(
            lambda: echoing.provider.sockets[0].control, lambda frames: len(frames) > 1
        )
        assert isinstance(ping, ws.Ping)
        assert ping.payload == b"1"
        assert isinstance(close, ws.CloseConnection)
        assert (close.code, close.reason) == (4001, "")

    async def test_a_ping_of_the_provider_is_answered_by_the_client(self, echoing: World) -> None:
        async def ask(socket: Socket) -> None:
            await socket.control_frame(ws.Ping(b"there?"))
            await echo(socket)

        echoing.provider.speak = ask
        raw = await Raw.open(echoing)
        ping = await raw.until(ws.Ping)
        await raw.send(ping.response(), ping.response())
        await raw.send(ws.TextMessage(create("x")))
        await raw.until(ws.Message)
        assert [bytes(e.payload) for e in echoing.provider.sockets[0].control if isinstance(e, ws.Pong)] == [
            b"there?"
        ]

    async def test_frames_sent_with_the_upgrade_wait_for_the_answer_to_it(self, echoing: World) -> None:
        connection = await echoing.client()
        protocol = frames()
        await connection.send(upgrade() + bytes(protocol.send(ws.TextMessage(create("early")))))
        assert (await connection.reply(bodiless=True)).status == 101
        await Raw(connection, protocol).until(ws.Message)
        assert arrived(echoing) == [create("early")]

    @pytest.mark.parametrize(
        "bytes_",
        [
            b"\x81\x05hello",  # not masked
            b"\xf1\x80\x00\x00\x00\x00",  # reserved bits
            b"\x83\x80\x00\x00\x00\x00",  # reserved opcode
            b"\x80\x80\x00\x00\x00\x00",  # continues nothing
            b"\x81\x82\x00\x00\x00\x00\xff\xfe",  # no UTF-8
            b"\x89\xfe\x00\x80\x00\x00\x00\x00",  # a long ping
        ],
        ids=["unmasked", "reserved", "opcode", "continuation", "utf8", "ping"],
    )
    async def test_what_is_no_frame_ends_the_connection(self, echoing: World, bytes_: bytes) -> None:
        raw = await Raw.open(echoing)
        await raw.connection.send(bytes_)
        close = await raw.until(ws.CloseConnection)
        assert close.code in {1002, 1007}
        assert await raw.connection.closed()
        assert arrived(echoing) == []


class TestBounds:
    @pytest.mark.parametrize("pieces", [1, 40])
    async def test_a_message_over_the_limit_is_refused_and_recorded(self, start: Start, pieces: int) -> None:
        world = await start(limits={"ws_message_bytes": 10_000})
        world.provider.speak = echo
        raw = await Raw.open(world)
        size = 20_000 // pieces
        for n in range(pieces):
            last = n == pieces - 1
            data = raw.protocol.send(ws.TextMessage("x" * size, message_finished=last))
            raw.connection.writer.write(bytes(data))
        assert (await raw.until(ws.CloseConnection)).code == 1009
        await world.use_case.until(lambda: bool(world.use_case.rejected))
        ((request, refusal),) = world.use_case.rejected
        assert (request.transport, refusal.status, request.body) == ("websocket", 413, b"")
        assert arrived(world) == []
        await settled(world)

    async def test_a_small_frame_that_grows_without_end_is_not_inflated(self, echoing: World) -> None:
        compressor = zlib.compressobj(9, zlib.DEFLATED, -15)
        block = compressor.compress(bytes(64 << 20)) + compressor.flush(zlib.Z_FULL_FLUSH)
        bomb = (16 * block)[:-4]  # 1 GB of zeros in 1 MB
        assert len(bomb) < 1 << 20 < 1.1 * len(bomb)
        raw = await Raw.open(echoing, deflate=True)
        head = bytes([0xC1, 0xFF]) + len(bomb).to_bytes(8) + bytes(4)
        tracemalloc.start()
        try:
            raw.connection.writer.write(head + bomb)
            close = await raw.until(ws.CloseConnection)
            peak = tracemalloc.get_traced_memory()[1]
        finally:
            tracemalloc.stop()
        assert close.code == 1009
        assert peak < 5 * (32 << 20)  # a few copies of the largest message
        assert arrived(echoing) == []

    async def test_a_providers_message_is_bounded_too(self, start: Start) -> None:
        world = await start(limits={"ws_message_bytes": 10_000})

        async def flood(socket: Socket) -> None:
            await socket.receive()
            await socket.send("x" * 100_000)
            await socket.receive()

        world.provider.speak = flood
        socket = await talk(world)
        await socket.send(create("hello"))
        assert await close_code(socket) == 1009
        await world.use_case.until(lambda: len(world.use_case.endings) == 2)

    async def test_memory_does_not_grow_with_the_conversation(self, echoing: World) -> None:
        socket = await talk(echoing)
        padding = "x" * 20_000

        async def turns(count: int) -> int:
            for n in range(count):
                await socket.send(create(f"{n}", instructions=padding))
                await answer(socket)
                for used in (echoing.use_case, echoing.provider.sockets[0]):
                    for name in ("handled", "attempts", "endings", "order", "messages"):
                        getattr(used, name, []).clear()
            gc.collect()
            return tracemalloc.get_traced_memory()[0]

        tracemalloc.start()
        try:
            before = await turns(20)
            after = await turns(100)
        finally:
            tracemalloc.stop()
        assert after - before < 200_000  # 2 MB went through
        assert echoing.proxy.requests_in_flight == 0
        await socket.close()


class TestEnds:
    async def test_a_client_that_leaves_while_its_message_is_judged_sends_nothing(
        self, echoing: World
    ) -> None:
        reached = asyncio.Event()

        async def wait(request: OutboundRequest) -> Any:
            reached.set()
            await asyncio.sleep(0.2)
            return admitted(request)

        echoing.use_case.behaviour = after_the_upgrade(wait)
        socket = await talk(echoing)
        await socket.send(create("hello"))
        await socket.send(create("again"))
        await reached.wait()
        socket.transport.abort()
        await echoing.use_case.until(lambda: len(echoing.use_case.endings) == 2)
        assert arrived(echoing) == []
        assert len(echoing.use_case.handled) == 2  # the second was not even judged
        assert [name for name, _ in echoing.use_case.attempts] == [echoing.use_case.endings[0][0]]
        assert echoing.proxy.requests_in_flight == 0

    async def test_a_client_that_leaves_mid_answer(self, echoing: World) -> None:
        async def half(socket: Socket) -> None:
            await socket.receive()
            for event in events_of("hello")[:3]:
                await socket.send(event)
            await socket.receive()

        echoing.provider.speak = half
        socket = await talk(echoing)
        await socket.send(create("hello"))
        await socket.recv()
        socket.transport.abort()
        await echoing.use_case.until(lambda: len(echoing.use_case.endings) == 2)
        ending = echoing.use_case.endings[1][1]
        assert (ending.response_complete, ending.client_gone) == (False, True)
        assert echoing.use_case.attempts[1][1].level == "answered"
        await eventually(lambda: echoing.provider.sockets[0].closed)

    @pytest.mark.parametrize("how", ["close", "eof", "code"])
    async def test_a_provider_that_leaves(self, echoing: World, how: str) -> None:
        async def leave(socket: Socket) -> None:
            await socket.receive()
            if how == "code":
                await socket.control_frame(ws.CloseConnection(4999, "over"))
            elif how == "eof":
                socket.writer.transport.abort()

        echoing.provider.speak = leave
        socket = await talk(echoing)
        await socket.send(create("hello"))
        assert await close_code(socket) == (4999 if how == "code" else 1006)
        await echoing.use_case.until(lambda: len(echoing.use_case.endings) == 2)
        ending = echoing.use_case.endings[1][1]
        assert (ending.response_complete, ending.client_gone) == (False, False)
        attempt = echoing.use_case.attempts[1][1]
        assert (attempt.failure, attempt.http_status) == ("other", None)
        assert attempt.level in {"maybe", "handed_over", "acknowledged"}

    async def test_draining_waits_for_the_answer_and_takes_no_more_messages(self, echoing: World) -> None:
        release = asyncio.Event()

        async def wait(socket: Socket) -> None:
            async for _ in socket:
                await release.wait()
                for event in events_of("done"):
                    await socket.send(event)

        echoing.provider.speak = wait
        socket = await talk(echoing)
        await socket.send(create("hello"))
        await echoing.use_case.until(lambda: len(echoing.use_case.handled) == 2)
        stopping = asyncio.ensure_future(echoing.proxy.stop(5))
        await asyncio.sleep(0.05)
        release.set()
        assert (await answer(socket))[-1]["type"] == "response.completed"
        await stopping
        assert echoing.use_case.endings[1][1].response_complete


class TestUpgrade:
    async def test_it_is_evaluated_and_may_be_refused(self, echoing: World) -> None:
        echoing.use_case.behaviour = refusing("header.secret")
        with pytest.raises(InvalidStatus) as refused:
            await talk(echoing, additional_headers={"x-note": SECRET})
        assert refused.value.response.status_code == 400
        assert any(value == SECRET.encode() for _, value in echoing.use_case.handled[0].headers)
        assert echoing.provider.connections == 0

    async def test_a_provider_that_does_not_switch_is_heard(self, echoing: World) -> None:
        echoing.provider.speak = None
        echoing.provider.script(Answer(401))
        with pytest.raises(InvalidStatus) as refused:
            await talk(echoing)
        assert refused.value.response.status_code == 401
        await echoing.use_case.until(lambda: len(echoing.use_case.endings) == 1)

    async def test_only_what_can_be_read_is_offered(self, echoing: World) -> None:
        connection = await echoing.client()
        offers = "x-snappy; level=1, permessage-deflate; client_max_window_bits; server_max_window_bits=8, permessage-deflate"
        await connection.send(
            upgrade("api.test", "/v1/responses", f"Sec-WebSocket-Extensions: {offers}", "X-Kept: 1")
        )
        assert (await connection.reply(bodiless=True)).status == 101
        request = echoing.provider.arrived[0]
        assert request.header("sec-websocket-extensions") == "permessage-deflate"
        assert (request.header("connection"), request.header("upgrade")) == ("Upgrade", "websocket")
        assert request.header("x-kept") == "1"

    @pytest.mark.parametrize(
        ("line", "without"),
        [
            ("Content-Length: 4", ""),
            ("Transfer-Encoding: chunked", ""),
            ("", "Sec-WebSocket-Key"),
            ("Sec-WebSocket-Key: c2VjcmV0IHRoYXQgaXMgdG9vIGxvbmcgZm9yIGEga2V5", "Sec-WebSocket-Key"),
            ("Sec-WebSocket-Key: eDp5eDp5eDp5eDp5eDp5eA==", ""),
            ("Sec-WebSocket-Version: 12", "Sec-WebSocket-Version"),
            (f"Sec-WebSocket-Protocol: realtime, {SECRET}", ""),
            (f"Sec-WebSocket-Accept: {SECRET}", ""),
            ("Upgrade: h2c", ""),
            ("", "Connection"),
            ("Expect: 100-continue", ""),
        ],
    )
    async def test_an_upgrade_with_anything_unknown_is_answered_426(
        self, echoing: World, line: str, without: str
    ) -> None:
        connection = await echoing.client()
        await connection.send(
            upgrade("api.test", "/v1/responses", *([line] if line else []), without=without)
        )
        reply = await connection.reply()
        assert reply.status == 426
        assert echoing.provider.connections == 0

    async def test_the_subprotocols_of_providers_are_known(self, echoing: World) -> None:
        connection = await echoing.client()
        names = "realtime, openai-insecure-api-key.ek_1, openai-beta.realtime-v1"
        await connection.send(upgrade("api.test", "/v1/realtime", f"Sec-WebSocket-Protocol: {names}"))
        assert (await connection.reply(bodiless=True)).status == 101

    @pytest.mark.parametrize(
        "path", ["/v1/messages", "/v1/responses/resp_1", "/v1/live", "/", "/v1/realtime/calls"]
    )
    async def test_other_paths_are_answered_426(self, echoing: World, path: str) -> None:
        connection = await echoing.client()
        await connection.send(upgrade("api.test", path))
        assert (await connection.reply()).status == 426

    async def test_reading_can_be_switched_off(self, start: Start) -> None:
        world = await start(websocket=False)
        with pytest.raises(InvalidStatus) as refused:
            await talk(world)
        assert refused.value.response.status_code == 426

    @pytest.mark.parametrize(
        "extension", ["x-snappy", "permessage-deflate; what=1", "permessage-deflate, x-snappy"]
    )
    async def test_an_agreement_that_cannot_be_read_ends_the_connection(
        self, echoing: World, extension: str
    ) -> None:
        echoing.provider.speak = None
        headers = [
            ("upgrade", "websocket"),
            ("connection", "upgrade"),
            ("sec-websocket-extensions", extension),
        ]
        echoing.provider.script(Answer(101, headers=headers, pieces=(), framing="none"))
        connection = await echoing.client()
        await connection.send(upgrade())
        await connection.send(bytes(frames().send(ws.TextMessage(create(SECRET)))))
        assert await connection.closed()
        assert len(echoing.use_case.handled) == 1


class TestTheGuardBelow:
    """Whatever the layers above do, only admitted messages become frames."""

    @pytest.mark.parametrize("payload", [create(SECRET).encode(), b"", b"{}"])
    async def test_another_payload_is_stopped(
        self, echoing: World, monkeypatch: pytest.MonkeyPatch, payload: bytes
    ) -> None:
        judged = Talk.judged

        def broken(self: Talk, verdict: Verdict) -> bytes | None:
            judged(self, verdict)
            return payload

        monkeypatch.setattr(Talk, "judged", broken)
        socket = await talk(echoing)
        await socket.send(create("hello"))
        await close_code(socket)
        assert arrived(echoing) == []
        assert ("proxy.integrity_alarm", {"reason": "unadmitted"}) in echoing.reported
        await echoing.use_case.until(lambda: len(echoing.use_case.endings) == 2)
        assert [a.transport for _, a in echoing.use_case.attempts] == ["http"]  # nothing is claimed

    async def test_a_refused_message_is_stopped_also_where_it_is_taken_for_admitted(
        self, echoing: World, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        echoing.use_case.behaviour = after_the_upgrade(refusing("secret.denied"))
        monkeypatch.setattr(Talk, "judged", lambda self, verdict: create(SECRET).encode())
        socket = await talk(echoing)
        await socket.send(create(SECRET))
        await close_code(socket)
        assert arrived(echoing) == []

    async def test_bytes_that_are_no_payload_of_ours_are_stopped(
        self, echoing: World, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr("gateway.proxy.websocket.Text", bytes)
        socket = await talk(echoing)
        await socket.send(create(SECRET))
        await close_code(socket)
        assert arrived(echoing) == []
        assert ("proxy.integrity_alarm", {"reason": "unadmitted"}) in echoing.reported

    async def test_a_fault_of_the_layer_ends_the_connection(
        self, echoing: World, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        def broken(self: Talk, message: object) -> None:
            raise RuntimeError(SECRET)

        monkeypatch.setattr(Talk, "hear", broken)
        socket = await talk(echoing)
        await socket.send(create(SECRET))
        assert await close_code(socket) == 1011
        assert arrived(echoing) == []
        assert ("proxy.hook_failed", {"hook": "websocket", "error": "RuntimeError"}) in echoing.reported

    async def test_other_addons_cannot_inject_messages(
        self, echoing: World, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        flows: list[Any] = []
        hear = Talk.hear

        def noted(self: Talk, message: Message) -> None:
            flows.append(self.flow)
            hear(self, message)

        monkeypatch.setattr(Talk, "hear", noted)
        socket = await talk(echoing)
        await socket.send(create("hello"))
        await answer(socket)
        master = echoing.proxy._master
        assert master is not None
        for from_client in (True, False):
            master.commands.call("inject.websocket", flows[0], from_client, SECRET.encode(), True)
        await socket.send(create("again"))
        await answer(socket)
        assert arrived(echoing) == [create("hello"), create("again")]
        await socket.close()
