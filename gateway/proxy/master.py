"""The proxy: a mitmproxy master of our own with the few addons it needs and options that fail closed."""

from __future__ import annotations

import asyncio
import inspect
import socket
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from typing import Any, override

from mitmproxy import addonmanager, hooks
from mitmproxy import master as mitm
from mitmproxy.addons import core, next_layer, proxyserver
from mitmproxy.options import Options
from mitmproxy.proxy import mode_servers, mode_specs

from gateway.errors import SetupError
from gateway.ports import UseCase
from gateway.proxy.accepting import Acceptor
from gateway.proxy.addon import EgressAddon
from gateway.proxy.certs import CertificateAuthority
from gateway.proxy.edge import EventSink
from gateway.proxy.quiet import quiet
from gateway.proxy.routes import HostRules
from gateway.proxy.settings import ProxySettings
from gateway.proxy.tls import Leaves, check_client_ca, load_listener

SETTLE_S = 5.0  # for recordings that are under way when everything else has ended


class _Addons(addonmanager.AddonManager):
    """Knows which addon listens to what, and leaves out the `update` event that only user interfaces listen to."""

    def __init__(self, master: mitm.Master) -> None:
        self._listeners: dict[str, list[Callable[..., Any]]] = {}
        super().__init__(master)  # type: ignore[no-untyped-call]

    @override
    def register(self, addon: object) -> object:
        self._listeners = {}
        return super().register(addon)  # type: ignore[no-untyped-call]

    @override
    def remove(self, addon: object) -> None:
        self._listeners = {}
        super().remove(addon)  # type: ignore[no-untyped-call]

    @override
    async def handle_lifecycle(self, event: hooks.Hook) -> None:
        listeners = self._listeners.get(event.name)
        if listeners is None:
            listeners = [func for addon in self.chain for _, func in self._iter_hooks(addon, event)]
            self._listeners[event.name] = listeners
        (subject,) = event.args()
        for listener in listeners:
            with addonmanager.safecall():
                pending = listener(subject)
                if pending is not None and inspect.isawaitable(pending):
                    await pending


class _Master(mitm.Master):
    """A master without the bridge that formats every log record again for addons."""

    def __init__(self, options: Options) -> None:
        super().__init__(options)
        self._legacy_log_events.uninstall()
        self.addons = _Addons(self)


class EgressProxy:
    """One listener. `start` returns when it accepts connections, `stop` when the last exchange has been settled."""

    def __init__(
        self,
        settings: ProxySettings,
        use_case: UseCase,
        ca: CertificateAuthority,
        on_event: EventSink | None = None,
        listeners: Sequence[socket.socket] = (),
    ) -> None:
        """`listeners` listen already and are shared with other processes, the first one and those of `places`.

        Without any they are opened.
        """
        self._listeners = listeners
        self._settings = settings
        self._ca = ca
        self._on_event = on_event
        self._addon = EgressAddon(settings, use_case, on_event)
        self._running = ExitStack()
        self._master: _Master | None = None
        self._server: Any = None
        self.ready = asyncio.Event()

    @property
    def port(self) -> int:
        """The port that is really bound; 0 before `start`."""
        addresses = self._server.listen_addrs() if self._server is not None else []
        return int(addresses[0][1]) if addresses else 0

    @property
    def requests_in_flight(self) -> int:
        """Exchanges that are not settled."""
        return self._addon.load_state.requests

    def use_hosts(self, hosts: HostRules) -> None:
        """Decide about new connections by these host lists."""
        self._addon.use_hosts(hosts)

    def refuse_port(self, port: int) -> None:
        """One more port of this gateway that no client may reach through it (the control port, once bound)."""
        self._addon.refuse_port(port)

    async def start(self) -> None:
        """Listen. Raises SetupError (`listen.unavailable`) when the address cannot be bound."""
        self._running.enter_context(quiet(self._on_event))
        self._master = _Master(options_for(self._settings))
        self._server = proxyserver.Proxyserver()  # type: ignore[no-untyped-call]
        listener = None
        if self._settings.tls_cert is not None and self._settings.tls_key is not None:
            listener = load_listener(self._settings.tls_cert, self._settings.tls_key)
        if self._settings.client_ca is not None:
            check_client_ca(self._settings.client_ca)
        self._master.addons.add(  # type: ignore[no-untyped-call]
            core.Core(),
            self._server,
            next_layer.NextLayer(),
            Leaves(self._ca, listener, self._settings.client_ca),
            self._addon,  # last: what it decided on is what leaves
        )
        self._master.options.update(**late_options())  # type: ignore[no-untyped-call]
        for mode, shared in zip(modes_of(self._settings), self._listeners, strict=False):
            await self._share(mode, shared)
        if not await self._server.setup_servers() or not self.port:
            await self.stop(0)
            raise SetupError(
                "listen.unavailable",
                f"the proxy port {self._settings.listen_host}:{self._settings.listen_port} cannot be had"
                + (", or that of a project" if self._settings.places.listeners else ""),
                hint="if a gateway runs already, stop it or use it (egress doctor); else choose another listen.proxy, "
                "or another listen of the project",
            )
        self.refuse_port(self.port)
        await self._master.running()
        self.ready.set()

    async def _share(self, mode: str, listener: socket.socket) -> None:
        """Put a server in place that accepts on a socket of several processes; mitmproxy would bind one of its own."""
        spec = mode_specs.ProxyMode.parse(mode)
        instance: Any = mode_servers.ServerInstance.make(spec, self._server)

        async def listen(_host: str, _port: int) -> list[Acceptor]:
            acceptor = Acceptor(listener, instance.handle_stream)
            acceptor.open()
            return [acceptor]

        instance.listen = listen
        await instance.start()
        self._server.servers._instances[spec] = instance  # noqa: SLF001 - the version is pinned, the source hashed

    async def run(self) -> None:
        """Start, and serve until cancelled; then drain for as long as the idle set-up takes."""
        await self.start()
        try:
            await asyncio.Event().wait()
        finally:
            await self.stop(SETTLE_S)

    async def stop(self, drain_s: float) -> None:
        """Refuse new requests, wait up to `drain_s` seconds for those in flight, settle the rest, and close."""
        if self._master is None:
            return
        self.ready.clear()
        self._addon.load_state.draining = True
        if drain_s > 0:
            try:
                async with asyncio.timeout(drain_s):
                    await self._addon.load_state.idle()
            except TimeoutError:
                pass  # what is left is settled below as unfinished
        await self._server.servers.update([])
        await self._close_connections()
        await self._addon.settle_all(SETTLE_S)
        await self._master.done()
        self._master = None
        self._running.close()

    async def _close_connections(self) -> None:
        handlers = [h for h in list(self._server.connections.values()) if h.client in h.transports]
        tasks = [t for h in handlers if (t := h.transports[h.client].handler) is not None]
        for task in tasks:
            task.cancel("shutdown")
        for _ in range(100):  # mitmproxy's handlers end by themselves once their client is gone
            if not self._server.connections:
                return
            await asyncio.sleep(0.01)


def options_for(settings: ProxySettings) -> Options:
    """Options that every master has. The ones that would let something through are set, not left to defaults."""
    return Options(
        mode=modes_of(settings),
        listen_host=settings.listen_host,
        listen_port=settings.listen_port,
        rawtcp=False,
        ssl_insecure=False,
        ignore_hosts=[],
        allow_hosts=[],
        tcp_hosts=[],
        udp_hosts=[],
        http2=True,
        http3=False,
        websocket=settings.websocket,
        upstream_cert=False,
        ssl_verify_upstream_trusted_ca=str(settings.trust_file),
        tcp_timeout=settings.limits.idle_timeout_s,
    )


def modes_of(settings: ProxySettings) -> list[str]:
    """The mode of each listener: the first one, and those of projects."""
    parent = settings.parent
    base = "regular" if parent is None else f"upstream:{parent.scheme}://{parent.host}:{parent.port}"
    return [base, *(listener.mode(base) for listener in settings.places.listeners)]


def late_options() -> dict[str, Any]:
    """Options that addons bring with them."""
    return {
        "connection_strategy": "lazy",
        "stream_large_bodies": None,
        "body_size_limit": None,  # ours, in the provider's shape: gateway.proxy.stream
        "validate_inbound_headers": True,
        "store_streamed_bodies": False,
    }
