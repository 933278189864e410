"""The edge between mitmproxy and the use case: its state, the hooks of connections, and what the guarded layers ask.

Every hook that could let something through begins by refusing, and an error leaves it at that.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from mitmproxy import connection, http
from mitmproxy.addonmanager import Loader
from mitmproxy.proxy import events, server_hooks
from mitmproxy.proxy import layer as mlayer
from mitmproxy.proxy.context import Context
from mitmproxy.tls import TlsData

from gateway.ports import Refusal, UseCase
from gateway.proxy import patches, responses
from gateway.proxy.connections import Sessions, plain_answer
from gateway.proxy.exchange import Exchange
from gateway.proxy.ledger import Ledger
from gateway.proxy.load import OVERLOADED, Load
from gateway.proxy.refusals import TIMED_OUT, TOO_LARGE, UNREACHABLE
from gateway.proxy.routes import HostRules
from gateway.proxy.settings import ProxySettings
from gateway.proxy.tasks import Tasks
from gateway.proxy.upstream import Dialler

KEY = "egress"  # of flow.metadata

type EventSink = Callable[[str, Mapping[str, str | int]], None]


class Edge:
    """One proxy's state on one event loop."""

    def __init__(self, settings: ProxySettings, use_case: UseCase, on_event: EventSink | None = None) -> None:
        self.settings = settings
        self.use_case = use_case
        self.load_state = Load(settings.limits.max_connections, settings.limits.max_inflight_bytes)
        self.tasks = Tasks()
        self.dialler = Dialler(settings, self._give_up)
        self.sessions = Sessions(settings, use_case, self.tasks, self.load_state)
        self.max_header_bytes = settings.limits.max_header_bytes
        self.ledger = Ledger(use_case, self.tasks, self.load_state)
        self._on_event = on_event
        self._proxyserver: Any = None
        self._options: object = None

    # -- life -----------------------------------------------------------------------------------------------------

    def load(self, loader: Loader) -> None:
        """Take the HTTP layers over; before this, a master with this addon has not accepted anything."""
        self._options = loader.master.options
        self._proxyserver = loader.master.addons.get("proxyserver")
        patches.install(self._options, self)

    def done(self) -> None:
        """The master is over."""
        patches.uninstall(self._options)

    @property
    def reads_websockets(self) -> bool:
        """Whether upgrades are followed at all; a master that is not ours may have switched its part of it off."""
        return self.settings.websocket and bool(getattr(self._options, "websocket", False))

    def use_hosts(self, hosts: HostRules) -> None:
        """Decide about connections by these lists from now on; those that are open go on."""
        self.settings = replace(self.settings, hosts=hosts)
        self.sessions.use(self.settings)

    def refuse_port(self, port: int) -> None:
        """Never connect to this port of this machine."""
        self.sessions.own_ports.add(port)
        self.dialler.own_ports.add(port)

    async def settle_all(self, grace_s: float) -> None:
        """Conclude what is still open and wait for the recordings under way."""
        for exchange in self.ledger.all():
            exchange.wire.fail()
            self.ledger.settle(exchange, complete=False)
        for session in self.sessions.all():
            self.sessions.close(session)
        await self.tasks.finish(grace_s)

    # -- connections ----------------------------------------------------------------------------------------------

    def client_connected(self, client: connection.Client) -> None:
        """Count, and turn away what is far over the limit without a word."""
        self.load_state.connections += 1
        if self.load_state.connections > 2 * self.settings.limits.max_connections:
            client.error = "too many connections"

    def client_disconnected(self, client: connection.Client) -> None:
        """Nothing of this client goes on: settle what no other hook did."""
        self.load_state.connections -= 1
        for exchange in self.ledger.of_client(client.id):
            exchange.client_gone = True
            exchange.wire.fail()
            self.ledger.settle(exchange, complete=False)
        self.sessions.forget(client.id)

    async def http_connect(self, flow: http.HTTPFlow) -> None:
        """Decide a CONNECT by name: accept it, or answer 403, 407 or 503 to it."""
        flow.response = plain_answer(403)
        try:
            answer = self.sessions.connect(flow)
        except Exception as error:  # noqa: BLE001  the refusal above stands
            self.failed("http_connect", error)
            return
        flow.response = answer

    def http_connect_upstream(self, flow: http.HTTPFlow) -> None:
        """Name ourselves to the parent proxy, and ask it for the address that `connect_to` gives."""
        parent = self.settings.parent
        if parent is not None and parent.authorization:
            flow.request.headers["Proxy-Authorization"] = parent.authorization
        target = self.settings.connect_to.get((flow.request.host, flow.request.port))
        if target is not None:
            flow.request.data.authority = "{}:{}".format(*target).encode()
            flow.request.headers["Host"] = "{}:{}".format(*target)

    def next_layer(self, data: mlayer.NextLayer) -> None:
        """Allow TLS and HTTP after a CONNECT, or the relay of a tunnelled host; close everything else."""
        try:
            data.layer = self.sessions.next_layer(data)
        except Exception as error:  # noqa: BLE001  the connection ends
            self.failed("next_layer", error)
            data.layer = self.sessions.closed(data.context)

    def tls_failed_client(self, data: TlsData) -> None:
        """A client that does not trust our CA, or pins the provider's."""
        self.sessions.tls_failed(data.context.client.id)

    async def server_connect(self, data: server_hooks.ServerConnectionHookData) -> None:
        """Point the dial where it may go, or end it before it begins."""
        reason: str | None = "gateway.error"
        try:
            reason = await self.dialler.begin(data.client.id, data.server)
        except Exception as error:  # noqa: BLE001  the connection is refused below
            self.failed("server_connect", error)
        if reason is not None:
            data.server.error = reason
            self.sessions.dial_refused(data.client.id, reason)

    def server_connected(self, data: server_hooks.ServerConnectionHookData) -> None:
        """The dial succeeded."""
        self.dialler.named(data.server)
        if self.sessions.relay(data.client.id) is not None:
            self.dialler.ready(data.server)

    def server_connect_error(self, data: server_hooks.ServerConnectionHookData) -> None:
        """The dial failed."""
        self.dialler.named(data.server)
        self.dialler.ready(data.server)

    def server_disconnected(self, data: server_hooks.ServerConnectionHookData) -> None:
        """The connection is gone."""
        self.dialler.ready(data.server)

    # -- what the layers ask (gateway.proxy.guard.Guard) -----------------------------------------------------------

    def transport(
        self, client: connection.Connection, server: connection.Connection
    ) -> asyncio.WriteTransport | None:
        """The transport under an upstream connection, while there is one."""
        handler = self._proxyserver.connections.get(client.id)
        io = handler.transports.get(server) if handler is not None else None
        return io.writer.transport if io is not None and io.writer is not None else None

    def sending(
        self, exchange: Exchange, client: connection.Connection, server: connection.Connection
    ) -> None:
        """The connection is up to its last layer."""
        self.dialler.ready(server)

    def sent(self, exchange: Exchange, client: connection.Connection, server: connection.Connection) -> None:
        """Wait for the head, but not for ever."""
        if exchange.wire.status is None:
            loop = asyncio.get_running_loop()
            limit = self.settings.limits.head_timeout_s
            exchange.head_timer = loop.call_later(limit, self._no_head, exchange, client.id, server)

    def _no_head(self, exchange: Exchange, client_id: str, server: connection.Connection) -> None:
        if exchange.wire.status is None and not exchange.settled:
            exchange.failure = "timeout"
            self._give_up(client_id, server)

    def _give_up(self, client_id: str, server: connection.Connection) -> None:
        """End the task of an upstream connection; mitmproxy reports it to the streams as closed."""
        handler = self._proxyserver.connections.get(client_id)
        io = handler.transports.get(server) if handler is not None else None
        if io is not None and io.handler is not None:
            io.handler.cancel("timeout")

    def alarm(self, reason: str) -> None:
        """Bytes that were not admitted tried to leave, and were stopped."""
        self._tell("proxy.integrity_alarm", {"reason": reason})

    def failed(self, place: str, error: Exception) -> None:
        """A hook failed closed. Its message may quote content: the type is enough to look further."""
        self._tell("proxy.hook_failed", {"hook": place, "error": type(error).__name__})

    async def deliver(self, client_id: str, event: events.Event) -> bool:
        """Hand an event to the layers of a client's connection; False where it is gone."""
        handler = self._proxyserver.connections.get(client_id)
        if handler is None:
            return False
        await handler.server_event(event)
        return True

    def _tell(self, name: str, facts: Mapping[str, str | int]) -> None:
        if self._on_event is not None:
            self._on_event(name, facts)

    def relay(self, client: connection.Connection) -> Callable[[Context], mlayer.Layer] | None:
        """What makes the layer of a tunnel."""
        return self.sessions.relay(client.id)

    def room(self, exchange: Exchange, size: int) -> Refusal | None:
        """Reserve for a body of `size` bytes, or say why not."""
        if size > self.settings.limits.max_body_bytes:
            return TOO_LARGE
        more = size - exchange.reserved
        if more <= 0:
            return None
        if not self.load_state.reserve(more):
            return OVERLOADED
        exchange.reserved = size
        return None

    def exchange(self, flow: http.HTTPFlow) -> Exchange | None:
        """The exchange of a flow."""
        found = flow.metadata.get(KEY)
        return found if isinstance(found, Exchange) else None

    def failure(self, exchange: Exchange) -> http.Response:
        """The answer to a request that was let through and got no answer from upstream."""
        if exchange.action != "intercept":
            return plain_answer(502, "upstream.unreachable")
        refusal = TIMED_OUT if exchange.failure == "timeout" else UNREACHABLE
        reason = self.sessions.dial_reason(exchange.client_id)
        if exchange.failure == "connect" and reason:
            refusal = Refusal(400, (reason,), "The address of the destination is out of bounds.")
        return responses.native(self.use_case.refuse(exchange.host, exchange.path, refusal), exchange.receipt)
