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

from gateway.errors import SetupError
from gateway.proxy.certs import CertificateAuthority, Leaf
from gateway.proxy.routes import normalise_host


class Leaves(TlsConfig):
    """mitmproxy's TLS addon with its certificate store replaced; it never touches `~/.mitmproxy`.

    Without an authority (not there yet) every handshake fails. `listener` is the certificate of the proxy port itself
    where clients speak TLS to it.
    """

    name = "tlsconfig"

    def __init__(
        self,
        authority: CertificateAuthority | None,
        listener: Leaf | None = None,
        now: Callable[[], dt.datetime] = lambda: dt.datetime.now(dt.UTC),  # noqa: TID251  TLS reads wall time
    ) -> None:
        self.authority = authority
        self._listener = listener
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
        on_listener = len(conn_context.layers) == 2
        if on_listener and self._listener is not None:
            return _entry(self._listener)
        named = conn_context.client.sni or (conn_context.server.address or ("",))[0]
        host = normalise_host(str(named))
        if host is None or self.authority is None:
            raise ValueError("no certificate can be issued")
        return _entry(self.authority.leaf(host, now=self._now()))


def _entry(leaf: Leaf) -> certs.CertStoreEntry:
    certificate = certs.Cert(leaf.certificate)
    return certs.CertStoreEntry(certificate, leaf.key, None, [certificate])


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
