"""The processes of one gateway: how one is started, and how it is talked to.

A process is a new interpreter with the import path of its parent and nothing else (as scanning processes are). It gets
its orders through a socket that it inherits, and serves calls on it afterwards; when that socket ends, its parent is
gone, and it ends too. Signals go to the parent alone.
"""

from __future__ import annotations

import asyncio
import json
import os
import pickle
import signal
import socket
import struct
import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, Final

from gateway.config import Config
from gateway.errors import GatewayError, SetupError
from gateway.ipc import Handler, Line, LostError, Message

# No current folder on the path (-P), no re-run of the main module, no descriptor but those that are named.
_BOOT: Final = (
    "import json, sys; sys.path[:] = json.loads(sys.argv[1]); "
    "from gateway.app.processes import main; main(sys.argv[2], int(sys.argv[3]))"
)
_LENGTH: Final = struct.Struct(">I")
_KINDS: Final = ("writer", "worker")
HUNG_S: Final = 30.0
"""A process that owes an answer for so long is taken for dead, and killed."""


@dataclass(frozen=True, slots=True)
class Orders:
    """What a process is to do. `life` names it; `expected` are lives that a new writer must wait for."""

    settings: Config
    life: str
    expected: tuple[str, ...] = ()
    listeners: tuple[int, ...] = ()  # descriptors of the sockets of the proxy and of projects


@dataclass(slots=True, eq=False)
class Child:
    """A process as its parent sees it."""

    kind: str
    life: str
    process: asyncio.subprocess.Process
    line: Line
    ready: asyncio.Event = field(default_factory=asyncio.Event)
    failure: GatewayError | None = None

    @property
    def alive(self) -> bool:
        """Whether it has not ended."""
        return self.process.returncode is None

    async def ask(self, word: str, timeout_s: float) -> Message | None:
        """Its answer; None where it gives none in time."""
        with suppress(LostError, TimeoutError):
            async with asyncio.timeout(timeout_s):
                return await self.line.call(word)
        return None

    def stop(self) -> None:
        """Tell it to finish what is in flight and end."""
        with suppress(LostError):
            self.line.tell("stop")

    def kill(self) -> None:
        """End it at once."""
        with suppress(ProcessLookupError):
            self.process.kill()

    async def ended(self, within_s: float) -> bool:
        """Whether it ends within so many seconds; it is killed where it does not."""
        try:
            async with asyncio.timeout(within_s):
                await self.process.wait()
        except TimeoutError:
            self.kill()
            await self.process.wait()
            return False
        return True


async def launch(kind: str, orders: Orders, fds: Sequence[int] = ()) -> Child:
    """Start a process; SetupError where that is not possible. It says `ready` when it does its work."""
    ours, theirs = socket.socketpair()
    command = [sys.executable, "-P", "-c", _BOOT, json.dumps(sys.path), kind, str(theirs.fileno())]
    with theirs:
        try:
            process = await asyncio.create_subprocess_exec(
                *command, stdin=asyncio.subprocess.DEVNULL, pass_fds=(theirs.fileno(), *fds)
            )
        except OSError as error:
            ours.close()
            raise SetupError("setup.process", f"cannot start a process: {error.strerror}") from None
    data = pickle.dumps(orders, pickle.HIGHEST_PROTOCOL)
    try:
        ours.sendall(_LENGTH.pack(len(data)) + data)  # a few kilobytes: they fit into the socket's buffer
    except OSError as error:
        ours.close()
        raise SetupError("setup.process", f"a process did not take its orders: {error.strerror}") from None
    ours.setblocking(False)
    told: dict[str, Handler] = {}
    loop = asyncio.get_running_loop()
    _, line = await loop.create_unix_connection(lambda: Line(stall_s=HUNG_S), sock=ours)
    child = Child(kind, orders.life, process, line)
    told |= {"ready": lambda message: _ready(child), "unable": lambda message: _failed(child, message)}
    for word, handler in told.items():
        line.handle(word, handler)
    return child


async def _ready(child: Child) -> tuple[Sequence[Any], Sequence[bytes]]:
    child.ready.set()
    return (), ()


async def _failed(child: Child, message: Message) -> tuple[Sequence[Any], Sequence[bytes]]:
    code, text, hint = message.args
    child.failure = SetupError(str(code), str(text), hint=str(hint))
    return (), ()


# -- in the process itself -------------------------------------------------------------------------------------------


@dataclass(slots=True)
class Parent:
    """The parent as its process sees it. `stopped` is set when it says so, or is gone."""

    line: Line
    stopped: asyncio.Event

    def serve(self, words: Mapping[str, Handler]) -> None:
        """Answer these words from now on."""
        for word, handler in words.items():
            self.line.handle(word, handler)

    def ready(self) -> None:
        """The process does its work."""
        with suppress(LostError):
            self.line.tell("ready")

    @property
    def gone(self) -> bool:
        """Whether nobody looks after this process any more."""
        return self.line.closed.is_set()


def main(kind: str, descriptor: int) -> None:
    """Run one process of a gateway; what an interpreter is started for."""
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGUSR1):
        signal.signal(number, signal.SIG_IGN)  # they are the parent's, which says what is to be done
    os.umask(0o077)
    channel = socket.socket(fileno=descriptor)
    (size,) = _LENGTH.unpack(channel.recv(_LENGTH.size, socket.MSG_WAITALL))
    orders: Orders = pickle.loads(channel.recv(size, socket.MSG_WAITALL))  # noqa: S301 - from the parent
    sys.exit(asyncio.run(_run(kind, orders, channel)))


async def _run(kind: str, orders: Orders, channel: socket.socket) -> int:
    channel.setblocking(False)
    loop, stopped = asyncio.get_running_loop(), asyncio.Event()

    async def stop(_message: Message) -> tuple[Sequence[Any], Sequence[bytes]]:
        stopped.set()
        return (), ()

    _, line = await loop.create_unix_connection(
        lambda: Line({"stop": stop}, lambda _: stopped.set(), stall_s=float("inf")), sock=channel
    )
    parent = Parent(line, stopped)
    try:
        await _work_of(kind)(orders, parent)
    except GatewayError as error:
        with suppress(LostError):
            line.tell("unable", error.code, str(error), error.hint)
        line.close()
        await asyncio.sleep(0)  # let it be sent
        return 3
    return 0


def _work_of(kind: str) -> Any:
    if kind == "writer":
        from gateway.app.writer import work as write  # noqa: PLC0415 - each process imports what it needs

        return write
    from gateway.app.worker import work  # noqa: PLC0415

    return work
