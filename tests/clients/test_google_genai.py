"""google-genai, which is no dependency of the project and therefore has an environment of its own."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.clients.stage import DENIED, PROMPT, Stage

pytestmark = pytest.mark.timeout(900)

AGENT = Path(__file__).with_name("genai_agent.py")
WAYS = [(streamed, kind) for streamed in ("whole", "streamed") for kind in ("sync", "async")]


def command(python: Path, prompt: str, turn: Stage, ways: list[tuple[str, str]]) -> list[str]:
    """One program for all ways, so that one gateway serves them."""
    lines = [f'"$0" "$1" "$2" "$3" {streamed} {kind} && rm -f "$3"' for streamed, kind in ways]
    return ["sh", "-ec", "\n".join(lines), str(python), str(AGENT), prompt, str(turn.copy)]


async def test_a_tool_call_gets_the_value_that_the_model_never_saw(
    turn: Stage, installed: Callable[[str], Path]
) -> None:
    ended = await turn.run(command(installed("google-genai"), PROMPT, turn, WAYS), {})
    results = [json.loads(line) for line in ended.out.splitlines()]

    assert len(results) == len(WAYS), ended.said
    assert {result["said"] for result in results} == {f"I copied {turn.token} for you."}
    assert {result["copy"] for result in results} == {f"token={turn.token}\n"}
    assert len(turn.provider.asked_models()) == 3 * len(WAYS)
    assert turn.token.encode() not in b"".join(bytes(request.wire) for request in turn.provider.arrived)
    turn.check_traces(await turn.rows())


async def test_a_denial_is_the_sdks_own_exception_after_one_attempt(
    turn: Stage, installed: Callable[[str], Path]
) -> None:
    ended = await turn.run(command(installed("google-genai"), DENIED, turn, WAYS), {})
    results = [json.loads(line) for line in ended.out.splitlines()]

    await turn.check_refusal(ended, attempts=len(WAYS))
    assert {result["exception"] for result in results} == {"ClientError"}
