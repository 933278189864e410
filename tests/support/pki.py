"""Certificates of the fake outside world: a CA that the gateway is told to trust, and one it is not."""

from __future__ import annotations

import datetime as dt
import ipaddress
from dataclasses import dataclass
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID


@dataclass(frozen=True)
class Pki:
    """Files in PEM: `ca` to trust; `leaf` and `rogue` (chain and key in one file) for the same hosts."""

    ca: Path
    leaf: Path
    rogue: Path


def make(folder: Path, *hosts: str) -> Pki:
    """The certificates for `hosts` (names and addresses) in a folder; made once, so that a gateway can start anew there."""
    folder.mkdir(parents=True, exist_ok=True)
    ca, leaf, rogue = folder / "upstream-ca.pem", folder / "leaf.pem", folder / "rogue.pem"
    if all(path.exists() for path in (ca, leaf, rogue)):
        return Pki(ca, leaf, rogue)
    good_cert, good_key = _authority("Fake provider CA")
    bad_cert, bad_key = _authority("Nobody's CA")
    ca.write_bytes(good_cert.public_bytes(serialization.Encoding.PEM))
    leaf.write_bytes(_leaf(good_cert, good_key, hosts))
    rogue.write_bytes(_leaf(bad_cert, bad_key, hosts))
    return Pki(ca, leaf, rogue)


def _authority(name: str) -> tuple[x509.Certificate, ec.EllipticCurvePrivateKey]:
    key = ec.generate_private_key(ec.SECP256R1())
    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
    now = dt.datetime.now(dt.UTC)
    certificate = (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(subject)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - dt.timedelta(hours=1))
        .not_valid_after(now + dt.timedelta(days=30))
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
        .add_extension(
            x509.KeyUsage(False, False, False, False, False, True, True, False, False), critical=True
        )
        .sign(key, hashes.SHA256())
    )
    return certificate, key


def _leaf(ca: x509.Certificate, ca_key: ec.EllipticCurvePrivateKey, hosts: tuple[str, ...]) -> bytes:
    key = ec.generate_private_key(ec.SECP256R1())
    now = dt.datetime.now(dt.UTC)
    certificate = (
        x509.CertificateBuilder()
        .subject_name(x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "fake provider")]))
        .issuer_name(ca.subject)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - dt.timedelta(hours=1))
        .not_valid_after(now + dt.timedelta(days=30))
        .add_extension(x509.SubjectAlternativeName([_name(host) for host in hosts]), critical=False)
        .add_extension(
            x509.AuthorityKeyIdentifier.from_issuer_public_key(ca_key.public_key()), critical=False
        )
        .sign(ca_key, hashes.SHA256())
    )
    private = key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    chain = [
        certificate.public_bytes(serialization.Encoding.PEM),
        ca.public_bytes(serialization.Encoding.PEM),
    ]
    return private + b"".join(chain)


def _name(host: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ipaddress.ip_address(host))
    except ValueError:
        return x509.DNSName(host)
