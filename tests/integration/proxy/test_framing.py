"""How a body is framed never decides whether it is read (traps 2, 3, 7-12, 23, 26)."""

from __future__ import annotations

import asyncio
import gzip
import json

import pytest

from gateway.ports import OutboundRequest
from tests.integration.proxy.conftest import Start, World
from tests.support.client import chunked, post
from tests.support.usecase import RECEIPT, Verdict, admitted


async def test_a_chunked_body_is_joined_and_leaves_with_a_length(world: World) -> None:
    reply = await (await world.client()).ask(chunked(b'{"a":', b'"b"}'))
    assert reply.status == 200
    assert world.use_case.handled[0].body == b'{"a":"b"}'
    (arrived,) = world.provider.arrived
    assert bytes(arrived.body) == b'{"a":"b"}'
    assert arrived.header("content-length") == "9"
    assert arrived.header("transfer-encoding") is None


async def test_a_rewritten_chunked_body_has_one_framing(world: World) -> None:
    async def rewrite(request: OutboundRequest) -> Verdict:
        return admitted(request, b"{}")

    world.use_case.behaviour = rewrite
    await (await world.client()).ask(chunked(b'{"a":', b'"b"}'))
    (arrived,) = world.provider.arrived
    assert (arrived.header("content-length"), arrived.header("transfer-encoding")) == ("2", None)


async def test_chunked_trailers_are_refused_at_once(world: World) -> None:
    client = await world.client()
    reply = await client.ask(chunked(b"{}", trailers=b"X-Secret: v\r\n"))
    assert reply.status == 400
    assert json.loads(reply.body)["error"]["codes"] == ["request.trailers"]
    assert (reply.header("x-egress-receipt"), world.provider.connections) == (RECEIPT, 0)
    assert (await client.ask(post(b"{}"))).status == 200


async def test_two_gzip_members_reach_the_use_case_as_they_are(world: World) -> None:
    body = gzip.compress(b'{"a":1,') + gzip.compress(b'"hidden":"second member"}')
    await (await world.client()).ask(post(body, headers=b"Content-Encoding: gzip\r\n"))
    assert world.use_case.handled[0].body == body
    assert bytes(world.provider.arrived[0].body) == body


async def test_a_bomb_is_never_decoded_here(world: World) -> None:
    body = gzip.compress(b"0" * 50_000_000, 1)
    await (await world.client()).ask(post(body, headers=b"Content-Encoding: gzip\r\n"))
    assert world.use_case.handled[0].body is not None
    assert len(world.use_case.handled[0].body) == len(body)


@pytest.mark.parametrize(
    "framing",
    [
        b"Content-Length: 2\r\nTransfer-Encoding: chunked\r\n",
        b"Content-Length: 2\r\nContent-Length: 3\r\n",
        b"Content-Length: 2\r\nContent-Length: 2\r\n",
        b"Content-Length: +2\r\n",
        b"Transfer-Encoding: gzip\r\n",
        b"Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n",
        b"Transfer-Encoding : chunked\r\n",
    ],
)
async def test_ambiguous_framing_is_refused_in_json(world: World, framing: bytes) -> None:
    client = await world.client()
    await client.send(b"POST /v1/messages HTTP/1.1\r\nHost: api.test\r\n" + framing + b"\r\n{}")
    reply = await client.reply()
    assert reply.status == 400
    assert json.loads(reply.body)["error"]["code"] == "gateway_blocked"
    assert world.use_case.handled == []
    assert world.provider.connections == 0


async def test_a_chunk_that_is_none_is_refused(world: World) -> None:
    client = await world.client()
    await client.send(
        b"POST / HTTP/1.1\r\nHost: api.test\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n{}\r\n0\r\n\r\n"
    )
    reply = await client.reply()
    assert (reply.status, json.loads(reply.body)["error"]["code"]) == (400, "gateway_blocked")
    assert await client.closed()
    assert (world.use_case.handled, world.provider.connections) == ([], 0)


async def test_expect_continue_is_answered_and_the_body_is_judged(world: World) -> None:
    client = await world.client()
    await client.send(post(b"hello", headers=b"Expect: 100-continue\r\n")[:-5])
    assert (await client.reply()).status == 100
    await client.send(b"hello")
    assert (await client.reply()).status == 200
    assert world.use_case.handled[0].body == b"hello"
    assert world.provider.arrived[0].header("expect") is None


async def test_expect_continue_over_the_limit_is_refused_without_the_body(start: Start) -> None:
    world = await start(limits={"max_body_bytes": 1000})
    client = await world.client()
    await client.send(post(b"x" * 2000, headers=b"Expect: 100-continue\r\n")[:-2000])
    assert (await client.reply()).status == 413


async def test_pipelined_requests_are_judged_one_by_one(world: World) -> None:
    client = await world.client()
    await client.send(post(b'{"n":1}') + post(b'{"n":2}'))
    assert [(await client.reply()).status for _ in range(2)] == [200, 200]
    assert [r.body for r in world.use_case.handled] == [b'{"n":1}', b'{"n":2}']


@pytest.mark.parametrize("framing", ["length", "chunked"])
async def test_a_body_over_the_limit_gets_413_in_the_providers_shape(start: Start, framing: str) -> None:
    world = await start(limits={"max_body_bytes": 100_000})
    client = await world.client()
    body = b"x" * 300_000
    sending = asyncio.ensure_future(
        client.send(post(body) if framing == "length" else chunked(*[body[:10_000]] * 30))
    )
    reply = await client.reply()
    await asyncio.wait({sending}, timeout=2)
    assert (reply.status, reply.header("x-egress-receipt")) == (413, RECEIPT)
    assert json.loads(reply.body)["error"]["codes"] == ["body.too_large"]
    assert world.provider.connections == 0
    assert world.use_case.handled == []
    assert [r.status for _, r in world.use_case.rejected] == [413]
    assert world.proxy._addon.load_state.inflight_bytes == 0


async def test_a_body_at_the_limit_passes(start: Start) -> None:
    world = await start(limits={"max_body_bytes": 100_000})
    client = await world.client()
    assert (await client.ask(post(b"x" * 100_000))).status == 200
    assert (await client.ask(chunked(*[b"y" * 10_000] * 10))).status == 200


@pytest.mark.parametrize(
    "junk", [b"\x00\x01\x02 garbage\r\n\r\n", b"GET\r\n\r\n", b"GET / HTTP/9.9\r\nHost: api.test\r\n\r\n"]
)
async def test_bytes_that_are_no_request_end_the_connection(world: World, junk: bytes) -> None:
    client = await world.client()
    await client.send(junk)
    reply = await client.reply()
    assert reply.status in {0, 400}
    assert b"garbage" not in reply.body
    assert await client.closed()
    assert world.provider.connections == 0


async def test_an_endless_head_is_cut(start: Start) -> None:
    world = await start(limits={"max_header_bytes": 8192})
    client = await world.client()
    await client.send(b"GET / HTTP/1.1\r\nHost: api.test\r\n" + b"X: " + b"a" * 20_000)
    assert (await client.reply()).status == 431
    assert await client.closed()


async def test_credentials_of_this_hop_go_no_further(world: World) -> None:
    client = await world.client()
    await client.ask(
        post(
            b"{}",
            headers=b"Proxy-Authorization: Basic eDp5\r\nProxy-Connection: keep-alive\r\nConnection: X-Hop\r\nX-Hop: 1\r\n",
        )
    )
    names = {n.lower() for n, _ in world.provider.arrived[0].headers}
    assert not names & {b"proxy-authorization", b"proxy-connection", b"x-hop", b"connection"}
    assert not {n.lower() for n, _ in world.use_case.handled[0].headers} & {b"proxy-authorization", b"x-hop"}


async def test_a_bodiless_request_stays_without_framing(world: World) -> None:
    client = await world.client()
    reply = await client.ask(b"GET /v1/models?key=abc HTTP/1.1\r\nHost: api.test\r\n\r\n")
    assert reply.status == 200
    assert (
        bytes(world.provider.arrived[0].wire) == b"GET /v1/models?key=abc HTTP/1.1\r\nHost: api.test\r\n\r\n"
    )
    assert world.use_case.handled[0].target == "/v1/models?key=abc"


async def test_keep_alive_reuses_both_connections(world: World) -> None:
    client = await world.client()
    for n in range(3):
        assert (await client.ask(post(b'{"n":%d}' % n))).status == 200
    assert world.provider.connections == 1
    assert len(world.use_case.handled) == 3


class TestHttp2:
    @pytest.mark.parametrize("upstream", ["h2", "http/1.1"])
    async def test_concurrent_streams_are_each_judged(self, start: Start, upstream: str) -> None:
        world = await start(alpn=(upstream,))
        client = await world.http2()
        bodies = [b'{"n":%d}' % n + b" " * 100_000 * (n % 2) for n in range(4)]
        streams = [await client.begin(body) for body in bodies]
        replies = [await client.finish(stream) for stream in streams]
        assert [(r.status, r.complete) for r in replies] == [(200, True)] * 4
        assert sorted(bytes(a.body) for a in world.provider.arrived) == sorted(bodies)
        assert {a.http for a in world.provider.arrived} == {"2" if upstream == "h2" else "1.1"}
        assert all(r.header("x-egress-receipt") == RECEIPT for r in replies)
        await world.use_case.until(lambda: len(world.use_case.endings) == 4)
        assert {a.level for _, a in world.use_case.attempts} == {"answered"}
        assert all(a.body_complete and a.peer_verified for _, a in world.use_case.attempts)

    async def test_trailers_are_refused(self, start: Start) -> None:
        world = await start(alpn=("h2",))
        client = await world.http2()
        reply = await client.finish(await client.begin(b"{}", trailers=[("x-secret", "v")]))
        assert (reply.status, world.provider.connections) == (400, 0)

    async def test_a_body_over_the_limit_gets_413(self, start: Start) -> None:
        world = await start(alpn=("h2",), limits={"max_body_bytes": 100_000})
        client = await world.http2()
        reply = await client.finish(await client.begin(b"x" * 300_000))
        assert (reply.status, reply.header("x-egress-receipt")) == (413, RECEIPT)
        again = await client.finish(await client.begin(b"{}"))
        assert again.status == 200

    async def test_a_rewritten_body_is_what_arrives(self, start: Start) -> None:
        async def rewrite(request: OutboundRequest) -> Verdict:
            return admitted(request, b'{"masked": true}')

        world = await start(alpn=("h2",))
        world.use_case.behaviour = rewrite
        client = await world.http2()
        reply = await client.finish(await client.begin(b"{}", headers=[("content-length", "2")]))
        assert reply.header("x-egress-effect") == "rewritten"
        (arrived,) = world.provider.arrived
        assert bytes(arrived.body) == b'{"masked": true}'
        assert arrived.header("content-length") == "16"
