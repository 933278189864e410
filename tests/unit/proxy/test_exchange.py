"""What a socket proves, and what it stops proving."""

from __future__ import annotations

import asyncio
import hashlib
import socket

import pytest

from gateway.ports import Admitted, Peer
from gateway.proxy.exchange import Exchange, Wire, progress


async def _pair() -> tuple[asyncio.StreamWriter, socket.socket]:
    ours, theirs = socket.socketpair()
    listener = socket.create_server(("127.0.0.1", 0))
    theirs.close()
    ours.close()
    client = socket.create_connection(listener.getsockname())
    server, _ = listener.accept()
    listener.close()
    _, writer = await asyncio.open_connection(sock=client)
    return writer, server


async def test_acknowledged_then_held_then_reset() -> None:
    writer, peer = await _pair()
    writer.write(b"x" * 1000)
    await asyncio.sleep(0.05)
    assert progress(writer.transport) == "acknowledged"
    writer.write(b"x" * 30_000_000)
    assert progress(writer.transport) == "maybe"
    peer.close()
    await asyncio.sleep(0.05)
    writer.transport.abort()
    assert progress(writer.transport) == "maybe"  # its buffer is empty now, and that proves nothing
    await asyncio.sleep(0)


def test_no_transport_proves_nothing() -> None:
    assert progress(None) == "maybe"


async def test_a_level_is_never_upgraded_after_the_fact() -> None:
    writer, peer = await _pair()
    wire = Wire()
    wire.begin(lambda: writer.transport, None, verified=True, via="")
    writer.write(b"x" * 30_000_000)
    wire.wrote(b"x")
    wire.end()
    assert wire.level == "maybe"
    writer.transport.abort()
    wire.fail()
    attempt = wire.attempt("other")
    assert (attempt.level, attempt.body_complete, attempt.failure) == ("maybe", False, "other")
    peer.close()
    await asyncio.sleep(0)


async def test_a_proven_level_survives_a_reset() -> None:
    writer, peer = await _pair()
    wire = Wire()
    wire.begin(lambda: writer.transport, None, verified=True, via="")
    writer.write(b"body")
    wire.wrote(b"body")
    wire.end()
    assert wire.level in {"handed_over", "acknowledged"}
    writer.transport.abort()
    wire.fail()
    attempt = wire.attempt("other")
    assert attempt.body_complete
    assert attempt.written_digest == "sha256:" + hashlib.sha256(b"body").hexdigest()
    peer.close()
    await asyncio.sleep(0)


async def test_bytes_that_wait_in_http2_are_not_handed_over() -> None:
    writer, peer = await _pair()
    wire = Wire()
    wire.begin(lambda: writer.transport, lambda: False, verified=True, via="")
    wire.end()
    wire.head(413)
    attempt = wire.attempt(None)
    assert (attempt.level, attempt.http_status, attempt.body_complete) == ("answered", 413, False)
    writer.close()
    peer.close()
    await asyncio.sleep(0)


def test_an_attempt_that_never_began_sent_nothing() -> None:
    attempt = Wire().attempt("connect")
    assert (attempt.level, attempt.written_bytes, attempt.failure) == ("not_sent", 0, "connect")


FROZEN = (b"POST", b"https", b"", "api.test", 443, b"/v1", ((b"host", b"api.test"),))


def _exchange(body: bytes | None = b"body", action: str = "intercept") -> Exchange:
    exchange = Exchange("1", "c", Peer(), "api.test", 443, "/v1", action)
    if body is not None:
        digest = "sha256:" + hashlib.sha256(body).hexdigest()
        exchange.admitted = Admitted(body, (), digest, "", "", "forwarded")
        exchange.frozen = FROZEN
    return exchange


def test_only_the_admitted_request_may_leave() -> None:
    assert _exchange().may_leave(FROZEN, b"body")
    assert _exchange(b"").may_leave(FROZEN, None)
    assert not _exchange().may_leave(FROZEN, b"bodY")
    assert not _exchange(None).may_leave(FROZEN, b"body")


@pytest.mark.parametrize("position", range(len(FROZEN)))
def test_no_part_of_the_head_may_change(position: int) -> None:
    changed = list(FROZEN)
    changed[position] = (
        "x" if isinstance(changed[position], str) else 1 if isinstance(changed[position], int) else ()
    )
    assert not _exchange().may_leave(tuple(changed), b"body")  # type: ignore[arg-type]


def test_a_digest_that_is_not_the_bodys_admits_nothing() -> None:
    exchange = _exchange()
    exchange.admitted = Admitted(b"body", (), "sha256:" + "0" * 64, "", "", "forwarded")
    assert not exchange.may_write(b"body")
