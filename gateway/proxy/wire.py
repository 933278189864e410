"""The upstream and client HTTP layers of mitmproxy, with what a guard needs and mitmproxy lacks.

Rules kept here, below every hook, so that no addon, option or fault above can undo them:

1. A request reaches an upstream connection only if its head and body are exactly the admitted ones; anything else
   closes the connection before a byte of it is written, and raises an integrity alarm.
2. Body bytes are hashed as they are handed to the connection. After an upgrade that is the admitted messages, each
   framed here and nowhere else (`gateway.proxy.outlet`).
3. The response head is seen the moment it is read, when the socket still tells what of the body is unsent.
4. 1xx heads of an HTTP/1 upstream are skipped (mitmproxy takes 103 for the answer), trailers never crash the layer,
   and a request head is bounded.

`gateway.proxy.patches` puts these classes in the place of mitmproxy's.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import override

from h11._receivebuffer import ReceiveBuffer
from mitmproxy import http
from mitmproxy.proxy import commands, events, layer
from mitmproxy.proxy.context import Context
from mitmproxy.proxy.layers.http import _http1
from mitmproxy.proxy.layers.http._base import ReceiveHttp
from mitmproxy.proxy.layers.http._events import (
    ErrorCode,
    HttpEvent,
    RequestData,
    RequestEndOfMessage,
    RequestHeaders,
    RequestProtocolError,
    RequestTrailers,
    ResponseData,
    ResponseEndOfMessage,
    ResponseHeaders,
    ResponseProtocolError,
)
from mitmproxy.proxy.layers.http._http1 import Http1Client, Http1Server
from mitmproxy.proxy.layers.http._http2 import Http2Client

from gateway.proxy.exchange import Exchange
from gateway.proxy.guard import bound, carrier, guard_of
from gateway.proxy.requests import freeze

_BLANK_LINE = re.compile(rb"\n\r?\n")  # as h11 splits heads
_SWITCHED = 101


class _Departure:
    """The requests on one upstream connection, checked and counted as they leave. Keyed by the client's stream id."""

    def __init__(self, context: Context, drained: Callable[[int], bool] | None) -> None:
        self._context = context
        self._drained = drained
        self._exchanges: dict[int, Exchange] = {}
        self._blocked: set[int] = set()

    def admits(self, event: HttpEvent) -> bool:
        """Whether an event may be passed to the connection; False once, then silence for its stream."""
        if event.stream_id in self._blocked:
            return False
        ok = True
        if isinstance(event, RequestHeaders):
            ok = self._open(event)
        elif isinstance(event, RequestData):
            exchange = self._exchanges.get(event.stream_id)
            ok = exchange is not None and exchange.may_write(event.data)
        elif not isinstance(event, RequestEndOfMessage | RequestProtocolError):
            ok = False  # trailers and whatever is invented later
        if not ok:
            self._blocked.add(event.stream_id)
            exchange = self._exchanges.get(event.stream_id)
            if exchange is not None:
                exchange.stopped = True
            guard = guard_of(self._context)
            if guard is not None:
                guard.alarm("unadmitted")
        return ok

    def blocked(self, stream_id: int) -> bool:
        """Whether the request of this stream was stopped."""
        return stream_id in self._blocked

    def _open(self, event: RequestHeaders) -> bool:
        exchange, guard = bound(event.request), guard_of(self._context)
        if exchange is None or guard is None:
            return False
        self._exchanges[event.stream_id] = exchange
        if exchange.talk is not None and self._drained is not None:
            return False  # an upgrade is HTTP/1.1
        if event.request.data.trailers or not exchange.may_leave(
            freeze(event.request), event.request.data.content
        ):
            return False
        drained, stream_id = self._drained, event.stream_id
        secure = event.request.scheme == "https"
        self._begin(exchange, secure, None if drained is None else lambda: drained(stream_id))
        guard.sending(exchange, self._context.client, carrier(self._context))
        return True

    def _begin(self, exchange: Exchange, secure: bool, drained: Callable[[], bool] | None = None) -> None:
        """A transport attempt on this connection starts."""
        guard, server = guard_of(self._context), self._context.server
        carried, client = carrier(self._context), self._context.client
        exchange.wire.begin(
            lambda: guard.transport(client, carried) if guard is not None else None,
            drained,
            verified=(secure and server.timestamp_tls_setup is not None) or exchange.is_at(server.peername),
            via="" if server.via is None else "{}:{}".format(*server.via[1]),
        )

    def is_upgraded(self, stream_id: int) -> bool:
        """Whether what follows on this stream are messages."""
        exchange = self._exchanges.get(stream_id)
        return exchange is not None and exchange.talk is not None and exchange.wire.status == _SWITCHED

    def frame(self, event: RequestData) -> tuple[bytes, Exchange | None] | None:
        """The frame for a payload that may leave an upgraded connection; None, and nothing ever after, for others."""
        exchange, made = self._exchanges.get(event.stream_id), None
        if exchange is not None and exchange.talk is not None and event.stream_id not in self._blocked:
            made = exchange.talk.outlet.frame(event.data)
        if made is None and event.stream_id not in self._blocked:
            self._blocked.add(event.stream_id)
            guard = guard_of(self._context)
            if guard is not None:
                guard.alarm("unadmitted")
        return made

    def wrote(self, event: HttpEvent) -> None:
        """An event has been handed over: the transport has what it stands for."""
        exchange, guard = self._exchanges.get(event.stream_id), guard_of(self._context)
        if exchange is None or guard is None:
            return
        if isinstance(event, RequestData):
            exchange.wrote(event.data)
        elif isinstance(event, RequestEndOfMessage):
            exchange.wire.end()
            guard.sent(exchange, self._context.client, carrier(self._context))

    def read(self, command: commands.Command) -> None:
        """Look at what the connection reports before the stream hears of it."""
        if not isinstance(command, ReceiveHttp):
            return
        exchange = self._exchanges.get(command.event.stream_id)
        if exchange is None:
            return
        if isinstance(command.event, ResponseHeaders):
            exchange.wire.head(command.event.response.status_code)
            if exchange.talk is not None and exchange.wire.status == _SWITCHED:
                exchange.talk.outlet.begin = self._begin
        elif isinstance(command.event, ResponseProtocolError):
            exchange.wire.fail()
        over = isinstance(command.event, ResponseProtocolError | ResponseEndOfMessage)
        if over and not self.is_upgraded(command.event.stream_id):
            self._exchanges.pop(command.event.stream_id, None)


class GuardedHttp1Client(Http1Client):
    """HTTP/1 towards the provider."""

    def __init__(self, context: Context) -> None:
        super().__init__(context)
        self._departure = _Departure(context, None)

    @override
    def send(self, event: HttpEvent) -> layer.CommandGenerator[None]:
        if isinstance(event, RequestData) and self._departure.is_upgraded(event.stream_id):
            yield from self._say(event)
            return
        if not self._departure.admits(event):
            yield from self._stop(event)
            return
        yield from super().send(event)
        self._departure.wrote(event)

    def _say(self, event: RequestData) -> layer.CommandGenerator[None]:
        """Write one frame of an upgraded connection; a payload that may not leave ends it."""
        made = self._departure.frame(event)
        if made is None:
            yield commands.CloseConnection(self.conn)
            return
        framed, exchange = made
        yield from super().send(RequestData(event.stream_id, framed))
        if exchange is not None:
            exchange.wire.end()

    def _stop(self, event: HttpEvent) -> layer.CommandGenerator[None]:
        if isinstance(event, RequestHeaders):
            yield commands.CloseConnection(self.conn)
            yield ReceiveHttp(_not_admitted(event.stream_id))

    @override
    def _handle_event(self, event: events.Event) -> layer.CommandGenerator[None]:
        for command in _merged(super()._handle_event(event)):
            self._departure.read(command)
            yield command

    @override
    def read_headers(self, event: events.ConnectionEvent) -> layer.CommandGenerator[None]:
        if isinstance(event, events.DataReceived) and self.request is not None:
            while _informational(self.buf):
                self.buf.maybe_extract_lines()
            if not self.buf:
                return
        yield from super().read_headers(event)
        yield from _bounded(self, ResponseProtocolError)

    @override
    def read_body(self, event: events.Event) -> layer.CommandGenerator[None]:
        try:
            yield from super().read_body(event)
        except NotImplementedError:  # trailers: RFC 9110 §6.5.1 lets a recipient drop them
            if self.stream_id is not None:
                yield ReceiveHttp(ResponseEndOfMessage(self.stream_id))
            yield from self.mark_done(response=True)


class GuardedHttp2Client(Http2Client):
    """HTTP/2 towards the provider. Event ids are the client's; `our_stream_id` maps them to the connection's."""

    def __init__(self, context: Context) -> None:
        super().__init__(context)
        self._departure = _Departure(context, self._drained)

    def _drained(self, stream_id: int) -> bool:
        ours = self.our_stream_id.get(stream_id)
        return ours is not None and not self.h2_conn.stream_buffers.get(ours)

    @override
    def _handle_event(self, event: events.Event) -> layer.CommandGenerator[None]:
        stream_id = event.stream_id if isinstance(event, HttpEvent) else 0
        if isinstance(event, HttpEvent) and not self._departure.admits(event):
            if isinstance(event, RequestHeaders):
                yield ReceiveHttp(_not_admitted(stream_id))
            return
        for command in _merged(super()._handle_event(event)):
            self._departure.read(command)
            yield command
        if isinstance(event, HttpEvent) and stream_id in self.our_stream_id:
            event.stream_id, mapped = stream_id, event.stream_id  # mitmproxy maps ids in place
            self._departure.wrote(event)
            event.stream_id = mapped


class GuardedHttp1Server(Http1Server):
    """HTTP/1 towards the client."""

    @override
    def read_headers(self, event: events.ConnectionEvent) -> layer.CommandGenerator[None]:
        yield from super().read_headers(event)
        yield from _bounded(self, None)

    @override
    def read_body(self, event: events.Event) -> layer.CommandGenerator[None]:
        try:
            for command in super().read_body(event):
                if isinstance(command, commands.CloseConnection) and isinstance(event, events.DataReceived):
                    yield from self._not_http()  # a chunk that is none; mitmproxy closes without a word
                yield command
        except NotImplementedError:
            # mitmproxy crashes on chunked trailers and leaves the client waiting. Which they were is lost with the
            # exception; that there were some is enough for the `request` hook to refuse.
            yield ReceiveHttp(RequestTrailers(self.stream_id, http.Headers([(b"trailer", b"")])))
            yield ReceiveHttp(RequestEndOfMessage(self.stream_id))
            yield from self.mark_done(request=True)

    def _not_http(self) -> layer.CommandGenerator[None]:
        if self.response is None:
            yield commands.SendData(self.conn, _http1.make_error_response(400))


def _merged(steps: layer.CommandGenerator[None]) -> layer.CommandGenerator[None]:
    """Join the pieces of an answer that one read brought: a burst of events costs one write, and waits for nothing."""
    stream_id, pieces = 0, list[bytes]()
    for command in steps:
        piece = command.event if isinstance(command, ReceiveHttp) else None
        if isinstance(piece, ResponseData) and (not pieces or piece.stream_id == stream_id):
            stream_id = piece.stream_id
            pieces.append(piece.data)
            continue
        if pieces:
            yield ReceiveHttp(ResponseData(stream_id, b"".join(pieces)))
            pieces = []
        if isinstance(piece, ResponseData):
            stream_id, pieces = piece.stream_id, [piece.data]
        else:
            yield command
    if pieces:
        yield ReceiveHttp(ResponseData(stream_id, b"".join(pieces)))


def _bounded(
    conn: _http1.Http1Connection, error: type[ResponseProtocolError] | None
) -> layer.CommandGenerator[None]:
    """Close a connection whose message head grows without end."""
    guard = guard_of(conn.context)
    limit = guard.max_header_bytes if guard is not None else 0
    if conn.state != conn.read_headers or len(conn.buf) <= limit:
        return
    conn.buf.maybe_extract_at_most(len(conn.buf))
    if error is None:
        yield commands.SendData(conn.conn, _http1.make_error_response(431, "The request head is too large."))
    yield commands.CloseConnection(conn.conn)
    conn.state = conn.done
    if error is not None and conn.stream_id is not None:
        yield ReceiveHttp(error(conn.stream_id, "response head too large", ErrorCode.GENERIC_SERVER_ERROR))


def _not_admitted(stream_id: int) -> ResponseProtocolError:
    return ResponseProtocolError(stream_id, "not admitted", ErrorCode.GENERIC_SERVER_ERROR)


def _informational(buf: ReceiveBuffer) -> bool:
    """Whether a buffer begins with a whole 1xx head other than 101, which ends HTTP on the connection."""
    whole = bytes(buf)
    if not (whole.startswith(b"HTTP/1.") and whole[9:10] == b"1" and whole[9:12] != b"101"):
        return False
    return _BLANK_LINE.search(whole) is not None
