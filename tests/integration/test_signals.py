"""A gateway of its own process and its signals: SIGHUP loads the policy anew, SIGUSR1 stops everything."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

from tests.integration.test_operation import rule
from tests.integration.test_review import layer
from tests.support.waiting import await_


def free_port() -> int:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return int(listener.getsockname()[1])


def until(holds: Callable[[], bool], process: subprocess.Popen[bytes]) -> None:
    await_(holds, seconds=90, alive=lambda: process.poll() is None)


def test_signals_reload_and_stop(tmp_path: Path) -> None:
    folder, log = layer(tmp_path, rule("aaa")), tmp_path / "log"
    (tmp_path / "gateway.toml").write_text(
        f'[listen]\nproxy = "127.0.0.1:{free_port()}"\ncontrol = "127.0.0.1:{free_port()}"\n'
        f'[state]\ndir = "{tmp_path / "state"}"\n'
        f'[policy]\npoll_s = 0\nbundles = ["policies/default", "{folder}"]\n'
    )
    command = [sys.executable, "-m", "gateway.cli", "up", "--config", str(tmp_path / "gateway.toml")]

    def events() -> list[str]:
        return [json.loads(line)["event"] for line in log.read_text().splitlines() if line.startswith("{")]

    with log.open("wb") as output:
        process = subprocess.Popen(
            command, stdout=output, stderr=output, env={**os.environ, "HOME": str(tmp_path)}
        )
    try:
        until(lambda: "ready" in events(), process)
        layer(tmp_path, rule("bbb"))
        process.send_signal(signal.SIGHUP)
        until(lambda: "policy_reloaded" in events(), process)
        layer(tmp_path, "broken")
        process.send_signal(signal.SIGHUP)
        until(lambda: "policy_reload_failed" in events(), process)
        process.send_signal(signal.SIGUSR1)
        until((tmp_path / "state" / "kill").exists, process)
        process.send_signal(signal.SIGTERM)
        assert process.wait(60) == 0
    finally:
        if process.poll() is None:
            process.kill()
            process.wait()
