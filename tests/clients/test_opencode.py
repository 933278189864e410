"""opencode: a second request, for a title, goes out beside the turn; three dialects by the model that is chosen."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.clients.stage import DENIED, PROMPT, Stage

pytestmark = pytest.mark.timeout(900)


@pytest.mark.parametrize(
    ("model", "key"),
    [
        ("openai/gpt-4o", "OPENAI_API_KEY"),
        ("anthropic/claude-sonnet-4-5", "ANTHROPIC_API_KEY"),
    ],
)
async def test_a_key_in_a_file_goes_out_masked_and_is_written_back_whole(
    turn: Stage, installed: Callable[[str], Path], model: str, key: str
) -> None:
    ended = await turn.run([str(installed("opencode")), "run", "-m", model, PROMPT], {key: "sk-dummy"})

    turn.check_round_trip(ended)
    turn.check_traces(await turn.rows())


async def test_a_denial_is_told_to_the_title_and_to_the_turn(
    turn: Stage, installed: Callable[[str], Path]
) -> None:
    command = [str(installed("opencode")), "run", "-m", "openai/gpt-4o", DENIED]
    ended = await turn.run(command, {"OPENAI_API_KEY": "sk-dummy"})

    await turn.check_refusal(ended, attempts=2)
