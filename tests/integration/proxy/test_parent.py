"""Through a company proxy: its credentials, its refusals, and an end-to-end TLS behind it (trap 28)."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from gateway.proxy.settings import ParentProxy
from tests.integration.proxy.conftest import Start
from tests.support.client import credentials, post
from tests.support.parent import Parent
from tests.support.provider import Answer

AUTHORIZATION = "Basic dXNlcjpwYXNz"


@pytest.fixture
async def parent() -> AsyncIterator[Parent]:
    found = Parent(authorization=AUTHORIZATION)
    await found.start()
    yield found
    await found.stop()


def _as_parent(parent: Parent, authorization: str = AUTHORIZATION) -> ParentProxy:
    return ParentProxy("127.0.0.1", parent.port, "http", authorization.encode())


@pytest.mark.parametrize("alpn", ["http/1.1", "h2"])
async def test_requests_go_through_the_parent_to_the_mapped_address(
    start: Start, parent: Parent, alpn: str
) -> None:
    world = await start(parent=_as_parent(parent), alpn=(alpn,))
    if alpn == "h2":
        client = await world.http2(extra=credentials("acme"))
        replies = [await client.finish(await client.begin(b'{"n":%d}' % n)) for n in range(2)]
    else:
        plain = await world.client(extra=credentials("acme"))
        replies = [await plain.ask(post(b'{"n":%d}' % n)) for n in range(2)]
    assert [r.status for r in replies] == [200, 200]
    (asked,) = parent.asked
    assert asked.startswith(f"CONNECT 127.0.0.1:{world.provider.port} HTTP/1.1\r\n".encode())
    assert asked.count(b"Proxy-Authorization") == 1
    await world.use_case.until(lambda: len(world.use_case.endings) == 2)
    for _, attempt in world.use_case.attempts:
        assert attempt.via == f"127.0.0.1:{parent.port}"
        assert (attempt.level, attempt.peer_verified, attempt.body_complete) == ("answered", True, True)
    assert all(a.header("proxy-authorization") is None for a in world.provider.arrived)


async def test_a_parent_that_refuses_is_a_connect_failure(start: Start) -> None:
    refusing = Parent(refuse=True)
    await refusing.start()
    world = await start(parent=_as_parent(refusing))
    reply = await (await world.client()).ask(post())
    await world.use_case.until(lambda: bool(world.use_case.endings))
    ((_, attempt),) = world.use_case.attempts
    assert (reply.status, attempt.failure, attempt.level) == (502, "connect", "not_sent")
    await refusing.stop()


async def test_wrong_credentials_for_the_parent_are_a_connect_failure(start: Start, parent: Parent) -> None:
    world = await start(parent=_as_parent(parent, "Basic eDp5"))
    assert (await (await world.client()).ask(post())).status == 502
    assert world.provider.arrived == []


async def test_a_certificate_behind_the_parent_is_verified(start: Start, parent: Parent) -> None:
    world = await start(parent=_as_parent(parent), rogue=True)
    reply = await (await world.client()).ask(post())
    assert (reply.status, world.provider.arrived) == (502, [])


async def test_a_reset_behind_the_parent_after_the_request(start: Start, parent: Parent) -> None:
    world = await start(parent=_as_parent(parent))
    world.provider.script(Answer(reset="body"))
    reply = await (await world.client()).ask(post())
    await world.use_case.until(lambda: bool(world.use_case.endings))
    ((_, attempt),) = world.use_case.attempts
    assert (reply.status, attempt.failure, attempt.http_status) == (502, "other", None)
    assert attempt.level != "answered"


async def test_tunnels_go_through_the_parent_too(start: Start, parent: Parent, pki_ca: Path) -> None:
    world = await start(parent=_as_parent(parent))
    connection = await world.raw()
    await connection.connect("tunnel.test:443")
    await connection.tls(pki_ca, "tunnel.test")
    assert (await connection.ask(post(host="tunnel.test"))).status == 200
    assert parent.asked[0].startswith(b"CONNECT 127.0.0.1:")
    connection.abort()
    await world.use_case.until(lambda: bool(world.use_case.events))
    assert world.use_case.events[0].bytes_down > 200


async def test_plain_http_reaches_the_parent_in_absolute_form(start: Start, parent: Parent) -> None:
    world = await start(parent=_as_parent(parent))
    connection = await world.raw()
    reply = await connection.ask(
        b"GET http://api.test/v1 HTTP/1.1\r\nHost: api.test\r\n" + credentials("acme") + b"\r\n"
    )
    assert (reply.status, reply.body) == (200, b"ok")
    assert parent.asked[0].startswith(b"GET http://api.test/v1 HTTP/1.1\r\n")
    assert parent.asked[0].count(b"Proxy-Authorization") == 1
    assert AUTHORIZATION.encode() in parent.asked[0]
