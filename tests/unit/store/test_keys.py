"""The key folder: made once, private, complete, and refused otherwise."""

from __future__ import annotations

import os
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from gateway.errors import SetupError
from gateway.evidence.sign import read_public_key
from gateway.store.keys import Keyring


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    Keyring(tmp_path / "keys").vault_key("acme")
    return tmp_path / "keys"


def refused(folder: Path, *, create: bool = True) -> SetupError:
    with pytest.raises(SetupError) as caught:
        Keyring(folder, create=create).vault_key("acme")
    assert caught.value.hint
    return caught.value


def test_keys_are_made_once_and_stay(folder: Path) -> None:
    one, two = Keyring(folder), Keyring(folder)
    assert one.signing_key().public_key == two.signing_key().public_key
    assert one.signing_key().name == two.signing_key().name
    for derived in ("placeholder_key", "mac_key", "digest_key", "vault_key"):
        first, second = getattr(one, derived)("acme"), getattr(two, derived)("acme")
        assert first == second
        assert len(first) == 32


def test_every_purpose_and_project_has_its_own_key(folder: Path) -> None:
    keys = Keyring(folder)
    made = {
        derive(project)
        for derive in (keys.placeholder_key, keys.mac_key, keys.digest_key, keys.vault_key)
        for project in ("acme", "other", "")
    }
    assert len(made) == 12


def test_two_installations_share_nothing(folder: Path, tmp_path: Path) -> None:
    other = Keyring(tmp_path / "other")
    assert other.placeholder_key("acme") != Keyring(folder).placeholder_key("acme")
    assert other.signing_key().name != Keyring(folder).signing_key().name


def test_files_are_private_and_names_tell_nothing(folder: Path) -> None:
    found = [folder, *folder.rglob("*")]
    assert len(found) == 6
    assert all(stat.S_IMODE(path.stat().st_mode) & 0o077 == 0 for path in found)
    assert not any("acme" in path.name for path in found)


def test_the_public_key_lies_beside_in_its_own_form(folder: Path) -> None:
    text = (folder / "signing.pub").read_text()
    assert read_public_key(text) == Keyring(folder).signing_key().public_key


@pytest.mark.parametrize("name", ["installation.key", "signing.pem", "vault"])
def test_a_missing_key_is_not_made_anew(folder: Path, name: str) -> None:
    path = folder / name
    path.rename(folder.parent / "taken")
    assert refused(folder).code == "keys.missing"
    assert not path.exists()


def test_no_keys_at_all_where_there_should_be_some(tmp_path: Path) -> None:
    assert refused(tmp_path / "none", create=False).code == "keys.missing"


@pytest.mark.parametrize("name", ["", "installation.key", "signing.pem", "vault"])
@pytest.mark.parametrize("mode", [0o740, 0o704])
def test_keys_that_others_can_reach_are_refused(folder: Path, name: str, mode: int) -> None:
    (folder / name).chmod(mode)
    error = refused(folder)
    assert error.code == "keys.open"
    assert "chmod" in error.hint


def test_a_vault_key_that_others_can_reach_is_refused(folder: Path) -> None:
    next((folder / "vault").iterdir()).chmod(0o644)
    assert refused(folder).code == "keys.open"


@pytest.mark.parametrize("name", ["installation.key", "signing.pem"])
@pytest.mark.parametrize("data", [b"", b"junk" * 20])
def test_a_key_that_is_none_is_refused(folder: Path, name: str, data: bytes) -> None:
    (folder / name).write_bytes(data)
    assert refused(folder).code == "keys.unusable"


def test_a_key_of_another_kind_is_refused(folder: Path) -> None:
    from cryptography.hazmat.primitives.asymmetric.ec import SECP256R1, generate_private_key
    from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat

    other = generate_private_key(SECP256R1())
    pem = other.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
    (folder / "signing.pem").write_bytes(pem)
    assert refused(folder).code == "keys.unusable"


def test_a_vault_key_of_another_installation_is_refused(folder: Path) -> None:
    (folder / "installation.key").write_bytes(os.urandom(32))
    (folder / "signing.pub").unlink()
    keys = Keyring(folder)
    path = next((folder / "vault").iterdir())
    path.rename(keys._vault_path("acme"))
    assert refused(folder).code == "keys.unusable"


def test_a_folder_that_cannot_be_made_is_refused(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    assert refused(tmp_path / "file" / "keys").code == "keys.unusable"


def test_forgetting_a_project_leaves_the_others(folder: Path) -> None:
    keys = Keyring(folder)
    acme, other = keys.vault_key("acme"), keys.vault_key("other")
    assert keys.forget("acme") is True
    assert keys.forget("acme") is False
    assert keys.vault_key("acme") != acme
    assert Keyring(folder).vault_key("other") == other


def test_two_processes_that_start_at_once_get_the_same_keys(tmp_path: Path) -> None:
    code = (
        "import sys, pathlib; sys.path.insert(0, '.'); from gateway.store.keys import Keyring\n"
        "k = Keyring(pathlib.Path(sys.argv[1])); print(k.placeholder_key('p').hex(), k.vault_key('p').hex())"
    )
    started = [
        subprocess.Popen([sys.executable, "-c", code, str(tmp_path / "keys")], stdout=subprocess.PIPE)
        for _ in range(3)
    ]
    assert len({process.communicate()[0] for process in started}) == 1


def test_the_next_signing_key_waits_until_it_is_adopted(folder: Path) -> None:
    keys = Keyring(folder)
    old, following = keys.signing_key(), keys.next_signing_key()
    assert following.name == old.name
    assert keys.next_signing_key().public_key == following.public_key != old.public_key
    assert Keyring(folder).signing_key().public_key == old.public_key
    keys.adopt()
    for ring in (keys, Keyring(folder)):
        assert ring.signing_key().public_key == following.public_key
    assert read_public_key((folder / "signing.pub").read_text()) == following.public_key
    with pytest.raises(SetupError):
        keys.adopt()
