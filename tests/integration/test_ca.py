"""A revoked CA in a running gateway, and trust in the CA by the system's own store, asked by programs that read it."""

from __future__ import annotations

import asyncio
import shutil
import subprocess
import sys
from datetime import UTC, datetime
from pathlib import Path

import pytest

from gateway.app.serve import serving
from gateway.config import parse
from gateway.proxy.authority import revoke_authority
from tests.integration.test_environment import namespaces
from tests.integration.test_review import Control
from tests.support.gateway import gateway

ASK = {"model": "claude-x", "max_tokens": 5, "messages": [{"role": "user", "content": "hi"}]}


async def test_a_gateway_whose_ca_was_revoked_opens_no_connection_and_says_so(tmp_path: Path) -> None:
    async with gateway(tmp_path, {"policy": {"poll_s": 0}}) as bench:
        before = await bench.send(ASK)
        ca = (bench.state / "ca.pem").read_bytes()
        revoke_authority(bench.state / "keys" / "ca.key", now=datetime.now(UTC), reason="r")
        with pytest.raises((OSError, asyncio.IncompleteReadError)):
            await bench.send(ASK)
        status, said = await Control(bench)("GET", "/healthz")
        arrived = len(bench.arrived)

    assert (before.status, arrived) == (200, 1)
    assert status == 503
    assert "revoked" in str(said["reason"])
    (tmp_path / "state" / "ca.pem").write_bytes(ca)  # a backup brings nothing back


INSIDE = """
set -e
mount -t tmpfs none /usr/local/share/ca-certificates
cp -a /etc/ssl "$1/ssl"; mount -t tmpfs none /etc/ssl; cp -a "$1/ssl/." /etc/ssl/
cd "$1"; export HOME="$1"
egress="$2 -m gateway.cli"
asked() { curl -sS -o answer --noproxy '' --proxy "http://127.0.0.1:$3" https://api.anthropic.com/v1/messages \\
    -H 'content-type: application/json' -d '{"model":"m","max_tokens":5,"messages":[]}'; }
leaf() { openssl s_client -proxy "127.0.0.1:$3" -connect api.anthropic.com:443 -servername api.anthropic.com \\
    -CApath /etc/ssl/certs -verify_return_error </dev/null >/dev/null 2>&1; }
if asked "$@" || leaf "$@"; then echo "trusted too early or too long"; exit 9; fi
$egress ca install --yes
openssl verify -CApath /etc/ssl/certs state/trust/*.crt
asked "$@"; leaf "$@"
$egress ca install --undo --yes
if asked "$@" || leaf "$@"; then echo "trusted too early or too long"; exit 9; fi
"""


@pytest.mark.skipif(not namespaces(), reason="file systems cannot be mounted here")
@pytest.mark.skipif(
    not all(shutil.which(name) for name in ("curl", "openssl", "update-ca-certificates")),
    reason="needs curl, openssl and Debian's trust store",
)
async def test_programs_that_read_the_systems_store_trust_the_ca_once_it_is_installed(tmp_path: Path) -> None:
    (tmp_path / "gateway.toml").write_text('[state]\ndir = "state"\n[listen]\nproxy = "127.0.0.1:0"\n')
    document = {
        "state": {"dir": "state"},
        "listen": {"proxy": "127.0.0.1:0", "control": "127.0.0.1:0"},
        "upstream": {"connect_to": {"api.anthropic.com:443": "127.0.0.1:9"}},
    }
    async with serving(parse(document, tmp_path, {})) as running:
        command = ["unshare", "-m", "--propagation", "private", "bash", "-c", INSIDE, "inside"]
        process = await asyncio.create_subprocess_exec(
            *(*command, str(tmp_path), sys.executable, str(running.proxy.port)),
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
        )
        said, _ = await process.communicate()

    assert process.returncode == 0, said.decode()
