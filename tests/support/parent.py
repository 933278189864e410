"""A company proxy: CONNECT and absolute-form requests, credentials asked for, everything recorded."""

from __future__ import annotations

import asyncio
from contextlib import suppress


class Parent:
    """`asked` holds the heads of what it was asked; it dials what it is told."""

    def __init__(self, *, authorization: str = "", refuse: bool = False) -> None:
        self.asked: list[bytes] = []
        self.port = 0
        self._authorization = authorization.encode()
        self._refuse = refuse
        self._server: asyncio.Server | None = None
        self._writers: set[asyncio.StreamWriter] = set()

    async def start(self) -> None:
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", 0)
        self.port = self._server.sockets[0].getsockname()[1]

    async def stop(self) -> None:
        if self._server is not None:
            self._server.close()
        for writer in list(self._writers):
            writer.transport.abort()
        await asyncio.sleep(0)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._writers.add(writer)
        with suppress(OSError, asyncio.IncompleteReadError, asyncio.CancelledError):
            head = await reader.readuntil(b"\r\n\r\n")
            self.asked.append(head)
            if self._refuse:
                writer.write(b"HTTP/1.1 403 No\r\ncontent-length: 0\r\n\r\n")
            elif self._authorization and b"Proxy-Authorization: " + self._authorization not in head:
                writer.write(b"HTTP/1.1 407 Who\r\ncontent-length: 0\r\n\r\n")
            elif head.startswith(b"CONNECT "):
                await self._tunnel(head.split(b" ")[1].decode(), reader, writer)
            else:
                writer.write(b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok")
                await reader.read(1)
            await writer.drain()
        writer.close()
        self._writers.discard(writer)

    async def _tunnel(self, target: str, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        host, _, port = target.rpartition(":")
        there, back = await asyncio.open_connection(host, int(port))
        self._writers.add(back)
        writer.write(b"HTTP/1.1 200 Connected\r\n\r\n")
        await asyncio.gather(_copy(reader, back), _copy(there, writer))
        self._writers.discard(back)


async def _copy(source: asyncio.StreamReader, sink: asyncio.StreamWriter) -> None:
    with suppress(OSError):
        while data := await source.read(1 << 16):
            sink.write(data)
            await sink.drain()
    sink.close()
