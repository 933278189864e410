"""A gateway under load is killed at any moment: its evidence is held against what the provider and the clients saw.

Every receipt that a client was given and every admission whose bytes arrived is there, the log verifies, no lineage
claims more than the provider saw. `CRASH_KILLS` sets how often (`make test-crash`: 300).
"""

from __future__ import annotations

import asyncio
import os
import random
import shutil
import signal
import subprocess
import sys
from collections import Counter
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from gateway.evidence.sign import read_public_key
from gateway.store.audit import verify_store
from gateway.store.reader import SqliteReader
from gateway.store.rows import Query
from tests.support.lives import Forge, Lives, alive, end, problems
from tests.support.waiting import eventually

KILLS = int(os.environ.get("CRASH_KILLS", "5"))
CLIENTS = 6
READ = 900


def verdict(lives: Lives) -> tuple[list[str], Counter[str]]:
    """Everything that does not hold, and how requests ended."""
    key = read_public_key((lives.folder / "state" / "keys" / "signing.pub").read_text())
    report = verify_store(lives.database, key)
    reader = SqliteReader(lives.database)
    try:

        def everything(**query: Any) -> list[dict[str, Any]]:
            found: list[dict[str, Any]] = []
            after: str | None = "0"
            while after is not None:
                page, after = reader.rows(Query.read({"limit": READ, "after": after, **query}))
                found += page
            return found

        rows = everything()
        found = problems(lives, lambda kind: everything(kind=kind), rows)
    finally:
        reader.close()
    states = Counter(str(row["receipt_state"]) for row in rows)
    return ([] if report.ok else [str(report)]) + found, states


@pytest.mark.timeout(60 + 8 * KILLS)
async def test_killed_at_any_moment(tmp_path: Path) -> None:
    dice = random.Random(KILLS)
    lives = await Lives.begin(tmp_path)
    forge = await asyncio.to_thread(Forge, tmp_path)
    clients = [asyncio.ensure_future(lives.traffic.client()) for _ in range(CLIENTS)]
    try:
        pid = 0
        while lives.kills < KILLS:
            pid = await asyncio.to_thread(forge.fork, lives.config)
            if (
                not lives.kills or dice.random() < 0.85
            ):  # else: while it starts, and closes what was left open
                await lives.ready(lambda pid=pid: alive(pid))  # type: ignore[misc]  # bound at once
                await lives.work(dice.randrange(12))
            await asyncio.sleep(dice.random() * 0.1)
            assert alive(pid), (tmp_path / "log").read_text()[-2000:]
            await end(pid, signal.SIGKILL)
            lives.kills += 1
            if lives.kills % 50 == 0:
                assert verdict_of_log(lives), f"after {lives.kills} kills"
        pid = await asyncio.to_thread(forge.fork, lives.config)
        await lives.ready(lambda: alive(pid))
        await lives.work(12)
        await end(pid, signal.SIGTERM)
    finally:
        for client in clients:
            client.cancel()
        await asyncio.gather(*clients, return_exceptions=True)
        await asyncio.to_thread(forge.close)
        await lives.provider.stop()
    found, states = verdict(lives)
    print(
        f"{lives.kills} kills, {len(lives.traffic.asked)} requests, {len(lives.provider.arrived)} arrived: {dict(states)}"
    )
    assert found == []
    assert states["observed_model_egress"] > KILLS
    assert states["rejected"] > 0
    if KILLS >= 50:
        assert states["prepared"] > 0  # some were cut off between admission and answer


def verdict_of_log(lives: Lives) -> bool:
    key = read_public_key((lives.folder / "state" / "keys" / "signing.pub").read_text())
    return verify_store(lives.database, key).ok


@pytest.mark.slow
@pytest.mark.timeout(200)
async def test_the_command_itself_is_killed(tmp_path: Path) -> None:
    """The same with `egress up` as it is installed, scanning processes and all."""
    dice = random.Random(7)
    lives = await Lives.begin(tmp_path, seed=2)
    clients = [asyncio.ensure_future(lives.traffic.client()) for _ in range(CLIENTS)]
    command = [sys.executable, "-m", "gateway.cli", "up", "--config", str(lives.config)]
    try:
        with (tmp_path / "log").open("ab") as log:
            for last in (False, False, False, False, True):
                process = subprocess.Popen(command, stdout=log, stderr=log)
                await lives.ready(lambda process=process: process.poll() is None)  # type: ignore[misc]
                await asyncio.sleep(0.2 + dice.random())
                process.send_signal(signal.SIGTERM if last else signal.SIGKILL)
                await asyncio.to_thread(process.wait, 30)
    finally:
        for client in clients:
            client.cancel()
        with suppress(asyncio.CancelledError):
            await asyncio.gather(*clients, return_exceptions=True)
        await lives.provider.stop()
    found, states = verdict(lives)
    assert found == []
    assert states["observed_model_egress"] > 0


TRACED = "trace=fdatasync,fsync,pwrite64,sendto,write,connect"


@pytest.mark.skipif(shutil.which("strace") is None, reason="strace is not installed")
async def test_the_log_is_synced_before_the_first_byte_goes_upstream(tmp_path: Path) -> None:
    """As the kernel sees it: the write-ahead log is written and synced, and then a connection is made."""
    lives = await Lives.begin(tmp_path)
    forge = await asyncio.to_thread(Forge, tmp_path)
    pid = await asyncio.to_thread(forge.fork, lives.config)
    trace = tmp_path / "trace"
    try:
        await lives.ready(lambda: alive(pid))
        await asyncio.sleep(1.2)  # the checkpoint of the start has been written
        strace = subprocess.Popen(
            ["strace", "-f", "-y", "-e", TRACED, "-o", trace, "-p", str(pid)], stderr=subprocess.DEVNULL
        )
        await asyncio.sleep(0.5)
        if strace.poll() is not None:
            pytest.skip("processes cannot be traced here")
        client = asyncio.ensure_future(lives.traffic.client())
        await eventually(lambda: lives.provider.arrived)
        client.cancel()
        await asyncio.gather(client, return_exceptions=True)
        strace.send_signal(signal.SIGINT)
        await asyncio.to_thread(strace.wait, 10)
    finally:
        await end(pid, signal.SIGTERM)
        await asyncio.to_thread(forge.close)
        await lives.provider.stop()
    calls = completed(trace.read_text())
    upstream = next(
        at for at, call in enumerate(calls) if "connect(" in call and f"htons({lives.provider.port})" in call
    )
    log = [call.split("(")[0] for call in calls[:upstream] if "egress.db-wal>" in call]
    assert log[0] == "pwrite64"  # nothing else was under way: this is the admission
    assert "fdatasync" in log


def completed(trace: str) -> list[str]:
    """System calls in the order in which they returned; `connect`, in which it was begun."""
    begun: dict[str, str] = {}
    calls = []
    for line in trace.splitlines():
        thread, _, text = line.partition(" ")
        text = text.strip()
        if text.endswith("<unfinished ...>") and not text.startswith("connect("):
            begun[thread] = text
        elif text.startswith("<... ") and thread in begun:
            calls.append(begun.pop(thread))
        elif text[:1].isalpha():
            calls.append(text)
    return calls
