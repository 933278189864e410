"""The managed profile: the agent runs as another user, and reaches the provider through the gateway and nothing else of it."""

from __future__ import annotations

import asyncio
import json
import os
import sys
from pathlib import Path

import pytest

from tests.integration.test_review import WORDS, Control, held, settings, tool
from tests.support import other_user
from tests.support.gateway import gateway

TOKEN = "agent-" + "t" * 40


@pytest.mark.skipif(os.geteuid() != 0, reason="becoming another user needs root")
async def test_the_agents_user_reaches_neither_keys_nor_store_nor_control_port(tmp_path: Path) -> None:
    for folder in (tmp_path, *tmp_path.parents):
        if folder.stat().st_uid == 0 and folder != Path("/"):
            folder.chmod(
                folder.stat().st_mode | 0o055
            )  # nothing but the gateway's own care stands in the way
    document = settings(tmp_path)
    for path in tmp_path.glob("*.token"):
        path.chmod(0o600)
    agent = tmp_path / "agent.token"
    agent.write_text(TOKEN + "\n")
    agent.chmod(0o600)
    document["projects"] = {"work": {"token_file": str(agent)}}
    async with gateway(tmp_path, document) as bench:
        await bench.send(tool())
        item = await held(Control(bench))
        state = bench.state
        files = [each for each in state.rglob("*") if each.is_file()] + sorted(tmp_path.glob("*.token"))
        arguments = [
            str(state),
            bench.port,
            bench.running.control.port,
            os.getpid(),
            item["id"],
            TOKEN,
            *files,
        ]
        process = await asyncio.create_subprocess_exec(
            sys.executable, other_user.__file__, *map(str, arguments), stdout=asyncio.subprocess.PIPE
        )
        out, _ = await process.communicate()
        still = await held(Control(bench))
        reply = await bench.send(tool())
    said = json.loads(out)

    assert process.returncode == 0
    assert len([name for name in said if name.startswith("read ")]) >= 8
    refused = {
        name: said[name]
        for name in said
        if name.startswith(("read ", "write ", "list", "stop")) and name != "list held"
    }
    assert set(refused.values()) == {"PermissionError"}
    assert [said[name] for name in ("without token", "with the agent's token", "list held", "kill")] == [
        401
    ] * 4
    assert (said["health"], said["through the proxy"]) == (200, 403)
    assert still["state"] == "held"
    assert reply.status == 200
    assert all(WORDS.encode() not in bytes(arrived.body) for arrived in bench.arrived)
