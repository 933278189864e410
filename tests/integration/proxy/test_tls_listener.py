"""An `https://` proxy: credentials travel in TLS, and TLS in TLS still means one interception."""

from __future__ import annotations

import asyncio
import datetime as dt
import ssl
from pathlib import Path

import pytest
from cryptography.hazmat.primitives import serialization

from gateway.errors import SetupError
from gateway.proxy.certs import CertificateAuthority
from tests.integration.proxy.conftest import Start
from tests.support.client import credentials, post


@pytest.fixture
def listener(authority: tuple[CertificateAuthority, Path], tmp_path: Path) -> dict[str, Path]:
    leaf = authority[0].leaf("127.0.0.1", now=dt.datetime.now(dt.UTC))
    cert, key = tmp_path / "listener.pem", tmp_path / "listener.key"
    cert.write_bytes(leaf.certificate.public_bytes(serialization.Encoding.PEM))
    key.write_bytes(
        leaf.key.private_bytes(
            serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
        )
    )
    return {"tls_cert": cert, "tls_key": key}


async def _inner_request(
    outer_reader: asyncio.StreamReader, outer: asyncio.StreamWriter, ca: Path, request: bytes
) -> bytes:
    """TLS inside TLS by hand: asyncio cannot start it twice on one transport."""
    incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
    tls = ssl.create_default_context(cafile=str(ca)).wrap_bio(incoming, outgoing, server_hostname="api.test")

    async def turn(step):  # type: ignore[no-untyped-def]
        while True:
            try:
                result = step()
            except ssl.SSLWantReadError:
                outer.write(outgoing.read())
                incoming.write(await outer_reader.read(1 << 16))
                continue
            outer.write(outgoing.read())
            return result

    await turn(tls.do_handshake)
    await turn(lambda: tls.write(request))
    reply: bytes = await turn(lambda: tls.read(1 << 16))
    return reply


async def test_requests_through_a_tls_listener(start: Start, listener: dict[str, Path]) -> None:
    world = await start(is_loopback=False, **listener)
    connection = await world.raw()
    await connection.tls(world.ca, "127.0.0.1")
    await connection.connect("api.test:443", credentials("acme+alice", "s3cret"))
    reply = await _inner_request(connection.reader, connection.writer, world.ca, post(b"{}"))
    assert reply.startswith(b"HTTP/1.1 200")
    assert world.use_case.handled[0].peer.principal == "alice"
    assert len(world.provider.arrived) == 1


async def test_plain_text_to_a_tls_listener_is_not_answered(start: Start, listener: dict[str, Path]) -> None:
    world = await start(is_loopback=False, **listener)
    connection = await world.raw()
    await connection.send(b"CONNECT api.test:443 HTTP/1.1\r\nHost: api.test:443\r\n\r\n")
    assert await connection.closed()


async def test_a_listener_certificate_that_is_none_is_a_setup_error(start: Start, tmp_path: Path) -> None:
    (tmp_path / "x").write_text("no certificate")
    with pytest.raises(SetupError) as raised:
        await start(tls_cert=tmp_path / "x", tls_key=tmp_path / "x")
    assert raised.value.code == "listen.tls"
