"""An `https://` proxy: credentials travel in TLS, and TLS in TLS still means one interception."""

from __future__ import annotations

import asyncio
import datetime as dt
import ssl
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from gateway.errors import SetupError
from gateway.proxy.certs import CertificateAuthority
from tests.integration.proxy.conftest import Start
from tests.support import pki
from tests.support.client import RefusedError, credentials, post


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


def _issued(
    folder: Path, name: str, *subject: tuple[x509.ObjectIdentifier, str], issuer: str = "clients"
) -> Path:
    """A client certificate with its key in one file, and `<issuer>.pem` beside it, made once."""
    root, root_key = folder / f"{issuer}.pem", folder / f"{issuer}.key"
    if not root.exists():
        certificate, key = pki._authority(issuer)
        root.write_bytes(certificate.public_bytes(serialization.Encoding.PEM))
        root_key.write_bytes(_pem(key))
    authority = x509.load_pem_x509_certificate(root.read_bytes())
    authority_key = serialization.load_pem_private_key(root_key.read_bytes(), None)
    assert isinstance(authority_key, ec.EllipticCurvePrivateKey)
    key, now = ec.generate_private_key(ec.SECP256R1()), dt.datetime.now(dt.UTC)
    certificate = (
        x509.CertificateBuilder()
        .subject_name(x509.Name([x509.NameAttribute(oid, value) for oid, value in subject]))
        .issuer_name(authority.subject)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - dt.timedelta(hours=1))
        .not_valid_after(now + dt.timedelta(hours=1))
        .add_extension(
            x509.AuthorityKeyIdentifier.from_issuer_public_key(authority_key.public_key()), critical=False
        )
        .add_extension(x509.ExtendedKeyUsage([ExtendedKeyUsageOID.CLIENT_AUTH]), critical=False)
        .sign(authority_key, hashes.SHA256())
    )
    path = folder / f"{name}.pem"
    path.write_bytes(certificate.public_bytes(serialization.Encoding.PEM) + _pem(key))
    return path


def _pem(key: ec.EllipticCurvePrivateKey) -> bytes:
    return key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )


CN, OU = NameOID.COMMON_NAME, NameOID.ORGANIZATIONAL_UNIT_NAME


async def test_a_client_certificate_is_a_principal(
    start: Start, listener: dict[str, Path], tmp_path: Path
) -> None:
    alice = _issued(tmp_path, "alice", (CN, "alice"))
    world = await start(is_loopback=False, client_ca=tmp_path / "clients.pem", **listener)
    connection = await world.raw()
    await connection.tls(world.ca, "127.0.0.1", certificate=alice)
    await connection.connect("api.test:443")
    reply = await _inner_request(connection.reader, connection.writer, world.ca, post(b"{}"))
    assert reply.startswith(b"HTTP/1.1 200")
    peer = world.use_case.handled[0].peer
    assert (peer.project, peer.principal) == ("acme", "alice")


@pytest.mark.parametrize(
    ("subject", "sent", "status"),
    [
        ([(CN, "alice")], credentials("acme"), 200),
        ([(CN, "alice"), (OU, "acme")], b"", 200),
        ([(CN, "alice"), (OU, "acme"), (OU, "Engineering")], b"", 200),
        # A project that is no more: the principal's other projects are not what it was made for.
        ([(CN, "alice"), (OU, "no project of ours")], b"", 407),
        ([(CN, "alice"), (OU, "no project of ours")], credentials("acme"), 407),
        ([(CN, "alice")], credentials("acme+alice", "any"), 200),
        ([(CN, "alice")], credentials("acme+bob", "s3cret"), 407),
        ([(CN, "alice")], credentials("default"), 407),
        ([(CN, "alice"), (OU, "default")], credentials("acme"), 407),
        ([(CN, "mallory")], credentials("acme+alice", "s3cret"), 407),
        ([(CN, "alice"), (CN, "mallory")], b"", 407),
        ([(OU, "acme")], b"", 407),
    ],
)
async def test_what_a_certificate_opens(
    start: Start, listener: dict[str, Path], tmp_path: Path,
    subject: list[tuple[x509.ObjectIdentifier, str]], sent: bytes, status: int,
) -> None:  # fmt: skip
    shown = _issued(tmp_path, "shown", *subject)
    world = await start(is_loopback=False, client_ca=tmp_path / "clients.pem", **listener)
    connection = await world.raw()
    await connection.tls(world.ca, "127.0.0.1", certificate=shown)
    await connection.send(b"CONNECT api.test:443 HTTP/1.1\r\nHost: api.test:443\r\n" + sent + b"\r\n")
    assert (await connection.reply(bodiless=status == 200)).status == status


async def test_a_certificate_of_another_authority_opens_nothing(
    start: Start, listener: dict[str, Path], tmp_path: Path
) -> None:
    _issued(tmp_path, "alice", (CN, "alice"))
    forged = _issued(tmp_path, "forged", (CN, "alice"), issuer="strangers")
    world = await start(is_loopback=False, client_ca=tmp_path / "clients.pem", **listener)
    connection = await world.raw()
    # In TLS 1.3 the client is done before its certificate is looked at: what it says next goes nowhere.
    await connection.tls(world.ca, "127.0.0.1", certificate=forged)
    with pytest.raises((OSError, asyncio.IncompleteReadError, RefusedError)):
        await connection.connect("api.test:443")
    assert world.use_case.handled == []


async def test_without_a_certificate_credentials_still_count(
    start: Start, listener: dict[str, Path], tmp_path: Path
) -> None:
    _issued(tmp_path, "alice", (CN, "alice"))
    world = await start(is_loopback=False, client_ca=tmp_path / "clients.pem", **listener)
    for sent, status in ((credentials("acme+alice", "s3cret"), 200), (b"", 407)):
        connection = await world.raw()
        await connection.tls(world.ca, "127.0.0.1")
        await connection.send(b"CONNECT api.test:443 HTTP/1.1\r\nHost: api.test:443\r\n" + sent + b"\r\n")
        assert (await connection.reply(bodiless=status == 200)).status == status


async def test_roots_that_are_none_are_a_setup_error(
    start: Start, listener: dict[str, Path], tmp_path: Path
) -> None:
    (tmp_path / "x").write_text("no certificate")
    with pytest.raises(SetupError) as raised:
        await start(client_ca=tmp_path / "x", **listener)
    assert raised.value.code == "listen.client_ca"
