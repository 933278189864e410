"""The interception CA and the leaf certificates that clients see.

The CA key signs and does nothing else: leaves have a key of their own, made anew for every process and never written
down, so that a leaf key out of a core dump is worth days and one process. Leaves live for `LEAF_DAYS` and are issued
again before they end. SHA-256 and P-256 throughout: rustls and Go refuse less.
"""

from __future__ import annotations

import datetime as dt
import ipaddress
import os
from collections import OrderedDict
from dataclasses import dataclass
from pathlib import Path
from typing import Self, override

import certifi
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from gateway.errors import SetupError

CA_DAYS = 3650
LEAF_DAYS = 7
BACKDATE = dt.timedelta(hours=1)  # clients whose clock is a little late
RENEW_BEFORE = dt.timedelta(days=1)
MAX_LEAVES = 512  # hosts with a cached leaf; the least recently used goes first
CA_NAME = "Model Egress Gateway interception CA"


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

    def __init__(self, certificate: x509.Certificate, key: ec.EllipticCurvePrivateKey) -> None:
        self.certificate = certificate
        self._key = key
        self._leaf_key = ec.generate_private_key(ec.SECP256R1())
        self._leaves: OrderedDict[str, Leaf] = OrderedDict()

    @classmethod
    def load_or_create(cls, key_path: Path, cert_path: Path, *, now: dt.datetime) -> Self:
        """Load the CA, or make it where neither file exists. `key_path` holds key and certificate, mode 0600.

        `cert_path` (what clients trust) is written again whenever it differs. `now` is an aware UTC time.
        Raises SetupError (`ca.unreadable`, `ca.expired`, `ca.exposed`) with what to do.
        """
        if not key_path.exists():
            _create(key_path, now)
        certificate, key = _load(key_path)
        if not certificate.not_valid_before_utc <= now < certificate.not_valid_after_utc:
            raise SetupError(
                "ca.expired", "the interception CA is not valid now", hint="run `egress ca rotate`"
            )
        exported = certificate.public_bytes(serialization.Encoding.PEM)
        if not cert_path.exists() or cert_path.read_bytes() != exported:
            cert_path.parent.mkdir(parents=True, exist_ok=True)
            _replace(cert_path, exported, 0o644)
        return cls(certificate, key)

    @property
    def pem(self) -> bytes:
        """The certificate that clients must trust."""
        return self.certificate.public_bytes(serialization.Encoding.PEM)

    def leaf(self, host: str, *, now: dt.datetime) -> Leaf:
        """A certificate whose only name is `host` (normalised name or IP), valid for at least `RENEW_BEFORE`."""
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
            .add_extension(_key_usage(signs=False), critical=True)
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
        _replace(path, content, 0o644)
    return path


def _create(key_path: Path, now: dt.datetime) -> None:
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name(
        [
            x509.NameAttribute(NameOID.ORGANIZATION_NAME, "Model Egress Gateway"),
            x509.NameAttribute(NameOID.COMMON_NAME, CA_NAME),
        ]
    )
    certificate = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - BACKDATE)
        .not_valid_after(now + dt.timedelta(days=CA_DAYS))
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .add_extension(_key_usage(signs=True), critical=True)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
        .sign(key, hashes.SHA256())
    )
    private = key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    key_path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    _replace(key_path, private + certificate.public_bytes(serialization.Encoding.PEM), 0o600)


def _load(key_path: Path) -> tuple[x509.Certificate, ec.EllipticCurvePrivateKey]:
    try:
        if key_path.stat().st_mode & 0o077:
            raise SetupError("ca.exposed", "others can read the CA key", hint="chmod 600 the CA key file")
        pem = key_path.read_bytes()
        key = serialization.load_pem_private_key(pem, None)
        certificate = x509.load_pem_x509_certificate(pem)
    except (OSError, ValueError, TypeError) as error:
        raise SetupError(
            "ca.unreadable", "the CA key file cannot be used", hint="restore it, or run `egress ca rotate`"
        ) from error
    if not isinstance(key, ec.EllipticCurvePrivateKey) or certificate.public_key() != key.public_key():
        raise SetupError("ca.unreadable", "the CA key file holds no P-256 key with its certificate")
    return certificate, key


def _key_usage(*, signs: bool) -> x509.KeyUsage:
    return x509.KeyUsage(
        digital_signature=not signs,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        key_cert_sign=signs,
        crl_sign=signs,
        encipher_only=False,
        decipher_only=False,
    )


def _replace(path: Path, content: bytes, mode: int) -> None:
    """Write whole or not at all; the file never exists with wider rights than `mode`."""
    draft = path.with_name(f".{path.name}.{os.getpid()}")
    descriptor = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, mode)
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        draft.replace(path)
    finally:
        draft.unlink(missing_ok=True)
