"""WebSockets of the fake provider, and frames byte by byte for its clients: wsproto without the gateway's own framing."""

from __future__ import annotations

import asyncio
import base64
import hashlib
import json
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from wsproto import events as ws
from wsproto.connection import Connection, ConnectionType
from wsproto.extensions import Extension, PerMessageDeflate

from tests.support.answers import asked

if TYPE_CHECKING:
    from tests.support.copyist import Copyist

_GUID = b"258EAFA5-E914-47DA-95CA-C5AB0DC85B11"

type Speak = Callable[[Socket], Awaitable[None]]


@dataclass
class Socket:
    """One accepted WebSocket; `messages` is what arrived whole, `control` pings, pongs and closes in order."""

    reader: asyncio.StreamReader
    writer: asyncio.StreamWriter
    protocol: Connection
    number: int
    deflated: bool
    messages: list[str | bytes] = field(default_factory=list)
    control: list[ws.Event] = field(default_factory=list)
    frames: int = 0
    keep: bool = True
    closed: bool = False
    _parts: list[Any] = field(default_factory=list)
    _ready: list[str | bytes] = field(default_factory=list)

    async def receive(self) -> str | bytes | None:
        """The next message; None when the connection is over."""
        while not self._ready:
            if self.closed:
                return None
            data = await self.reader.read(1 << 16)
            if not data:
                self.closed = True
                return None
            self.protocol.receive_data(data)
            for event in self.protocol.events():
                await self._on(event)
        return self._ready.pop(0)

    async def _on(self, event: ws.Event) -> None:
        if isinstance(event, ws.Message):
            self.frames += event.frame_finished
            self._parts.append(event.data)
            if event.message_finished:
                empty: Any = "" if isinstance(event.data, str) else b""
                whole = empty.join(self._parts)
                self._parts = []
                self._ready.append(whole)
                if self.keep:
                    self.messages.append(whole)
            return
        self.control.append(event)
        if isinstance(event, ws.Ping):
            await self.write(self.protocol.send(event.response()))
        elif isinstance(event, ws.CloseConnection):
            self.closed = True

    async def send(self, event: dict[str, Any] | str | bytes) -> None:
        data = json.dumps(event) if isinstance(event, dict) else event
        await self.write(
            self.protocol.send(ws.TextMessage(data) if isinstance(data, str) else ws.BytesMessage(data))
        )

    async def control_frame(self, event: ws.Event) -> None:
        await self.write(self.protocol.send(event))

    async def write(self, data: bytes) -> None:
        self.writer.write(data)
        await self.writer.drain()

    async def __aiter__(self) -> AsyncIterator[str | bytes]:
        while (message := await self.receive()) is not None:
            yield message


async def accept(
    headers: Sequence[tuple[bytes, bytes]],
    reader: asyncio.StreamReader,
    writer: asyncio.StreamWriter,
    number: int,
) -> Socket:
    """Answer an upgrade, with permessage-deflate where it is offered."""
    found = {name.lower(): value for name, value in headers}
    accepted = base64.b64encode(hashlib.sha1(found[b"sec-websocket-key"] + _GUID).digest())
    head = b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
    head += b"Sec-WebSocket-Accept: " + accepted + b"\r\n"
    used: list[Extension] = []
    offer = found.get(b"sec-websocket-extensions", b"").decode()
    if offer:
        extension = PerMessageDeflate()
        agreed = extension.accept(offer)
        used.append(extension)
        head += f"Sec-WebSocket-Extensions: permessage-deflate{'; ' if agreed else ''}{agreed}\r\n".encode()
    writer.write(head + b"\r\n")
    await writer.drain()
    return Socket(reader, writer, Connection(ConnectionType.SERVER, used), number, bool(used))


def events_of(text: str, number: int = 1, *, size: int = 7) -> list[dict[str, Any]]:
    """A response as a provider streams it: created, deltas of a few characters, the item, completed."""
    name = f"resp_{number}"
    item = {
        "type": "message",
        "id": f"msg_{number}",
        "role": "assistant",
        "content": [{"type": "output_text", "text": text}],
    }
    place = {"item_id": item["id"], "output_index": 0, "content_index": 0}
    pieces = [text[at : at + size] for at in range(0, len(text), size)]
    return [
        {"type": "response.created", "response": {"id": name, "status": "in_progress"}},
        {"type": "response.output_item.added", "output_index": 0, "item": {**item, "content": []}},
        *({"type": "response.output_text.delta", **place, "delta": piece} for piece in pieces),
        {"type": "response.output_text.done", **place, "text": text},
        {"type": "response.output_item.done", "output_index": 0, "item": item},
        {
            "type": "response.completed",
            "response": {
                "id": name,
                "status": "completed",
                "output": [item],
                "usage": {"input_tokens": 5, "output_tokens": 7},
            },
        },
    ]


def text_of(message: str | bytes) -> str:
    """The text of the user's last item in a `response.create`, as the echoing provider repeats it."""
    body = json.loads(message)
    items = (body.get("response") or body)["input"]
    return items if isinstance(items, str) else str(items[-1]["content"][-1]["text"])


async def echo(socket: Socket) -> None:
    """Answer every `response.create` with the text it holds."""
    number = 0
    async for message in socket:
        if isinstance(message, str) and json.loads(message).get("type") == "response.create":
            number += 1
            for event in events_of(text_of(message), number):
                await socket.send(event)


def copying(copyist: Copyist) -> Speak:
    """The model that copies (`tests.support.copyist`), over a WebSocket: turns hold only what is new.

    Conversations are found by `previous_response_id`, also on another connection, as a provider that stores them does.
    """
    told: dict[str, list[Any]] = {}

    async def speak(socket: Socket) -> None:
        async for message in socket:
            body = json.loads(message)
            if body.get("type") != "response.create":
                continue
            items = body.get("input") or []
            items = [{"role": "user", "content": items}] if isinstance(items, str) else items
            history = [*told.get(body.get("previous_response_id") or "", []), *items]
            number = len(told) + 1
            for event in _answer(copyist, {**body, "input": history, "stream": True}, f"resp_{number:04}"):
                if event["type"] == "response.completed":
                    told[event["response"]["id"]] = [*history, *event["response"]["output"]]
                await socket.send(event)

    return speak


def _answer(copyist: Copyist, body: dict[str, Any], name: str) -> list[dict[str, Any]]:
    """The events of the copyist's next step; a warm-up (`generate` false) is answered with nothing."""
    if body.get("generate") is False:
        empty = {"id": name, "object": "response", "status": "completed", "output": []}
        return [
            {"type": "response.created", "response": {**empty, "status": "in_progress"}},
            {"type": "response.completed", "response": empty},
        ]
    question = asked("/v1/responses", None, json.dumps(body).encode())
    assert question is not None
    _, _, pieces = question.answer(copyist.step(question))
    events = [json.loads(piece.split(b"data: ", 1)[1]) for piece in pieces]
    for event in events:
        if "response" in event:
            event["response"]["id"] = name
    return events


def create(text: str, **more: Any) -> str:
    """A client's `response.create`."""
    content = [{"type": "input_text", "text": text}]
    return json.dumps(
        {
            "type": "response.create",
            "model": "gpt-5",
            "input": [{"type": "message", "role": "user", "content": content}],
            **more,
        }
    )


def upgrade(host: str = "api.test", path: str = "/v1/responses", *lines: str, without: str = "") -> bytes:
    """An upgrade request in bytes; `lines` are added, the line that begins with `without` is left out."""
    head = [
        f"GET {path} HTTP/1.1",
        f"Host: {host}",
        "Connection: keep-alive, Upgrade",
        "Upgrade: websocket",
        "Sec-WebSocket-Version: 13",
        "Sec-WebSocket-Key: eDp5eDp5eDp5eDp5eDp5eA==",
        *lines,
    ]
    kept = [line for line in head if not (without and line.startswith(without))]
    return "\r\n".join([*kept, "", ""]).encode()


def frames(*, deflate: str = "") -> Connection:
    """What writes and reads the frames of a client; `deflate` as the server agreed to it."""
    if not deflate:
        return Connection(ConnectionType.CLIENT)
    extension = PerMessageDeflate()
    extension.finalize(deflate)
    return Connection(ConnectionType.CLIENT, [extension])
