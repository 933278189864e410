"""The control port's server, in the gateway's event loop: no signal handlers, no logs of its own."""

from __future__ import annotations

import asyncio
import contextlib
import socket
from collections.abc import Coroutine, Generator
from typing import Any, Final, Protocol, override

import uvicorn
from starlette.types import ASGIApp

from gateway.errors import SetupError

_BACKLOG: Final = 128
_CLOSE_S: Final = 2  # an open console page does not hold up a stop


class Spawn(Protocol):
    """Starts a task and keeps it (`gateway.workers.spawn`)."""

    def __call__(self, work: Coroutine[Any, Any, None], /, *, name: str) -> asyncio.Task[None]:
        """The task."""
        ...


class _Server(uvicorn.Server):
    """The gateway decides when it stops; a library must not take its signals."""

    def __init__(self, config: uvicorn.Config) -> None:
        super().__init__(config)
        self.listening = asyncio.Event()

    @override
    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        try:
            await super().startup(sockets)
        finally:
            self.listening.set()

    @override
    @contextlib.contextmanager
    def capture_signals(self) -> Generator[None]:
        yield


class ControlServer:
    """Serves an application on one address from `start` to `close`."""

    def __init__(self, app: ASGIApp, host: str, port: int) -> None:
        self._address = (host, port)
        self._server = _Server(
            uvicorn.Config(
                app,
                lifespan="off",
                log_config=None,
                access_log=False,
                server_header=False,
                proxy_headers=False,
                ws="none",
                timeout_graceful_shutdown=_CLOSE_S,
                limit_concurrency=256,
            )
        )
        self._serving: asyncio.Task[None] | None = None
        self.port = port  # the real one once started, where 0 was asked for

    async def start(self, spawn: Spawn) -> None:
        """Listen; `spawn` starts and keeps the serving task. SetupError where the address cannot be had."""
        host, port = self._address
        family = socket.AF_INET6 if ":" in host else socket.AF_INET
        listener = socket.socket(family, socket.SOCK_STREAM)
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            listener.bind((host, port))
            listener.listen(_BACKLOG)
        except OSError as error:
            listener.close()
            message = f"the control port {host}:{port} cannot be had: {error.strerror}"
            raise SetupError(
                "setup.control_port",
                message,
                hint="if a gateway runs already, use it (egress doctor) or stop it; else change listen.control",
            ) from None
        listener.setblocking(False)
        self.port = listener.getsockname()[1]
        self._serving = spawn(self._server.serve([listener]), name="control port")
        await self._server.listening.wait()

    async def close(self) -> None:
        """Stop accepting, finish what is in flight within seconds."""
        serving, self._serving = self._serving, None
        if serving is not None:
            self._server.should_exit = True
            await serving
