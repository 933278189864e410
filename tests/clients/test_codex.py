"""Codex: it asks for a WebSocket first, and falls back to HTTP when that is answered 426."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.clients.stage import PROMPT, Stage

pytestmark = pytest.mark.timeout(900)


async def test_a_key_in_a_file_goes_out_masked_and_is_written_back_whole(
    turn: Stage, installed: Callable[[str], Path]
) -> None:
    options = ["--skip-git-repo-check", "--sandbox", "danger-full-access", "-m", "gpt-5"]
    ended = await turn.run([str(installed("codex")), "exec", *options, PROMPT], {"CODEX_API_KEY": "sk-dummy"})
    rows = await turn.rows()

    turn.check_round_trip(ended)
    turn.check_traces(rows)
    assert not any(request.header("upgrade") for request in turn.provider.arrived)
