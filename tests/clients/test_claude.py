"""Claude Code: one turn with two tool calls."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.clients.stage import DENIED, PROMPT, Stage

pytestmark = pytest.mark.timeout(900)


@pytest.mark.parametrize(
    "credential",
    [{"ANTHROPIC_API_KEY": "sk-ant-dummy"}, {"CLAUDE_CODE_OAUTH_TOKEN": "sk-ant-oat01-dummy"}],
    ids=["key", "login"],
)
async def test_a_key_in_a_file_goes_out_masked_and_is_written_back_whole(
    turn: Stage, installed: Callable[[str], Path], credential: dict[str, str]
) -> None:
    command = [str(installed("claude")), "-p", PROMPT, "--allowedTools", "Read,Write"]
    ended = await turn.run(command, credential)

    turn.check_round_trip(ended)
    turn.check_traces(await turn.rows())


async def test_a_conversation_that_goes_on_behind_another_gateway_keeps_its_placeholder(
    turn: Stage, installed: Callable[[str], Path]
) -> None:
    command = [str(installed("claude")), "-p", "--allowedTools", "Read,Write"]
    key = {"ANTHROPIC_API_KEY": "sk-ant-dummy"}
    await turn.run([*command, "--", PROMPT], key)
    ended = await turn.run([*command, "--continue", "--", "Tell me once more."], key)

    turn.check_round_trip(ended)
    assert len(turn.provider.asked_models()) == 4


async def test_a_denial_is_told_once(turn: Stage, installed: Callable[[str], Path]) -> None:
    ended = await turn.run([str(installed("claude")), "-p", DENIED], {"ANTHROPIC_API_KEY": "sk-ant-dummy"})

    await turn.check_refusal(ended, attempts=1)
    assert ended.status != 0
