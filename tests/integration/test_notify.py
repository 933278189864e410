"""Notices to reviewers: posted and signed, given to a command, repeated, bounded; never with content, never in the way."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from gateway.app.notifying import Command, Notifier, NotTold, signature
from gateway.config import parse
from gateway.errors import ConfigError
from tests.integration.test_review import WORDS, Control, held, settings, tool
from tests.support.gateway import gateway
from tests.support.pki import make
from tests.support.provider import Answer, Arrived, Provider
from tests.support.waiting import eventually

FACTS = {
    "id": "q-1.2",
    "kind": "quarantine",
    "project": "p",
    "pointer": "/messages/0",
    "findings": [{"type": "email"}],
    "bytes": 3,
}


SENT_TWICE = [
    f'gateway_notifications_total{{channel="{channel}",result="sent"}} 2.0'
    for channel in ("webhook", "command")
]


class Hook(Provider):
    """Answers 204, or what `statuses` says next."""

    statuses: tuple[int, ...] = ()

    def answer_to(self, request: Arrived) -> Answer:
        status, self.statuses = (self.statuses or (204,))[0], self.statuses[1:]
        return Answer(status, pieces=(), framing="length")


@pytest.fixture
async def hook(tmp_path: Path) -> AsyncIterator[Hook]:
    found = Hook(make(tmp_path / "hook", "localhost"))
    await found.start(plain=True)
    yield found
    await found.stop()


def document(folder: Path, port: int, **more: Any) -> dict[str, Any]:
    (folder / "hook.secret").write_text("shared-secret\n")
    script = folder / "notify.sh"
    script.write_text(
        f'#!/bin/sh\ncat >> "{folder}/said.jsonl"\necho >> "{folder}/said.jsonl"\nenv > "{folder}/env"\n'
    )
    script.chmod(0o700)
    return {
        **settings(folder),
        "notify": {
            "webhook": f"http://127.0.0.1:{port}/hook?team=a",
            "secret_file": str(folder / "hook.secret"),
            "command": [str(script)],
            "events": ["held", "decided"],
            **more,
        },
    }


async def test_people_hear_of_what_is_held_and_of_what_was_decided(tmp_path: Path, hook: Hook) -> None:
    async with gateway(tmp_path, document(tmp_path, hook.port)) as bench:
        for _ in range(2):
            assert (await bench.send(tool())).status == 200  # the same object again is no news
        ann = Control(bench)
        item = await held(ann)
        await ann("POST", f"/v1/quarantine/{item['id']}/release", {})
        said = tmp_path / "said.jsonl"
        await eventually(
            lambda: len(hook.arrived) == 2 and said.exists() and len(said.read_text().split()) == 2
        )
        # Counted when the answer is back, which is after the hook has the notice.
        await eventually(
            lambda: all(line in bench.running.core.metrics.render().decode() for line in SENT_TWICE)
        )

    first, second = (json.loads(bytes(arrived.body)) for arrived in hook.arrived)
    assert (first["event"], second["event"]) == ("quarantine.held", "quarantine.released")
    assert first["id"] == second["id"] == item["id"]
    assert (first["principal"], second["reviewer"]) == ("unknown", "ann")
    assert set(first) == {
        "event", "id", "kind", "project", "time", "destination", "policy", "object_kind", "bytes", "reason_codes", "principal",
    }  # fmt: skip
    assert [json.loads(line) for line in said.read_text().split()] == [first, second]
    for arrived in hook.arrived:
        seconds = int(arrived.header("x-egress-timestamp") or 0)
        assert abs(seconds - time.time()) < 60
        assert arrived.header("x-egress-signature") == signature(
            b"shared-secret", seconds, bytes(arrived.body)
        )
        assert arrived.target == "/hook?team=a"
    assert hook.arrived[0].header("x-egress-delivery") == f"quarantine.held:{item['id']}"
    for data in (*(bytes(arrived.wire) for arrived in hook.arrived), said.read_bytes()):
        assert WORDS.encode() not in data
        assert b"shared-secret" not in data
    assert {line.partition("=")[0] for line in (tmp_path / "env").read_text().splitlines()} <= {
        "PATH", "EGRESS_DELIVERY", "PWD", "SHLVL", "_", "OLDPWD",
    }  # fmt: skip


async def test_a_hook_that_is_not_there_delays_nothing_and_is_said(tmp_path: Path) -> None:
    settings_ = document(tmp_path, 9, command=[], attempts=1)
    async with gateway(tmp_path, settings_) as bench:
        reply = await bench.send(tool())
        url = f"http://127.0.0.1:{bench.running.control.port}/healthz"
        async with httpx.AsyncClient() as client:
            health = await eventually(lambda: client.get(url), lambda said: "degraded" in said.json())
        metrics = bench.running.core.metrics.render().decode()
        log = bench.log.getvalue()

    assert reply.status == 200
    assert (health.status_code, health.json()["degraded"]) == (200, ["notify.webhook"])
    assert 'gateway_notifications_total{channel="webhook",result="failed"} 1.0' in metrics
    assert '"event": "notify_failed"' in log
    assert "hook?team" not in log


class Scripted:
    """A channel that ends as it is told to."""

    name = "webhook"

    def __init__(self, *outcomes: Exception | None) -> None:
        self.outcomes, self.sent = list(outcomes), 0
        self.gate = asyncio.Event()
        self.gate.set()

    async def send(self, body: bytes, delivery: str) -> None:
        await self.gate.wait()
        self.sent += 1
        outcome = self.outcomes.pop(0) if self.outcomes else None
        if outcome is not None:
            raise outcome


def notifier(channel: Any, **more: Any) -> tuple[Notifier, list[tuple[str, str]]]:
    counted: list[tuple[str, str]] = []
    made = Notifier(
        [channel], first_s=0.001, counted=lambda _, result, code: counted.append((result, code)), **more
    )
    made.start()
    return made, counted


async def test_failures_are_tried_again_and_given_up_in_the_end() -> None:
    flaky = Scripted(NotTold("web.timeout"), RuntimeError("text"), None)
    made, counted = notifier(flaky)
    made.tell("quarantine.held", FACTS)
    await eventually(lambda: counted == [("sent", "")])
    assert (flaky.sent, made.failing) == (3, [])
    dead = Scripted(*[NotTold("web.timeout")] * 9)
    other, lost = notifier(dead, attempts=4)
    other.tell("quarantine.held", FACTS)
    await eventually(lambda: lost == [("failed", "web.timeout")])
    assert (dead.sent, other.failing) == (4, ["notify.webhook"])
    final = Scripted(NotTold("notify.refused", final=True))
    third, once = notifier(final)
    third.tell("approval.pending", FACTS)
    await eventually(lambda: once == [("failed", "notify.refused")])
    assert final.sent == 1
    for each in (made, other, third):
        await each.close()


async def test_what_finds_the_queue_full_is_dropped_and_counted() -> None:
    slow = Scripted()
    slow.gate.clear()
    made, counted = notifier(slow, length=2)
    await asyncio.sleep(0)
    began = time.perf_counter()
    for _ in range(1000):
        made.tell("quarantine.held", FACTS)
    took = time.perf_counter() - began
    slow.gate.set()
    await made.close()

    assert took < 1.0
    assert counted.count(("dropped", "notify.queue_full")) >= 997
    assert counted.count(("sent", "")) in {2, 3}


async def test_only_what_is_asked_for_is_told() -> None:
    quiet = Scripted()
    made, counted = notifier(quiet)
    made.tell("quarantine.released", FACTS)
    made.tell("approval.pending", FACTS)
    await made.close()

    assert counted == [("sent", "")]


@pytest.mark.parametrize(
    ("status", "attempts"), [(500, 2), (429, 2), (404, 1), (302, 1)], ids=["500", "429", "404", "redirect"]
)
async def test_what_a_server_answers_decides_whether_it_is_asked_again(
    tmp_path: Path, hook: Hook, status: int, attempts: int
) -> None:
    from gateway.app.notifying import Webhook
    from gateway.app.webclient import WebClient

    client = WebClient.of(parse({"state": {"dir": str(tmp_path)}}, tmp_path, {}), 5)
    hook.statuses = (status,)
    made, counted = notifier(Webhook(f"http://127.0.0.1:{hook.port}/", client))
    made.tell("quarantine.held", FACTS)
    await eventually(lambda: bool(counted))
    await made.close()

    assert len(hook.arrived) == attempts
    assert counted[0][0] == ("sent" if attempts == 2 else "failed")


async def test_a_command_that_hangs_is_killed_with_its_children(tmp_path: Path) -> None:
    script = tmp_path / "hang.sh"
    script.write_text(f'#!/bin/sh\nsleep 60 & echo $! > "{tmp_path}/pid"\nwait\n')
    script.chmod(0o700)
    with pytest.raises(NotTold) as raised:
        await Command([str(script)], 0.5).send(b"{}", "d")

    assert raised.value.code == "notify.timeout"
    child = int((tmp_path / "pid").read_text())
    await eventually(
        lambda: (
            not Path(f"/proc/{child}").exists() or "Z" in Path(f"/proc/{child}/stat").read_text().split()[2]
        )
    )


@pytest.mark.parametrize("arguments", [["/does/not/exist"], ["/bin/false"]])
async def test_a_command_that_fails_is_no_fault(arguments: list[str]) -> None:
    with pytest.raises(NotTold):
        await Command(arguments, 5).send(b"{}", "d")


@pytest.mark.parametrize(
    "url", ["http://hooks.example.com/", "https://user:pass@h/", "ftp://h/", "hooks.example.com"]
)
def test_notices_do_not_cross_a_network_in_clear(tmp_path: Path, url: str) -> None:
    with pytest.raises(ConfigError) as raised:
        parse({"notify": {"webhook": url}}, tmp_path, {})
    assert "notify.webhook" in str(raised.value)
    assert "user:pass" not in str(raised.value)
