"""Work on big requests beside the event loop, so that reading one request holds no other one up.

Reading, deciding and recording megabytes takes hundreds of milliseconds of Python. For requests from `BIG` bytes on
each stretch of that runs on one thread, which shares the interpreter with the loop (`SWITCH_S` at most for each);
smaller ones stay where they are, as the way to a thread and back costs more than they do. What is worked out is the
same, and so is its order within a request. Big requests are evaluated in turn, for no more than `ROOM` bytes at once:
what their objects take in memory is several times their bodies.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Final

from gateway.egress.reading import header
from gateway.ports import OutboundRequest

BIG: Final = 262_144
"""Bytes of a body from which on it is worked on beside the loop."""

ROOM: Final = 67_108_864
"""Bytes of big bodies that are evaluated at the same time; one alone may be bigger."""

SWITCH_S: Final = 0.001
"""For so long at most a thread keeps the interpreter while the loop waits for it (sys.setswitchinterval)."""


_PLAIN: Final = (b"{", b"[", b"")
_PACKED: Final = 16


def _thread() -> ThreadPoolExecutor:
    return ThreadPoolExecutor(1, thread_name_prefix="big-requests")


def weight(request: OutboundRequest, most: int) -> int:
    """Bytes that a body may come to: what is packed is taken for many times as much, up to `most`."""
    size = len(request.body)
    plain = request.body[:1] in _PLAIN and not header(request.headers, b"content-encoding")
    return size if plain else min(size * _PACKED, max(most, size))


@dataclass(slots=True)
class Aside:
    """One thread for the big requests of a process. Whatever the work raises, the caller gets."""

    big: int = BIG
    room: int = ROOM
    _taken: int = 0
    _waiting: deque[asyncio.Future[None]] = field(default_factory=deque, repr=False)
    _executor: ThreadPoolExecutor = field(default_factory=_thread, repr=False)

    async def run[T](self, size: int, work: Callable[[], T]) -> T:
        """The result of `work` for a body of this size; it must not raise StopIteration.

        Who is cancelled meanwhile does not wait for it: a stretch that has begun comes to its end unseen.
        """
        if size < self.big:
            return work()
        return await asyncio.get_running_loop().run_in_executor(self._executor, work)

    @asynccontextmanager
    async def turn(self, size: int) -> AsyncIterator[None]:
        """Wait until there is room for a body of this size, and hold it."""
        if size < self.big:
            yield
            return
        while self._taken and self._taken + size > self.room:
            await self._next()
        self._taken += size
        try:
            yield
        finally:
            self._taken -= size
            for waiting in self._waiting:
                if not waiting.done():
                    waiting.set_result(None)

    async def _next(self) -> None:
        """Wait until something has become free."""
        free = asyncio.get_running_loop().create_future()
        self._waiting.append(free)
        try:
            await free
        finally:
            self._waiting.remove(free)
