"""A request through the real proxy: admitted exactly, or not at all."""

from __future__ import annotations

import hashlib

from tests.integration.proxy.conftest import World
from tests.support.client import post
from tests.support.usecase import RECEIPT, admitted, refusing


async def test_an_admitted_request_arrives_byte_identical(world: World) -> None:
    body = b'{"a": 1, "b": [1.0, 1e5]}'
    client = await world.client()
    reply = await client.ask(post(body, headers=b"X-Dup: 1\r\nX-Dup: 2\r\nAccept-Encoding: br\r\n"))
    assert (reply.status, reply.complete) == (200, True)
    (arrived,) = world.provider.arrived
    assert bytes(arrived.wire) == post(body, headers=b"X-Dup: 1\r\nX-Dup: 2\r\nAccept-Encoding: br\r\n")
    assert reply.header("x-egress-receipt") == RECEIPT
    assert reply.header("x-egress-effect") is None
    await world.use_case.until(lambda: len(world.use_case.endings) == 1)
    ((request_id, attempt),) = world.use_case.attempts
    assert request_id == world.use_case.handled[0].request_id == world.use_case.endings[0][0]
    assert attempt.written_digest == "sha256:" + hashlib.sha256(body).hexdigest()
    assert (attempt.level, attempt.body_complete, attempt.http_status) == ("answered", True, 200)
    assert (attempt.peer_verified, attempt.written_bytes, attempt.failure) == (True, len(body), None)
    assert world.use_case.endings[0][1].response_complete
    assert world.use_case.order[-2:] == ["observe", "conclude"]


async def test_a_rewritten_request_has_one_true_length(world: World) -> None:
    async def rewrite(request):  # type: ignore[no-untyped-def]
        return admitted(request, b'{"much": "longer than before"}')

    world.use_case.behaviour = rewrite
    client = await world.client()
    reply = await client.ask(post(b"{}"))
    (arrived,) = world.provider.arrived
    assert bytes(arrived.body) == b'{"much": "longer than before"}'
    assert [v for n, v in arrived.headers if n.lower() == b"content-length"] == [b"30"]
    assert reply.header("x-egress-effect") == "rewritten"


async def test_a_refused_request_sends_nothing_and_keeps_the_connection(world: World) -> None:
    world.use_case.behaviour = refusing("secret.denied")
    client = await world.client()
    for _ in range(2):
        reply = await client.ask(post(b'{"secret": 1}'))
        assert (reply.status, reply.header("x-egress-receipt")) == (400, RECEIPT)
        assert b"gateway_blocked" in reply.body
    assert world.provider.connections == 0
    assert world.use_case.attempts == world.use_case.endings == []
