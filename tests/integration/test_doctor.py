"""`egress doctor`'s canary through a running gateway: what it finds where all is well, and where something is not."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from cryptography import x509
from cryptography.x509 import DNSName, IPAddress, verification

from gateway.app.canary import KEY_FILE, canary_root, issue, new_canary, opened
from gateway.cli.canary import follow
from gateway.cli.finding import Finding
from gateway.config.values import Address
from gateway.detect.checksums import crc32_base62
from gateway.proxy.canary import FILE, HOST
from tests.integration.test_review import layer
from tests.support.client import Connection, RefusedError
from tests.support.gateway import Bench, gateway
from tests.support.lives import free_ports
from tests.support.parent import Parent
from tests.support.pki import make

QUIET = {"policy": {"poll_s": 0}}
DENIED = (
    '[[rule]]\nid = "no.keys"\nwhy = "w"\nwhen = { category = "secret" }\n'
    'then = { disposition = "deny", reason_codes = ["secret.blocked"] }\n'
)


async def found(bench: Bench, project: str | None = None) -> dict[str, Finding]:
    config = bench.running.core.config
    listen = replace(config.listen, proxy=Address("127.0.0.1", bench.port))
    findings = await asyncio.to_thread(lambda: list(follow(replace(config, listen=listen), project)))
    assert not (bench.state / FILE).exists()
    return {each.name: each for each in findings}


async def test_a_canary_is_followed_all_the_way_and_nothing_gets_out(tmp_path: Path) -> None:
    async with gateway(tmp_path, QUIET) as bench:
        checks = await found(bench)
        (row,) = await bench.rows()
        refused = await bench.send({"model": "m"}, host="api.openai.com")  # the gateway goes on as before

    assert {name: each.ok for name, each in checks.items()} == dict.fromkeys(
        ("interception", "canary", "restoring", "receipt", "written", "evidence"), True
    )
    assert "placeholder" in checks["canary"].says
    assert row["digest"] in checks["receipt"].says
    assert (row["effect"], row["receipt_state"]) == ("rewritten", "observed_model_egress")
    assert len(bench.arrived) == 1  # what was sent afterwards
    assert refused.status == 200


async def test_in_shadow_the_canary_passes_and_is_told(tmp_path: Path) -> None:
    async with gateway(tmp_path, {"policy": {"poll_s": 0, "enforcement": "shadow"}}) as bench:
        checks = await found(bench)
    assert not checks["canary"].ok
    assert "shadow" in checks["canary"].advice


async def test_a_policy_that_refuses_keys_keeps_it_too(tmp_path: Path) -> None:
    document = {"policy": {"bundles": ["policies/default", layer(tmp_path, DENIED)], "poll_s": 0}}
    async with gateway(tmp_path, document) as bench:
        checks = await found(bench)
    assert checks["canary"].ok
    assert "refused" in checks["canary"].says
    assert "secret.blocked" in checks["canary"].says
    assert "restoring" not in checks
    assert all(each.ok for each in checks.values())


async def test_a_kill_switch_is_told(tmp_path: Path) -> None:
    async with gateway(tmp_path, QUIET) as bench:
        (bench.state / "kill").touch()
        checks = await found(bench)
    assert not checks["canary"].ok
    assert checks["canary"].advice == "egress kill off"


async def test_a_gateway_of_another_ca_is_told(tmp_path: Path) -> None:
    async with gateway(tmp_path, QUIET) as bench:
        other = bench.running.core.config.upstream.ca_file
        assert other is not None
        (bench.state / "ca.pem").write_bytes(other.read_bytes())
        checks = await found(bench)
    assert [(each.name, each.ok) for each in checks.values()] == [("interception", False)]
    assert "certificate" in checks["interception"].says


async def test_a_gateway_that_reads_another_state_folder_is_told(tmp_path: Path) -> None:
    async with gateway(tmp_path, QUIET) as bench:
        other = tmp_path / "other"
        (other / "keys").mkdir(parents=True)
        config = bench.running.core.config
        config = replace(
            config,
            state=replace(config.state, dir=other),
            listen=replace(config.listen, proxy=Address("127.0.0.1", bench.port)),
        )
        canary_root(config)
        (other / "ca.pem").write_bytes((bench.state / "ca.pem").read_bytes())
        checks = await asyncio.to_thread(lambda: list(follow(config)))
    assert [(each.name, each.ok) for each in checks] == [("interception", False)]
    assert "another state folder" in checks[0].advice


async def test_a_project_with_a_token_is_named(tmp_path: Path) -> None:
    (tmp_path / "token").write_text("t" * 40)
    document = {**QUIET, "projects": {"default": {"token_file": str(tmp_path / "token")}}}
    async with gateway(tmp_path, document) as bench:
        without, with_it = await found(bench), await found(bench, "default")
    assert "--project" in without["interception"].advice
    assert all(each.ok for each in with_it.values())


async def test_the_canarys_name_is_refused_unless_somebody_waits_there(tmp_path: Path) -> None:
    async with gateway(tmp_path, QUIET) as bench:
        for content in (None, json.dumps({"port": 40000, "until": time.time() - 1})):
            if content is not None:
                (bench.state / FILE).write_text(content)
            connection = await Connection.open(bench.port)
            with pytest.raises(RefusedError) as raised:
                await connection.connect(f"{HOST}:443")
            assert raised.value.reply.status == 403
            await connection.close()


async def test_behind_a_company_proxy_it_is_masked_and_goes_no_further(tmp_path: Path) -> None:
    parent = Parent(refuse=True)
    await parent.start()
    try:
        document = {**QUIET, "upstream": {"proxy": f"http://127.0.0.1:{parent.port}"}}
        async with gateway(tmp_path, document) as bench:
            checks = await found(bench)
            (row,) = await bench.rows()
    finally:
        await parent.stop()
    assert all(each.ok for each in checks.values()), checks
    assert "company" in checks["canary"].says
    assert row["effect"] == "rewritten"
    assert len(parent.asked) == 1
    assert b"ghp_" not in parent.asked[0]


async def test_a_tls_listener_is_gone_through_too(tmp_path: Path) -> None:
    names = make(tmp_path / "listener", "127.0.0.1")
    (tmp_path / "token").write_text("t" * 40)
    document = {
        **QUIET,
        "listen": {"tls_cert": str(names.leaf), "tls_key": str(names.leaf)},
        "projects": {"shop": {"token_file": str(tmp_path / "token")}},
    }
    async with gateway(tmp_path, document) as bench:
        checks = await found(bench, "shop")
    assert all(each.ok for each in checks.values()), checks


async def test_what_answers_without_the_right_certificate_gets_nothing(tmp_path: Path) -> None:
    """Whoever took the port over would have to be vouched for, too."""
    async with gateway(tmp_path, QUIET) as bench:
        root = bench.state / "keys" / KEY_FILE
        right = root.read_bytes()
        (bench.state / "keys" / "other").mkdir()
        config = bench.running.core.config
        other = replace(config, state=replace(config.state, keys=bench.state / "keys" / "other"))
        canary_root(other)
        root.write_bytes((bench.state / "keys" / "other" / KEY_FILE).read_bytes())
        checks = await found(bench)
        root.write_bytes(right)
    assert not checks["canary"].ok
    assert "nothing arrived" in checks["canary"].says


def test_the_canarys_root_vouches_for_nothing_else(tmp_path: Path) -> None:
    class Config:
        class state:  # noqa: N801
            keys_dir = tmp_path / "keys"

    (pem,) = canary_root(Config)  # type: ignore[arg-type]
    root = (tmp_path / "keys" / KEY_FILE).read_bytes()
    assert (tmp_path / "keys" / KEY_FILE).stat().st_mode & 0o777 == 0o600
    assert b"PRIVATE" not in pem
    (tmp_path / "root.pem").write_bytes(pem)

    def accepted(name: x509.GeneralName, leaf: bytes) -> bool:
        path = tmp_path / "leaf.pem"
        path.write_bytes(leaf)
        value = str(name.value)
        flag = "-verify_ip" if isinstance(name, IPAddress) else "-verify_hostname"
        command = ["openssl", "verify", "-CAfile", str(tmp_path / "root.pem"), flag, value, str(path)]
        by_openssl = subprocess.run(command, capture_output=True, check=False).returncode == 0
        builder = verification.PolicyBuilder().store(verification.Store(x509.load_pem_x509_certificates(pem)))
        try:
            builder.build_server_verifier(name).verify(x509.load_pem_x509_certificate(leaf), [])  # type: ignore[arg-type]
        except verification.VerificationError:
            assert not by_openssl
            return False
        return by_openssl

    import ipaddress

    assert accepted(DNSName(HOST), issue(root, DNSName(HOST)))
    for name in ("api.anthropic.com", "egress.invalid", "localhost"):
        assert not accepted(DNSName(name), issue(root, DNSName(name))), name
    for address in ("127.0.0.1", "8.8.8.8", "::1"):
        name = IPAddress(ipaddress.ip_address(address))
        assert not accepted(name, issue(root, name)), address


def test_a_canary_is_a_key_whose_check_sum_is_right() -> None:
    made = {new_canary() for _ in range(50)}
    assert len(made) == 50
    assert all(len(each) == 40 and crc32_base62(each[4:34], each[34:]) for each in made)


def test_waiting_for_it_without_a_gateways_keys_says_what_to_do(tmp_path: Path) -> None:
    from gateway.config import parse
    from gateway.errors import SetupError

    config = parse({"state": {"dir": str(tmp_path / "state")}}, tmp_path, {})
    with pytest.raises(SetupError) as raised, opened(config):
        pass
    assert "started once" in raised.value.hint


def test_the_command_finds_everything_right_behind_a_gateway_of_its_own(tmp_path: Path) -> None:
    proxy, control = free_ports(2)
    (tmp_path / "gateway.toml").write_text(
        f'[state]\ndir = "state"\n[listen]\nproxy = "127.0.0.1:{proxy}"\ncontrol = "127.0.0.1:{control}"\nworkers = 2\n'
    )
    egress = [sys.executable, "-m", "gateway.cli"]
    done = subprocess.run(
        [*egress, "exec", "--", *egress, "doctor", "--json"],
        cwd=tmp_path,
        capture_output=True,
        check=False,
        timeout=120,
    )
    said: dict[str, Any] = json.loads(done.stdout)
    assert (done.returncode, said["ok"]) == (0, True), said
    assert {"interception", "canary", "receipt", "evidence"} <= {each["name"] for each in said["checks"]}
