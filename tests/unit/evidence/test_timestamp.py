"""Time stamps against OpenSSL: it answers our requests, and verifies what we kept of its answers."""

from __future__ import annotations

import shutil
import subprocess
import threading
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID
from hypothesis import given, settings
from hypothesis import strategies as st

from gateway.errors import EvidenceError, VerificationError
from gateway.evidence import timestamp
from gateway.evidence.checkpoint import Checkpoint
from gateway.store import anchor
from tests.support.evidence import signer

NOTE = Checkpoint("egress/test", 7, bytes(32)).sign(signer())
CONFIG = """
[tsa]
default_tsa = it
[it]
serial = {0}/serial
signer_digest = sha256
default_policy = 1.2.3.4
digests = sha256
accuracy = secs:1
ess_cert_id_alg = sha256
"""

pytestmark = pytest.mark.skipif(shutil.which("openssl") is None, reason="openssl is not installed")


@pytest.fixture(scope="module", params=["rsa", "ec"])
def authority(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the certificate, key and settings of an authority for `openssl ts`."""
    folder = tmp_path_factory.mktemp("tsa")
    key: Any = (
        rsa.generate_private_key(65537, 2048)
        if request.param == "rsa"
        else ec.generate_private_key(ec.SECP256R1())
    )
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "Test time")])
    now = datetime.now(UTC)
    certificate = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(1)
        .not_valid_before(now - timedelta(days=1))
        .not_valid_after(now + timedelta(days=1))
        .add_extension(x509.ExtendedKeyUsage([ExtendedKeyUsageOID.TIME_STAMPING]), critical=True)
        .sign(key, hashes.SHA256())
    )
    (folder / "cert.pem").write_bytes(certificate.public_bytes(serialization.Encoding.PEM))
    (folder / "key.pem").write_bytes(
        key.private_bytes(
            serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
        )
    )
    (folder / "serial").write_text("01\n")
    (folder / "openssl.cnf").write_text(CONFIG.format(folder))
    return folder


def openssl(*arguments: object) -> str:
    done = subprocess.run(
        ["openssl", "ts", *map(str, arguments)], capture_output=True, text=True, check=False
    )
    return done.stdout + done.stderr


def answer(folder: Path, query: bytes) -> bytes:
    (folder / "query").write_bytes(query)
    files = ("-queryfile", folder / "query", "-signer", folder / "cert.pem", "-inkey", folder / "key.pem")
    said = openssl("-reply", "-config", folder / "openssl.cnf", *files, "-out", folder / "reply")
    assert (folder / "reply").exists(), said
    return (folder / "reply").read_bytes()


@pytest.fixture
def url(authority: Path) -> Iterator[str]:
    """A responder that lets OpenSSL answer."""

    class Responder(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            query = self.rfile.read(int(self.headers["content-length"]))
            assert self.headers["content-type"] in {timestamp.CONTENT_TYPE, "text/plain; charset=utf-8"}
            told = answer(authority, query) if self.path == "/tsa" else b""
            self.send_response(404 if self.path == "/none" else 200)
            self.send_header("content-length", str(len(told)))
            self.end_headers()
            self.wfile.write(told)

        def log_message(self, *arguments: object) -> None:
            del arguments

    server = HTTPServer(("127.0.0.1", 0), Responder)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    thread.join()
    server.server_close()


def test_openssl_reads_what_is_asked(tmp_path: Path) -> None:
    for nonce in (0, 1, 127, 128, 2**63, 2**64 - 1):
        (tmp_path / "query").write_bytes(timestamp.request(NOTE, nonce))
        text = openssl("-query", "-in", tmp_path / "query", "-text")
        assert "Hash Algorithm: sha256" in text
        assert "Certificate required: yes" in text
        assert f"Nonce: 0x{nonce:02X}" in text or f"0x{nonce:016X}" in text or nonce == 0


def test_a_checkpoint_is_stamped_kept_and_verified_by_openssl(
    url: str, authority: Path, tmp_path: Path
) -> None:
    kept, moment = anchor.to_authority(NOTE, f"{url}/tsa", tmp_path / "anchors")
    assert abs(moment - datetime.now(UTC)) < timedelta(minutes=1)
    note = kept.with_suffix(".checkpoint")
    assert note.read_bytes() == NOTE
    trust = ("-CAfile", authority / "cert.pem")
    assert "Verification: OK" in openssl("-verify", "-data", note, "-in", kept, *trust)
    note.write_bytes(NOTE + b" ")
    assert "Verification: FAILED" in openssl("-verify", "-data", note, "-in", kept, *trust)


def test_an_answer_to_something_else_is_refused(authority: Path) -> None:
    given_ = answer(authority, timestamp.request(NOTE, 5))
    timestamp.read_answer(given_, NOTE, 5)
    for data, nonce, code in ((NOTE + b"x", 5, "timestamp.imprint"), (NOTE, 6, "timestamp.nonce")):
        with pytest.raises(VerificationError) as caught:
            timestamp.read_answer(given_, data, nonce)
        assert caught.value.code == code
    refused = answer(
        authority,
        timestamp.request(NOTE, 5).replace(
            b"\x60\x86\x48\x01\x65\x03\x04\x02\x01", b"\x60\x86\x48\x01\x65\x03\x04\x02\x02"
        ),
    )
    with pytest.raises(VerificationError) as caught:
        timestamp.read_answer(refused, NOTE, 5)
    assert caught.value.code == "timestamp.refused"


@pytest.mark.filterwarnings("ignore:.*serial number:Warning")
def test_an_altered_answer_is_refused_and_nothing_else_escapes(authority: Path) -> None:
    whole = answer(authority, timestamp.request(NOTE, 5))
    time = whole.index(datetime.now(UTC).strftime("%Y%m%d").encode())
    with pytest.raises(VerificationError):
        timestamp.read_answer(whole[:time] + b"1" + whole[time + 1 :], NOTE, 5)

    @settings(max_examples=200, deadline=None)
    @given(st.integers(0, len(whole) - 1), st.integers(1, 255))
    def altered(at: int, change: int) -> None:
        try:
            timestamp.read_answer(whole[:at] + bytes([whole[at] ^ change]) + whole[at + 1 :], NOTE, 5)
        except VerificationError:
            return

    altered()


def test_anchors_in_files_and_at_urls(url: str, tmp_path: Path) -> None:
    anchor.to_file(NOTE, tmp_path / "anchors.txt")
    anchor.to_file(NOTE, tmp_path / "anchors.txt")
    assert (tmp_path / "anchors.txt").read_bytes() == (NOTE + b"\n") * 2
    anchor.to_url(NOTE, f"{url}/anchor")
    for bad in (f"{url}/none", "http://127.0.0.1:1/", "ftp://127.0.0.1/"):
        with pytest.raises(EvidenceError):
            anchor.to_url(NOTE, bad)
    with pytest.raises(VerificationError):
        anchor.to_authority(NOTE, f"{url}/anchor", tmp_path / "none")
    assert not (tmp_path / "none").exists()
