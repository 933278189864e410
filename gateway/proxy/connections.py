"""What was agreed with each client connection: who it is, where its CONNECT leads, and what may be spoken in it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

from mitmproxy import http
from mitmproxy.net.tls import starts_like_tls_record
from mitmproxy.proxy import layer as mlayer
from mitmproxy.proxy.context import Context
from mitmproxy.proxy.layers import modes
from mitmproxy.proxy.layers.http import HttpLayer, HTTPMode
from mitmproxy.proxy.layers.tls import ClientTLSLayer, ServerTLSLayer
from mitmproxy.proxy.tunnel import LayerStack

from gateway.ports import ConnectionEvent, Peer, Refusal, UseCase
from gateway.proxy import canary, requests
from gateway.proxy.exchange import Exchange
from gateway.proxy.load import Load
from gateway.proxy.routes import (
    Route,
    authenticate,
    by_path,
    decide,
    is_local,
    is_private,
    normalise_host,
    user_of,
)
from gateway.proxy.settings import ProxySettings
from gateway.proxy.subjects import certified, subject_of
from gateway.proxy.tasks import Tasks
from gateway.proxy.tunnel import Closed, Traffic, Tunnel

MISMATCH = Refusal(400, ("destination.mismatch",), "Host, TLS name and proxy destination differ.")
_CHALLENGE = b'Basic realm="egress", charset="UTF-8"'
_SHORTEST_HELLO = 3  # bytes that tell TLS from HTTP


@dataclass(slots=True)
class Session:
    """One client connection after its CONNECT."""

    client_id: str
    peer: Peer
    host: str
    port: int
    route: Route
    tls: bool = False  # TLS was begun inside the CONNECT
    traffic: Traffic = field(default_factory=Traffic)
    dial_reason: str = ""
    closed: bool = False


def plain_answer(status: int, reason_code: str = "") -> http.Response:
    """An answer outside any intercepted connection. No client shows its body; the reason is in the records."""
    body = (
        b'{"error":{"message":"Refused by the egress gateway: %s","code":"gateway_blocked"}}'
        % reason_code.encode()
    )
    fields = [(b"content-type", b"application/json"), (b"content-length", b"%d" % len(body))]
    if status == 407:
        fields.append((b"proxy-authenticate", _CHALLENGE))
    if status == 503:
        fields.append((b"retry-after", b"2"))
    response = http.Response.make(status, body)
    response.headers = http.Headers(fields)
    return response


class Sessions:
    """All client connections of one proxy."""

    def __init__(self, settings: ProxySettings, use_case: UseCase, tasks: Tasks, load: Load) -> None:
        self._settings = settings
        self._use_case = use_case
        self._tasks = tasks
        self._load = load
        self._sessions: dict[str, Session] = {}
        self.own_ports: set[int] = set(settings.own_ports)
        self._canary = canary.CanaryTarget(settings.canary)
        self.unauthenticated = 0

    def use(self, settings: ProxySettings) -> None:
        """Decide by these settings from now on; of them only the host lists may differ."""
        self._settings = settings

    # -- who and where --------------------------------------------------------------------------------------------

    def connect(self, flow: http.HTTPFlow) -> http.Response | None:
        """Decide a CONNECT: None accepts it."""
        peer = self._peer(flow)
        if peer is None:
            return plain_answer(407, "proxy.credentials")
        host = normalise_host(flow.request.host)
        if host is None:
            return plain_answer(400, "destination.malformed")
        route = self._route(host, flow.request.port)
        session = Session(flow.client_conn.id, peer, host, flow.request.port, route)
        if route.action == "refuse":
            self._note(session, "refused", route.reason_code)
            return plain_answer(403, route.reason_code)
        if route.action == "tunnel" and (busy := self._load.refusal()) is not None:
            return plain_answer(busy.status, busy.reason_codes[0])
        self._sessions[session.client_id] = session
        return None

    def _peer(self, flow: http.HTTPFlow) -> Peer | None:
        values = [v for n, v in flow.request.headers.fields if n.lower() == b"proxy-authorization"]
        header = values[0] if len(values) == 1 else None if not values else b""
        access = self._settings.access
        client = flow.client_conn
        address = client.peername[0]
        place = self._settings.places.at(
            client.proxy_mode.full_spec, address, is_loopback=self._settings.is_loopback
        )
        # Before a session there is no TLS but the proxy port's own: the certificate is what was shown there.
        shown = flow.client_conn.certificate_list if self._settings.client_ca is not None else ()
        if (subject := subject_of(shown)) is not None:
            user = place.user(user_of(header)) if header != b"" else None
            peer = certified(user, subject, access) if user is not None else None
        else:
            peer = authenticate(header, access, place)
        self.unauthenticated += peer is None
        return peer

    def _route(self, host: str, port: int) -> Route:
        if port in self.own_ports and is_local(host, self._settings.listen_host):
            return Route("refuse", "host.own_port")
        if host == canary.HOST:
            is_open = self._canary.address(host, port) is not None
            return Route("intercept", "host.intercepted") if is_open else Route("refuse", "host.unknown")
        route = decide(host, port, self._settings.hosts)
        chosen = (host, port) in self._settings.connect_to
        if not self._settings.is_local and not chosen and _is_private_literal(host):
            return Route("refuse", "host.private_address")
        return route

    def exchange(self, flow: http.HTTPFlow) -> Exchange:
        """The state of a new request: of its CONNECT, or of the absolute target of a plain one."""
        session = self._sessions.get(flow.client_conn.id)
        path = flow.request.path.partition("?")[0]
        request_id = requests.new_request_id()
        if session is not None:
            return Exchange(
                request_id,
                flow.client_conn.id,
                session.peer,
                session.host,
                session.port,
                path,
                session.route.action,
            )
        peer = self._peer(flow)
        host = normalise_host(flow.request.host) or ""
        port = flow.request.port
        route = self._route(host, port) if host else Route("refuse", "destination.malformed")
        route = by_path(route, host, path, self._settings.hosts)
        exchange = Exchange(
            request_id,
            flow.client_conn.id,
            peer or Peer(),
            host,
            port,
            path,
            route.action if peer else "refuse",
        )
        exchange.plain = True
        if peer is None:
            exchange.refusal = Refusal(407, ("proxy.credentials",), "")
        elif route.action == "refuse":
            exchange.refusal = Refusal(403, (route.reason_code,), "")
        if peer is not None and route.action != "intercept":
            action = "refused" if route.action == "refuse" else "tunnelled"
            self._note(Session(flow.client_conn.id, peer, host, port, route), action, route.reason_code)
        return exchange

    def refusal(self, flow: http.HTTPFlow, exchange: Exchange) -> Refusal | None:
        """Whether the names of the destination agree."""
        session = self._sessions.get(flow.client_conn.id)
        sni = flow.client_conn.sni if session is not None and session.tls else None
        host = normalise_host(flow.request.host)
        if host != exchange.host or flow.request.port != exchange.port:
            return MISMATCH
        if not requests.destinations_agree(flow.request, sni, exchange.host, exchange.port):
            return MISMATCH
        return None

    # -- what is spoken -------------------------------------------------------------------------------------------

    def next_layer(self, data: mlayer.NextLayer) -> mlayer.Layer | None:
        """What follows on a connection; None waits for more bytes. mitmproxy's own guess is thrown away.

        HTTP towards the proxy; after a CONNECT one TLS layer, HTTP, or the relay of a tunnelled host; else the end.
        """
        context = data.context
        if data.layer is not None:  # layers register themselves when they are made
            del context.layers[context.layers.index(data.layer) :]
        first: bytes = data.data_client()  # type: ignore[no-untyped-call]
        session = self._sessions.get(context.client.id)
        if session is None and isinstance(context.layers[0], modes.HttpProxy | modes.HttpUpstreamProxy):
            return self._towards_proxy(context, first)
        if session is None or session.route.action != "intercept":
            return self.closed(context)
        if len(first) < _SHORTEST_HELLO:
            return None
        if starts_like_tls_record(first) and not session.tls:
            session.tls = True
            stack = LayerStack()
            stack /= ServerTLSLayer(context)
            stack /= ClientTLSLayer(context)
            return stack[0]
        if context.client.alpn == b"h2" or _like_http(first):
            return HttpLayer(context, HTTPMode.transparent)
        self._note(session, "refused", "protocol.unsupported")
        return self.closed(context)

    def _towards_proxy(self, context: Context, first: bytes) -> mlayer.Layer | None:
        """HTTP/1 to the proxy port, in TLS where the listener has a certificate."""
        mode = HTTPMode.regular if isinstance(context.layers[0], modes.HttpProxy) else HTTPMode.upstream
        secure = self._settings.tls_cert is not None
        if len(context.layers) == 1 and secure:
            if len(first) < _SHORTEST_HELLO:
                return None
            return ClientTLSLayer(context) if starts_like_tls_record(first) else self.closed(context)
        if len(context.layers) == 1 + secure:
            return HttpLayer(context, mode)
        return self.closed(context)

    def closed(self, context: Context) -> mlayer.Layer:
        """A layer that ends the connection."""
        return Closed(context)

    def relay(self, client_id: str) -> Callable[[Context], mlayer.Layer] | None:
        """What makes the layer of a client's tunnel; None where its CONNECT is intercepted."""
        session = self._sessions.get(client_id)
        if session is None or session.route.action != "tunnel":
            return None
        traffic = session.traffic
        return lambda context: Tunnel(context, traffic)

    # -- ends -----------------------------------------------------------------------------------------------------

    def tls_failed(self, client_id: str) -> None:
        """The client ended the handshake: it does not trust the CA, or it pins."""
        session = self._sessions.get(client_id)
        if session is not None:
            self._note(session, "refused", "tls.client_rejected")

    def dial_refused(self, client_id: str, reason_code: str) -> None:
        """An address was out of bounds."""
        session = self._sessions.get(client_id)
        if session is not None:
            session.dial_reason = reason_code
            self._note(session, "refused", reason_code)

    def dial_reason(self, client_id: str) -> str:
        """Why the last dial for this client was refused; empty where it was not."""
        session = self._sessions.get(client_id)
        return session.dial_reason if session is not None else ""

    def all(self) -> Iterator[Session]:
        """Every session that is open."""
        yield from list(self._sessions.values())

    def close(self, session: Session) -> None:
        """Record a tunnel at its end."""
        if session.route.action == "tunnel" and not session.closed and not session.dial_reason:
            session.closed = True
            self._note(session, "tunnelled", session.route.reason_code)

    def forget(self, client_id: str) -> None:
        """The client is gone."""
        session = self._sessions.pop(client_id, None)
        if session is not None:
            self.close(session)

    def _note(self, session: Session, action: str, reason_code: str) -> None:
        event = ConnectionEvent(
            peer=session.peer,
            host=session.host,
            port=session.port,
            action=action,
            reason_code=reason_code,
            bytes_up=session.traffic.up,
            bytes_down=session.traffic.down,
        )
        self._tasks.background(self._use_case.note(event))


def _like_http(first: bytes) -> bool:
    """Whether bytes can begin an HTTP/1 request: a token in letters, and nothing binary before the first blank."""
    word = first.split(b" ", 1)[0][:16]
    return word.isalpha() and not starts_like_tls_record(first)


def _is_private_literal(host: str) -> bool:
    try:
        return is_private(host)
    except ValueError:
        return False
