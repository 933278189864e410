"""The world around a running gateway goes wrong: nothing leaves, the reason is told, and it recovers by itself.

A real gateway in a process of its own; full and read-only disks are small file systems in a private mount namespace
(also for root, whom permissions do not hold back), the clock jumps under libfaketime.
"""

from __future__ import annotations

import asyncio
import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tests.support.lives import Forge, Lives, alive, end
from tests.support.waiting import eventually

FAKETIME = Path("/usr/lib/x86_64-linux-gnu/faketime/libfaketimeMT.so.1")


def namespaces() -> bool:
    """Whether file systems can be mounted for a process alone."""
    if shutil.which("unshare") is None or shutil.which("nsenter") is None:
        return False
    probe = [
        "unshare",
        "-m",
        "--propagation",
        "private",
        "mount",
        "-t",
        "tmpfs",
        "-o",
        "size=64k",
        "none",
        "/mnt",
    ]
    return subprocess.run(probe, capture_output=True, check=False).returncode == 0


mounts = pytest.mark.skipif(not namespaces(), reason="file systems cannot be mounted here")


@dataclass
class World:
    lives: Lives
    pid: int
    inside: tuple[str, ...] = ()  # what puts a command into the gateway's mount namespace

    def run(self, *command: str, check: bool = True) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [*self.inside, *command], capture_output=True, text=True, check=check, timeout=60
        )

    def egress(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-m", "gateway.cli", *arguments, "--config", str(self.lives.config)]
        return self.run(*command, check=False)

    def verify(self) -> dict[str, Any]:
        report: dict[str, Any] = json.loads(self.egress("receipts", "verify", "--json").stdout)
        return report

    async def works(self) -> None:
        """A request goes through and the gateway says that it is well."""
        before = len(self.lives.provider.arrived)
        reply = await self.lives.ask()
        assert (reply.status, len(self.lives.provider.arrived)) == (200, before + 1)
        status, text = await self.lives.health()
        assert (status, json.loads(text)["status"]) == (200, "ok")

    async def closed(self, *reasons: str) -> None:
        """Nothing leaves, the client is told, and so is whoever asks for the gateway's health."""
        before = len(self.lives.provider.arrived)
        reply = await self.lives.ask()
        assert (reply.status, len(self.lives.provider.arrived)) == (503, before)
        assert b"evidence.unavailable" in reply.body
        status, text = await self.lives.health()
        assert status == 503
        assert any(reason in text for reason in reasons), text

    async def stays_closed(self, *reasons: str, seconds: float = 2.5) -> None:
        """The same for longer than a good word about the disk is remembered."""
        until = time.monotonic() + seconds
        while time.monotonic() < until:
            await self.closed(*reasons)
            await asyncio.sleep(0.3)

    async def recovers(self) -> None:
        await eventually(self.lives.ask, lambda reply: reply.status == 200)
        await self.works()


@asynccontextmanager
async def world(folder: Path, prefix: tuple[str, ...] = (), **environment: str) -> AsyncIterator[World]:
    lives = await Lives.begin(folder)
    forge = await asyncio.to_thread(Forge, folder, prefix, **environment)
    pid = 0
    try:
        pid = await asyncio.to_thread(forge.fork, lives.config)
        await lives.ready(lambda: alive(pid), 60)
        inside = ("nsenter", "-t", str(pid), "-m", f"--wd={Path.cwd()}") if prefix else ()
        made = World(lives, pid, inside)
        if prefix:  # the client needs the CA, which lies in the other namespace
            lives.traffic.ca = folder / "ca.pem"
            lives.traffic.ca.write_text(made.run("cat", str(folder / "state" / "ca.pem")).stdout)
        yield made
    finally:
        if pid:
            await end(pid, signal.SIGTERM)
        await asyncio.to_thread(forge.close)
        await lives.provider.stop()


def on_small_disk(folder: Path, size: str = "6m") -> tuple[str, ...]:
    state = folder / "state"
    state.mkdir(mode=0o700)
    mount = f'mount -t tmpfs -o size={size},mode=700 tmpfs {state} && exec "$@"'
    return ("unshare", "-m", "--propagation", "private", "sh", "-c", mount, "sh")


@mounts
async def test_a_full_disk(tmp_path: Path) -> None:
    async with world(tmp_path, on_small_disk(tmp_path)) as made:
        await made.works()
        filler = str(tmp_path / "state" / "filler")
        made.run("dd", "if=/dev/zero", f"of={filler}", "bs=4096", check=False)
        await eventually(
            made.lives.ask, lambda reply: reply.status == 503
        )  # what was allocated before is used up first
        await made.closed("the disk is full", "input/output error")
        made.run("rm", filler)
        await made.recovers()
        assert made.verify()["ok"]


@pytest.mark.slow
@mounts
async def test_a_store_that_cannot_be_written_at_the_start(tmp_path: Path) -> None:
    prefix = on_small_disk(tmp_path)
    async with world(tmp_path, prefix) as made:
        await made.works()
        state = str(tmp_path / "state")
        copy = "mount -t tmpfs tmpfs /mnt && cp -a {0}/. /mnt && mount -o remount,ro /mnt && mount --bind /mnt {0}"
        command = [sys.executable, "-m", "gateway.cli", "up", "--config", str(made.lives.config)]
        inner = [
            "unshare",
            "-m",
            "--propagation",
            "private",
            "sh",
            "-c",
            copy.format(state) + ' && exec "$@"',
            "sh",
        ]
        failed = made.run(*inner, *command, check=False)
        assert failed.returncode == 3, failed.stderr
        assert "Read-only file system" in failed.stderr
        assert "Traceback" not in failed.stderr
        await made.works()


STRACE = shutil.which("strace")
FAULTS = {
    # What the kernel answers for the files of the log, and what people read of it.
    "read-only": ("pwrite64,openat,ftruncate", "EROFS", ("Read-only file system", "cannot be opened")),
    "unwritable": ("pwrite64", "EIO", ("input/output error",)),
    "unsynced": ("fdatasync,fsync", "EIO", ("input/output error",)),
    "full": ("pwrite64", "ENOSPC", ("the disk is full",)),
}


@pytest.mark.skipif(STRACE is None, reason="strace is not installed")
@pytest.mark.parametrize(
    "fault", [n if n == "read-only" else pytest.param(n, marks=pytest.mark.slow) for n in FAULTS]
)
async def test_the_log_can_no_longer_be_written_under_a_running_gateway(tmp_path: Path, fault: str) -> None:
    """As when a file system is remounted read-only after a fault: files that were open before answer so, too."""
    calls, error, words = FAULTS[fault]
    async with world(tmp_path) as made:
        await made.works()
        files = [f"-P{made.lives.database}{suffix}" for suffix in ("", "-wal", "-shm")]
        with subprocess.Popen(
            [
                str(STRACE),
                "-f",
                "-qq",
                *files,
                f"-einject={calls}:error={error}",
                "-o",
                "/dev/null",
                "-p",
                str(made.pid),
            ]
        ) as injector:
            await asyncio.sleep(0.5)
            if injector.poll() is not None:
                pytest.skip("processes cannot be traced here")
            await eventually(made.lives.ask, lambda reply: reply.status == 503)
            await made.stays_closed(*words)
            assert made.verify()["ok"]  # reading goes on
            injector.send_signal(signal.SIGINT)
            await asyncio.to_thread(injector.wait, 10)
        await made.recovers()
        assert made.verify()["ok"]


async def test_a_locked_database(tmp_path: Path) -> None:
    async with world(tmp_path) as made:
        await made.works()
        hold = "import sqlite3,sys; c = sqlite3.connect(sys.argv[1]); c.execute('BEGIN IMMEDIATE'); print(1, flush=True); input()"
        with subprocess.Popen(
            [sys.executable, "-c", hold, str(made.lives.database)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
        ) as holder:
            assert holder.stdout is not None
            await asyncio.to_thread(holder.stdout.readline)
            await made.closed("the database is locked")
            holder.communicate(b"\n")
        await made.recovers()
        assert made.verify()["ok"]


@pytest.mark.slow
@pytest.mark.skipif(not FAKETIME.exists(), reason="libfaketime is not installed")
async def test_a_clock_that_jumps_both_ways(tmp_path: Path) -> None:
    offset = tmp_path / "offset"
    offset.write_text("+0s\n")
    fake = {
        "LD_PRELOAD": str(FAKETIME),
        "FAKETIME_TIMESTAMP_FILE": str(offset),
        "FAKETIME_NO_CACHE": "1",
        "FAKETIME_DONT_FAKE_MONOTONIC": "1",
    }
    async with world(tmp_path, **fake) as made:
        await made.works()
        for jump in ("+5h", "-40m", "+0s"):
            offset.write_text(f"{jump}\n")
            await asyncio.sleep(0.1)
            await made.works()
            await asyncio.sleep(1.1)  # a checkpoint is due whatever the clock on the wall says
            assert made.verify() == {**made.verify(), "ok": True, "not_yet_logged": 0}
        listed = [json.loads(line) for line in made.egress("receipts", "list", "--json").stdout.splitlines()]
        times = [row["time"] for row in reversed(listed)]
        assert times != sorted(times), "the clock did not jump"
        assert all(row["receipt_state"] == "observed_model_egress" for row in listed)


WITHOUT_RIGHTS = ("setpriv", "--bounding-set=-dac_override,-dac_read_search", "--")
"""As another user: this one owns nothing of the state, and no capability helps it."""


def another_user() -> bool:
    return os.geteuid() == 0 and shutil.which("setpriv") is not None


@pytest.mark.slow
@pytest.mark.skipif(not another_user(), reason="no second user can be played here")
async def test_a_second_user_reads_nothing_and_disturbs_nothing(tmp_path: Path) -> None:
    async with world(tmp_path) as made:
        await made.works()
        os.chown(tmp_path / "state", 65534, 65534)
        other = World(made.lives, made.pid, WITHOUT_RIGHTS)
        for arguments in (
            ["up"],
            ["receipts", "verify"],
            ["receipts", "export"],
            ["store", "check"],
            ["store", "rotate"],
            ["vault", "stat"],
            ["vault", "forget", "--project", "default"],
            ["kill", "on"],
        ):
            tried = await asyncio.to_thread(other.egress, *arguments)
            assert tried.returncode == 3, (arguments, tried.returncode, tried.stderr)
            assert "Traceback" not in tried.stderr, arguments
            assert "Permission denied" in tried.stderr or "cannot be" in tried.stderr, (
                arguments,
                tried.stderr,
            )
        await made.works()
        assert made.verify()["ok"]


@pytest.mark.slow
async def test_two_gateways_on_one_folder(tmp_path: Path) -> None:
    async with world(tmp_path) as made:
        second = made.egress("up")
        assert second.returncode == 3
        assert "another gateway is running" in second.stderr
        await made.works()


EDITS = {
    "cut": ("DELETE FROM entries WHERE seq >= (SELECT max(seq) - 1 FROM entries)", "truncated"),
    "edited": ("UPDATE requests SET effect = 'refused' WHERE id = 1", "modified"),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", EDITS)
async def test_a_database_that_others_touch_while_the_gateway_runs(tmp_path: Path, name: str) -> None:
    statement, kind = EDITS[name]
    edit = "import sqlite3,sys; c = sqlite3.connect(sys.argv[1]); c.execute(sys.argv[2]); c.commit()"
    async with world(tmp_path) as made:
        for _ in range(3):
            await made.works()
        await asyncio.sleep(1.2)
        made.run(sys.executable, "-c", edit, str(made.lives.database), statement)
        report = made.verify()
        assert (report["ok"], report["first_bad"]["kind"]) == (False, kind)
        if kind == "truncated":
            await made.closed("altered", "not the one that was written")
    if kind == "truncated":
        again = made.egress("up")
        assert again.returncode == 3
        assert "cut short" in again.stderr
        assert "receipts verify" in again.stderr  # what to do
