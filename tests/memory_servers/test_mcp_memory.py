"""The reference memory server of MCP, run for real and shared by the agents of two projects: what one keeps, the other is not shown.

The loop is an agent's: a turn to the model through the gateway, the tool call that it answers carried out on the server, the
result sent back with the next turn. The model is scripted, SDK, gateway and server are not.
"""

from __future__ import annotations

import json
import os
import shutil
import ssl
from collections.abc import Callable
from pathlib import Path
from typing import Any

import anthropic
import pytest

from tests.clients.packages import Unavailable, program
from tests.integration.test_boundary import events, hash_of, sent, settings
from tests.memory_servers.mcp import Server, running
from tests.support.gateway import Bench, gateway
from tests.support.provider import Answer

pytestmark = pytest.mark.timeout(600)

SERVER = "mcp__memory__"
FACTS = [
    "Kestrel settles the Brightwater ledger at the cut-over on 14 March",
    "Its fee schedule lies in fees/brightwater_2027.csv and is signed by Oduya",
    "Positions of Ferrel and Sons stay open until the harbour audit is over",
]
ENTITY = {"name": "Brightwater cut-over", "entityType": "milestone", "observations": FACTS}
TELLTALE = ("Brightwater", "Oduya", "Ferrel", "harbour audit")


class Agent:
    """One project's agent: an SDK behind the gateway, and the tools of the server."""

    def __init__(self, bench: Bench, server: Server, project: str) -> None:
        self._bench, self._server, self._project = bench, server, project
        self.tools = [
            {
                "name": SERVER + tool["name"],
                "description": tool.get("description", ""),
                "input_schema": tool["inputSchema"],
            }
            for tool in server.tools
        ]

    async def run(self, prompt: str, tool: str, arguments: dict[str, Any]) -> list[Any]:
        """Ask; carry out the one call that the model makes; answer with its result. The messages at the end."""
        call = {"type": "tool_use", "id": "toolu_1", "name": SERVER + tool, "input": arguments}
        self._bench.provider.script(
            _answer(call, "tool_use"), _answer({"type": "text", "text": "Done."}, "end_turn")
        )
        messages: list[Any] = [{"role": "user", "content": prompt}]
        trust = ssl.create_default_context(cafile=str(self._bench.state / "ca.pem"))
        proxy = f"http://{self._project}:@127.0.0.1:{self._bench.port}"
        async with anthropic.DefaultAsyncHttpxClient(proxy=proxy, verify=trust) as http:
            client = anthropic.AsyncAnthropic(api_key="client-key-for-tests", http_client=http, max_retries=0)
            while True:
                reply = await client.messages.create(
                    model="claude-x", max_tokens=100, messages=messages, tools=self.tools
                )
                messages.append({"role": "assistant", "content": [c.model_dump() for c in reply.content]})
                calls = [c for c in reply.content if c.type == "tool_use"]
                if not calls:
                    return messages
                results = [
                    {
                        "type": "tool_result",
                        "tool_use_id": c.id,
                        "content": await self._server.call(c.name.removeprefix(SERVER), c.input),
                    }
                    for c in calls
                ]
                messages.append({"role": "user", "content": results})


def _answer(block: dict[str, Any], stop: str) -> Answer:
    message = {
        "id": "msg_1",
        "type": "message",
        "role": "assistant",
        "model": "claude-x",
        "content": [block],
        "stop_reason": stop,
        "stop_sequence": None,
        "usage": {"input_tokens": 1, "output_tokens": 1},
    }
    return Answer(pieces=(json.dumps(message).encode(),))


@pytest.fixture
def command(installed: Callable[[str], Path]) -> list[str]:
    """How the server is started: by the node of this machine, else by one that is installed."""
    server = installed("mcp-memory")
    node = shutil.which("node") or str(program("node"))
    return [node, str(server)]


async def test_what_one_project_keeps_in_a_shared_server_is_not_shown_to_another(
    tmp_path: Path, command: list[str]
) -> None:
    environment = {"PATH": os.environ["PATH"], "MEMORY_FILE_PATH": str(tmp_path / "memory.jsonl")}
    async with gateway(tmp_path, settings(tmp_path)) as bench, running(command, environment) as server:
        kestrel, zoo = Agent(bench, server, "kestrel"), Agent(bench, server, "zoo")
        assert {"create_entities", "read_graph", "search_nodes"} <= {t["name"] for t in server.tools}

        await kestrel.run("Keep what we know of the cut-over.", "create_entities", {"entities": [ENTITY]})
        assert "Oduya" in (tmp_path / "memory.jsonl").read_text()  # it was really kept
        assert "Oduya" in sent(bench)
        assert await events(bench) == []

        await kestrel.run("What do we know?", "read_graph", {})
        assert "Oduya" in sent(bench)

        messages = await zoo.run("What do you remember?", "read_graph", {})
        assert "Oduya" in json.dumps(messages)  # the server gave it: only the gateway stood between
        assert not [word for word in TELLTALE if word in sent(bench)]
        (row, *_) = await bench.rows()
        read = next(o for o in row["evaluation"]["objects"] if o["pointer"].startswith("/messages/2"))
        assert (read["kind"], read["provenance"]) == ("memory", "foreign")
        assert "project.not_visible" in read["reason_codes"]
        (event,) = await events(bench)
        assert (event["event_type"], event["action"], event["allowed"]) == ("recall", "recall", False)
        assert event["target_project_hash"] == hash_of(bench, "kestrel")

        # A copy of it kept as zoo's own is told as what it is.
        await zoo.run("Keep that for us.", "create_entities", {"entities": [{**ENTITY, "name": "Cut-over"}]})
        (row, *_) = await bench.rows()
        written = next(o for o in row["evaluation"]["objects"] if o["pointer"].startswith("/messages/1"))
        assert {"memory.ambiguous_project", "project.not_visible"} <= set(written["reason_codes"])
        assert not [word for word in TELLTALE if word in sent(bench)]
        assert {waiting.queue for waiting in bench.running.core.memory.queues.all()} == {"cleanup"}

        own = {
            "entities": [
                {"name": "Navbar", "entityType": "part", "observations": ["It lives in src/nav.tsx"]}
            ]
        }
        await zoo.run("Keep where the navbar is.", "create_entities", own)
        assert "src/nav.tsx" in sent(bench)


def test_the_server_can_be_had() -> None:
    """That it cannot is a failure with a reason, not a skip."""
    try:
        assert program("mcp-memory").is_file()
    except Unavailable as error:
        pytest.fail(str(error), pytrace=False)
