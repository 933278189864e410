"""The CA and its leaves, read back by a strict verifier."""

from __future__ import annotations

import datetime as dt
import ipaddress
import stat
from pathlib import Path

import certifi
import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509 import verification
from cryptography.x509.oid import ExtendedKeyUsageOID

from gateway.errors import SetupError
from gateway.proxy import certs
from gateway.proxy.certs import CertificateAuthority, combined_bundle

NOW = dt.datetime(2026, 11, 30, 12, tzinfo=dt.UTC)


@pytest.fixture
def ca(tmp_path: Path) -> CertificateAuthority:
    return CertificateAuthority.load_or_create(tmp_path / "keys" / "ca.key", tmp_path / "ca.pem", now=NOW)


def _verify(ca: CertificateAuthority, leaf: x509.Certificate, name: str, when: dt.datetime = NOW) -> None:
    store = verification.Store([ca.certificate])
    subject = _subject(name)
    verification.PolicyBuilder().store(store).time(when).build_server_verifier(subject).verify(leaf, [])


def _subject(name: str) -> x509.DNSName | x509.IPAddress:
    try:
        return x509.IPAddress(ipaddress.ip_address(name))
    except ValueError:
        return x509.DNSName(name)


@pytest.mark.parametrize("host", ["api.test", "127.0.0.1", "::1"])
def test_a_leaf_is_what_strict_clients_accept(ca: CertificateAuthority, host: str) -> None:
    leaf = ca.leaf(host, now=NOW).certificate
    _verify(ca, leaf, host)
    names = leaf.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    assert list(names) == [_subject(host)]
    usage = leaf.extensions.get_extension_for_class(x509.ExtendedKeyUsage).value
    assert list(usage) == [ExtendedKeyUsageOID.SERVER_AUTH]
    assert isinstance(leaf.signature_hash_algorithm, hashes.SHA256)
    assert leaf.not_valid_after_utc - NOW == dt.timedelta(days=certs.LEAF_DAYS)
    with pytest.raises(verification.VerificationError):
        _verify(ca, leaf, "other.test")


def test_the_leaf_key_is_not_the_ca_key(ca: CertificateAuthority) -> None:
    leaf = ca.leaf("api.test", now=NOW)
    assert leaf.certificate.public_key() != ca.certificate.public_key()
    assert leaf.key.public_key() == leaf.certificate.public_key()


def test_another_process_has_another_leaf_key(tmp_path: Path) -> None:
    paths = tmp_path / "ca.key", tmp_path / "ca.pem"
    one, two = (CertificateAuthority.load_or_create(*paths, now=NOW) for _ in range(2))
    assert one.certificate == two.certificate
    assert (
        one.leaf("a.test", now=NOW).certificate.public_key()
        != two.leaf("a.test", now=NOW).certificate.public_key()
    )


def test_the_ca_signs_leaves_only(ca: CertificateAuthority) -> None:
    constraints = ca.certificate.extensions.get_extension_for_class(x509.BasicConstraints)
    assert (constraints.critical, constraints.value.ca, constraints.value.path_length) == (True, True, 0)
    usage = ca.certificate.extensions.get_extension_for_class(x509.KeyUsage).value
    assert (usage.key_cert_sign, usage.digital_signature) == (True, False)
    key = ca.certificate.public_key()
    assert isinstance(key, ec.EllipticCurvePublicKey)
    assert key.curve.name == "secp256r1"


def test_files_and_modes(tmp_path: Path) -> None:
    key, cert = tmp_path / "keys" / "ca.key", tmp_path / "ca.pem"
    ca = CertificateAuthority.load_or_create(key, cert, now=NOW)
    assert stat.S_IMODE(key.stat().st_mode) == 0o600
    assert stat.S_IMODE(key.parent.stat().st_mode) == 0o700
    assert b"PRIVATE" not in cert.read_bytes()
    assert cert.read_bytes() == ca.pem
    cert.unlink()
    again = CertificateAuthority.load_or_create(key, cert, now=NOW)
    assert (again.certificate, cert.read_bytes()) == (ca.certificate, ca.pem)
    assert sorted(p.name for p in tmp_path.rglob("*") if p.is_file()) == ["ca.key", "ca.pem"]


def test_leaves_are_cached_renewed_and_bounded(
    ca: CertificateAuthority, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = ca.leaf("a.test", now=NOW)
    assert ca.leaf("a.test", now=NOW + dt.timedelta(days=5)) is first
    later = NOW + dt.timedelta(days=6, seconds=1)
    renewed = ca.leaf("a.test", now=later)
    assert renewed is not first
    assert renewed.certificate.not_valid_after_utc > later + dt.timedelta(days=6)
    monkeypatch.setattr(certs, "MAX_LEAVES", 2)
    ca.leaf("b.test", now=later)
    ca.leaf("a.test", now=later)
    ca.leaf("c.test", now=later)
    assert ca.leaf("a.test", now=later) is renewed  # the least recently used went


def test_a_leaf_never_outlives_the_ca(ca: CertificateAuthority) -> None:
    late = ca.certificate.not_valid_after_utc - dt.timedelta(days=2)
    assert ca.leaf("a.test", now=late).certificate.not_valid_after_utc == ca.certificate.not_valid_after_utc


def _break_nothing(_: Path) -> None:
    pass


def _expose(key: Path) -> None:
    key.chmod(0o644)


def _garble(key: Path) -> None:
    key.write_bytes(b"-----BEGIN nothing-----\n")


def _swap_key(key: Path) -> None:
    other = ec.generate_private_key(ec.SECP256R1()).private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    pem = key.read_bytes()
    key.write_bytes(other + pem[pem.index(b"-----BEGIN CERT") :])


@pytest.mark.parametrize(
    ("damage", "years", "code"),
    [
        (_expose, 0, "ca.exposed"),
        (_garble, 0, "ca.unreadable"),
        (_swap_key, 0, "ca.unreadable"),
        (_break_nothing, 11, "ca.expired"),
        (_break_nothing, -1, "ca.expired"),
    ],
)
def test_a_ca_that_cannot_be_used_says_so(tmp_path: Path, damage, years: int, code: str) -> None:  # type: ignore[no-untyped-def]
    key, cert = tmp_path / "ca.key", tmp_path / "ca.pem"
    CertificateAuthority.load_or_create(key, cert, now=NOW)
    damage(key)
    with pytest.raises(SetupError) as raised:
        CertificateAuthority.load_or_create(key, cert, now=NOW + dt.timedelta(days=366 * years))
    assert raised.value.code == code


def test_a_bundle_holds_the_public_roots_and_ours(ca: CertificateAuthority, tmp_path: Path) -> None:
    path = combined_bundle(tmp_path / "sub" / "bundle.pem", ca.pem)
    content = path.read_bytes()
    assert content.startswith(Path(certifi.where()).read_bytes().rstrip())
    assert content.endswith(ca.pem)
    before = path.stat().st_mtime_ns
    combined_bundle(path, ca.pem)
    assert path.stat().st_mtime_ns == before


def test_nothing_shows_a_key(ca: CertificateAuthority) -> None:
    assert "PRIVATE" not in repr(ca.leaf("a.test", now=NOW)) + repr(vars(ca).get("certificate"))
    assert repr(ca.leaf("a.test", now=NOW)) == "Leaf(expires 2026-12-07)"
