"""Lifted rules, budgets and the kill switch over several workers, by the commands that people use."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

from tests.integration.test_break_glass import KEY, RULES
from tests.integration.test_review import layer
from tests.support.client import Reply
from tests.support.fleet import Fleet, fleet

LIMIT = 12


async def egress(running: Fleet, *words: str) -> tuple[int, Any]:
    command = [sys.executable, "-m", "gateway.cli", *words, "--config", str(running.lives.config), "--json"]
    done = await asyncio.to_thread(subprocess.run, command, capture_output=True, check=False, timeout=60)
    return done.returncode, [json.loads(line) for line in done.stdout.splitlines()]


async def each(running: Fleet, text: str) -> list[Reply]:
    """The same on every worker, one after the other."""
    found = []
    for number in range(2):
        with running.only(number):
            found.append(await running.lives.ask(f"{text} {number}"))
    return found


async def test_what_operators_do_reaches_every_worker(tmp_path: Path) -> None:
    token = tmp_path / "ann.token"
    token.write_text(f"ann-{'t' * 40}\n")
    more = (
        f'[policy]\nbundles = ["policies/default", "{layer(tmp_path, RULES)}"]\npoll_s = 0\n'
        f'[reviewers.ann]\ntoken_file = "{token}"\nroles = ["break_glass", "operate", "view"]\n'
        f'[budgets.day]\nrequests = {LIMIT}\nwindow_s = 31536000\nper = "gateway"\n'
    )
    async with fleet(tmp_path, more=more) as running:
        ann = ("--as", str(token))
        before = await each(running, f"key {KEY}")
        wish = ("--rule", "team.keys", "--rule", "secret.*", "--minutes", "5", "--reason", "outage")
        status, begun = await egress(running, "break-glass", "begin", *wish, *ann)
        assert status == 0
        during = await each(running, f"my key {KEY}")
        health = json.loads((await running.lives.health())[1])
        assert (await egress(running, "break-glass", "end", begun[0]["id"], *ann))[0] == 0
        after = await each(running, f"our key {KEY}")
        assert (await egress(running, "kill", "on"))[0] == 0
        stopped = await each(running, "hello")
        assert (await egress(running, "kill", "off"))[0] == 0
        (used,) = (await egress(running, "budget", "list"))[1]
        counted = used["used"]["requests"]
        left = [await running.lives.ask("hello") for _ in range(LIMIT - counted)]
        over = await each(running, "one too many")
        (at_end,) = (await egress(running, "budget", "list"))[1]
        arrived = [bytes(each.body) for each in running.lives.provider.arrived]

    assert token.stat().st_mode & 0o777 == 0o600  # closed to others at the start
    assert [reply.status for reply in (*before, *during, *after)] == [400, 400, 200, 200, 400, 400]
    assert [item["id"] for item in health["break_glass"]] == [begun[0]["id"]]
    assert [reply.status for reply in stopped] == [503, 503]
    assert 6 <= counted < LIMIT
    assert {reply.status for reply in left} == {200}
    assert [reply.status for reply in over] == [400, 400]
    assert all(b"budget.requests" in reply.body for reply in over)
    assert at_end["used"]["requests"] == LIMIT
    assert sum(KEY.encode() in body for body in arrived) == 2
