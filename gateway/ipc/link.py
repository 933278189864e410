"""A line to a Unix socket that is made anew whenever it breaks. While it is down, calls fail at once."""

from __future__ import annotations

import asyncio
import os
import socket
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

from gateway.ipc.frames import MAX_FRAME, Message
from gateway.ipc.line import STALL_S, Handler, Line, LostError, RefusedError
from gateway.ipc.unix import connected, peer_uid

PAUSES_S: Final = (0.01, 0.02, 0.05, 0.1, 0.2, 0.5)  # between attempts; the last one for all that follow


class Link:
    """`greet` is called on every new line before it is used; what it raises ends the line."""

    def __init__(
        self,
        path: Path,
        greet: Callable[[Line], Awaitable[None]],
        serve: Mapping[str, Handler] | None = None,
        *,
        bound: int = MAX_FRAME,
        stall_s: float = STALL_S,
    ) -> None:
        self._path = path
        self._greet = greet
        self._serve = serve
        self._bound = bound
        self._stall_s = stall_s
        self._line: Line | None = None
        self._up = asyncio.Event()
        self._keeping: asyncio.Future[None] | None = None

    @property
    def up(self) -> bool:
        """Whether calls can be made now."""
        return self._line is not None

    def open(self) -> None:
        """Begin to connect; returns at once."""
        self._keeping = asyncio.ensure_future(self._keep())

    async def ready(self, timeout_s: float) -> bool:
        """Whether the link is up within so many seconds."""
        with suppress(TimeoutError):
            async with asyncio.timeout(timeout_s):
                await self._up.wait()
        return self.up

    async def call(self, word: str, *args: Any, blobs: Sequence[bytes] = ()) -> Message:
        """See Line.call."""
        if self._line is None:
            raise LostError("the link is down")
        return await self._line.call(word, *args, blobs=blobs)

    def tell(self, word: str, *args: Any, blobs: Sequence[bytes] = ()) -> None:
        """See Line.tell: the other end has it before anything that is asked later."""
        if self._line is None:
            raise LostError("the link is down")
        self._line.tell(word, *args, blobs=blobs)

    async def close(self) -> None:
        """End it."""
        keeping, self._keeping = self._keeping, None
        if keeping is not None:
            keeping.cancel()
            with suppress(asyncio.CancelledError):
                await keeping

    async def _keep(self) -> None:
        failures = 0
        while True:
            line = await self._connect()
            if line is not None:
                failures = 0
                self._line = line
                self._up.set()
                try:
                    await line.closed.wait()
                finally:
                    self._line = None
                    self._up.clear()
                    line.close()
            await asyncio.sleep(PAUSES_S[min(failures, len(PAUSES_S) - 1)])
            failures += 1

    async def _connect(self) -> Line | None:
        loop = asyncio.get_running_loop()
        try:
            sock = connected(self._path)
        except OSError:
            return None
        try:
            if peer_uid(sock) not in {None, os.geteuid()}:
                sock.close()
                return None
            line = await self._attached(loop, sock)
        except OSError:
            sock.close()
            return None
        try:
            async with asyncio.timeout(self._stall_s):
                await self._greet(line)
        except (TimeoutError, LostError, RefusedError):
            line.abort()
            return None
        except BaseException:
            line.abort()
            raise
        return line

    async def _attached(self, loop: asyncio.AbstractEventLoop, sock: socket.socket) -> Line:
        sock.setblocking(False)
        _, line = await loop.create_unix_connection(
            lambda: Line(self._serve, bound=self._bound, stall_s=self._stall_s), sock=sock
        )
        return line
