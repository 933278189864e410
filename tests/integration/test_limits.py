"""Each limit on what is read, through the whole gateway: over it a refusal in the provider's shape, and nothing leaves."""

from __future__ import annotations

import gzip
import json
from collections.abc import AsyncIterator
from contextlib import suppress

import pytest
import pytest_asyncio
import zstandard

from tests.support.client import Connection, Reply, chunked
from tests.support.gateway import Bench, gateway

pytestmark = pytest.mark.asyncio(loop_scope="module")
HOST = "api.anthropic.com"
LIMITS = {
    "max_body_bytes": 4_000_000,
    "max_decoded_ratio": 20,
    "max_nodes": 1000,
    "max_depth": 20,
    "max_objects": 40,
}


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def bench(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Bench]:
    async with gateway(tmp_path_factory.mktemp("limits"), {"limits": LIMITS}) as running:
        yield running


def say(text: str) -> bytes:
    return json.dumps(
        {"model": "m", "max_tokens": 1, "messages": [{"role": "user", "content": text}]}
    ).encode()


def parts(count: int) -> bytes:
    part = b'--X\r\nContent-Disposition: form-data; name="a"\r\n\r\nb\r\n'
    return part * count + b"--X--\r\n"


JSON, FORM, PLAIN = b"application/json", b"multipart/form-data; boundary=X", b"Content-Encoding: identity\r\n"
GZIP, ZSTD = b"Content-Encoding: gzip\r\n", b"Content-Encoding: zstd\r\n"
DEEP = b'{"a":' * 30 + b"1" + b"}" * 30
MANY = json.dumps({"messages": [{"role": "user", "content": "x"}] * 60}).encode()
WIDE = json.dumps({"messages": [], "metadata": list(range(2000))}).encode()
BOMB = say("a" * 3_500_000)


@pytest.mark.parametrize(
    ("kind", "coding", "body", "status", "code"),
    [
        (JSON, PLAIN, say("a" * 4_100_000), 413, "body.too_large"),
        (JSON, GZIP, gzip.compress(say("a" * 4_100_000)), 413, ""),
        (JSON, GZIP, gzip.compress(BOMB), 413, "encoding.ratio"),
        (JSON, ZSTD, zstandard.compress(BOMB), 413, "encoding.ratio"),
        (JSON, PLAIN, gzip.compress(BOMB), 413, "encoding.ratio"),  # undeclared
        (JSON, PLAIN, DEEP, 400, "body.too_deep"),
        (JSON, PLAIN, WIDE, 400, "body.too_many_nodes"),
        (JSON, PLAIN, MANY, 413, "body.too_many_objects"),
        (FORM, PLAIN, parts(60), 400, "body.too_many_nodes"),
        (JSON, PLAIN, say(DEEP.decode()), 200, ""),  # text that only looks like deep JSON is text
        (JSON, PLAIN, say("a" * 3_500_000), 200, ""),
        (FORM, PLAIN, parts(15), 200, ""),
    ],
)
async def test_over_a_limit_nothing_leaves(
    bench: Bench, kind: bytes, coding: bytes, body: bytes, status: int, code: str
) -> None:
    head = b"POST /v1/messages HTTP/1.1\r\nHost: %s\r\nContent-Type: %s\r\n%s" % (HOST.encode(), kind, coding)
    reply = await ask(bench, head + b"Content-Length: %d\r\n\r\n" % len(body) + body)
    assert (reply.status, len(bench.arrived)) == (status, int(status == 200)), reply.body
    if status != 200:
        told = json.loads(reply.body)
        assert told["type"] == "error"
        assert code in told["error"]["message"]
        assert reply.header("x-should-retry") == "false"


async def test_a_chunked_body_without_an_end_is_stopped_while_it_comes(bench: Bench) -> None:
    reply = await ask(bench, chunked(*[b"a" * 100_000] * 50, host=HOST))
    assert (reply.status, bench.arrived) == (413, [])


async def ask(bench: Bench, request: bytes) -> Reply:
    bench.provider.arrived.clear()
    connection = await Connection.open(bench.port)
    try:
        await connection.connect(f"{HOST}:443")
        await connection.tls(bench.state / "ca.pem", HOST)
        with suppress(ConnectionError):
            await connection.send(request)
        return await connection.reply()
    finally:
        await connection.close()
