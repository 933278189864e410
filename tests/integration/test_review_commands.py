"""The commands of reviewers and operators, against a gateway that runs; and replay over what it stored."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from gateway.cli.main import cli, status_of
from gateway.errors import GatewayError
from tests.integration.test_review import RULES, WORDS, layer, long, settings, tool
from tests.support.gateway import Bench, gateway

type Command = Callable[..., asyncio.Future[Result]]


@pytest.fixture
async def bench(tmp_path: Path) -> AsyncIterator[Bench]:
    async with gateway(tmp_path, settings(tmp_path)) as running:
        layers = f'["policies/default", "{tmp_path / "layer"}"]'
        (tmp_path / "gateway.toml").write_text(
            f'[listen]\ncontrol = "127.0.0.1:{running.running.control.port}"\n'
            f'[state]\ndir = "{running.state}"\n[policy]\nbundles = {layers}\n'
        )
        yield running


@pytest.fixture
def egress(tmp_path: Path) -> Command:
    async def run(*arguments: str, who: str | None = None) -> Result:
        given = [*arguments, "--config", str(tmp_path / "gateway.toml")]
        given += ["--as", str(tmp_path / f"{who}.token")] if who else []
        return await asyncio.to_thread(lambda: CliRunner().invoke(cli, given))

    return run  # type: ignore[return-value]


def refused(result: Result) -> tuple[int, str]:
    assert isinstance(result.exception, GatewayError)
    return status_of(result.exception), result.exception.code


async def test_held_objects_from_the_command_line(bench: Bench, egress: Command) -> None:
    await bench.send(tool())
    await bench.send(long())
    listed = await egress("quarantine", "list", who="eve")
    (item,) = [
        json.loads(line)
        for line in (await egress("quarantine", "list", "--json", who="eve")).output.splitlines()
    ]
    name = item["id"].partition(".")[0]
    shown = json.loads((await egress("quarantine", "show", name, "--json", who="eve")).output)
    hidden = await egress("quarantine", "show", name, "--content", who="eve")
    content = await egress("quarantine", "show", name, "--content", who="ann")
    operator = await egress("quarantine", "release", name)
    released = await egress("quarantine", "release", name, who="ann")
    again = await egress("quarantine", "release", name, who="ann")
    await bench.send(tool())
    (waiting,) = [
        json.loads(line)
        for line in (await egress("approvals", "list", "--json", who="ann")).output.splitlines()
    ]
    denied = await egress("approvals", "deny", waiting["id"], "--json", who="ann")

    assert item["id"] in listed.output
    assert WORDS not in listed.output
    assert shown == item
    assert refused(hidden) == (1, "review.role")
    assert WORDS in content.output
    assert refused(operator) == (1, "review.role")
    assert released.output == f"{item['id']}: released\n"
    assert refused(again) == (1, "review.decided")
    assert WORDS.encode() in bytes(bench.arrived[-1].body)
    assert json.loads(denied.output)["state"] == "refused"


async def test_kill_and_reload_from_the_command_line(bench: Bench, egress: Command, tmp_path: Path) -> None:
    await egress("kill", "on", "--project", "other")
    passing = await bench.send(tool())
    on = await egress("kill", "on")
    stopped = await bench.send(tool())
    status = json.loads((await egress("kill", "status", "--json")).output)
    off = await egress("kill", "off")
    after = await bench.send(tool())
    layer(tmp_path, RULES.replace("held.tool", "held.tools"))
    reloaded = await egress("reload")
    layer(tmp_path, "broken")
    broken = await egress("reload", "--json")

    assert [r.status for r in (passing, stopped, after)] == [200, 503, 200]
    assert (on.output, off.output) == ("everything is stopped\n", "stopped: nothing\n")
    assert status["all"] is True
    assert reloaded.output.startswith("in force: sha256:")
    assert json.loads(broken.output)["ok"] is False
    assert json.loads(broken.output)["digest"] in reloaded.output


async def test_replay_and_explain_over_what_was_stored(bench: Bench, egress: Command, tmp_path: Path) -> None:
    await bench.send(tool())
    await bench.send(tool("mail alice.meyer@northwind-traders.org"))
    (row, _) = await bench.rows()
    same = json.loads((await egress("policy", "replay", "--json")).output)
    layer(tmp_path, RULES.replace("quarantine", "deny"))
    changed = json.loads((await egress("policy", "replay", "--json")).output)
    table = (await egress("policy", "replay")).output
    pointer = "/messages/2/content/0"
    explained = await egress("policy", "explain", "--receipt", row["digest"][:20], "--pointer", pointer)

    assert same["requests"] == 2
    assert same["differences"] == []
    assert same["same"] == same["objects"]
    (difference,) = changed["differences"]
    assert (difference["change"], difference["rule"], difference["objects"]) == (
        "deny",
        "(the same rules)",
        2,
    )
    assert changed["effects"] == [{"before": "rewritten", "after": "refused", "requests": 2}]
    assert "newly denied" in table
    assert "2 requests rewritten -> refused" in table
    assert explained.output.startswith(f"{pointer} (tool_result): deny")
    assert "held.tool" in explained.output


async def test_without_a_gateway_the_commands_say_so(tmp_path: Path, egress: Command) -> None:
    (tmp_path / "state").mkdir()
    (tmp_path / "gateway.toml").write_text(
        f'[listen]\ncontrol = "127.0.0.1:9"\n[state]\ndir = "{tmp_path / "state"}"\n'
    )
    (tmp_path / "ann.token").write_text("t" * 40)

    assert refused(await egress("quarantine", "list", who="ann")) == (3, "setup.control_port")
    assert refused(await egress("reload")) == (3, "control.token_unusable")
