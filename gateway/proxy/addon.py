"""The hooks of requests and answers: mitmproxy's events become calls of the use case.

The first statement of `request` is a refusal. Only a finished decision takes it away, so an exception, a cancelled
task or an overrun deadline leaves it in place; and below the hooks the wire layers let nothing pass that is not
exactly what was admitted.
"""

from __future__ import annotations

from mitmproxy import http
from mitmproxy.connection import Server

from gateway.ports import Admitted, Refusal, Refused, Released
from gateway.proxy import handshake, requests, responses
from gateway.proxy.connections import plain_answer
from gateway.proxy.edge import KEY, Edge
from gateway.proxy.exchange import Exchange
from gateway.proxy.guard import bind
from gateway.proxy.refusals import FAILED, MALFORMED, OVERRUN, REJECT_S, TRAILERS, UNRELEASED, WEBSOCKET
from gateway.proxy.talk import Talk
from gateway.proxy.tasks import within


class EgressAddon(Edge):
    """The addon: connections from `Edge`, requests and answers here."""

    name = "egress"

    # -- requests -------------------------------------------------------------------------------------------------

    async def requestheaders(self, flow: http.HTTPFlow) -> None:
        """Look at the head: who, where to, and whether the rest is worth reading."""
        if KEY in flow.metadata:  # mitmproxy calls this twice for what it finds invalid
            return
        exchange = self.sessions.exchange(flow)
        decided, exchange.refusal = exchange.refusal, FAILED
        flow.metadata[KEY] = exchange
        bind(flow.request, exchange)
        self.ledger.begin(exchange)
        flow.request.stream = False
        try:
            exchange.refusal = decided or self._head_refusal(flow, exchange)
        except Exception as error:  # noqa: BLE001  the refusal above stands
            self.failed("requestheaders", error)

    def _head_refusal(self, flow: http.HTTPFlow, exchange: Exchange) -> Refusal | None:
        """Why a request is refused by its head alone."""
        if (busy := self.load_state.refusal()) is not None:
            return busy
        session_refusal = self.sessions.refusal(flow, exchange)
        if session_refusal is not None:
            return session_refusal
        if flow.request.http_version not in {"HTTP/1.0", "HTTP/1.1", "HTTP/2.0"}:
            return MALFORMED
        if exchange.action == "intercept" and flow.request.method not in requests.METHODS:
            return MALFORMED
        if requests.is_websocket(flow.request) and exchange.action == "intercept":
            return self._upgrade(flow, exchange)
        length = flow.request.headers.get("content-length", "0")
        return self.room(exchange, int(length)) if length.isascii() and length.isdigit() else None

    def _upgrade(self, flow: http.HTTPFlow, exchange: Exchange) -> Refusal | None:
        """Begin a talk where the messages of a WebSocket can be read; else clients fall back to HTTP."""
        if not self.reads_websockets or exchange.plain or not handshake.is_followed(flow.request):
            return WEBSOCKET
        conversing = self.use_case.converse(exchange.host, exchange.path, exchange.peer.project)
        if conversing is None:
            return WEBSOCKET
        exchange.talk = Talk(self, exchange, flow, conversing, handshake.offered(flow.request))
        return None

    async def egress_refused(self, flow: http.HTTPFlow) -> None:
        """A refusal of the edge: record it, and put the answer on the flow."""
        exchange = self.exchange(flow)
        if exchange is not None:
            await self._reject(flow, exchange, exchange.refusal or FAILED)
            self.ledger.settle(exchange, complete=False)

    async def request(self, flow: http.HTTPFlow) -> None:
        """The whole request is here: nothing leaves unless the use case admits it."""
        flow.response = self._closed(flow, FAILED)
        exchange = self.exchange(flow)
        if exchange is None or exchange.seen:
            return
        exchange.seen = True
        try:
            if flow.request.trailers:
                await self._reject(flow, exchange, TRAILERS)
            else:
                await self._decide(flow, exchange)
        except Exception as error:  # noqa: BLE001  the refusal above stands; a record of it is tried for
            self.failed("request", error)
            await self._reject(flow, exchange, FAILED)

    async def _decide(self, flow: http.HTTPFlow, exchange: Exchange) -> None:
        if exchange.action == "tunnel":  # plain HTTP to a host that is passed unread
            flow.request.headers.fields = requests.end_to_end(flow.request.headers.fields)
            exchange.frozen = requests.freeze(flow.request)
            flow.response = None
            return
        outbound = requests.outbound(flow, exchange)
        exchange.outbound = outbound
        limit = self.settings.limits.deadline_ms / 1000
        verdict = await within(
            self.tasks, self.use_case.handle(outbound), limit, lambda late: self._too_late(exchange, late)
        )
        if exchange.settled and verdict is not None:  # the client left while it was decided
            self._too_late(exchange, verdict)
        elif verdict is None:
            await self._reject(flow, exchange, OVERRUN)
        elif isinstance(verdict, Refused):
            exchange.receipt = verdict.receipt
            flow.response = responses.native(verdict.answer, verdict.receipt)
        else:
            self._admit(flow, exchange, verdict)

    def _too_late(self, exchange: Exchange, verdict: Admitted | Refused) -> None:
        if isinstance(verdict, Admitted):
            self.ledger.unsent(exchange)

    def _admit(self, flow: http.HTTPFlow, exchange: Exchange, admitted: Admitted) -> None:
        """The only place where the refusal is taken off an intercepted request."""
        exchange.receipt, exchange.effect = admitted.receipt, admitted.effect
        exchange.admitted = admitted
        if admitted.detour is not None:  # a connection of its own, that goes through no parent proxy
            flow.server_conn = Server(address=(admitted.detour.host, admitted.detour.port))
        to_parent = exchange.plain and self.settings.parent is not None and flow.request.scheme == "http"
        to_parent = to_parent and admitted.detour is None
        requests.put(flow.request, admitted, absolute=to_parent)
        if exchange.talk is not None:
            handshake.put(flow.request, exchange.talk.extensions)
        if to_parent:
            self._name_to_parent(flow.request)
        exchange.frozen = requests.freeze(flow.request)
        if not exchange.may_write(admitted.body):
            self.alarm("digest")
            exchange.admitted = exchange.frozen = None
            return
        flow.response = None

    def _name_to_parent(self, request: http.Request) -> None:
        """Plain HTTP goes to the parent in absolute form, with its credentials."""
        parent = self.settings.parent
        if parent is not None and parent.authorization:
            request.headers["Proxy-Authorization"] = parent.authorization

    async def _reject(self, flow: http.HTTPFlow, exchange: Exchange, refusal: Refusal) -> None:
        outbound = exchange.outbound or requests.outbound(
            flow, exchange, transport="websocket" if refusal is WEBSOCKET else "http"
        )
        flow.response = self._closed(flow, refusal)
        exchange.refused = True
        if exchange.action != "intercept":
            return
        try:
            verdict = await within(self.tasks, self.use_case.reject(outbound, refusal), REJECT_S)
        except Exception as error:  # noqa: BLE001  the answer above needs no record
            self.failed("reject", error)
            return
        if verdict is not None:
            exchange.receipt = verdict.receipt
            flow.response = responses.native(verdict.answer, verdict.receipt)

    def _closed(self, flow: http.HTTPFlow, refusal: Refusal) -> http.Response:
        """A refusal that needs no one: shape by host, without a receipt."""
        exchange = self.exchange(flow)
        host, path = (exchange.host, exchange.path) if exchange is not None else ("", "/")
        if exchange is not None and exchange.action == "refuse":
            return plain_answer(refusal.status, refusal.reason_codes[0])
        try:
            return responses.native(self.use_case.refuse(host, path, refusal), "")
        except Exception as error:  # noqa: BLE001  refuse never raises; if it does, the client still gets an answer
            self.failed("refuse", error)
            return http.Response.make(refusal.status, b"", {"content-length": "0"})

    # -- answers --------------------------------------------------------------------------------------------------

    def responseheaders(self, flow: http.HTTPFlow) -> None:
        """The provider's head, or our own answer on its way."""
        exchange = self.exchange(flow)
        if exchange is None or exchange.wire.status is None:
            return
        self.ledger.observe(exchange)
        try:
            responses.stream(flow, exchange)
        except Exception as error:  # noqa: BLE001  the answer passes as it came
            self.failed("responseheaders", error)

    async def response(self, flow: http.HTTPFlow) -> None:
        """The answer is complete; one that was held back is released now."""
        exchange = self.exchange(flow)
        if exchange is not None:
            if exchange.holding and flow.response is not None:
                await self._release(exchange, flow.response)
            self.ledger.settle(exchange, complete=exchange.wire.status is not None)

    async def _release(self, exchange: Exchange, response: http.Response) -> None:
        answer = responses.held(response, exchange)
        response.raw_content = b""  # whatever fails below, nothing of it goes on
        try:
            released = await self.use_case.release(exchange.request_id, answer)
        except Exception as error:  # noqa: BLE001  release never raises; if it does, the answer stays held
            self.failed("release", error)
            released = Released(self.use_case.refuse(exchange.host, exchange.path, UNRELEASED))
        responses.release(response, released, exchange)

    def error(self, flow: http.HTTPFlow) -> None:
        """The exchange broke, on either side."""
        exchange = self.exchange(flow)
        if exchange is None:
            return
        if not flow.client_conn.connected:
            exchange.client_gone = True
        exchange.wire.fail()
        self.ledger.settle(exchange, complete=False)
