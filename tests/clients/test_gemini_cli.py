"""gemini-cli: it asks a model which model to use, and then that one."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.clients.stage import DENIED, PROMPT, Stage

pytestmark = pytest.mark.timeout(900)


async def test_a_key_in_a_file_goes_out_masked_and_is_written_back_whole(
    turn: Stage, installed: Callable[[str], Path]
) -> None:
    command = [str(installed("node")), str(installed("gemini")), "-p", PROMPT, "--skip-trust", "-y"]
    ended = await turn.run(command, {"GEMINI_API_KEY": "AIza-dummy"})

    turn.check_round_trip(ended)
    turn.check_traces(await turn.rows())


async def test_a_denial_is_told_to_the_router_and_to_the_turn(
    turn: Stage, installed: Callable[[str], Path]
) -> None:
    command = [str(installed("node")), str(installed("gemini")), "-p", DENIED, "--skip-trust", "-y"]
    ended = await turn.run(command, {"GEMINI_API_KEY": "AIza-dummy"})

    await turn.check_refusal(ended, attempts=2)
    assert ended.status != 0
