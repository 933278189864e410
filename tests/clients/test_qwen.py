"""qwen-code: an agent of the family of gemini-cli that speaks to OpenAI's API."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.clients.stage import PROMPT, Stage

pytestmark = pytest.mark.timeout(900)

SETTINGS = '{"security": {"auth": {"selectedType": "openai"}}}'


async def test_a_key_in_a_file_goes_out_masked_and_is_written_back_whole(
    turn: Stage, installed: Callable[[str], Path]
) -> None:
    settings = turn.home / ".qwen" / "settings.json"
    settings.parent.mkdir()
    settings.write_text(SETTINGS)
    command = [str(installed("node")), str(installed("qwen")), "-p", PROMPT, "-y"]
    account = {
        "OPENAI_API_KEY": "sk-dummy",
        "OPENAI_BASE_URL": "https://api.openai.com/v1",
        "OPENAI_MODEL": "gpt-5",
    }
    ended = await turn.run(command, account)

    turn.check_round_trip(ended)
    turn.check_traces(await turn.rows())
