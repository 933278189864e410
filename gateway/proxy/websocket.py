"""The layer of an upgraded connection, in the place of mitmproxy's: messages, not frames, go through it.

mitmproxy relays a message when a hook fails, keeps every message for ever and inflates without a bound. Here a message
of the client is given to `Talk` and forgotten; what comes back as a verdict is written as one frame, or is refused.
Neither hooks nor other addons see messages. A fault ends the connection.
"""

from __future__ import annotations

from typing import override

from mitmproxy import http
from mitmproxy.proxy import commands, events, layer
from mitmproxy.proxy.context import Context
from wsproto import events as ws
from wsproto.frame_protocol import CloseReason

from gateway.proxy import handshake
from gateway.proxy.exchange import Exchange
from gateway.proxy.frames import Broken, Heard, Message, Side
from gateway.proxy.guard import guard_of
from gateway.proxy.outlet import Binary, Close, Ping, Pong, Text
from gateway.proxy.talk import FAULT, Judged, Talk, Verdict

GOING_AWAY, PROTOCOL_ERROR = 1001, 1002
_LARGEST_CODE = 4999

type Steps = layer.CommandGenerator[None]


class MessageLayer(layer.Layer):
    """Reads both sides of one WebSocket."""

    def __init__(self, context: Context, flow: http.HTTPFlow) -> None:
        super().__init__(context)
        self.flow = flow
        self._talk: Talk | None = None
        self._client = self._server = Side(peer_is_client=True, agreed=None, limit=0)
        self._leaving: int | None = None  # the client's close code, once its last message is judged
        self._over = False

    @override
    def _handle_event(self, event: events.Event) -> Steps:
        if self._over:
            return
        try:
            yield from self._step(event)
        except Exception as error:  # noqa: BLE001  nothing passes that was not understood
            if self._talk is not None:
                self._talk.office.failed("websocket", error)
            yield from self._end(FAULT)

    def _step(self, event: events.Event) -> Steps:
        if isinstance(event, events.Start):
            yield from self._start()
        elif isinstance(event, Judged):
            yield from self._judged(event.message)
        elif isinstance(event, events.DataReceived):
            from_client = event.connection == self.context.client
            for heard in (self._client if from_client else self._server).hear(event.data):
                yield from self._from_client(heard) if from_client else self._from_server(heard)
                if self._over:
                    return
        elif isinstance(event, events.ConnectionClosed):
            yield from self._gone(by_client=event.connection == self.context.client)

    def _start(self) -> Steps:
        """Read the agreement. Without one that is understood, or without a guard, nothing is relayed."""
        guard, response = guard_of(self.context), self.flow.response
        exchange: Exchange | None = guard.exchange(self.flow) if guard is not None else None
        if exchange is None or exchange.talk is None or exchange.admitted is None or response is None:
            yield from self._end(FAULT)
            return
        self._talk = talk = exchange.talk
        try:
            parameters = handshake.agreed(response)
        except ValueError:
            yield from self._end(PROTOCOL_ERROR)
            return
        self._client = Side(peer_is_client=True, agreed=parameters, limit=talk.limit, grow=talk.grow)
        self._server = Side(peer_is_client=False, agreed=parameters, limit=talk.limit)
        talk.outlet.open(self._server)

    # -- from the client ------------------------------------------------------------------------------------------

    def _from_client(self, heard: Heard) -> Steps:
        talk = self._talk
        if talk is None:
            return
        if isinstance(heard, Message):
            talk.hear(heard)
        elif isinstance(heard, Broken):
            talk.unread(heard.code)
            yield from self._end(heard.code, client_fault=True)
        elif isinstance(heard, ws.CloseConnection):
            self._leaving = int(heard.code)
            yield from self._leave()
        elif isinstance(heard, ws.Ping):
            yield commands.SendData(self.context.server, Ping(heard.payload))
        elif talk.outlet.is_asked(bytes(heard.payload)):
            yield commands.SendData(self.context.server, Pong(heard.payload))

    def _judged(self, verdict: Verdict) -> Steps:
        talk = self._talk
        if talk is None:
            return
        payload = talk.judged(verdict)
        if payload is not None:
            yield commands.SendData(self.context.server, Text(payload) if verdict.text else Binary(payload))
            talk.left(verdict.exchange)
        elif verdict.refusal is not None:
            yield from self._tell(Message(text=True, data=verdict.refusal))
        else:
            yield from self._end(verdict.close, reason=_reason(verdict.exchange))
            return
        yield from self._leave()

    def _leave(self) -> Steps:
        """Close as the client asked, after its last message was judged."""
        if self._leaving is not None and self._talk is not None and self._talk.is_idle:
            yield from self._end(self._leaving)

    # -- from the provider ----------------------------------------------------------------------------------------

    def _from_server(self, heard: Heard) -> Steps:
        talk = self._talk
        if talk is None:
            return
        if isinstance(heard, Message):
            for data in talk.told(heard.data) if heard.text or talk.conversing.binary else (heard.data,):
                yield from self._tell(Message(heard.text, data))
        elif isinstance(heard, Broken):
            yield from self._end(heard.code)
        elif isinstance(heard, ws.CloseConnection):
            yield from self._end(int(heard.code), reason=heard.reason or "")
        elif isinstance(heard, ws.Ping):
            talk.outlet.asked(bytes(heard.payload))
            yield commands.SendData(self.context.client, self._client.control(heard))
        else:
            theirs = talk.outlet.answered(bytes(heard.payload))
            payload = bytes(heard.payload) if theirs is None else theirs
            yield commands.SendData(self.context.client, self._client.control(ws.Pong(payload)))

    def _tell(self, message: Message) -> Steps:
        yield commands.SendData(self.context.client, self._client.say(message))

    # -- the end --------------------------------------------------------------------------------------------------

    def _gone(self, *, by_client: bool) -> Steps:
        """A connection ended without a close frame; the other side sees that too, the provider with a code."""
        if by_client:
            yield from self._end(GOING_AWAY, client_gone=True)
            return
        if self._talk is not None:
            for data in self._talk.end(client_gone=False):
                yield from self._tell(Message(text=not self._talk.conversing.binary, data=data))
        self._finish()
        yield commands.CloseConnection(self.context.client)
        yield commands.CloseConnection(self.context.server)

    def _end(
        self, code: int, *, reason: str = "", client_gone: bool = False, client_fault: bool = False
    ) -> Steps:
        """Close both sides. The provider gets a code that names no fault of its client's."""
        if self._talk is not None:
            rest = self._talk.end(client_gone=client_gone or self._leaving is not None)
            for data in () if client_gone else rest:
                yield from self._tell(Message(text=not self._talk.conversing.binary, data=data))
        self._finish()
        if not client_gone and (frame := self._client.close(code, reason)):
            yield commands.SendData(self.context.client, frame)
        named = (
            GOING_AWAY if client_fault or not CloseReason.NORMAL_CLOSURE <= code <= _LARGEST_CODE else code
        )
        if self._talk is not None and self._talk.outlet.is_open:
            yield commands.SendData(self.context.server, Close(b"%d" % named))
        yield commands.CloseConnection(self.context.client)
        yield commands.CloseConnection(self.context.server)

    def _finish(self) -> None:
        self._over, self.flow.live = True, False


def _reason(exchange: Exchange) -> str:
    """What a close frame can say of a refusal in its 123 bytes (RFC 6455 §5.5): who closed, and under which receipt."""
    said = "Model Egress Gateway refused this message"
    return f"{said}; receipt {exchange.receipt}" if exchange.receipt else said
