"""Who may connect where, and that every name of a destination is the same (traps 20-22, 27d)."""

from __future__ import annotations

import asyncio
import json
import ssl
from pathlib import Path

import pytest

from gateway.ports import Peer
from gateway.proxy.routes import HostRules
from gateway.proxy.settings import Access
from tests.integration.proxy.conftest import Start, World
from tests.support.client import Connection, RefusedError, chunked, credentials, post


async def _connect(world: World, target: str, extra: bytes = b"") -> tuple[Connection, int]:
    connection = await world.raw()
    try:
        return connection, (await connection.connect(target, extra)).status
    except RefusedError as refused:
        return connection, refused.reply.status


class TestConnect:
    @pytest.mark.parametrize(
        ("target", "reason"), [("denied.test:443", "host.denied"), ("new.test:443", "host.unknown")]
    )
    async def test_a_refused_host_gets_403_and_a_record(self, world: World, target: str, reason: str) -> None:
        connection, status = await _connect(world, target)
        assert status == 403
        await world.use_case.until(lambda: bool(world.use_case.events))
        (event,) = world.use_case.events
        assert (event.host, event.port, event.action, event.reason_code) == (
            target[:-4],
            443,
            "refused",
            reason,
        )
        assert (await connection.connect("api.test:443")).status == 200  # the connection stays usable

    async def test_unknown_hosts_may_be_tunnelled(self, start: Start) -> None:
        world = await start(hosts=HostRules(unknown="tunnel"))
        world.proxy._settings.connect_to["new.test", 443] = ("127.0.0.1", world.provider.port)
        _, status = await _connect(world, "new.test:443")
        assert status == 200

    @pytest.mark.parametrize("name", ["127.0.0.1", "localhost", "[::1]", "0.0.0.0", "127.1.2.3"])
    async def test_own_ports_are_refused(self, start: Start, name: str) -> None:
        world = await start(hosts=HostRules(unknown="tunnel"), own_ports=frozenset({8081}))
        for port in (world.proxy.port, 8081):
            _, status = await _connect(world, f"{name}:{port}")
            assert status == 403

    async def test_private_addresses_are_refused_off_loopback(self, start: Start) -> None:
        access = {"acme": Access(Peer(project="acme"), b"t0ken")}
        world = await start(
            hosts=HostRules(unknown="tunnel"), is_loopback=False, access=access, connect_to={}
        )
        for host in (
            "10.0.0.1",
            "192.168.1.1",
            "169.254.169.254",
            "127.0.0.1",
            "[fd00::1]",
            "[::ffff:10.0.0.1]",
        ):
            _, status = await _connect(world, f"{host}:443", credentials("acme", "t0ken"))
            assert status == 403, host

    async def test_a_name_that_resolves_to_a_private_address_is_not_dialled(self, start: Start) -> None:
        access = {"acme": Access(Peer(project="acme"), b"t0ken")}
        rules = HostRules(intercept=frozenset({"localhost"}))
        world = await start(hosts=rules, is_loopback=False, access=access, connect_to={})
        connection = await world.raw()
        await connection.connect(f"localhost:{world.provider.port}", credentials("acme", "t0ken"))
        await connection.tls(world.ca, "localhost")
        reply = await connection.ask(post(host=f"localhost:{world.provider.port}"))
        assert reply.status == 400
        assert json.loads(reply.body)["error"]["codes"] == ["host.private_address"]
        assert world.provider.connections == 0

    async def test_a_name_that_resolves_to_an_own_port_is_not_dialled(
        self, start: Start, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        async def resolve(address: tuple[str, int]) -> list[str]:
            return ["127.0.0.1"]

        monkeypatch.setattr("gateway.proxy.upstream._resolve", resolve)
        world = await start(hosts=HostRules(unknown="tunnel"))
        _, status = await _connect(world, f"innocent.test:{world.proxy.port}")
        assert status == 502
        await world.use_case.until(lambda: bool(world.use_case.events))
        assert [e.reason_code for e in world.use_case.events] == ["host.own_port"]


class TestCredentials:
    @pytest.mark.parametrize(
        ("header", "status"),
        [
            (b"", 200),
            (credentials("acme"), 200),
            (credentials("acme", "anything"), 200),
            (credentials("acme+alice", "s3cret"), 200),
            (credentials("acme+alice", "wrong"), 407),
            (credentials("acme+bob", "s3cret"), 407),
            (credentials("nobody"), 407),
            (b"Proxy-Authorization: Bearer x\r\n", 407),
            (b"Proxy-Authorization: Basic !!!\r\n", 407),
            (credentials("acme") * 2, 407),
        ],
    )
    async def test_on_a_loopback_listener(self, world: World, header: bytes, status: int) -> None:
        connection = await world.raw()
        if status == 200:
            assert (await connection.connect("api.test:443", header)).status == 200
            return
        with pytest.raises(RefusedError) as refused:
            await connection.connect("api.test:443", header)
        assert refused.value.reply.status == status
        assert "Basic" in (refused.value.reply.header("proxy-authenticate") or "")

    @pytest.mark.parametrize(
        ("header", "status"),
        [(b"", 407), (credentials("acme"), 407), (credentials("acme+alice", "s3cret"), 200)],
    )
    async def test_on_another_listener_only_tokens_count(
        self, start: Start, header: bytes, status: int
    ) -> None:
        world = await start(is_loopback=False)
        _, got = await _connect(world, "api.test:443", header)
        assert got == status

    async def test_the_peer_of_the_connect_is_the_peer_of_its_requests(self, world: World) -> None:
        client = await world.client(extra=credentials("acme+alice", "s3cret"))
        await client.ask(post(headers=credentials("acme")))
        peer = world.use_case.handled[0].peer
        assert (peer.project, peer.principal) == ("acme", "alice")


class TestAgreement:
    @pytest.mark.parametrize(
        "host",
        [
            "other.test",
            "api.test:8443",
            "api.test.evil.test",
            "api.test@other.test",
            "",
            "api.test other.test",
        ],
    )
    async def test_another_host_header_is_refused(self, world: World, host: str) -> None:
        reply = await (await world.client()).ask(post(host=host))
        assert reply.status == 400
        assert (world.use_case.handled, world.provider.connections) == ([], 0)

    @pytest.mark.parametrize("host", ["API.test", "api.test:443", "api.test."])
    async def test_spellings_of_the_same_host_pass(self, world: World, host: str) -> None:
        assert (await (await world.client()).ask(post(host=host))).status == 200

    async def test_two_host_headers_are_refused(self, world: World) -> None:
        reply = await (await world.client()).ask(post(headers=b"Host: other.test\r\n"))
        assert (reply.status, world.provider.connections) == (400, 0)

    async def test_another_tls_name_is_refused_inside_tls(self, world: World) -> None:
        client = await world.client(sni="other.test")
        reply = await client.ask(post(host="api.test"))
        assert reply.status == 400
        assert json.loads(reply.body)["error"]["codes"] == ["destination.mismatch"]
        assert world.provider.connections == 0

    async def test_an_absolute_target_of_another_host_is_refused(self, world: World) -> None:
        client = await world.client()
        reply = await client.ask(b"GET https://other.test/v1 HTTP/1.1\r\nHost: api.test\r\n\r\n")
        assert (reply.status, world.provider.connections) == (400, 0)

    async def test_an_absolute_target_of_the_same_host_leaves_in_origin_form(self, world: World) -> None:
        client = await world.client()
        assert (await client.ask(b"GET https://api.test/v1 HTTP/1.1\r\nHost: api.test\r\n\r\n")).status == 200
        assert world.provider.arrived[0].target == "/v1"

    async def test_another_authority_is_refused_in_http2(self, start: Start) -> None:
        world = await start(alpn=("h2",))
        client = await world.http2()
        reply = await client.finish(await client.begin(authority="other.test"))
        assert (reply.status, world.provider.connections) == (400, 0)

    async def test_a_connect_inside_tls_is_refused(self, world: World) -> None:
        reply = await (await world.client()).ask(
            b"CONNECT other.test:443 HTTP/1.1\r\nHost: other.test\r\n\r\n"
        )
        assert (reply.status, world.provider.connections) == (400, 0)


class TestOtherProtocols:
    @pytest.mark.parametrize("first", [b"\x00\x01binary", b"SSH-2.0-x\r\n", b"EHLO\x00", b"123 456\r\n"])
    async def test_raw_bytes_after_connect_are_not_relayed(self, world: World, first: bytes) -> None:
        connection = await world.raw()
        await connection.connect("api.test:443")
        await connection.send(first)
        assert await connection.closed()
        await world.use_case.until(lambda: bool(world.use_case.events))
        assert world.use_case.events[0].reason_code == "protocol.unsupported"
        assert world.provider.connections == 0

    async def test_raw_bytes_inside_tls_are_not_relayed(self, world: World) -> None:
        client = await world.client()
        await client.send(b"\x00\x01\x02\x03raw")
        assert await client.closed()
        assert world.provider.connections == 0

    async def test_tls_inside_tls_is_not_relayed(self, world: World) -> None:
        client = await world.client()
        hello = ssl.MemoryBIO()
        inner = ssl.create_default_context().wrap_bio(ssl.MemoryBIO(), hello, server_hostname="api.test")
        with pytest.raises(ssl.SSLWantReadError):
            inner.do_handshake()
        await client.send(hello.read())
        assert await client.closed()
        assert world.provider.connections == 0

    async def test_a_websocket_of_no_known_dialect_is_answered_426_in_the_providers_shape(
        self, world: World
    ) -> None:
        client = await world.client()
        upgrade = b"Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: eDp5eDp5eDp5eDp5eDp5eA==\r\n"
        reply = await client.ask(b"GET /v1/messages HTTP/1.1\r\nHost: api.test\r\n" + upgrade + b"\r\n")
        assert reply.status == 426
        assert json.loads(reply.body)["error"]["codes"] == ["websocket.unsupported"]
        assert [(r.transport, f.status) for r, f in world.use_case.rejected] == [("websocket", 426)]
        assert world.provider.connections == 0

    async def test_h2c_is_not_spoken(self, start: Start) -> None:
        world = await start(plain=True)
        connection = await world.raw()
        await connection.send(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n")
        assert (await connection.reply()).status in {0, 400, 403}
        other = await world.raw()
        await other.send(
            post(
                b"{}",
                path="http://api.test/v1",
                headers=b"Upgrade: h2c\r\nHTTP2-Settings: AAMA\r\nConnection: Upgrade, HTTP2-Settings\r\n",
            )
        )
        assert (await other.reply()).status == 200
        assert world.provider.arrived[0].header("upgrade") is None


class TestTunnel:
    async def test_bytes_pass_unread_and_are_counted(self, world: World, pki_ca: Path) -> None:
        connection = await world.raw()
        await connection.connect("tunnel.test:443")
        await connection.tls(pki_ca, "tunnel.test")  # the provider's own certificate
        assert (await connection.ask(post(host="tunnel.test"))).status == 200
        connection.abort()
        await world.use_case.until(lambda: bool(world.use_case.events))
        (event,) = world.use_case.events
        assert (event.action, event.host, event.reason_code) == ("tunnelled", "tunnel.test", "host.tunnelled")
        assert event.bytes_up > 200
        assert event.bytes_down > 200
        assert world.use_case.handled == []


class TestPlainHttp:
    async def test_a_providers_plain_request_is_evaluated_and_loses_the_credentials(
        self, start: Start
    ) -> None:
        world = await start(plain=True)
        connection = await world.raw()
        reply = await connection.ask(
            post(
                b"{}",
                path="http://api.test/v1?x=1",
                headers=credentials("acme") + b"Proxy-Connection: keep-alive\r\n",
            )
        )
        assert reply.status == 200
        (request,) = world.use_case.handled
        assert (request.scheme, request.host, request.port, request.target) == (
            "http",
            "api.test",
            80,
            "/v1?x=1",
        )
        assert request.peer.project == "acme"
        (arrived,) = world.provider.arrived
        assert arrived.target == "/v1?x=1"
        assert (arrived.header("proxy-authorization"), arrived.header("proxy-connection")) == (None, None)
        await world.use_case.until(lambda: bool(world.use_case.attempts))
        assert not world.use_case.attempts[0][1].peer_verified

    async def test_chunked_works_too(self, start: Start) -> None:
        world = await start(plain=True)
        connection = await world.raw()
        reply = await connection.ask(chunked(b"{}").replace(b"/v1/messages", b"http://api.test/v1/messages"))
        assert (reply.status, world.use_case.handled[0].body) == (200, b"{}")

    async def test_a_tunnelled_host_is_passed_unread_and_recorded(self, start: Start) -> None:
        world = await start(plain=True)
        world.proxy._settings.connect_to["tunnel.test", 80] = ("127.0.0.1", world.provider.port)
        connection = await world.raw()
        request = post(b"raw", path="http://tunnel.test/x", host="tunnel.test", headers=credentials("acme"))
        assert (await connection.ask(request)).status == 200
        assert (world.use_case.handled, bytes(world.provider.arrived[0].body)) == ([], b"raw")
        assert world.provider.arrived[0].header("proxy-authorization") is None
        await world.use_case.until(lambda: bool(world.use_case.events))
        assert [(e.action, e.peer.project) for e in world.use_case.events] == [("tunnelled", "acme")]
        await world.provider.stop()
        assert (await (await world.raw()).ask(request)).status == 502

    @pytest.mark.parametrize(
        ("target", "host", "status"),
        [
            ("http://denied.test/", "denied.test", 403),
            ("http://new.test/", "new.test", 403),
            ("http://api.test/", "other.test", 400),
            ("/healthz", "127.0.0.1", 403),
        ],
    )
    async def test_refusals(self, world: World, target: str, host: str, status: int) -> None:
        connection = await world.raw()
        host = f"{host}:{world.proxy.port}" if host == "127.0.0.1" else host
        reply = await connection.ask(f"GET {target} HTTP/1.1\r\nHost: {host}\r\n\r\n".encode())
        assert (reply.status, world.provider.connections) == (status, 0)

    async def test_wrong_credentials_get_407(self, world: World) -> None:
        connection = await world.raw()
        reply = await connection.ask(post(path="http://api.test/", headers=credentials("nobody")))
        assert reply.status == 407
        assert world.use_case.rejected == []

    async def test_plain_http_in_a_connect_is_evaluated(self, start: Start) -> None:
        world = await start(plain=True)
        connection = await world.raw()
        await connection.connect("api.test:80")
        assert (await connection.ask(post())).status == 200
        assert world.use_case.handled[0].scheme == "http"


async def test_a_client_that_does_not_trust_us_is_recorded(world: World, pki_ca: Path) -> None:
    connection = await world.raw()
    await connection.connect("api.test:443")
    with pytest.raises(ssl.SSLError):
        await connection.tls(pki_ca, "api.test")
    await world.use_case.until(lambda: bool(world.use_case.events))
    assert world.use_case.events[0].reason_code == "tls.client_rejected"


async def test_the_hello_may_come_a_byte_at_a_time(world: World) -> None:
    connection = await world.raw()
    await connection.connect("api.test:443")
    hello = ssl.MemoryBIO()
    context = ssl.create_default_context(cafile=str(world.ca))
    incoming = ssl.MemoryBIO()
    tls = context.wrap_bio(incoming, hello, server_hostname="api.test")
    with pytest.raises(ssl.SSLWantReadError):
        tls.do_handshake()
    for byte in hello.read()[:8]:
        await connection.send(bytes([byte]))
        await asyncio.sleep(0.005)
    connection.abort()
    assert world.use_case.events == []
