"""A gateway of several processes as it is started: one port, one writer, and what happens when any of them ends."""

from __future__ import annotations

import asyncio
import json
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import anthropic
import httpx
import pytest
import pytest_asyncio

from gateway.cli.environment import PROXY, ROOTS
from gateway.evidence.sign import read_public_key
from gateway.store.audit import verify_store
from gateway.store.reader import SqliteReader
from gateway.store.rows import Query
from tests.integration.test_crash import TRACED, completed
from tests.support.fleet import Fleet, fleet, processes_of
from tests.support.lives import SECRET, alive
from tests.support.provider import Answer
from tests.support.waiting import eventually

pytestmark = [pytest.mark.asyncio(loop_scope="module"), pytest.mark.timeout(300)]
PASSWORD = "Tr4verse-Lumen-88"


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def gateway(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Fleet]:
    """Two workers that serve all tests here which leave them as they are."""
    async with fleet(tmp_path_factory.mktemp("workers")) as running:
        yield running


def rows(of: Fleet, **query: Any) -> list[dict[str, Any]]:
    reader = SqliteReader(of.lives.database)
    try:
        return reader.rows(Query.read({"limit": 1000, **query}))[0]
    finally:
        reader.close()


async def settled(of: Fleet) -> list[dict[str, Any]]:
    """All rows, once every request is concluded."""
    return await eventually(lambda: rows(of), lambda found: all(row["lineage"] is not None for row in found))


def verified(of: Fleet) -> bool:
    key = read_public_key((of.lives.folder / "state" / "keys" / "signing.pub").read_text())
    return verify_store(of.lives.database, key).ok


async def test_turns_of_one_conversation_on_alternating_workers(
    gateway: Fleet, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The official SDK, a connection each turn: what is masked is masked by both, and comes back whole from both."""
    for name in PROXY:
        monkeypatch.setenv(name, f"http://127.0.0.1:{gateway.lives.traffic.port}")
    for name in ROOTS:
        monkeypatch.setenv(name, str(gateway.lives.folder / "state" / "ca-bundle.pem"))
    for name in ("NO_PROXY", "no_proxy", "ALL_PROXY", "all_proxy"):
        monkeypatch.delenv(name, raising=False)
    said = [f"password={PASSWORD} and {SECRET}", f"is it {PASSWORD}?", "go on", f"again {PASSWORD} {SECRET}"]
    history: list[Any] = []
    before = len(gateway.lives.provider.arrived)
    for number, text in enumerate(said):
        history.append({"role": "user", "content": text})
        async with anthropic.AsyncAnthropic(api_key="k", max_retries=0) as client:
            with gateway.only(number):
                answer = await client.messages.create(model="m", max_tokens=9, messages=history)
        (part,) = answer.content
        assert part.type == "text"
        assert part.text == f"You said: {text}"
        history.append({"role": "assistant", "content": part.text})
    bodies = [bytes(arrived.body).decode() for arrived in gateway.lives.provider.arrived[before:]]
    assert len(bodies) == len(said)
    assert not any(value in body for body in bodies for value in (PASSWORD, SECRET))
    first = json.loads(bodies[0])["messages"][0]
    assert all(json.loads(body)["messages"][0] == first for body in bodies)  # the provider's cache holds


async def scraped(of: Fleet) -> dict[str, float]:
    async with httpx.AsyncClient() as client:
        text = (await client.get(f"http://127.0.0.1:{of.lives.control}/metrics")).text
    lines = [line.rpartition(" ") for line in text.splitlines() if line[:1] != "#"]
    return {name: float(value) for name, _, value in lines}


async def test_health_and_metrics_speak_for_all(gateway: Fleet) -> None:
    before = await scraped(gateway)
    for number in (0, 1):
        with gateway.only(number):
            assert (await gateway.lives.ask(f"count {number}")).status == 200
    await settled(gateway)
    after = await scraped(gateway)
    counted = 'gateway_requests_total{effect="forwarded",provider="anthropic"}'
    assert after[counted] - before.get(counted, 0) == 2
    assert after["gateway_append_seconds_count"] - before["gateway_append_seconds_count"] >= 2
    assert after["gateway_workers"] == 2
    assert [value for name, value in after.items() if name.startswith("gateway_bundle_info")] == [1.0]


async def test_a_second_gateway_on_the_folder_is_told_so(gateway: Fleet, tmp_path: Path) -> None:
    config = tmp_path / "gateway.toml"
    text = gateway.lives.config.read_text()
    for port in (gateway.lives.traffic.port, gateway.lives.control):
        text = text.replace(f"127.0.0.1:{port}", "127.0.0.1:0")
    config.write_text(text)
    command = [sys.executable, "-m", "gateway.cli", "up", "--config", str(config)]
    done = await asyncio.to_thread(subprocess.run, command, capture_output=True, text=True, timeout=60)
    assert done.returncode == 3
    assert "another gateway is running" in done.stderr
    assert (await gateway.lives.health())[0] == 200


@pytest.mark.skipif(shutil.which("strace") is None, reason="strace is not installed")
async def test_the_writer_has_synced_before_a_worker_connects_upstream(
    gateway: Fleet, tmp_path: Path
) -> None:
    """As the kernel sees it, over two processes: written and synced there, and only then connected here."""
    await gateway.healthy()
    await settled(gateway)
    await asyncio.sleep(1.2)  # the checkpoint of what was before has been written
    trace = tmp_path / "trace"
    pids = [f"-p{pid}" for kind in ("writer", "worker") for pid in gateway.children(kind)]
    strace = subprocess.Popen(
        ["strace", "-f", "-y", "-e", TRACED, "-o", trace, *pids], stderr=subprocess.DEVNULL
    )
    await asyncio.sleep(1.0)
    if strace.poll() is not None:
        pytest.skip("processes cannot be traced here")
    assert (await gateway.lives.ask("traced")).status == 200
    strace.send_signal(signal.SIGINT)
    await asyncio.to_thread(strace.wait, 10)
    calls = completed(trace.read_text())
    port = f"htons({gateway.lives.provider.port})"
    upstream = next(at for at, call in enumerate(calls) if "connect(" in call and port in call)
    log = [call.split("(")[0] for call in calls[:upstream] if "egress.db-wal>" in call]
    assert log[0] == "pwrite64"
    assert "fdatasync" in log


async def test_a_worker_that_dies_is_replaced_and_what_it_had_open_is_closed(gateway: Fleet) -> None:
    gateway.lives.provider.script(Answer(silent=True))
    first = gateway.children("worker")[0]
    with gateway.only(0):
        asking = asyncio.ensure_future(gateway.lives.ask("never answered"))
        before = len(gateway.lives.provider.arrived)
        await eventually(lambda: len(gateway.lives.provider.arrived) > before)
    os.kill(first, signal.SIGKILL)
    (ended,) = await asyncio.gather(asking, return_exceptions=True)
    assert isinstance(ended, Exception) or not ended.status
    assert (await gateway.lives.ask("meanwhile")).status == 200  # the other worker
    await gateway.healthy()
    assert first not in gateway.children("worker")
    assert len(gateway.children("worker")) == 2
    found = await settled(gateway)
    assert found[1]["receipt_state"] in {"prepared", "handed_off"}
    assert found[1]["lineage"] is not None
    with gateway.only(1):
        assert (await gateway.lives.ask("by the new one")).status == 200


async def test_without_a_writer_nothing_leaves_and_then_all_goes_on(gateway: Fleet) -> None:
    (writer,) = gateway.children("writer")
    before = len(gateway.lives.provider.arrived)
    os.kill(writer, signal.SIGSTOP)  # nobody can take its place while it stands still
    try:
        hanging = await gateway.lives.ask("while it hangs")
    finally:
        os.kill(writer, signal.SIGCONT)
    os.kill(writer, signal.SIGKILL)
    refused = await gateway.lives.ask("while it is away")
    assert hanging.status == 503
    assert refused.status == 503
    assert b"evidence.unavailable" in refused.body
    assert refused.header("x-should-retry") == "false"
    assert len(gateway.lives.provider.arrived) == before
    await gateway.healthy()
    assert (await gateway.lives.ask("afterwards")).status == 200
    await settled(gateway)
    assert verified(gateway)


async def test_a_clean_end_finishes_what_is_in_flight(tmp_path: Path) -> None:
    async with fleet(tmp_path) as running:
        running.lives.provider.script(Answer(pieces=(2.0, b'{"ok":true}')))
        asking = asyncio.ensure_future(running.lives.ask("to the end"))
        await eventually(lambda: running.lives.provider.arrived)
        children = [pid for pid, _ in processes_of(running.process.pid)]
        running.process.send_signal(signal.SIGTERM)
        assert (await asking).status == 200
        assert await asyncio.to_thread(running.process.wait, 60) == 0
        assert [row["receipt_state"] for row in rows(running)] == ["observed_model_egress"]
        assert verified(running)
        assert not any(alive(pid) for pid in children)
        assert not (tmp_path / "state" / "writer.sock").exists()
        with pytest.raises(OSError):
            await running.lives.ask("too late")
