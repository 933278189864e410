"""A fake provider: real TLS, HTTP/1.1 and HTTP/2, scripted answers, and an exact record of what arrived.

    provider = Provider(pki); await provider.start()
    provider.script(Answer(status=413, early=True))   # for the next request; without one: a realistic answer

`python -m tests.support.provider FOLDER` runs one for agents: it makes its PKI there and prints port and CA file.
"""

from __future__ import annotations

import asyncio
import socket
import ssl
import struct
import time
import weakref
from collections import deque
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import h2.config
import h2.connection
import h2.events
import h2.exceptions

from tests.support.answers import realistic
from tests.support.pki import Pki, make
from tests.support.sockets import Socket, Speak, accept


class ResetError(Exception):
    """The connection is to be reset here."""


@dataclass
class Arrived:
    """One request as it arrived: `wire` is every byte of it (HTTP/1), head and framing included."""

    http: str
    method: str = ""
    target: str = ""
    authority: str = ""
    headers: list[tuple[bytes, bytes]] = field(default_factory=list)
    body: bytearray = field(default_factory=bytearray)
    wire: bytearray = field(default_factory=bytearray)
    complete: bool = False
    began: float = field(default_factory=time.monotonic)
    connection: int = 0

    def header(self, name: str) -> str | None:
        wanted = name.lower().encode()
        return next((v.decode("latin-1") for n, v in self.headers if n.lower() == wanted), None)


@dataclass
class Answer:
    """What happens to one request.

    `pieces` are network writes: bytes, seconds to wait, or `ResetError`. `framing`: length, chunked or close (HTTP/1).
    `early`: answer after the head and read no more. `reset`: head (after it), body (after all of it).
    """

    status: int = 200
    headers: Iterable[tuple[str, str]] = (("content-type", "application/json"),)
    pieces: Iterable[bytes | float | type[ResetError]] = (b'{"ok":true}',)
    framing: str = "length"
    early: bool = False
    reset: str = ""
    informational: Iterable[int] = ()
    trailers: Iterable[tuple[str, str]] = ()
    silent: bool = False
    close: bool = False


class Provider:
    """`arrived` holds every request in order, also incomplete ones; `raw` the bytes of every connection."""

    def __init__(self, pki: Pki, *, alpn: tuple[str, ...] = ("h2", "http/1.1"), rogue: bool = False) -> None:
        self.arrived: list[Arrived] = []
        self.connections = 0
        self.reset_connections = False
        self.port = 0
        self.speak: Speak | None = (
            None  # what happens on a WebSocket; without it an upgrade is a request like others
        )
        self.sockets: list[Socket] = []
        self._answers: deque[Answer] = deque()
        self._writers: set[asyncio.StreamWriter] = set()
        self._closing: weakref.WeakSet[asyncio.StreamWriter] = weakref.WeakSet()
        self._tasks: set[asyncio.Task[Any]] = set()
        self._server: asyncio.Server | None = None
        self._context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        self._context.load_cert_chain(pki.rogue if rogue else pki.leaf)
        self._context.set_alpn_protocols(list(alpn))

    def script(self, *answers: Answer) -> None:
        """Answers for the next requests, in order."""
        self._answers.extend(answers)

    async def start(self, *, plain: bool = False) -> None:
        context = None if plain else self._context
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", self.port, ssl=context)
        self.port = self._server.sockets[0].getsockname()[1]

    async def stop(self) -> None:
        if self._server is not None:
            self._server.close()
            for writer in list(self._writers):
                writer.transport.abort()
            for task in list(self._tasks):
                task.cancel()
            await asyncio.gather(*self._tasks, return_exceptions=True)
            # Those that are closing would wait, over TLS, for their peer's last word beyond the end of the loop.
            for writer in list(self._closing):
                writer.transport.abort()
            await asyncio.sleep(0)
            await asyncio.sleep(0)
            self._server = None

    def take_early(self) -> Answer | None:
        """The next answer, if it does not wait for the body."""
        if self._answers and (self._answers[0].early or self._answers[0].reset == "head"):
            return self._answers.popleft()
        return None

    def answer_to(self, request: Arrived) -> Answer:
        if self._answers:
            return self._answers.popleft()
        status, headers, pieces = realistic(
            request.target, request.header("content-encoding"), bytes(request.body)
        )
        return Answer(status, headers, pieces, framing="length" if len(pieces) == 1 else "chunked")

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        self._writers.add(writer)
        task = asyncio.current_task()
        assert task is not None
        self._tasks.add(task)
        try:
            if self.reset_connections:
                reset(writer)
                return
            secure = writer.get_extra_info("ssl_object")
            if secure is not None and secure.selected_alpn_protocol() == "h2":
                await _Http2(self, reader, writer, self.connections).serve()
            else:
                while await self._one(reader, writer):
                    pass
        except ResetError:
            reset(writer)
        except (OSError, asyncio.IncompleteReadError, asyncio.CancelledError):
            pass
        finally:
            self._writers.discard(writer)
            self._closing.add(writer)
            self._tasks.discard(task)
            with suppress(OSError, RuntimeError):
                writer.close()

    async def _one(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bool:
        head = await reader.readuntil(b"\r\n\r\n")
        request = Arrived("1.1", wire=bytearray(head), connection=self.connections)
        line, *fields = head[:-4].split(b"\r\n")
        method, target, _ = line.split(b" ", 2)
        request.method, request.target = method.decode(), target.decode("latin-1")
        request.headers = [(n, v.strip()) for n, _, v in (f.partition(b":") for f in fields)]
        request.authority = request.header("host") or ""
        self.arrived.append(request)
        answer = self.take_early()
        if answer is not None:
            if answer.reset:
                raise ResetError
            writer.transport.pause_reading()
            await _play(answer, _Http1Out(writer))
            await asyncio.sleep(0.2)
            return False
        await self._body(request, reader)
        request.complete = True
        if self.speak is not None and (request.header("upgrade") or "").lower() == "websocket":
            self.sockets.append(await accept(request.headers, reader, writer, len(self.sockets)))
            await self.speak(self.sockets[-1])
            return False
        answer = self.answer_to(request)
        if answer.reset:
            raise ResetError
        if answer.silent:
            await asyncio.sleep(3600)
        await _play(answer, _Http1Out(writer))
        return not (answer.close or answer.framing == "close")

    async def _body(self, request: Arrived, reader: asyncio.StreamReader) -> None:
        if "chunked" in (request.header("transfer-encoding") or ""):
            while True:
                line = await reader.readline()
                size = int(line.split(b";")[0], 16)
                data = await reader.readexactly(size + 2)
                request.wire += line + data
                request.body += data[:-2]
                if not size:
                    return
        left = int(request.header("content-length") or 0)
        while left:
            data = await reader.read(min(left, 1 << 16))
            if not data:
                raise asyncio.IncompleteReadError(b"", left)
            request.wire += data
            request.body += data
            left -= len(data)


def reset(writer: asyncio.StreamWriter) -> None:
    """Send a TCP reset."""
    sock = writer.get_extra_info("socket")
    if sock is not None:
        with suppress(OSError):
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    writer.transport.abort()


async def _play(answer: Answer, out: _Http1Out | _Http2Out) -> None:
    for status in answer.informational:
        await out.informational(status)
    pieces = list(answer.pieces)
    await out.head(answer, sum(len(p) for p in pieces if isinstance(p, bytes)))
    for piece in pieces:
        if isinstance(piece, bytes):
            await out.data(piece)
        elif isinstance(piece, float | int):
            await asyncio.sleep(piece)
        else:
            raise ResetError
    await out.end(answer)


class _Http1Out:
    def __init__(self, writer: asyncio.StreamWriter) -> None:
        self.writer, self.chunked = writer, False

    async def informational(self, status: int) -> None:
        self.writer.write(b"HTTP/1.1 %d Early\r\nlink: </x>; rel=preload\r\n\r\n" % status)
        await self.writer.drain()
        await asyncio.sleep(0.02)

    async def head(self, answer: Answer, length: int) -> None:
        lines = [f"HTTP/1.1 {answer.status} Scripted", *(f"{n}: {v}" for n, v in answer.headers)]
        self.chunked = answer.framing == "chunked"
        if self.chunked:
            lines.append("transfer-encoding: chunked")
        elif answer.framing == "length":
            lines.append(f"content-length: {length}")
        if answer.close or answer.framing == "close":
            lines.append("connection: close")
        self.writer.write("\r\n".join([*lines, "", ""]).encode())
        await self.writer.drain()

    async def data(self, data: bytes) -> None:
        if data:
            self.writer.write(b"%x\r\n%s\r\n" % (len(data), data) if self.chunked else data)
            await self.writer.drain()

    async def end(self, answer: Answer) -> None:
        if self.chunked:
            trailers = "".join(f"{n}: {v}\r\n" for n, v in answer.trailers)
            self.writer.write(f"0\r\n{trailers}\r\n".encode())
            await self.writer.drain()


class _Http2:
    """One HTTP/2 connection. An early answer comes after the first DATA frame, whose window is never given back."""

    def __init__(
        self, provider: Provider, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, number: int
    ) -> None:
        self.provider, self.reader, self.writer, self.number = provider, reader, writer, number
        self.parser = h2.connection.H2Connection(
            h2.config.H2Configuration(client_side=False, header_encoding=None)
        )
        self.streams: dict[int, Arrived] = {}
        self.early: set[int] = set()
        self.window = asyncio.Event()
        self.tasks: set[asyncio.Task[None]] = set()

    def flush(self) -> None:
        self.writer.write(self.parser.data_to_send())

    async def serve(self) -> None:
        self.parser.initiate_connection()
        self.flush()
        try:
            while data := await self.reader.read(1 << 16):
                for event in self.parser.receive_data(data):
                    self._on(event)
                self.flush()
        except h2.exceptions.ProtocolError:
            self.flush()
        finally:
            for task in self.tasks:
                task.cancel()

    def _on(self, event: h2.events.Event) -> None:
        if isinstance(event, h2.events.RequestReceived):
            self._begin(event)
        elif isinstance(event, h2.events.DataReceived):
            stream = event.stream_id or 0
            self.streams[stream].body += event.data or b""
            if stream not in self.early:
                self.parser.acknowledge_received_data(event.flow_controlled_length or 0, stream)
        elif isinstance(event, h2.events.StreamEnded):
            self._complete(event.stream_id or 0)
        elif isinstance(event, h2.events.WindowUpdated | h2.events.RemoteSettingsChanged):
            self.window.set()

    def _begin(self, event: h2.events.RequestReceived) -> None:
        fields = [(bytes(n), bytes(v)) for n, v in event.headers or []]
        pseudo = {n: v.decode("latin-1") for n, v in fields if n.startswith(b":")}
        request = Arrived("2", pseudo[b":method"], pseudo[b":path"], pseudo.get(b":authority", ""))
        request.headers = [pair for pair in fields if not pair[0].startswith(b":")]
        request.connection = self.number
        stream = event.stream_id or 0
        self.streams[stream] = request
        self.provider.arrived.append(request)
        answer = self.provider.take_early()
        if answer is not None and answer.reset:
            raise ResetError
        if answer is not None:
            self.early.add(stream)
            self._spawn(answer, stream)

    def _complete(self, stream: int) -> None:
        request = self.streams[stream]
        request.complete = True
        if stream in self.early:
            return
        answer = self.provider.answer_to(request)
        if answer.reset:
            raise ResetError
        if not answer.silent:
            self._spawn(answer, stream)

    def _spawn(self, answer: Answer, stream: int) -> None:
        task = asyncio.ensure_future(self._answer(answer, stream))
        self.tasks.add(task)
        task.add_done_callback(self.tasks.discard)

    async def _answer(self, answer: Answer, stream: int) -> None:
        try:
            await _play(answer, _Http2Out(self, stream))
        except ResetError:
            reset(self.writer)
        except (OSError, h2.exceptions.ProtocolError):
            pass


class _Http2Out:
    def __init__(self, connection: _Http2, stream: int) -> None:
        self.connection, self.stream = connection, stream

    async def informational(self, status: int) -> None:
        self.connection.parser.send_headers(self.stream, [(":status", str(status)), ("link", "</x>")])
        self.connection.flush()

    async def head(self, answer: Answer, length: int) -> None:
        fields = [(":status", str(answer.status)), *((n.lower(), v) for n, v in answer.headers)]
        self.connection.parser.send_headers(self.stream, fields)
        self.connection.flush()

    async def data(self, data: bytes) -> None:
        parser = self.connection.parser
        while data:
            room = min(parser.local_flow_control_window(self.stream), parser.max_outbound_frame_size)
            if room <= 0:
                self.connection.window.clear()
                await self.connection.window.wait()
                continue
            parser.send_data(self.stream, data[:room])
            data = data[room:]
            self.connection.flush()
            await self.connection.writer.drain()

    async def end(self, answer: Answer) -> None:
        if answer.trailers:
            self.connection.parser.send_headers(self.stream, list(answer.trailers), end_stream=True)
        else:
            self.connection.parser.end_stream(self.stream)
        self.connection.flush()


async def _main(folder: Path) -> None:
    hosts = (
        "api.openai.com",
        "api.anthropic.com",
        "generativelanguage.googleapis.com",
        "localhost",
        "127.0.0.1",
    )
    pki = make(folder, *hosts)
    provider = Provider(pki)
    await provider.start()
    print(f"port={provider.port} ca={pki.ca}", flush=True)
    await asyncio.Event().wait()


if __name__ == "__main__":
    import sys

    asyncio.run(_main(Path(sys.argv[1])))
