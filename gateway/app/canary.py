"""The canary of `egress doctor`: a key made up for the occasion, sent through the running gateway to this process.

What the gateway sends on arrives here, over a TLS connection that it verified, and nowhere else: the name can be
nobody's and is dialled on this machine (gateway.proxy.canary). So the whole way is seen, and nothing can get out.
"""

from __future__ import annotations

import datetime as dt
import ipaddress
import json
import secrets
import ssl
import tempfile
import threading
import time
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Final, override

from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import (
    Encoding,
    NoEncryption,
    PrivateFormat,
    load_pem_private_key,
)
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from gateway.config import Config
from gateway.detect.checksums import BASE62
from gateway.errors import SetupError, words_of
from gateway.files import private_folder, replace_file
from gateway.proxy.authority import BACKDATE, key_usage
from gateway.proxy.canary import FILE, HOST, OPEN_S

KEY_FILE: Final = "canary.key"  # in the key folder: a root that can vouch for HOST alone, and its key
_ROOT_DAYS: Final = 3650
MODEL: Final = "egress-canary"
_EVERY_ADDRESS: Final = ("0.0.0.0/0", "::/0")


def canary_root(config: Config) -> list[bytes]:
    """The root that the upstream side trusts for the canary's name, in PEM; none where it cannot be made.

    Name constraints (RFC 5280 4.2.1.10), which are critical, let it vouch for that name alone. A gateway works without
    it: only the canary then does not.
    """
    path = config.state.keys_dir / KEY_FILE
    try:
        if not path.exists():
            private_folder(path.parent)
            replace_file(path, (_new_root(),))
        certificate = x509.load_pem_x509_certificate(path.read_bytes())
    except (OSError, ValueError):
        return []
    return [certificate.public_bytes(Encoding.PEM)]


def _new_root() -> bytes:
    key, now = ec.generate_private_key(ec.SECP256R1()), _now()
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "Model Egress Gateway canary")])
    nowhere = [x509.IPAddress(ipaddress.ip_network(each)) for each in _EVERY_ADDRESS]
    root = (
        x509.CertificateBuilder(name, name, key.public_key(), x509.random_serial_number())
        .not_valid_before(now - BACKDATE)
        .not_valid_after(now + dt.timedelta(days=_ROOT_DAYS))
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .add_extension(key_usage(signs=True), critical=True)
        .add_extension(x509.NameConstraints([x509.DNSName(HOST)], nowhere), critical=True)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
        .sign(key, hashes.SHA256())
    )
    private = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
    return private + root.public_bytes(Encoding.PEM)


def issue(root: bytes, name: x509.GeneralName) -> bytes:
    """A key and a certificate for an hour (PEM), signed by a root with its key in one file (PEM)."""
    signer = load_pem_private_key(root, None)
    if not isinstance(signer, ec.EllipticCurvePrivateKey):
        raise TypeError("the canary's root has no key of its kind")
    issuer, key, now = x509.load_pem_x509_certificate(root), ec.generate_private_key(ec.SECP256R1()), _now()
    leaf = (
        x509.CertificateBuilder(issuer.subject, x509.Name([]), key.public_key(), x509.random_serial_number())
        .not_valid_before(now - BACKDATE)
        .not_valid_after(now + dt.timedelta(hours=1))
        .add_extension(x509.SubjectAlternativeName([name]), critical=True)
        .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
        .add_extension(x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH]), critical=False)
        .add_extension(key_usage(signs=False), critical=True)
        .add_extension(
            x509.AuthorityKeyIdentifier.from_issuer_public_key(signer.public_key()), critical=False
        )
        .sign(signer, hashes.SHA256())
    )
    private = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
    return private + leaf.public_bytes(Encoding.PEM)


def new_canary() -> str:
    """A value in the form of a GitHub token whose check sum is right, which opens nothing."""
    body = "".join(secrets.choice(BASE62) for _ in range(30))
    number, tail = zlib.crc32(body.encode()), ""
    while number:
        number, rest = divmod(number, 62)
        tail = BASE62[rest] + tail
    return f"ghp_{body}{tail.rjust(6, '0')}"


@dataclass(slots=True)
class Sink:
    """Where the canary's requests end: what came, as it came."""

    arrived: list[bytes] = field(default_factory=list)

    def answer(self, body: bytes) -> bytes:
        """An answer of the Messages API that says what the request said."""
        self.arrived.append(body)
        try:
            said = json.loads(body)["messages"][0]["content"]
        except (ValueError, KeyError, IndexError, TypeError):
            said = ""
        document = {
            "id": "msg_canary",
            "type": "message",
            "role": "assistant",
            "model": MODEL,
            "content": [{"type": "text", "text": said}],
            "stop_reason": "end_turn",
            "stop_sequence": None,
            "usage": {"input_tokens": 1, "output_tokens": 1},
        }
        return json.dumps(document).encode()


@contextmanager
def opened(config: Config) -> Iterator[Sink]:
    """Inside, the running gateway sends what is for the canary's name to the sink that this gives.

    Raises:
        SetupError: the root is not there (start the gateway once), or the state folder cannot be written.
    """
    sink = Sink()
    try:
        context = _context(config)
        server = _Server(("127.0.0.1", 0), _handler(sink))
    except (OSError, ValueError, TypeError) as error:
        raise SetupError(
            "canary.unusable",
            f"the canary cannot be waited for ({words_of(error)})",
            hint="run it as the user of the gateway, after the gateway was started once",
        ) from None
    server.socket = context.wrap_socket(server.socket, server_side=True, do_handshake_on_connect=False)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True)
    thread.start()
    path = config.state.dir / FILE
    try:
        document = {"port": server.server_address[1], "until": time.time() + OPEN_S}
        replace_file(path, (json.dumps(document).encode(),))
        yield sink
    except OSError as error:
        raise SetupError("canary.unusable", f"{path} cannot be written ({error.strerror})") from None
    finally:
        path.unlink(missing_ok=True)
        server.shutdown()
        server.server_close()
        thread.join()


def _context(config: Config) -> ssl.SSLContext:
    root = (config.state.keys_dir / KEY_FILE).read_bytes()
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    with tempfile.NamedTemporaryFile(dir=config.state.keys_dir) as pair:  # 0600; ssl reads files alone
        pair.write(issue(root, x509.DNSName(HOST)))
        pair.flush()
        context.load_cert_chain(pair.name)
    return context


class _Server(ThreadingHTTPServer):
    daemon_threads = True

    @override
    def handle_error(self, request: object, client_address: object) -> None:
        """Whoever does not finish a handshake is not ours."""


def _handler(sink: Sink) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        timeout = 20

        def do_POST(self) -> None:
            body = sink.answer(self.rfile.read(int(self.headers.get("content-length", 0))))
            self.send_response(200)
            self.send_header("content-type", "application/json")
            self.send_header("content-length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        @override
        def log_message(self, *_arguments: object) -> None:
            """Nothing is told of requests."""

    return Handler


def _now() -> dt.datetime:
    return dt.datetime.fromtimestamp(time.time(), dt.UTC)
