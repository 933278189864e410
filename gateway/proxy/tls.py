"""TLS towards clients with leaves of our own CA; towards providers as mitmproxy does it, always verified."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import override

from cryptography import x509
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from mitmproxy import certs, http
from mitmproxy.addons.tlsconfig import TlsConfig
from mitmproxy.proxy.context import Context
from mitmproxy.tls import TlsData
from OpenSSL import SSL

from gateway.errors import SetupError
from gateway.proxy.certs import CertificateAuthority, Leaf
from gateway.proxy.routes import normalise_host


class Leaves(TlsConfig):
    """mitmproxy's TLS addon with its certificate store replaced; it never touches `~/.mitmproxy`.

    Without an authority (not there yet) every handshake fails. `listener` is the certificate of the proxy port itself
    where clients speak TLS to it; with `client_ca` they are asked for one there, and one that it did not issue ends
    the handshake.
    """

    name = "tlsconfig"

    def __init__(
        self,
        authority: CertificateAuthority | None,
        listener: Leaf | None = None,
        client_ca: Path | None = None,
        now: Callable[[], dt.datetime] = lambda: dt.datetime.now(dt.UTC),  # noqa: TID251  TLS reads wall time
    ) -> None:
        self.authority = authority
        self._listener = listener
        self._asking = _asks(listener, client_ca) if listener is not None and client_ca is not None else None
        self._now = now
        # All that tls_start_client reads of the store besides get_cert.
        self.certstore = SimpleNamespace(dhparams=None)  # type: ignore[assignment]

    @override
    def configure(self, updated: set[str]) -> None:
        """Nothing to configure: no store to load, and the options are set once by the master."""

    @override
    def request(self, flow: http.HTTPFlow) -> None:
        """No CRL is served inside clients' connections."""

    @override
    def get_cert(self, conn_context: Context) -> certs.CertStoreEntry:
        """The leaf for the name the client asked for, else for the host it connected to."""
        if self._listener is not None and _on_listener(conn_context):
            return _entry(self._listener)
        named = conn_context.client.sni or (conn_context.server.address or ("",))[0]
        host = normalise_host(str(named))
        if host is None or self.authority is None:
            raise ValueError("no certificate can be issued")
        return _entry(self.authority.leaf(host, now=self._now()))

    @override
    def tls_start_client(self, tls_start: TlsData) -> None:
        """As mitmproxy does it; on the proxy port clients are asked for a certificate where there are roots."""
        if self._asking is not None and _on_listener(tls_start.context):
            # No ALPN: a proxy is spoken to in HTTP/1.1.
            tls_start.ssl_conn = SSL.Connection(self._asking)
            tls_start.ssl_conn.set_accept_state()
            return
        super().tls_start_client(tls_start)


def _asks(listener: Leaf, client_ca: Path) -> SSL.Context:
    """A context that asks for a certificate, takes none for an answer, and ends the handshake over a bad one.

    Nothing is resumed: a session that is carried on shows no certificate.
    """
    context = SSL.Context(SSL.TLS_SERVER_METHOD)
    context.set_min_proto_version(SSL.TLS1_2_VERSION)
    context.use_certificate(listener.certificate)
    context.use_privatekey(listener.key)
    context.load_verify_locations(str(client_ca))
    context.set_verify(SSL.VERIFY_PEER, _verified)
    context.set_options(SSL.OP_NO_TICKET)
    context.set_session_cache_mode(SSL.SESS_CACHE_OFF)
    return context


def _verified(_connection: SSL.Connection, _certificate: object, _error: int, _depth: int, good: int) -> bool:
    return bool(good)


def _on_listener(context: Context) -> bool:
    return len(context.layers) == 2


def _entry(leaf: Leaf) -> certs.CertStoreEntry:
    certificate = certs.Cert(leaf.certificate)
    return certs.CertStoreEntry(certificate, leaf.key, None, [certificate])


def check_client_ca(path: Path) -> None:
    """Raise SetupError where no certificate can be read from `listen.client_ca`."""
    try:
        x509.load_pem_x509_certificates(path.read_bytes())
    except (OSError, ValueError) as error:
        raise SetupError(
            "listen.client_ca", "listen.client_ca holds no certificate that can be read"
        ) from error


def load_listener(cert: Path, key: Path) -> Leaf:
    """The certificate of a TLS listener; raises SetupError when it cannot be used."""
    try:
        private = serialization.load_pem_private_key(key.read_bytes(), None)
        certificate = x509.load_pem_x509_certificate(cert.read_bytes())
    except (OSError, ValueError, TypeError) as error:
        raise SetupError("listen.tls", "listen.tls_cert or listen.tls_key cannot be used") from error
    if not isinstance(private, ec.EllipticCurvePrivateKey | rsa.RSAPrivateKey):
        raise SetupError("listen.tls", "listen.tls_key must be an RSA or EC key")
    return Leaf(certificate, private)
