"""Accepting on a socket that several processes share: one connection a turn of the loop.

asyncio's own server accepts as many connections at once as its backlog is long, so that the process that happens to
wake first would take them all. Here each process takes one and then does its work: who has most to do takes least.
"""

from __future__ import annotations

import asyncio
import errno
import socket
from collections.abc import Callable, Coroutine
from typing import Any, Final

type ServeStream = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Coroutine[Any, Any, None]]

_PAUSE_S: Final = 0.5
_EXHAUSTED: Final = frozenset({errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM})


class Acceptor:
    """Looks like an asyncio.Server where mitmproxy looks at one. The socket stays open: others listen on it too."""

    def __init__(self, listener: socket.socket, serve: ServeStream) -> None:
        """`listener` listens already; begin with `open`."""
        self._listener = listener
        self._serve = serve
        self._loop = asyncio.get_running_loop()
        self._open = False
        self._resume: asyncio.TimerHandle | None = None
        self._beginning: set[asyncio.Future[Any]] = set()

    @property
    def sockets(self) -> tuple[socket.socket, ...]:
        """The socket, while connections are accepted."""
        return (self._listener,) if self._open else ()

    def open(self) -> None:
        """Begin to accept."""
        self._listener.setblocking(False)
        self._open = True
        self._loop.add_reader(self._listener, self._accept)

    def close(self) -> None:
        """Accept nothing more."""
        if self._open:
            self._open = False
            self._loop.remove_reader(self._listener)
        if self._resume is not None:
            self._resume.cancel()

    def _accept(self) -> None:
        try:
            connection, _ = self._listener.accept()
        except (BlockingIOError, InterruptedError, ConnectionAbortedError):
            return  # another process was faster, or the client left
        except OSError as error:
            if error.errno not in _EXHAUSTED:
                raise
            self._loop.remove_reader(self._listener)
            self._resume = self._loop.call_later(_PAUSE_S, self._again)
            return
        connection.setblocking(False)
        reader = asyncio.StreamReader(loop=self._loop)
        protocol = asyncio.StreamReaderProtocol(reader, self._serve, loop=self._loop)
        beginning: asyncio.Future[Any] = asyncio.ensure_future(
            self._loop.connect_accepted_socket(lambda: protocol, connection)
        )
        self._beginning.add(beginning)
        beginning.add_done_callback(self._begun)

    def _begun(self, beginning: asyncio.Future[Any]) -> None:
        self._beginning.discard(beginning)
        if not beginning.cancelled():
            beginning.exception()  # the client is gone already: nobody is left to be told

    def _again(self) -> None:
        self._resume = None
        if self._open:
            self._loop.add_reader(self._listener, self._accept)
