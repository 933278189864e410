"""One request and its answer inside mitmproxy, with refusals that are whole answers in the provider's own shape.

mitmproxy answers what it refuses itself (too large, malformed, upstream unreachable) in HTML that quotes the request,
and reads a whole body before it answers at all. Here every such answer is the provider's own error JSON, an
over-long body is refused when it passes the limit and never held, and an answer that cannot be restored to its end
is visibly cut.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import override

from mitmproxy import http
from mitmproxy.proxy import commands, events, layer
from mitmproxy.proxy.context import Context
from mitmproxy.proxy.layers.http import DropStream, GetHttpConnection, HttpStream, SendHttp
from mitmproxy.proxy.layers.http._events import (
    ErrorCode,
    RequestProtocolError,
    ResponseData,
    ResponseEndOfMessage,
    ResponseHeaders,
    ResponseProtocolError,
)
from mitmproxy.proxy.layers.http._hooks import HttpRequestHeadersHook, HttpResponseHook
from mitmproxy.proxy.layers.http._upstream_proxy import HttpUpstreamProxy
from mitmproxy.proxy.utils import ReceiveBuffer

from gateway.ports import Refusal
from gateway.proxy.exchange import Exchange
from gateway.proxy.guard import Guard, guard_of
from gateway.proxy.refusals import MALFORMED
from gateway.proxy.responses import shapeless


@dataclass
class EgressRefusedHook(commands.StartHook):  # type: ignore[no-untyped-call]
    """A request is refused before its body is complete: record that, and put the answer on the flow."""

    flow: http.HTTPFlow


class GuardedStream(HttpStream):
    """mitmproxy's stream, with its own errors replaced and its limits ours."""

    _answering = False  # the response head is on its way to the client

    @property
    def _guard(self) -> Guard | None:
        return guard_of(self.context)

    def _exchange(self) -> Exchange | None:
        flow, guard = getattr(self, "flow", None), self._guard
        return guard.exchange(flow) if flow is not None and guard is not None else None

    @override
    def _handle_event(self, event: events.Event) -> layer.CommandGenerator[None]:
        exchange = self._exchange()
        if isinstance(event, RequestProtocolError) and exchange is not None:
            exchange.client_gone = True
        steps = super()._handle_event(event)
        reply: object = None
        while True:
            try:
                command = steps.send(reply)
            except StopIteration:
                break
            if self._is_html(command):
                steps.close()
                yield from self._fail()
                return
            if isinstance(command, SendHttp) and isinstance(command.event, ResponseHeaders):
                self._answering = command.event.response.status_code != 100
            reply = yield command
            if (yield from self._after(command, reply)):
                steps.close()
                return
        if exchange is not None and exchange.restore_failed and not exchange.settled:
            yield from self._cut()

    def _after(self, command: commands.Command, reply: object) -> layer.CommandGenerator[bool]:
        """Look at a command that was carried out; True when the stream was answered and goes no further."""
        exchange = self._exchange()
        if exchange is None:
            return False
        if isinstance(command, GetHttpConnection):
            exchange.dialled = True
            if isinstance(reply, tuple) and reply[1] is not None:
                exchange.failure = "connect"
        elif isinstance(command, HttpRequestHeadersHook) and exchange.refusal is not None:
            yield from self._refuse(exchange.refusal)
            return True
        return False

    def _is_html(self, command: commands.Command) -> bool:
        """Whether a command would make mitmproxy write an error page of its own."""
        return (
            isinstance(command, SendHttp)
            and isinstance(command.event, ResponseProtocolError)
            and command.connection == self.context.client
            and not self._answering
            and command.event.code.http_status_code() is not None
        )

    def _fail(self) -> layer.CommandGenerator[None]:
        """Answer in place of mitmproxy's error page."""
        exchange, guard = self._exchange(), self._guard
        if (
            exchange is None
            or guard is None
            or (exchange.admitted is None and exchange.action == "intercept")
        ):
            yield from self._refuse(MALFORMED)
        else:
            yield from self._answer(guard.failure(exchange))

    def _refuse(self, refusal: Refusal) -> layer.CommandGenerator[None]:
        """Record a refusal, answer with it, and forget the rest of the request."""
        self.request_body_buf = ReceiveBuffer()  # type: ignore[no-untyped-call]
        exchange = self._exchange()
        if exchange is not None:
            exchange.refusal = exchange.refusal or refusal
            yield EgressRefusedHook(self.flow)
        response = self.flow.response
        if exchange is None or not exchange.refused or response is None:
            response = shapeless(400 if exchange is None else 503)
        if not self.flow.request.is_http2:
            response.headers["connection"] = "close"  # what follows may still be this request's body
        yield from self._answer(response)

    def _answer(self, response: http.Response) -> layer.CommandGenerator[None]:
        self.flow.response, self.flow.live = response, False
        self._answering = True
        body = b"" if self.flow.request.method == "HEAD" else (response.raw_content or b"")
        client = self.context.client
        self.client_state = self.server_state = self.state_errored
        yield SendHttp(ResponseHeaders(self.stream_id, response, not body), client)
        if body:
            yield SendHttp(ResponseData(self.stream_id, body), client)
        yield DropStream(self.stream_id)
        yield SendHttp(ResponseEndOfMessage(self.stream_id), client)

    def _cut(self) -> layer.CommandGenerator[None]:
        """End an answer that cannot be restored so that the client sees it is incomplete (RFC 9112 §8)."""
        message, code = "answer cannot be restored", ErrorCode.GENERIC_SERVER_ERROR
        yield SendHttp(RequestProtocolError(self.stream_id, message, code), self.context.server)
        yield from self.handle_protocol_error(ResponseProtocolError(self.stream_id, message, code))

    def _relay(self) -> Callable[[Context], layer.Layer] | None:
        """What makes the tunnel of an accepted CONNECT that is one. Without a guard no CONNECT is accepted."""
        guard = self._guard
        if guard is None:
            self.flow.response = shapeless(403)
        return guard.relay(self.context.client) if guard is not None and not self.flow.response else None

    @override
    def handle_connect_regular(self) -> layer.CommandGenerator[None]:
        """Dial for a tunnel before the CONNECT is answered: some protocols wait for the server to speak first."""
        relay = self._relay()
        if relay is None:
            yield from super().handle_connect_regular()  # type: ignore[no-untyped-call]
            return
        error = yield commands.OpenConnection(self.context.server)
        if error:
            self.flow.response = shapeless(502)
        self.child_layer = relay(self.context)
        yield from self.handle_connect_finish()  # type: ignore[no-untyped-call]

    @override
    def handle_connect_upstream(self) -> layer.CommandGenerator[None]:
        relay = self._relay()
        if relay is None:
            yield from super().handle_connect_upstream()  # type: ignore[no-untyped-call]
            return
        stack = HttpUpstreamProxy.make(self.context, True)
        stack /= relay(self.context)
        self.child_layer = stack[0]
        yield from self.handle_connect_finish()  # type: ignore[no-untyped-call]

    @override
    def check_body_size(self, request: bool) -> layer.CommandGenerator[bool]:
        """Ours instead of `body_size_limit` and `stream_large_bodies`: answers stream, requests are bounded."""
        exchange, guard = self._exchange(), self._guard
        if not request:
            return (yield from self._hold(exchange, guard))
        size = len(self.request_body_buf)
        if not size:
            return False
        refusal = guard.room(exchange, size) if exchange is not None and guard is not None else MALFORMED
        if refusal is None:
            return False
        yield from self._refuse(refusal)
        return True

    def _hold(self, exchange: Exchange | None, guard: Guard | None) -> layer.CommandGenerator[bool]:
        """Whether a held answer outgrew what can be held: it is asked for no more, and answered for."""
        size = len(self.response_body_buf)
        response = self.flow.response
        if exchange is None or guard is None or response is None or not (exchange.holding and size):
            return False
        if guard.room(exchange, size) is None:
            return False
        exchange.overrun = True
        self.response_body_buf = ReceiveBuffer()  # type: ignore[no-untyped-call]
        message, code = "answer cannot be held", ErrorCode.CANCEL
        yield SendHttp(RequestProtocolError(self.stream_id, message, code), self.context.server)
        yield HttpResponseHook(self.flow)
        yield from self._answer(response)
        return True
