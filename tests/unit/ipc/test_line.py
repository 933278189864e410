"""Lines: what a call leaves behind is nothing."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Sequence
from typing import Any

from gateway.ipc import Line, Message


async def _answer(_message: Message) -> tuple[Sequence[Any], Sequence[bytes]]:
    return (), ()


async def test_calls_one_after_the_other_leave_one_timer() -> None:
    loop = asyncio.get_running_loop()
    ours, theirs = socket.socketpair()
    _, server = await loop.create_unix_connection(lambda: Line({"x": _answer}), sock=theirs)
    _, client = await loop.create_unix_connection(Line, sock=ours)
    before = len(loop._scheduled)  # type: ignore[attr-defined]  # asyncio counts its timers nowhere else
    for _ in range(200):
        await client.call("x")
    pending = len(loop._scheduled) - before  # type: ignore[attr-defined]
    client.close()
    server.close()
    assert pending <= 1
