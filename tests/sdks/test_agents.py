"""The official SDKs that are no dependency of the project, behind a gateway that `egress exec` starts.

Each conversation is three requests: the model reads a file that holds a key with the agent's tool, writes the key to
another file, and tells it. Everything on the way out is masked, everything that tool and user get is whole.

EGRESS_SDKS=short leaves each agent one way instead of four.
"""

from __future__ import annotations

import json
import os
import shlex
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.clients.stage import DENIED, PROMPT, Stage
from tests.support.copyist import COPIED
from tests.support.sockets import copying

pytestmark = pytest.mark.timeout(600)

AGENTS = {
    "mistral": "SDKError",
    "cohere": "BadRequestError",
    "ollama": "ResponseError",
    "converse": "ValidationException",
    "invoke": "ValidationException",
    "gemini": "ClientError",
    "openai-websocket": "RuntimeError",  # the agent's own, of a response that failed
}
"""Agents of `agents.py`, and what their SDK raises for a refusal."""

EVERY = [(streamed, kind) for streamed in ("whole", "streamed") for kind in ("sync", "async")]
SHORT = {
    "mistral": 2,
    "cohere": 3,
    "ollama": 2,
    "converse": 2,
    "invoke": 2,
    "gemini": 3,
    "openai-websocket": 3,
}
ENVIRON = {"AWS_BEARER_TOKEN_BEDROCK": "bedrock-api-key-dummy"}  # a signed request cannot be rewritten


def ways(agent: str) -> list[tuple[str, str]]:
    """How its conversations are held; a WebSocket is always a stream."""
    if os.environ.get("EGRESS_SDKS") == "short":
        return [EVERY[SHORT[agent]]]
    return EVERY[2:] if agent == "openai-websocket" else EVERY


async def results(turn: Stage, python: Path, prompt: str) -> list[dict[str, Any]]:
    """One gateway for all agents and ways."""
    turn.provider.speak = copying(turn.provider.copyist)
    program = str(Path(__file__).with_name("agents.py"))
    lines = [
        shlex.join(
            [str(python), program, agent, prompt, str(turn.copy), *(w for way in ways(agent) for w in way)]
        )
        for agent in AGENTS
    ]
    ended = await turn.run(["sh", "-c", "\n".join(lines)], ENVIRON, limit=580)
    found = [json.loads(line) for line in ended.out.splitlines()]
    assert Counter(result["agent"] for result in found) == {a: len(ways(a)) for a in AGENTS}, ended.said
    return found


async def test_a_tool_call_gets_the_value_that_the_model_never_saw(
    turn: Stage, installed: Callable[[str], Path]
) -> None:
    found = await results(turn, installed("sdks"), PROMPT)
    rows = await turn.rows()

    for result in found:
        assert result["exception"] == "", result
        assert result["said"] == f"I copied {turn.token} for you.", result
        assert result["copy"] == f"token={turn.token}\n", result
    messages = [str(message) for socket in turn.provider.sockets for message in socket.messages]
    sent = b"\n".join([*(bytes(r.wire) for r in turn.provider.arrived), *turn.provider.decoded_bodies()])
    said = sent.decode("utf-8", "replace") + "\n".join(messages)
    assert turn.token not in said
    assert (
        len(set(COPIED.findall(said))) == 1
    )  # the same in every turn, way and connection, with every provider
    asked = [row for row in rows if row["evaluation"].get("response", {}).get("usage")]
    assert len(asked) == 3 * len(found)
    assert all(row["evaluation"]["response"]["usage"]["output_tokens"] > 0 for row in asked)
    assert sum(row["evaluation"]["response"]["placeholders_restored"] for row in asked) >= 2 * len(found)
    assert {row["receipt_state"] for row in asked} == {"observed_model_egress"}


async def test_a_denial_is_the_sdks_own_exception_after_one_attempt(
    turn: Stage, installed: Callable[[str], Path]
) -> None:
    found = await results(turn, installed("sdks"), DENIED)
    codes = [row["evaluation"]["reason_codes"] for row in await turn.rows()]
    denied = [each for each in codes if "pii.card_blocked" in each]  # boto3 also asks its own machine

    assert {result["agent"]: result["exception"] for result in found} == AGENTS, found
    assert all("pii.card_blocked" in result["message"] for result in found), found
    assert len(denied) == len(found)
    assert turn.provider.asked_models() == []
    assert not any(socket.messages for socket in turn.provider.sockets)
