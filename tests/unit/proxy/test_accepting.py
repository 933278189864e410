"""A socket that several acceptors share: each connection is served once, by one of them, and nothing is held back."""

from __future__ import annotations

import asyncio
import errno
import socket
from collections.abc import Iterator

import pytest

from gateway.proxy import accepting
from gateway.proxy.accepting import Acceptor, ServeStream


@pytest.fixture
def listener() -> Iterator[socket.socket]:
    with socket.create_server(("127.0.0.1", 0), backlog=128) as made:
        made.setblocking(False)
        yield made


def greeting(name: bytes) -> ServeStream:
    async def serve(_reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(name)
        writer.close()

    return serve


async def asked(listener: socket.socket) -> bytes:
    reader, writer = await asyncio.open_connection(*listener.getsockname())
    try:
        return await asyncio.wait_for(reader.read(), 5)
    finally:
        writer.close()


async def test_every_connection_is_served_once(listener: socket.socket) -> None:
    both = [Acceptor(listener, greeting(name)) for name in (b"a", b"b")]
    both[0].open()
    assert both[0].sockets == (listener,)
    found = await asyncio.gather(*(asked(listener) for _ in range(40)))
    assert found == [b"a"] * 40
    both[0].close()
    assert both[0].sockets == ()
    both[1].open()
    assert await asked(listener) == b"b"
    both[1].close()


async def test_one_connection_a_turn_of_the_loop(listener: socket.socket) -> None:
    clients = [await asyncio.open_connection(*listener.getsockname()) for _ in range(5)]
    acceptor = Acceptor(listener, greeting(b"x"))
    acceptor._accept()
    assert len(acceptor._beginning) == 1
    await asyncio.gather(*acceptor._beginning)
    for _, writer in clients:
        writer.close()


class Exhausted:
    """A socket whose process has no descriptors left, for a while."""

    def __init__(self, real: socket.socket) -> None:
        self.real, self.failing = real, True

    def fileno(self) -> int:
        return self.real.fileno()

    def setblocking(self, flag: bool) -> None:
        self.real.setblocking(flag)

    def accept(self) -> tuple[socket.socket, object]:
        if self.failing:
            raise OSError(errno.EMFILE, "too many open files")
        return self.real.accept()


async def test_without_descriptors_it_waits_and_goes_on(
    listener: socket.socket, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(accepting, "_PAUSE_S", 0.05)
    exhausted = Exhausted(listener)
    acceptor = Acceptor(exhausted, greeting(b"x"))  # type: ignore[arg-type]
    acceptor.open()
    asking = asyncio.ensure_future(asked(listener))
    await asyncio.sleep(0.12)
    assert not asking.done()
    exhausted.failing = False
    assert await asking == b"x"
    acceptor.close()
