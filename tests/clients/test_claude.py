"""Claude Code: one turn with two tool calls."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.clients.stage import DENIED, PROMPT, Stage

pytestmark = pytest.mark.timeout(900)


async def test_a_key_in_a_file_goes_out_masked_and_is_written_back_whole(
    turn: Stage, installed: Callable[[str], Path]
) -> None:
    command = [str(installed("claude")), "-p", PROMPT, "--allowedTools", "Read,Write"]
    ended = await turn.run(command, {"ANTHROPIC_API_KEY": "sk-ant-dummy"})

    turn.check_round_trip(ended)
    turn.check_traces(await turn.rows())


async def test_a_denial_is_told_once(turn: Stage, installed: Callable[[str], Path]) -> None:
    ended = await turn.run([str(installed("claude")), "-p", DENIED], {"ANTHROPIC_API_KEY": "sk-ant-dummy"})

    await turn.check_refusal(ended, attempts=1)
    assert ended.status != 0
