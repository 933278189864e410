"""Byte-exact clients through the proxy: what a test writes is what goes out, HTTP/1.1 and HTTP/2."""

from __future__ import annotations

import asyncio
import base64
import ssl
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

import h2.config
import h2.connection
import h2.events

from tests.support.waiting import PATIENCE_S


@dataclass
class Reply:
    """What came back. `complete` tells that the framing said so, not that the connection ended."""

    status: int = 0
    headers: list[tuple[str, str]] = field(default_factory=list)
    body: bytes = b""
    complete: bool = False
    raw: bytes = b""

    def header(self, name: str) -> str | None:
        return next((v for n, v in self.headers if n.lower() == name.lower()), None)


class RefusedError(Exception):
    """The CONNECT was answered with something else than 2xx."""

    def __init__(self, reply: Reply) -> None:
        super().__init__(str(reply.status))
        self.reply = reply


def credentials(user: str, password: str = "") -> bytes:
    """A Proxy-Authorization line."""
    token = base64.b64encode(f"{user}:{password}".encode()).decode()
    return f"Proxy-Authorization: Basic {token}\r\n".encode()


def post(
    body: bytes = b"{}",
    *,
    path: str = "/v1/messages",
    host: str = "api.test",
    headers: bytes = b"",
    method: str = "POST",
    length: bool = True,
) -> bytes:
    """An HTTP/1.1 request in bytes; of JSON where the headers name no other type."""
    head = f"{method} {path} HTTP/1.1\r\nHost: {host}\r\nX-API-Key: k\r\n"
    if b"content-type:" not in headers.lower():
        head += "content-TYPE: application/json\r\n"
    framing = b"Content-Length: %d\r\n" % len(body) if length else b""
    return head.encode() + headers + framing + b"\r\n" + body


def chunked(*pieces: bytes, host: str = "api.test", trailers: bytes = b"") -> bytes:
    """A chunked HTTP/1.1 request in bytes."""
    head = f"POST /v1/messages HTTP/1.1\r\nHost: {host}\r\nTransfer-Encoding: chunked\r\n\r\n".encode()
    return head + b"".join(b"%x\r\n%s\r\n" % (len(p), p) for p in pieces) + b"0\r\n" + trailers + b"\r\n"


class Connection:
    """One client connection to the proxy."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader, self.writer = reader, writer

    @classmethod
    async def open(cls, port: int) -> Connection:
        return cls(*await asyncio.open_connection("127.0.0.1", port, limit=1 << 22))

    async def connect(self, target: str, extra: bytes = b"") -> Reply:
        await self.send(
            b"CONNECT %s HTTP/1.1\r\nHost: %s\r\n%s\r\n" % (target.encode(), target.encode(), extra)
        )
        reply = await self.reply(bodiless=True)
        if reply.status // 100 != 2:
            length = int(reply.header("content-length") or 0)
            reply.body = await self.reader.readexactly(length)
            raise RefusedError(reply)
        return reply

    async def tls(
        self, ca: Path, name: str, alpn: tuple[str, ...] = ("http/1.1",), certificate: Path | None = None
    ) -> None:
        context = ssl.create_default_context(cafile=str(ca))
        if certificate is not None:
            context.load_cert_chain(certificate)
        context.set_alpn_protocols(list(alpn))
        await self.writer.start_tls(context, server_hostname=name)

    async def send(self, *pieces: bytes) -> None:
        for piece in pieces:
            self.writer.write(piece)
            await self.writer.drain()

    async def ask(self, request: bytes) -> Reply:
        await self.send(request)
        return await self.reply()

    async def reply(self, *, bodiless: bool = False, timeout: float = PATIENCE_S) -> Reply:
        """Read one response; what was read of an incomplete one comes back with `complete` false."""
        reply = Reply()
        try:
            async with asyncio.timeout(timeout):
                await self._read(reply, bodiless)
        except (asyncio.IncompleteReadError, ConnectionError, ssl.SSLError, TimeoutError):
            pass
        return reply

    async def _read(self, reply: Reply, bodiless: bool) -> None:
        head = await self.reader.readuntil(b"\r\n\r\n")
        line, *fields = head[:-4].decode("latin-1").split("\r\n")
        reply.raw = head
        reply.status = int(line.split(" ")[1])
        reply.headers = [(n, v.strip()) for n, _, v in (f.partition(":") for f in fields)]
        if bodiless or reply.status in {204, 304}:
            reply.complete = True
        elif "chunked" in (reply.header("transfer-encoding") or ""):
            await self._chunks(reply)
        elif (length := reply.header("content-length")) is not None:
            reply.body = await self.reader.readexactly(int(length))
            reply.complete = True
        elif reply.status >= 200:
            reply.body = await self.reader.read(-1)
            reply.complete = True

    async def _chunks(self, reply: Reply) -> None:
        while True:
            size = int((await self.reader.readuntil(b"\r\n")).split(b";")[0], 16)
            data = await self.reader.readexactly(size + 2)
            reply.body += data[:-2]
            if not size:
                reply.complete = True
                return

    async def closed(self, timeout: float = PATIENCE_S) -> bool:
        """Whether the proxy ends the connection."""
        try:
            async with asyncio.timeout(timeout):
                while await self.reader.read(1 << 16):
                    pass
        except (ConnectionError, ssl.SSLError):
            return True
        except TimeoutError:
            return False
        return True

    async def close(self) -> None:
        self.writer.close()
        with suppress(OSError, ssl.SSLError, TimeoutError):
            async with asyncio.timeout(1):
                await self.writer.wait_closed()

    def abort(self) -> None:
        self.writer.transport.abort()


class Http2:
    """An HTTP/2 client on a connection made with ALPN h2."""

    def __init__(self, connection: Connection) -> None:
        self.connection = connection
        self.parser = h2.connection.H2Connection(h2.config.H2Configuration(header_encoding="latin-1"))
        self.parser.initiate_connection()
        self.replies: dict[int, Reply] = {}

    async def begin(
        self,
        body: bytes = b"{}",
        *,
        path: str = "/v1/messages",
        authority: str = "api.test",
        headers: Iterable[tuple[str, str]] = (),
        trailers: Iterable[tuple[str, str]] = (),
    ) -> int:
        stream = self.parser.get_next_available_stream_id()
        fields = [
            (":method", "POST"),
            (":scheme", "https"),
            (":authority", authority),
            (":path", path),
            *headers,
        ]
        self.replies[stream] = Reply()
        ending = list(trailers)
        self.parser.send_headers(stream, fields, end_stream=not (body or ending))
        while body:
            room = min(self.parser.local_flow_control_window(stream), self.parser.max_outbound_frame_size)
            if room <= 0:
                await self.pump()
                continue
            piece, body = body[:room], body[room:]
            self.parser.send_data(stream, piece, end_stream=not (body or ending))
        if ending:
            self.parser.send_headers(stream, ending, end_stream=True)
        await self.connection.send(self.parser.data_to_send())
        return stream

    async def pump(self) -> bool:
        await self.connection.send(self.parser.data_to_send())
        data = await self.connection.reader.read(1 << 16)
        if not data:
            return False
        for event in self.parser.receive_data(data):
            if isinstance(event, h2.events.ResponseReceived):
                pairs = [(str(n), str(v)) for n, v in event.headers or []]
                reply = self.replies[event.stream_id or 0]
                reply.status = int(dict(pairs)[":status"])
                reply.headers = [pair for pair in pairs if not pair[0].startswith(":")]
            elif isinstance(event, h2.events.DataReceived):
                self.replies[event.stream_id or 0].body += event.data or b""
                self.parser.acknowledge_received_data(event.flow_controlled_length or 0, event.stream_id or 0)
            elif isinstance(event, h2.events.StreamEnded):
                self.replies[event.stream_id or 0].complete = True
            elif isinstance(event, h2.events.StreamReset):
                return False
        await self.connection.send(self.parser.data_to_send())
        return True

    async def finish(self, stream: int, timeout: float = PATIENCE_S) -> Reply:
        reply = self.replies[stream]
        with suppress(TimeoutError, ConnectionError):
            async with asyncio.timeout(timeout):
                while not reply.complete and await self.pump():
                    pass
        return reply
