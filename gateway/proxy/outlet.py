"""The only way out of an upgraded connection: admitted messages in their order, and control frames of our own making.

The layer above gives payloads, not frames. `Outlet.frame` writes the frame itself, and only for a message whose digest
is that of the next admitted one, so that nothing above it, whatever fails there, can make other bytes leave. Control
frames hold nothing of the client's: a ping carries a number of ours, a pong what the provider itself sent, a close a
code without a reason.
"""

from __future__ import annotations

import itertools
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final

from wsproto import events as ws

from gateway.proxy.exchange import Exchange
from gateway.proxy.frames import Message, Side

MAX_PINGS: Final = 64  # that wait for their pong, each way; an older one is forgotten


class Text(bytes):
    """The payload of a text message that is to leave."""

    __slots__ = ()


class Binary(bytes):
    """The payload of a binary message that is to leave."""

    __slots__ = ()


class Ping(bytes):
    """A ping of ours with the payload of the client's that it stands for."""

    __slots__ = ()


class Pong(bytes):
    """The client's answer to a ping of the provider."""

    __slots__ = ()


class Close(bytes):
    """The end, with the code as text."""

    __slots__ = ()


@dataclass(slots=True)
class Outlet:
    """What may leave on one upgraded connection. `begin` starts the transport attempt of a message's exchange."""

    begin: Callable[[Exchange, bool], None] | None = None  # set by the wire when the connection is upgraded
    _side: Side | None = None
    _admitted: deque[Exchange] = field(default_factory=deque)
    _pings: dict[bytes, bytes] = field(default_factory=dict)  # ours -> the client's
    _asked: deque[bytes] = field(default_factory=lambda: deque(maxlen=MAX_PINGS))  # of the provider
    _numbers: itertools.count[int] = field(default_factory=lambda: itertools.count(1))

    @property
    def is_open(self) -> bool:
        """Whether anything can leave at all."""
        return self._side is not None and self.begin is not None

    def open(self, side: Side) -> None:
        """The connection carries messages from now on, framed by this side."""
        self._side = side

    def admit(self, exchange: Exchange) -> None:
        """This message is the next to leave, after those that were admitted before."""
        self._admitted.append(exchange)

    def asked(self, payload: bytes) -> None:
        """The provider sent a ping."""
        self._asked.append(bytes(payload))

    def is_asked(self, payload: bytes) -> bool:
        """Whether a pong with this payload answers a ping of the provider."""
        return payload in self._asked

    def answered(self, payload: bytes) -> bytes | None:
        """The payload of the client's ping that this pong of the provider answers; those before it are over as well."""
        if payload not in self._pings:
            return None
        for number in list(self._pings):
            theirs = self._pings.pop(number)
            if number == payload:
                return theirs
        return None

    def frame(self, data: bytes) -> tuple[bytes, Exchange | None] | None:
        """The frame for a payload that may leave, with the exchange of a message; None for all else."""
        if self._side is None or self.begin is None:
            return None
        if isinstance(data, Text | Binary):
            return self._message(data)
        if isinstance(data, Ping):
            return self._side.control(ws.Ping(self._numbered(data))), None
        if isinstance(data, Pong) and data in self._asked:
            self._asked.remove(data)
            return self._side.control(ws.Pong(bytes(data))), None
        if isinstance(data, Close):
            return self._side.close(int(data)), None
        return None

    def _numbered(self, theirs: bytes) -> bytes:
        number = b"%d" % next(self._numbers)
        while len(self._pings) >= MAX_PINGS:
            del self._pings[next(iter(self._pings))]
        self._pings[number] = bytes(theirs)
        return number

    def _message(self, data: Text | Binary) -> tuple[bytes, Exchange | None] | None:
        if self._side is None or self.begin is None or not self._admitted:
            return None
        exchange = self._admitted.popleft()
        body = bytes(data)
        if exchange.action != "intercept" or exchange.settled or not exchange.may_write(body):
            exchange.stopped = True
            return None
        framed = self._side.say(Message(isinstance(data, Text), body))
        self.begin(exchange, exchange.outbound is not None and exchange.outbound.scheme == "https")
        exchange.wrote(body)
        return framed, exchange
