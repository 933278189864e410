"""One connection between two processes: calls and their answers, in both directions, in any order.

Everything is bounded. Who asks too much is refused at once (`LostError`); who serves stops reading from a peer while
too much of its work is under way, so that the peer's own bounds take hold. A peer that owes answers and says nothing
for `stall_s` seconds is taken for dead: the line is cut, and every call on it fails.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any, Final, cast, override

from gateway.errors import GatewayError
from gateway.ipc.frames import MAX_FRAME, FrameError, FrameReader, Message, pack

MAX_CALLS: Final = 4096  # that may wait for an answer
MAX_UNSENT: Final = 64 << 20  # bytes that the other end has not taken yet
MAX_SERVED: Final = 512  # calls of one peer that are worked on at once
MAX_SERVED_BYTES: Final = 64 << 20
STALL_S: Final = 5.0

OK, FAILED = "ok", "failed"

type Answer = tuple[Sequence[Any], Sequence[bytes]]
type Handler = Callable[[Message], Awaitable[Answer]]
"""Does what a message asks; a GatewayError that it raises is told to the caller by code, text and hint."""


class LostError(Exception):
    """Nobody answers: the line is down, was cut, or carries too much. Whether the call was done is not known."""


class RefusedError(Exception):
    """The other end says no; `code`, text and `hint` as it raised them."""

    def __init__(self, code: str, text: str, hint: str = "") -> None:
        super().__init__(text)
        self.code = code
        self.hint = hint


class Line(asyncio.Protocol):
    """`serve` handles calls and notices of the other end; `lost` is told once when the line is down."""

    def __init__(
        self,
        serve: Mapping[str, Handler] | None = None,
        lost: Callable[[Line], None] = lambda _: None,
        *,
        bound: int = MAX_FRAME,
        stall_s: float = STALL_S,
    ) -> None:
        self._serve = dict(serve or {})
        self._lost = lost
        self._reader = FrameReader(bound)
        self._bound = bound
        self._stall_s = stall_s
        self._loop = asyncio.get_running_loop()
        self._transport: asyncio.Transport | None = None
        self._number = 0
        self._calls: dict[int, asyncio.Future[Message]] = {}
        self._heard = 0.0
        self._watching: asyncio.TimerHandle | None = None
        self._out: list[bytes] = []
        self._working: set[asyncio.Future[Answer]] = set()
        self._served_bytes = 0
        self._resting = self._ending = False
        self.closed = asyncio.Event()

    @property
    def transport(self) -> asyncio.Transport:
        """The transport under it; LostError before there is one."""
        if self._transport is None:
            raise LostError("not connected")
        return self._transport

    def handle(self, word: str, handler: Handler) -> None:
        """Serve one more word; `ok` and `failed` are answers."""
        if word in {OK, FAILED}:
            raise ValueError(word)
        self._serve[word] = handler

    # -- asking --------------------------------------------------------------------------------------------------

    async def call(self, word: str, *args: Any, blobs: Sequence[bytes] = ()) -> Message:
        """The answer. LostError, RefusedError, NoJsonError, or ValueError where the frame is too large."""
        if len(self._calls) >= MAX_CALLS:
            raise LostError("too many calls wait")
        self._number += 1
        number = self._number
        self._send(Message(number, word, args, blobs))
        answer = self._calls[number] = self._loop.create_future()
        if len(self._calls) == 1:
            self._heard = self._loop.time()
            if self._watching is None:  # one is still to come where the last answers were not long ago
                self._watch()
        try:
            said: Message = await answer
        finally:
            self._calls.pop(number, None)
        if said.word == FAILED:
            code, text, hint = said.args
            raise RefusedError(str(code), str(text), str(hint))
        return said

    def tell(self, word: str, *args: Any, blobs: Sequence[bytes] = ()) -> None:
        """A notice, which nobody answers; LostError where the line is down."""
        self._send(Message(0, word, args, blobs))

    def _send(self, message: Message) -> None:
        transport = self.transport
        if transport.is_closing():
            raise LostError("the line is down")
        if transport.get_write_buffer_size() > MAX_UNSENT:
            raise LostError("the other end takes nothing")
        pieces = pack(message)
        if sum(map(len, pieces)) > self._bound:
            raise ValueError("a frame over its bounds")
        if not self._out:
            self._loop.call_soon(self._flush)
        self._out += pieces

    def _flush(self) -> None:
        """Write what was said in this turn of the loop with one system call."""
        out, self._out = self._out, []
        if out and self._transport is not None and not self._transport.is_closing():
            self._transport.write(b"".join(out))

    def _watch(self) -> None:
        """Cut the line when answers are owed and nothing was heard for too long."""
        self._watching = None
        if not self._calls or self._transport is None:
            return
        silent = self._loop.time() - self._heard
        if silent >= self._stall_s:
            self._transport.abort()
            return
        self._watching = self._loop.call_later(self._stall_s - silent + 0.01, self._watch)

    # -- being asked -----------------------------------------------------------------------------------------------

    @override
    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.Transport", transport)
        self._transport.set_write_buffer_limits(MAX_UNSENT)

    @override
    def data_received(self, data: bytes) -> None:
        self._heard = self._loop.time()
        try:
            for message, size in self._reader.feed(data):
                self._take(message, size)
        except FrameError:
            self.abort()

    def _take(self, message: Message, size: int) -> None:
        if message.word in {OK, FAILED}:
            waiting = self._calls.get(message.number)
            if waiting is not None and not waiting.done():
                waiting.set_result(message)
            return
        handler = self._serve.get(message.word)
        if handler is None:
            self.abort()  # another version, or nobody of ours
            return
        work = asyncio.ensure_future(handler(message))
        self._working.add(work)
        self._served_bytes += size
        work.add_done_callback(lambda done: self._done(done, message.number, size))
        if not self._resting and (len(self._working) > MAX_SERVED or self._served_bytes > MAX_SERVED_BYTES):
            self._resting = True
            self.transport.pause_reading()

    def _done(self, work: asyncio.Future[Answer], number: int, size: int) -> None:
        self._working.discard(work)
        self._served_bytes -= size
        if (
            self._resting
            and not self._ending
            and len(self._working) < MAX_SERVED // 2
            and self._served_bytes < MAX_SERVED_BYTES // 2
        ):
            self._resting = False
            if not self.closed.is_set():
                self.transport.resume_reading()
        if work.cancelled():
            return
        error = work.exception()
        if number == 0 or self.closed.is_set():
            return
        if error is None:
            args, blobs = work.result()
            self._answer(Message(number, OK, args, blobs))
        elif isinstance(error, GatewayError):
            self._answer(Message(number, FAILED, (error.code, str(error), error.hint)))
        else:  # its text may hold content
            self._answer(Message(number, FAILED, ("gateway.error", type(error).__name__, "")))

    def _answer(self, message: Message) -> None:
        try:
            self._send(message)
        except ValueError:
            self._send(Message(message.number, FAILED, ("gateway.error", "the answer is too large", "")))
        except LostError:
            self.abort()

    # -- the end -----------------------------------------------------------------------------------------------------

    @override
    def connection_lost(self, exc: Exception | None) -> None:
        self.closed.set()
        if self._watching is not None:
            self._watching.cancel()
        for waiting in self._calls.values():
            if not waiting.done():
                waiting.set_exception(LostError("the line was cut"))
        self._lost(self)

    async def settled(self) -> None:
        """Take no more questions; return once everything that was asked has been done."""
        self._ending = True
        if self._transport is not None and not self.closed.is_set():
            self._transport.pause_reading()
        while self._working:
            await asyncio.wait(self._working)

    def abort(self) -> None:
        """Cut the line."""
        if self._transport is not None:
            self._transport.abort()

    def close(self) -> None:
        """End the line once everything said has been sent."""
        self._flush()
        if self._transport is not None:
            self._transport.close()
