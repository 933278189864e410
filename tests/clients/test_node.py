"""Plain Node: its `fetch` knows of a proxy only what a variable tells it, and otherwise connects past every proxy."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.clients.stage import Stage

pytestmark = pytest.mark.timeout(900)

PROGRAM = """
const answer = await fetch("https://api.openai.com/v1/chat/completions", {
  method: "POST",
  headers: {"content-type": "application/json", authorization: "Bearer sk-dummy"},
  body: process.argv[1],
});
console.log((await answer.json()).choices[0].message.content);
"""


async def test_fetch_goes_through_the_gateway(turn: Stage, installed: Callable[[str], Path]) -> None:
    results = [
        {"role": "tool", "tool_call_id": f"call_{n}", "content": f"GITHUB_TOKEN={turn.token}"} for n in (1, 2)
    ]
    body = {"model": "gpt-5", "messages": results, "tools": [{"function": {"name": "read_file"}}]}
    command = [str(installed("node")), "--input-type=module", "-e", PROGRAM, json.dumps(body)]
    ended = await turn.run(command, {})
    (request,) = turn.provider.asked_models()

    assert ended.out == f"I copied {turn.token} for you.\n", ended.said
    assert turn.token.encode() not in bytes(request.wire)
