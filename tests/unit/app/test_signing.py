"""The signing key by URI: a file of one's own, a key service behind a plug-in, and every way in which those fail."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
from mitmproxy.net import tls as net_tls

from gateway.app.signing import CheckedSigner, keyring, signer_at
from gateway.app.upkeep import rotate_signing_key
from gateway.config import Config, parse
from gateway.errors import ConfigError, EvidenceError, SetupError
from gateway.evidence.sign import read_public_key, verifies
from gateway.store.audit import verify_store
from tests.support.client import Reply
from tests.support.gateway import gateway

BODY = {"model": "m", "max_tokens": 9, "messages": [{"role": "user", "content": "hello there"}]}

SERVICE = '''
"""A key service: the key never leaves it, and `mode` says how it fails."""
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

mode = ""
asked = []

class Key:
    def __init__(self, place, name):
        self.name = name if mode != "name" else "other"
        self.key = Ed25519PrivateKey.from_private_bytes(place.encode().ljust(32, b"-"))
        raw = self.key.public_key().public_bytes(Encoding.Raw, PublicFormat.Raw)
        self.public_key = raw if mode != "key" else raw[:31]

    def sign(self, message):
        asked.append(message)
        if mode == "down":
            raise TimeoutError("https://user:canary-secret@service")
        made = self.key.sign(message)
        return made if mode != "wrong" else made[::-1]

def build(place, name):
    if mode == "denied":
        raise PermissionError("canary-secret")
    return Key(place, name)
'''


@pytest.fixture
def service(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """An installed distribution that registers the scheme `vaultkms`."""
    site = tmp_path / "site"
    info = site / "vaultkms-1.0.0.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: vaultkms\nVersion: 1.0.0\n")
    (info / "entry_points.txt").write_text("[gateway.signers]\nvaultkms = vaultkms_module:build\n")
    (site / "vaultkms_module.py").write_text(SERVICE)
    monkeypatch.syspath_prepend(str(site))
    monkeypatch.delitem(__import__("sys").modules, "vaultkms_module", raising=False)
    import vaultkms_module  # type: ignore[import-not-found]

    return vaultkms_module


def config_of(folder: Path, **state: str) -> Config:
    return parse({"state": {"dir": str(folder / "state"), **state}}, folder, {})


def pem(path: Path, key: Any = None, mode: int = 0o600) -> Path:
    private = key or Ed25519PrivateKey.generate()
    path.write_bytes(private.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()))
    path.chmod(mode)
    return path


@pytest.mark.parametrize("uri", ["nothing", "file:", ":place", "KMS:x", "kms:a\nb", "k ms:x"])
def test_what_is_no_uri_is_a_problem_of_the_configuration(tmp_path: Path, uri: str) -> None:
    with pytest.raises(ConfigError) as caught:
        config_of(tmp_path, signer=uri)
    assert "state.signer" in str(caught.value)
    assert "nothing" not in str(caught.value)


def test_the_folder_of_keys_is_a_folder(tmp_path: Path) -> None:
    with pytest.raises(ConfigError) as caught:
        config_of(tmp_path, keys="kms:whatever")
    assert "state.keys: must be empty or file:/path" in str(caught.value)
    assert "state.signer" in str(caught.value)


def test_a_scheme_that_nobody_registers_names_those_that_somebody_does(tmp_path: Path, service: Any) -> None:
    keys = keyring(config_of(tmp_path, signer="pkcs11:token=a"))
    with pytest.raises(SetupError) as caught:
        keys.signing_key()
    assert caught.value.code == "keys.scheme"
    assert str(caught.value) == "there is no signer for pkcs11: keys"
    assert "file, vaultkms" in caught.value.hint


def test_a_file_of_ones_own(tmp_path: Path) -> None:
    private = Ed25519PrivateKey.generate()
    pem(tmp_path / "own.pem", private)
    keys = keyring(config_of(tmp_path, signer="file:own.pem"))  # beside the configuration file
    key = keys.signing_key()
    assert key.public_key == private.public_key().public_bytes_raw()
    assert (
        key.name == keyring(config_of(tmp_path)).signing_key().name
        if False
        else key.name.startswith("egress/")
    )
    folder = tmp_path / "state" / "keys"
    assert not (folder / "signing.pem").exists()
    assert read_public_key((folder / "signing.pub").read_text()) == key.public_key


@pytest.mark.parametrize("fault", ["missing", "open", "kind", "text"])
def test_a_file_that_cannot_be_the_key(tmp_path: Path, fault: str) -> None:
    path = tmp_path / "own.pem"
    if fault == "text":
        path.write_text("no key")
        path.chmod(0o600)
    elif fault != "missing":
        pem(
            path,
            X25519PrivateKey.generate() if fault == "kind" else None,
            0o644 if fault == "open" else 0o600,
        )
    with pytest.raises(SetupError) as caught:
        keyring(config_of(tmp_path, signer=f"file:{path}")).signing_key()
    assert caught.value.code == {"missing": "keys.missing", "open": "keys.open"}.get(fault, "keys.unusable")
    assert caught.value.hint


@pytest.mark.parametrize("mode", ["denied", "name", "key"])
def test_a_service_without_such_a_key(tmp_path: Path, service: Any, mode: str) -> None:
    service.mode = mode
    with pytest.raises(SetupError) as caught:
        signer_at("vaultkms:a", "egress/x")
    assert caught.value.code == "keys.unusable"
    assert "canary" not in str(caught.value)


def test_a_signature_is_checked_before_it_is_used(service: Any) -> None:
    signer = signer_at("vaultkms:a", "egress/x")
    assert isinstance(signer, CheckedSigner)
    assert verifies(signer.public_key, signer.sign(b"m"), b"m")
    for mode in ("down", "wrong"):
        service.mode = mode
        with pytest.raises(EvidenceError) as caught:
            signer.sign(b"m")
        assert caught.value.code == "evidence.signer"
        assert "canary" not in str(caught.value)


def test_the_service_is_not_asked_by_commands_that_sign_nothing(tmp_path: Path, service: Any) -> None:
    service.mode = "denied"
    keys = keyring(config_of(tmp_path, signer="vaultkms:a"))
    assert len(keys.digest_key("default")) == 32


async def test_while_the_service_is_down_nothing_leaves(tmp_path: Path, service: Any) -> None:
    async with gateway(
        tmp_path, {"state": {"dir": str(tmp_path / "state"), "signer": "vaultkms:a"}}
    ) as bench:

        async def ask() -> Reply:
            return await bench.send(BODY)

        async def health() -> str:
            return await bench.running.core.egress.store.health()

        assert (await ask()).status == 200
        for mode, words in (("down", "does not sign (TimeoutError)"), ("wrong", "does not hold")):
            service.mode, before = mode, len(bench.arrived)
            reply = await ask()
            assert (reply.status, len(bench.arrived)) == (503, before)
            assert json.loads(reply.body)["error"]["type"]
            assert b"evidence.unavailable" in reply.body
            assert words in await health()
            service.mode = ""
            assert (await ask()).status == 200
            assert await health() == ""
        assert not any(b"canary" in data for data in bench.written().values())
    key = read_public_key((tmp_path / "state" / "keys" / "signing.pub").read_text())
    assert verify_store(tmp_path / "state" / "egress.db", key).ok


async def test_the_log_goes_over_to_a_service_and_back(tmp_path: Path, service: Any) -> None:
    state = {"dir": str(tmp_path / "state")}
    async with gateway(tmp_path, {"state": state}) as bench:
        assert (await bench.send(BODY)).status == 200
    public = tmp_path / "state" / "keys" / "signing.pub"
    known = [public.read_text()]
    config = config_of(tmp_path)
    done = await asyncio.to_thread(rotate_signing_key, config, "vaultkms:a")
    assert public.read_text().strip() == done["new"]
    with pytest.raises(SetupError, match="handed over"):  # the configuration still names the old key
        async with gateway(tmp_path, {"state": state}):
            pass
    again = await asyncio.to_thread(rotate_signing_key, config, "vaultkms:a")  # cut short: asked for again
    assert again["new"] == done["new"]
    async with gateway(tmp_path / "two", {"state": {**state, "signer": "vaultkms:a"}}) as bench:
        bench.state = tmp_path / "state"  # a provider of its own, and the same state
        net_tls.create_proxy_server_context.cache_clear()
        assert (await bench.send(BODY)).status == 200
    known.append(public.read_text())
    outside = config_of(tmp_path, signer="vaultkms:a")
    with pytest.raises(SetupError, match="not one of the key folder"):
        await asyncio.to_thread(rotate_signing_key, outside)
    with pytest.raises(SetupError, match="signs already"):
        await asyncio.to_thread(rotate_signing_key, outside, "vaultkms:a")
    own = pem(tmp_path / "own.pem")
    await asyncio.to_thread(rotate_signing_key, outside, f"file:{own}")
    async with gateway(tmp_path / "three", {"state": {**state, "signer": f"file:{own}"}}) as bench:
        bench.state = tmp_path / "state"
        net_tls.create_proxy_server_context.cache_clear()
        assert (await bench.send(BODY)).status == 200
    known.append(public.read_text())
    assert len(set(known)) == 3
    for text in known:
        report = verify_store(tmp_path / "state" / "egress.db", read_public_key(text))
        assert report.ok
        assert report.not_yet_logged == 0
