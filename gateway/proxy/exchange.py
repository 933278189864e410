"""One intercepted request, from its head to its ending, and what is known of its bytes on the way out.

mitmproxy has no hook that says "these bytes were written", so the upstream layers (`gateway.proxy.wire`) tell an
`Exchange`, and the exchange asks the socket. The evidence levels, strongest first (contract.md §10.2):

| level | what was seen |
|---|---|
| answered | a response head on this connection |
| acknowledged | nothing unsent in the transport, nothing unacknowledged in the kernel's send queue |
| handed_over | nothing unsent in the transport: the kernel has all of it |
| maybe | bytes were given to the transport, and nothing more is known |
| not_sent | no byte was given to a connection |

A level is sampled while the socket lives and never upgraded afterwards: a transport that was reset has an empty
buffer, and that proves nothing.
"""

from __future__ import annotations

import asyncio
import fcntl
import hashlib
import struct
import sys
import termios
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from gateway.ports import Admitted, AnswerCounts, Attempt, OutboundRequest, Peer, Refusal
from gateway.proxy.routes import is_local

if TYPE_CHECKING:
    from gateway.proxy.talk import Talk

LEVELS = ("not_sent", "maybe", "handed_over", "acknowledged", "answered")
_SAMPLES_S = (0.02, 0.1, 0.4, 1.5, 5.0, 15.0, 60.0)  # after the last byte was given to the transport

type Frozen = tuple[bytes, bytes, bytes, str, int, bytes, tuple[tuple[bytes, bytes], ...]]


def progress(transport: asyncio.WriteTransport | None) -> str:
    """What the socket itself proves about everything written to it so far."""
    if transport is None or transport.is_closing():
        return "maybe"
    if transport.get_write_buffer_size():
        return "maybe"
    return "acknowledged" if _unacknowledged(transport) == 0 else "handed_over"


def _unacknowledged(transport: asyncio.WriteTransport) -> int | None:
    """Bytes in the kernel that the peer has not acknowledged; None where the platform does not tell."""
    sock = transport.get_extra_info("socket")
    if sock is None or sock.fileno() < 0 or not sys.platform.startswith("linux"):
        return None
    try:
        (count,) = struct.unpack("i", fcntl.ioctl(sock.fileno(), termios.TIOCOUTQ, b"\0" * 4))
    except OSError:
        return None
    return int(count)


@dataclass(slots=True)
class Wire:
    """The one transport attempt of an exchange. mitmproxy never repeats a request by itself, so there is one."""

    transport: Callable[[], asyncio.WriteTransport | None] = field(default=lambda: None)
    drained: Callable[[], bool] = field(default=lambda: True)  # nothing waits in the HTTP/2 layer
    started: bool = False  # the request head was given to a connection
    handed: bool = False  # the whole body was given to the connection
    level: str = "not_sent"
    written: int = 0
    status: int | None = None
    complete: bool = False
    verified: bool = False
    via: str = ""
    multiplexed: bool = False  # other requests' bytes share the socket
    transport_name: str = "http"  # websocket: the request is one message
    answered: bool = False  # a message was seen that answers this one
    _hash: hashlib._Hash = field(default_factory=hashlib.sha256)
    _known: str = ""
    _before: bytes = b""  # written under a known digest, and not hashed again unless more follows
    _timer: asyncio.TimerHandle | None = None

    def begin(
        self,
        transport: Callable[[], asyncio.WriteTransport | None],
        drained: Callable[[], bool] | None,
        *,
        verified: bool,
        via: str,
    ) -> None:
        """The request head is about to be written; `drained` is given where an HTTP/2 layer may hold bytes back."""
        self.transport, self.verified, self.via = transport, verified, via
        if drained is not None:
            self.drained, self.multiplexed = drained, True
        self.started, self.level = True, "maybe"

    def wrote(self, data: bytes, known: str | None = None) -> None:
        """Body bytes were given to the connection; `known` is their digest where it was just computed."""
        if known is not None and not self.written:
            self._known = known
        else:
            self._hash.update(self._before)
            self._hash.update(data)
            self._before, self._known = b"", ""
        self._before = data if self._known else b""
        self.written += len(data)

    def end(self) -> None:
        """The last body byte was given to the connection: watch it go."""
        self.handed, self._before = True, b""
        self._sample(0)

    def head(self, status: int) -> None:
        """A response head was read: judge the body by what is still unsent right now."""
        self.stop()
        self.complete = self._proven() in {"handed_over", "acknowledged"} and self._settled()
        self.status, self.level = status, "answered"

    def answer(self) -> None:
        """A message was read that answers this one: what `head` is for a message, which has no status."""
        if self.started and not self.answered:
            self.stop()
            self.complete = self._proven() in {"handed_over", "acknowledged"} and self._settled()
            self.answered, self.level = True, "answered"

    def fail(self) -> None:
        """The attempt is over without a head."""
        self.stop()
        if self.started and self.level != "answered":
            self._raise(self._proven())
            self.complete = self.level in {"handed_over", "acknowledged"}

    def stop(self) -> None:
        """Stop sampling."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    @property
    def digest(self) -> str:
        """Of the body bytes given to the connection."""
        return self._known or "sha256:" + self._hash.hexdigest()

    def attempt(self, failure: str | None) -> Attempt:
        """The finished record of this attempt."""
        return Attempt(
            number=1,
            transport=self.transport_name,
            http_status=self.status,
            failure=None if self.status is not None or self.answered else failure,
            written_digest=self.digest,
            written_bytes=self.written,
            body_complete=self.complete,
            level=self.level,
            peer_verified=self.verified,
            via=self.via,
        )

    def _proven(self) -> str:
        return progress(self.transport()) if self.handed and self.drained() else "maybe"

    def _settled(self) -> bool:
        """A head that overtakes the body leaves bytes unacknowledged; one that answers it acknowledges them all."""
        transport = self.transport()
        if self.multiplexed:
            return transport is not None
        return transport is not None and not _unacknowledged(transport)

    def _raise(self, level: str) -> None:
        if LEVELS.index(level) > LEVELS.index(self.level):
            self.level = level

    def _sample(self, step: int) -> None:
        self._raise(self._proven())
        if self.level == "acknowledged" or step >= len(_SAMPLES_S):
            self._timer = None
            return
        loop = asyncio.get_running_loop()
        self._timer = loop.call_later(_SAMPLES_S[step], self._sample, step + 1)


@dataclass(slots=True)
class Exchange:
    """State of one request. `refusal` is what the edge itself decided; `admitted` what the use case allowed."""

    request_id: str
    client_id: str
    peer: Peer
    host: str
    port: int
    path: str  # without the query: names the dialect, nothing else
    action: str  # intercept | tunnel | refuse
    plain: bool = False  # sent to the proxy itself in absolute form, without a CONNECT
    refusal: Refusal | None = None
    refused: bool = False  # the refusal was recorded and its answer is on the flow
    seen: bool = False  # the `request` hook ran
    outbound: OutboundRequest | None = None
    admitted: Admitted | None = None
    frozen: Frozen | None = None
    checked: bytes | None = field(default=None, repr=False)  # the body whose digest was compared
    wire: Wire = field(default_factory=Wire)
    restorer: AnswerCounts | None = None
    restore_failed: bool = False
    holding: bool = False  # the answer is held back until the use case releases it
    overrun: bool = False  # it is larger than can be held
    failure: str | None = None  # connect | timeout | other
    dialled: bool = False
    client_gone: bool = False
    receipt: str = ""
    effect: str = ""
    reserved: int = 0
    observing: asyncio.Task[None] | None = None
    head_timer: asyncio.TimerHandle | None = None
    talk: Talk | None = None  # of an upgrade: the messages that will follow it
    stopped: bool = False  # bytes that were not admitted tried to leave: nothing is claimed
    settled: bool = False

    def may_leave(self, frozen: Frozen, body: bytes | None) -> bool:
        """Whether a request with this head and body is exactly the one that was let through."""
        return self.frozen is not None and frozen == self.frozen and self.may_write(body or b"")

    def is_at(self, peer: tuple[str | int, ...] | None) -> bool:
        """Whether a peer without TLS is the admitted one: a local model on a loopback address of this machine."""
        place = self.admitted.detour if self.admitted is not None else None
        return place is not None and peer is not None and is_local(str(peer[0]), "") and peer[1] == place.port

    def may_write(self, body: bytes) -> bool:
        """Whether these body bytes are the admitted ones; a host that is passed unread has none.

        Hashed once: bytes do not change, so the same object later is the same content.
        """
        if self.action == "tunnel" or (self.checked is not None and body is self.checked):
            return True
        if (
            self.admitted is None
            or "sha256:" + hashlib.sha256(body).hexdigest() != self.admitted.request_digest
        ):
            return False
        self.checked = body
        return True

    def wrote(self, data: bytes) -> None:
        """Body bytes were handed to the connection."""
        known = self.admitted.request_digest if self.admitted is not None and data is self.checked else None
        self.wire.wrote(data, known)
