"""`gateway.toml` read anew by a running gateway: host lists bite at once, the rest is named, what is not valid changes nothing."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from gateway.app.reconfigure import LIVE, LiveSettings, changed
from gateway.config import Config, parse
from gateway.proxy.routes import HostRules, decide
from tests.support.client import Connection, RefusedError
from tests.support.fleet import Fleet, fleet
from tests.support.waiting import eventually

HOST = "packages.example.org"


def config(folder: Path, text: str) -> Config:
    from gateway.config import load

    path = folder / "gateway.toml"
    path.write_text('[state]\ndir = "state"\n' + text)
    return load(path, {"HOME": str(folder)})


async def test_host_lists_are_taken_up_and_the_rest_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in [name for name in os.environ if name.startswith("EGRESS_")]:
        monkeypatch.delenv(name)
    used: list[HostRules] = []
    live = LiveSettings(config(tmp_path, ""), used.append)
    assert (await live.reload()).applied == ()
    more = f'[hosts]\nunknown = "tunnel"\ndeny = ["{HOST}"]\nwebsocket = "refuse"\n[limits]\nmax_objects = 7\n[projects.shop]\n'
    config(tmp_path, more)
    done = await live.reload()
    assert set(done.applied) == {"hosts.deny", "hosts.unknown"}
    assert set(done.restart) == {"hosts.websocket", "limits.max_objects", "projects.shop"}
    (rules,) = used
    assert decide(HOST, 443, rules).reason_code == "host.denied"
    assert decide("other.example.org", 443, rules).action == "tunnel"
    again = await live.reload()
    assert (again.applied, again.restart, len(used)) == ((), done.restart, 1)

    (tmp_path / "gateway.toml").write_text("[hosts]\nnonsense = 1\n")
    broken = await live.reload()
    assert (broken.applied, broken.restart, len(used)) == ((), (), 1)
    assert "hosts.nonsense" in broken.problems[0]
    config(tmp_path, "")
    assert set((await live.reload()).applied) == {"hosts.deny", "hosts.unknown"}
    assert decide(HOST, 443, used[-1]).reason_code == "host.unknown"
    (tmp_path / "gateway.toml").unlink()
    assert (await live.reload()).problems


async def test_without_a_file_nothing_is_read(tmp_path: Path) -> None:
    live = LiveSettings(parse({}, tmp_path, {"HOME": str(tmp_path)}), lambda _: pytest.fail("used"))
    assert live.started.source is None
    assert (await live.reload()) == type(await live.reload())()


def test_every_difference_is_seen(tmp_path: Path) -> None:
    base = parse({}, tmp_path, {"HOME": str(tmp_path)})
    assert list(changed(base, base)) == []
    other = replace(base, limits=replace(base.limits, max_depth=5), policy=replace(base.policy, folders=()))
    assert list(changed(base, other)) == ["limits.max_depth"]
    assert all(path.startswith("hosts.") for path in LIVE)


async def answered(running: Fleet, host: str) -> list[int]:
    """The status of a CONNECT on each worker: 200 where a tunnel would be made."""
    found = []
    for number in range(2):
        with running.only(number):
            connection = await Connection.open(running.lives.traffic.port)
            try:
                found.append((await connection.connect(f"{host}:443")).status)
            except RefusedError as error:
                found.append(error.reply.status)
            finally:
                connection.abort()
    return found


async def test_every_worker_takes_a_host_up_by_command_and_by_signal(tmp_path: Path) -> None:
    async with fleet(tmp_path) as running:
        path = running.lives.config
        text = path.read_text()
        before = await answered(running, HOST)
        path.write_text(text + f'[hosts]\ntunnel = ["{HOST}"]\n[limits]\nmax_objects = 7\n')
        command = [sys.executable, "-m", "gateway.cli", "reload", "--config", str(path)]
        done = await asyncio.to_thread(subprocess.run, [*command, "--json"], capture_output=True, check=False)
        said: dict[str, Any] = json.loads(done.stdout)
        tunnelled = await answered(running, HOST)
        path.write_text(text + "[hosts]\nnonsense = 1\n")
        bad = await asyncio.to_thread(subprocess.run, command, capture_output=True, check=False)
        still = await answered(running, HOST)
        path.write_text(text)
        running.process.send_signal(signal.SIGHUP)
        after = await eventually(lambda: answered(running, HOST), lambda said: said == before)

    assert done.returncode == 0, done.stderr
    assert said["settings"] == {"applied": ["hosts.tunnel"], "restart": ["limits.max_objects"]}
    assert (before, after) == ([403, 403], [403, 403])
    assert 403 not in tunnelled + still
    assert bad.returncode == 2  # the command reads the file, too
    assert b"hosts.nonsense" in bad.stderr
