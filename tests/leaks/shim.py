"""Between a tool that knows base URLs only and a gateway that is reached as a proxy.

`BaseUrl` listens with plain HTTP and sends each request through CONNECT and TLS to a provider's host, as HTTPS_PROXY does.
`Front` stands for that host: it ends the TLS that the gateway opens, and hands the bytes to a plain HTTP server.
"""

from __future__ import annotations

import asyncio
import re
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

from tests.support.client import Connection

_HOST = re.compile(rb"(?im)^(?:host|connection|accept-encoding):[^\r\n]*\r\n")
_LENGTH = re.compile(rb"(?im)^content-length:\s*(\d+)")


async def _pipe(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    with suppress(OSError):
        while data := await reader.read(1 << 16):
            writer.write(data)
            await writer.drain()
    with suppress(OSError, RuntimeError):
        writer.close()


@dataclass
class Listener:
    """A server on a port of its own."""

    port: int = 0
    _server: asyncio.Server | None = None
    _tasks: set[asyncio.Task[None]] = field(default_factory=set)

    async def handle(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """One connection."""
        raise NotImplementedError

    @asynccontextmanager
    async def listening(self, context: ssl.SSLContext | None = None) -> AsyncIterator[Listener]:
        """Accept connections until the block ends."""
        self._server = await asyncio.start_server(self._accept, "127.0.0.1", 0, ssl=context)
        self.port = self._server.sockets[0].getsockname()[1]
        try:
            yield self
        finally:
            self._server.close()
            for task in list(self._tasks):
                task.cancel()
            await asyncio.gather(*self._tasks, return_exceptions=True)

    async def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._tasks.add(task)
        try:
            await self.handle(reader, writer)
        except (OSError, asyncio.IncompleteReadError):
            pass
        finally:
            self._tasks.discard(task)
            with suppress(OSError, RuntimeError):
                writer.close()


@dataclass
class BaseUrl(Listener):
    """Requests to this port go through the proxy to `host`, one connection each."""

    proxy: int = 0
    ca: Path = Path()
    host: str = ""

    async def handle(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = await reader.readuntil(b"\r\n\r\n")
        line, _, fields = head.partition(b"\r\n")
        length = _LENGTH.search(fields)
        body = await reader.readexactly(int(length[1])) if length else b""
        through = await Connection.open(self.proxy)
        try:
            await through.connect(f"{self.host}:443")
            await through.tls(self.ca, self.host)
            named = f"host: {self.host}\r\nconnection: close\r\n".encode()
            through.writer.write(line + b"\r\n" + named + _HOST.sub(b"", fields) + body)
            await through.writer.drain()
            await _pipe(through.reader, writer)
        finally:
            await through.close()


@dataclass
class Front(Listener):
    """The provider's host: what arrives over TLS goes to a plain port, which may not listen yet."""

    behind: int = 0

    async def handle(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        inner, outer = await asyncio.open_connection("127.0.0.1", self.behind)
        await asyncio.gather(_pipe(reader, outer), _pipe(inner, writer))
