"""The CA's key file from its making to its end, and what is remembered of CAs that are not in force any more."""

from __future__ import annotations

import datetime as dt
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.x509 import DNSName, verification

from gateway.errors import SetupError
from gateway.proxy import former
from gateway.proxy.authority import (
    NEXT,
    certificate_of,
    prepare_rotation,
    revoke_authority,
    rotate_authority,
)
from gateway.proxy.certs import CertificateAuthority
from gateway.proxy.former import FILE, Revocations, add_former, fingerprint, read_former

NOW = dt.datetime(2026, 11, 30, 12, tzinfo=dt.UTC)


@pytest.fixture
def key(tmp_path: Path) -> Path:
    path = tmp_path / "keys" / "ca.key"
    load(path)
    return path


def load(key: Path) -> CertificateAuthority:
    return CertificateAuthority.load_or_create(key, key.parent.parent / "ca.pem", now=NOW)


def exported(key: Path) -> list[x509.Certificate]:
    return x509.load_pem_x509_certificates((key.parent.parent / "ca.pem").read_bytes())


def code_of(key: Path) -> str:
    with pytest.raises(SetupError) as raised:
        load(key)
    return raised.value.code


def test_a_revoked_ca_issues_nothing_more_in_a_process_that_has_it_open(key: Path) -> None:
    ca = load(key)
    ca.leaf("a.test", now=NOW)
    assert not ca.revoked
    revoke_authority(key, now=NOW, reason="seen elsewhere")

    assert ca.revoked
    for host in ("a.test", "b.test"):
        with pytest.raises(SetupError) as raised:
            ca.leaf(host, now=NOW)
        assert raised.value.code == "ca.revoked"


def test_a_revoked_ca_is_not_started_with_nor_replaced_unasked_nor_put_back(key: Path) -> None:
    backup = key.read_bytes()
    revoke_authority(key, now=NOW, reason="")
    assert code_of(key) == "ca.revoked"
    assert b"PRIVATE" not in key.read_bytes()
    key.write_bytes(backup)
    assert code_of(key) == "ca.revoked"
    rotate_authority(key, now=NOW)

    assert load(key).certificate != x509.load_pem_x509_certificate(backup)
    (only,) = read_former(key.with_name(FILE))
    assert (only.revoked, only.sha256) == (True, fingerprint(x509.load_pem_x509_certificate(backup)))


def test_a_rotation_that_was_prepared_fails_no_client(key: Path) -> None:
    before = load(key)
    prepare_rotation(key, now=NOW)
    prepare_rotation(key, now=NOW)  # once is enough
    given = exported(load_and_return(key))
    old = load(key).leaf("a.test", now=NOW).certificate
    rotate_authority(key, now=NOW)
    new = load(key).leaf("a.test", now=NOW).certificate

    assert (len(given), given[0]) == (2, before.certificate)
    assert exported(key) == given[1:]
    assert not key.with_name(NEXT).exists()
    store = verification.Store(given)
    builder = verification.PolicyBuilder().store(store).time(NOW)
    for leaf in (old, new):
        builder.build_server_verifier(DNSName("a.test")).verify(leaf, [])
    assert [(f.revoked, f.certificate) for f in read_former(key.with_name(FILE))] == [
        (False, before.certificate)
    ]


def load_and_return(key: Path) -> Path:
    load(key)
    return key


def test_revoking_leaves_a_prepared_ca_to_take_over(key: Path) -> None:
    prepare_rotation(key, now=NOW)
    following = certificate_of(key.with_name(NEXT))
    revoke_authority(key, now=NOW, reason="r")
    assert code_of(key) == "ca.revoked"
    rotate_authority(key, now=NOW)
    assert load(key).certificate == following


def test_what_was_revoked_stays_so_and_what_was_retired_can_be_revoked(tmp_path: Path, key: Path) -> None:
    certificate = load(key).certificate
    path = tmp_path / FILE
    for reason, expected in ((None, False), ("leaked", True), (None, True), ("again", True)):
        add_former(path, certificate, now=NOW, reason=reason)
        (only,) = read_former(path)
        assert only.revoked is expected
    assert (only.reason, only.at) == ("leaked", "2026-11-30T12:00:00Z")
    assert path.stat().st_mode & 0o777 == 0o600


@pytest.mark.parametrize(
    "content",
    [b"", b"{", b"[]", b"{}", b'{"version": 2, "certificates": []}', b'{"version": 1, "certificates": [{}]}', b"\xff",
     b'{"version": 1, "certificates": [{"pem": "x", "sha256": "", "revoked": true, "at": "", "reason": ""}]}'],
)  # fmt: skip
def test_a_list_that_cannot_be_read_is_not_an_empty_one(key: Path, content: bytes) -> None:
    ca = load(key)
    assert not ca.revoked
    key.with_name(FILE).write_bytes(content)

    assert ca.revoked
    assert code_of(key) == "ca.former_unreadable"


def test_the_list_is_read_again_only_when_it_changed(key: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    revocations, path = Revocations(key.with_name(FILE)), key.with_name(FILE)
    certificate = load(key).certificate
    assert not revocations.include(fingerprint(certificate))
    add_former(path, certificate, now=NOW, reason="r")
    assert revocations.include(fingerprint(certificate))
    monkeypatch.setattr(former, "read_former", lambda _path: pytest.fail("was read again"))
    assert revocations.include(fingerprint(certificate))


def test_nothing_to_revoke(tmp_path: Path) -> None:
    assert revoke_authority(tmp_path / "ca.key", now=NOW, reason="") is None
    assert not list(tmp_path.iterdir())


def test_a_damaged_key_file_is_a_reason_to_rotate(key: Path) -> None:
    key.write_bytes(b"nothing")
    assert code_of(key) == "ca.unreadable"
    rotate_authority(key, now=NOW)
    load(key)
    assert key.stat().st_mode & 0o777 == 0o600
