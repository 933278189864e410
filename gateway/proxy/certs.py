"""The interception CA and the leaf certificates that clients see.

The CA key signs and does nothing else: leaves have a key of their own, made anew for every process and never written
down, so that a leaf key out of a core dump is worth days and one process. Leaves live for `LEAF_DAYS` and are issued
again before they end. SHA-256 and P-256 throughout: rustls and Go refuse less.
"""

from __future__ import annotations

import datetime as dt
import ipaddress
from collections import OrderedDict
from dataclasses import dataclass
from pathlib import Path
from typing import Self, override

import certifi
from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from cryptography.x509.oid import ExtendedKeyUsageOID

from gateway.errors import SetupError
from gateway.files import replace_file
from gateway.proxy.authority import BACKDATE, NEXT, create_authority, key_usage, load_authority, revoked
from gateway.proxy.former import FILE, Revocations, fingerprint, pem_of

LEAF_DAYS = 7
RENEW_BEFORE = dt.timedelta(days=1)
MAX_LEAVES = 512  # hosts with a cached leaf; the least recently used goes first


@dataclass(frozen=True, slots=True)
class Leaf:
    """A certificate for one host with the key that goes with it."""

    certificate: x509.Certificate
    key: ec.EllipticCurvePrivateKey | rsa.RSAPrivateKey

    @override
    def __repr__(self) -> str:
        return f"Leaf(expires {self.certificate.not_valid_after_utc:%Y-%m-%d})"


class CertificateAuthority:
    """The CA that clients of this installation trust, and the leaves it issued in this process."""

    def __init__(
        self,
        certificate: x509.Certificate,
        key: ec.EllipticCurvePrivateKey,
        revocations: Revocations,
        trusted: bytes,
    ) -> None:
        self.certificate = certificate
        self._trusted = trusted
        self._key = key
        self._name = fingerprint(certificate)
        self._revocations = revocations
        self._leaf_key = ec.generate_private_key(ec.SECP256R1())
        self._leaves: OrderedDict[str, Leaf] = OrderedDict()

    @classmethod
    def load_or_create(cls, key_path: Path, cert_path: Path, *, now: dt.datetime) -> Self:
        """Load the CA, or make it where neither file exists. `key_path` holds key and certificate, mode 0600.

        `cert_path` (what clients trust) is written again whenever it differs; with a rotation prepared it holds
        the next CA's certificate, too. `now` is an aware UTC time.
        Raises SetupError (`ca.unreadable`, `ca.expired`, `ca.exposed`, `ca.revoked`) with what to do.
        """
        revocations = Revocations(key_path.with_name(FILE))
        if not key_path.exists():
            create_authority(key_path, now)
        certificate, key = load_authority(key_path, revocations)
        if not certificate.not_valid_before_utc <= now < certificate.not_valid_after_utc:
            raise SetupError(
                "ca.expired", "the interception CA is not valid now", hint="run `egress ca rotate`"
            )
        following = key_path.with_name(NEXT)
        exported = pem_of(certificate) + (
            pem_of(load_authority(following, revocations)[0]) if following.exists() else b""
        )
        if not cert_path.exists() or cert_path.read_bytes() != exported:
            cert_path.parent.mkdir(parents=True, exist_ok=True)
            replace_file(cert_path, (exported,), mode=0o644)
        return cls(certificate, key, revocations, exported)

    @property
    def revoked(self) -> bool:
        """Whether this CA may not be served any more; also where that cannot be found out."""
        try:
            return self._revocations.include(self._name)
        except SetupError:
            return True

    @property
    def pem(self) -> bytes:
        """What clients must trust: this CA's certificate, and that of the next one where a rotation is prepared."""
        return self._trusted

    def leaf(self, host: str, *, now: dt.datetime) -> Leaf:
        """A certificate whose only name is `host` (normalised name or IP), valid for at least `RENEW_BEFORE`.

        SetupError (`ca.revoked`) once the CA was revoked: what was issued is dropped, and nothing is any more.
        """
        if self.revoked:
            self._leaves.clear()
            raise revoked()
        known = self._leaves.get(host)
        if known is None or known.certificate.not_valid_after_utc - now < RENEW_BEFORE:
            known = self._issue(host, now)
        self._leaves[host] = known
        self._leaves.move_to_end(host)
        while len(self._leaves) > MAX_LEAVES:
            self._leaves.popitem(last=False)
        return known

    def _issue(self, host: str, now: dt.datetime) -> Leaf:
        try:
            name: x509.GeneralName = x509.IPAddress(ipaddress.ip_address(host))
        except ValueError:
            name = x509.DNSName(host)
        public = self._leaf_key.public_key()
        builder = (
            x509.CertificateBuilder()
            .subject_name(
                x509.Name([])
            )  # RFC 6125: the name is the SAN, which is critical for an empty subject
            .issuer_name(self.certificate.subject)
            .public_key(public)
            .serial_number(x509.random_serial_number())
            .not_valid_before(now - BACKDATE)
            .not_valid_after(min(now + dt.timedelta(days=LEAF_DAYS), self.certificate.not_valid_after_utc))
            .add_extension(x509.SubjectAlternativeName([name]), critical=True)
            .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
            .add_extension(x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH]), critical=False)
            .add_extension(key_usage(signs=False), critical=True)
            .add_extension(x509.SubjectKeyIdentifier.from_public_key(public), critical=False)
            .add_extension(
                x509.AuthorityKeyIdentifier.from_issuer_public_key(self._key.public_key()), critical=False
            )
        )
        return Leaf(builder.sign(self._key, hashes.SHA256()), self._leaf_key)


def combined_bundle(path: Path, *extra: bytes) -> Path:
    """Write one PEM file of the public roots and `extra` certificates (PEM), and return its path.

    For clients (public roots and the interception CA: `SSL_CERT_FILE` replaces the whole store) and for the upstream
    side (public roots and `upstream.ca_file`). Nothing is written when the file holds this already.
    """
    content = Path(certifi.where()).read_bytes().rstrip() + b"\n"
    for pem in extra:
        content += b"\n" + pem.strip() + b"\n"
    if not path.exists() or path.read_bytes() != content:
        path.parent.mkdir(parents=True, exist_ok=True)
        replace_file(path, (content,), mode=0o644)
    return path
