"""The interception CA's key file from its making to its end: made, followed by the next one, rotated, revoked.

A key file holds the key and its certificate (PEM, mode 0600), and the certificate alone once the CA was revoked.
"""

from __future__ import annotations

import datetime as dt
from pathlib import Path
from typing import Final

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from gateway.errors import SetupError
from gateway.files import private_folder, replace_file
from gateway.proxy.former import FILE, Revocations, add_former, fingerprint, pem_of

NEXT: Final = "ca-next.key"  # beside the CA's key: the one that takes its place at the next rotation
CA_DAYS: Final = 3650
BACKDATE: Final = dt.timedelta(hours=1)  # clients whose clock is a little late
CA_NAME: Final = "Model Egress Gateway interception CA"


def create_authority(key_path: Path, now: dt.datetime) -> None:
    """Make a CA and write its key with its certificate, in the place of what is there."""
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
        .add_extension(key_usage(signs=True), critical=True)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
        .sign(key, hashes.SHA256())
    )
    private = key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    private_folder(key_path.parent)
    replace_file(key_path, (private, pem_of(certificate)))


def revoked() -> SetupError:
    """What is said of a CA that was revoked."""
    return SetupError(
        "ca.revoked",
        "the interception CA was revoked",
        hint="run `egress ca rotate` for a new one, and give its certificate to the clients",
    )


def certificate_of(key_path: Path) -> x509.Certificate | None:
    """The certificate in a CA's key file, whether its key is still there or not; None without such a file.

    SetupError (`ca.unreadable`) where the file holds none.
    """
    try:
        return x509.load_pem_x509_certificate(key_path.read_bytes())
    except FileNotFoundError:
        return None
    except (OSError, ValueError) as error:
        raise _unreadable() from error


def rotate_authority(key_path: Path, *, now: dt.datetime) -> None:
    """Put the prepared CA, else a new one, in the place of the one in force, whose key is gone then.

    Its certificate is kept as that of a former CA, so that it can be taken out of trust stores.
    """
    try:
        old = certificate_of(key_path)
    except SetupError:
        old = None  # a damaged file is one reason to rotate
    if old is not None:
        add_former(key_path.with_name(FILE), old, now=now, reason=None)
    following = key_path.with_name(NEXT)
    if following.exists():
        load_authority(following, Revocations(key_path.with_name(FILE)))
        following.replace(key_path)
    else:
        create_authority(key_path, now)


def prepare_rotation(key_path: Path, *, now: dt.datetime) -> None:
    """Make the CA that takes over at the next rotation, where there is none yet: clients can be given it before."""
    if not key_path.with_name(NEXT).exists():
        create_authority(key_path.with_name(NEXT), now)


def revoke_authority(key_path: Path, *, now: dt.datetime, reason: str) -> x509.Certificate | None:
    """Mark the CA in force as revoked, then destroy its key; its certificate. None where there is no CA.

    Its certificate stays in the key's place, so that no start makes another CA unasked. A CA that was prepared is
    not touched: `egress ca rotate` puts it in force.
    """
    certificate = certificate_of(key_path)
    if certificate is not None:
        add_former(key_path.with_name(FILE), certificate, now=now, reason=reason)
        replace_file(key_path, (pem_of(certificate),))
    return certificate


def _unreadable() -> SetupError:
    return SetupError(
        "ca.unreadable", "the CA key file cannot be used", hint="restore it, or run `egress ca rotate`"
    )


def load_authority(
    key_path: Path, revocations: Revocations
) -> tuple[x509.Certificate, ec.EllipticCurvePrivateKey]:
    """A CA's certificate and key; SetupError (`ca.exposed`, `ca.unreadable`, `ca.revoked`) where it may not be used."""
    try:
        if key_path.stat().st_mode & 0o077:
            raise SetupError("ca.exposed", "others can read the CA key", hint="chmod 600 the CA key file")
        pem = key_path.read_bytes()
        if revocations.include(fingerprint(x509.load_pem_x509_certificate(pem))):
            raise revoked()
        key = serialization.load_pem_private_key(pem, None)
        certificate = x509.load_pem_x509_certificate(pem)
    except (OSError, ValueError, TypeError) as error:
        raise _unreadable() from error
    if not isinstance(key, ec.EllipticCurvePrivateKey) or certificate.public_key() != key.public_key():
        raise SetupError("ca.unreadable", "the CA key file holds no P-256 key with its certificate")
    return certificate, key


def key_usage(*, signs: bool) -> x509.KeyUsage:
    """What a CA's key (`signs`) or a leaf's may do, as an extension."""
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
