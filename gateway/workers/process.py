"""One scanning process, seen from the gateway."""

from __future__ import annotations

import asyncio
import json
import socket
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from gateway.context.findings import ScanItem, ScanResult
from gateway.errors import SetupError
from gateway.workers import wire

# A new interpreter with the import path of this one and nothing else: no re-run of the main module, no
# current folder on the path (-P), no inherited descriptor but its socket.
_BOOT: Final = (
    "import json, sys; sys.path[:] = json.loads(sys.argv[1]); "
    "from gateway.workers.child import main; main(int(sys.argv[2]), *sys.argv[3:])"
)
_AT_ONCE: Final = 262_144  # bytes that are written, or read as results, without letting the loop go on
START_TIMEOUT_S: Final = 60.0  # to import and compile every pattern, on a busy machine


def launch(factory: str, arguments: Sequence[str] = ()) -> tuple[subprocess.Popen[bytes], socket.socket]:
    """Start a process; blocks for some milliseconds, so call it in a thread once a loop runs.

    Factory and arguments stand on the command line, which every user of the machine can read: no secrets.
    """
    ours, theirs = socket.socketpair()
    with theirs:
        command = [
            sys.executable,
            "-P",
            "-c",
            _BOOT,
            json.dumps(sys.path),
            str(theirs.fileno()),
            factory,
            *arguments,
        ]
        try:
            process = subprocess.Popen(  # noqa: S603 - our own interpreter and arguments
                command,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,  # a traceback could hold content
                pass_fds=[theirs.fileno()],
            )
        except OSError as error:
            ours.close()
            raise SetupError("setup.scan_process", f"cannot start a process: {error.strerror}") from None
    return process, ours


def abandon(process: subprocess.Popen[bytes], channel: socket.socket) -> None:
    """End a process that nobody talks to yet; a killed one is gone at once, so this may wait for it."""
    channel.close()
    process.kill()
    process.wait()


@dataclass(slots=True)
class ScanProcess:
    """A started process and its socket; after any exception of a method it must be ended and replaced."""

    process: subprocess.Popen[bytes]
    reader: asyncio.StreamReader
    writer: asyncio.StreamWriter
    revision: str = ""

    @classmethod
    async def connect(
        cls, process: subprocess.Popen[bytes], channel: socket.socket, revision: str
    ) -> ScanProcess:
        """Take over a launched process once its detector is built.

        Raises:
            SetupError: the process died, its detector cannot be built, or is another revision than
                `revision` (where that is not empty).
        """
        channel.setblocking(False)
        try:
            reader, writer = await asyncio.open_connection(sock=channel)
        except asyncio.CancelledError:
            abandon(process, channel)
            raise
        self = cls(process, reader, writer)
        usable = False
        try:
            async with asyncio.timeout(START_TIMEOUT_S):
                ready: wire.Ready = json.loads(await self._read())
            self.revision = ready.get("revision", "")
            usable = self.revision == revision if revision else bool(self.revision)
            if not usable:
                reason = ready.get("error", "it is another revision")
                raise SetupError("setup.scan_process", f"a scanning process has no such detector: {reason}")
        except (OSError, EOFError, ValueError) as error:
            reason = type(error).__name__
            raise SetupError("setup.scan_process", f"a scanning process did not start: {reason}") from None
        finally:
            if not usable:
                await self.end()
        return self

    async def _read(self) -> bytes:
        (size,) = wire.HEADER.unpack(await self.reader.readexactly(wire.HEADER.size))
        if size > wire.MAX_ANSWER_BYTES:
            raise ValueError("an answer over the bound")
        return await self.reader.readexactly(size)

    async def scan(self, items: Sequence[ScanItem]) -> list[ScanResult]:
        """One result an item; OSError, EOFError or ValueError where the process died or answers amiss."""
        question = memoryview(await asyncio.to_thread(wire.pack_items, items))
        for start in range(0, len(question), _AT_ONCE):
            self.writer.write(question[start : start + _AT_ONCE])
            await self.writer.drain()
        answer = await self._read()
        if len(answer) < _AT_ONCE:
            return wire.unpack_results(answer, items)
        return await asyncio.to_thread(wire.unpack_results, answer, items)

    async def end(self) -> None:
        """Kill the process and wait until it is gone; content in its memory goes with it."""
        self.writer.transport.abort()
        self.process.kill()
        await asyncio.to_thread(self.process.wait)
