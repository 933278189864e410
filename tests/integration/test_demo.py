"""`egress demo` and `egress exec` as a user runs them: processes of their own, real TLS, the providers' SDKs."""

import importlib.util
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from gateway.cli.demo import _configuration
from gateway.cli.fake_provider import fake_provider
from gateway.cli.health import is_healthy
from gateway.config import load

EGRESS = [sys.executable, "-P", "-m", "gateway.cli"]
CLEAN = {name: value for name, value in os.environ.items() if not name.lower().endswith("_proxy")}


@pytest.mark.skipif(
    not all(importlib.util.find_spec(sdk) for sdk in ("openai", "anthropic")),
    reason="the SDKs are not installed",
)
@pytest.mark.timeout(180)
def test_the_demonstration_shows_and_checks_every_fact(tmp_path: Path) -> None:
    done = subprocess.run(
        [*EGRESS, "demo", "--dir", str(tmp_path / "demo")],
        env=CLEAN,
        capture_output=True,
        text=True,
        timeout=170,
        check=False,
    )

    assert done.returncode == 0, done.stdout + done.stderr
    assert "18 facts shown, all checked" in done.stdout
    assert "✗" not in done.stdout
    assert done.stdout.count("observed_model_egress") >= 3
    config = load(tmp_path / "demo" / "gateway.toml", {"HOME": str(tmp_path)})
    assert not is_healthy(config), "nothing is left running"


@pytest.mark.timeout(180)
def test_exec_puts_a_command_behind_a_gateway_of_its_own(tmp_path: Path) -> None:
    """The command knows nothing but its environment; its status comes back, and the gateway is gone."""
    script = (
        "import os, ssl, sys, urllib.request as r\n"
        "request = r.Request('https://api.openai.com/v1/chat/completions',"
        ' b\'{"messages":[{"role":"user","content":"hello"}]}\', {\'content-type\': \'application/json\'})\n'
        "answer = r.urlopen(request, context=ssl.create_default_context(cafile=os.environ['SSL_CERT_FILE']))\n"
        "print(answer.headers['x-egress-receipt'], answer.read().decode())\n"
        "sys.exit(42)\n"
    )
    with fake_provider(tmp_path) as provider:
        path = _configuration(tmp_path, provider)
        done = subprocess.run(
            [*EGRESS, "exec", "--config", str(path), "--", sys.executable, "-c", script],
            env=CLEAN,
            capture_output=True,
            text=True,
            timeout=170,
            check=False,
        )
        listed = subprocess.run(
            [*EGRESS, "receipts", "list", "--json", "--config", str(path)],
            capture_output=True,
            timeout=60,
            check=True,
        )
        config = load(path, {"HOME": str(tmp_path)})

    assert done.returncode == 42, done.stdout + done.stderr
    receipt, _, answer = done.stdout.partition(" ")
    assert "I received: hello" in answer
    (row,) = [json.loads(line) for line in listed.stdout.splitlines()]
    assert (row["digest"], row["effect"]) == (receipt, "forwarded")
    assert provider.received[0].body == b'{"messages":[{"role":"user","content":"hello"}]}'
    assert not is_healthy(config)
