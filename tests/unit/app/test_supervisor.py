"""The supervisor with a writer alone: what hangs is killed, what dies is replaced, what cannot start says why."""

from __future__ import annotations

import errno
import fcntl
import io
import os
import signal
import socket
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from gateway.app import processes, supervisor
from gateway.app.reconfigure import LiveSettings
from gateway.app.signing import keyring
from gateway.app.supervisor import Fleet, share_of
from gateway.config import Config, parse
from gateway.errors import SetupError
from gateway.store.service import SOCKET
from gateway.telemetry.log import Log
from tests.support.waiting import eventually


@pytest.fixture
def settings(tmp_path: Path) -> Config:
    made = parse({"state": {"dir": str(tmp_path / "state")}}, tmp_path, {"HOME": str(tmp_path)})
    made.state.dir.mkdir(mode=0o700)
    keyring(made)
    return made


@pytest.fixture
async def fleet(settings: Config) -> AsyncIterator[Fleet]:
    with socket.socket() as listener:
        made = Fleet(settings, listener, Log(io.StringIO()), LiveSettings(settings, lambda _hosts: None))
        yield made
        await made.stop()
        await made.stop_writer()


async def replaced(fleet: Fleet, pid: int) -> None:
    await eventually(lambda: fleet.writer is not None and fleet.writer.process.pid != pid)


async def test_a_writer_that_dies_or_hangs_is_replaced(
    fleet: Fleet, settings: Config, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(processes, "HUNG_S", 1.0)
    monkeypatch.setattr(supervisor, "WATCH_S", 0.1)
    await fleet.start_writer()
    assert fleet.writer is not None
    for number in (signal.SIGKILL, signal.SIGSTOP):
        pid = fleet.writer.process.pid
        os.kill(pid, number)
        await replaced(fleet, pid)
    assert fleet.restarts == 2
    assert (settings.state.dir / SOCKET).exists()


async def test_a_process_that_cannot_be_started_now_is_started_later(
    fleet: Fleet, monkeypatch: pytest.MonkeyPatch
) -> None:
    await fleet.start_writer()
    assert fleet.writer is not None
    attempts = []

    async def launch(*given: Any) -> processes.Child:
        attempts.append(given)
        if len(attempts) == 1:
            raise OSError(errno.EMFILE, "too many open files")
        return await processes.launch(*given)

    monkeypatch.setattr(supervisor, "launch", launch)
    pid = fleet.writer.process.pid
    os.kill(pid, signal.SIGKILL)
    await replaced(fleet, pid)
    assert len(attempts) == 2


async def test_what_keeps_a_process_from_its_work_is_told(fleet: Fleet, settings: Config) -> None:
    with (settings.state.dir / "lock").open("a") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        with pytest.raises(SetupError, match="another gateway is running") as caught:
            await fleet.start_writer()
    assert caught.value.code == "state.in_use"


def test_limits_of_the_gateway_are_shared_evenly(settings: Config) -> None:
    with supervisor.bound(settings.listen.proxy.__class__("127.0.0.1", 0)) as listener:
        each, many = share_of(settings, listener, 3), share_of(settings, listener, 64)
        assert each.listen.proxy.port == listener.getsockname()[1]
    assert each.limits.max_connections == 342
    assert each.limits.max_inflight_bytes == settings.limits.max_inflight_bytes // 3
    assert many.limits.max_inflight_bytes == settings.limits.max_body_bytes
