"""Codex as it comes: over a WebSocket, each turn with only what is new."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.clients.stage import DENIED, PROMPT, Stage
from tests.clients.test_codex import signed_in
from tests.support.copyist import COPIED
from tests.support.sockets import copying

pytestmark = pytest.mark.timeout(900)

OPTIONS = ["--skip-git-repo-check", "--sandbox", "danger-full-access", "-m", "gpt-5"]


@pytest.mark.parametrize("login", [False, True], ids=["key", "login"])
async def test_a_key_in_a_file_goes_out_masked_and_is_written_back_whole(
    turn: Stage, installed: Callable[[str], Path], *, login: bool
) -> None:
    if login:
        signed_in(turn)
    turn.provider.speak = copying(turn.provider.copyist)
    environ = {} if login else {"CODEX_API_KEY": "sk-dummy"}
    ended = await turn.run([str(installed("codex")), "exec", *OPTIONS, PROMPT], environ)
    rows = await turn.rows()
    sent = "\n".join(str(message) for socket in turn.provider.sockets for message in socket.messages)

    assert ended.status == 0, ended.said
    assert turn.provider.asked_models() == [], ended.said  # nothing by POST
    assert turn.token not in sent
    assert len(set(COPIED.findall(sent))) == 1, ended.said
    assert turn.copy.read_text() == f"token={turn.token}\n", ended.said
    assert turn.token in ended.out, ended.said
    assert "EGRESS_" not in ended.out, ended.said
    messages = [row for row in rows if row["evaluation"]["transport"] == "websocket"]
    assert len(messages) >= 3
    assert {row["receipt_state"] for row in messages} == {"observed_model_egress"}
    assert [row["effect"] for row in messages].count(
        "rewritten"
    ) == 1  # the result that holds it, sent only once
    for path in (turn.folder / "state").rglob("*"):
        if path.is_file() and not {"vault", "keys"} & set(path.relative_to(turn.folder / "state").parts):
            assert turn.token.encode() not in path.read_bytes(), path.name


@pytest.mark.parametrize("login", [False, True], ids=["key", "login"])
async def test_a_denial_is_told_once(turn: Stage, installed: Callable[[str], Path], *, login: bool) -> None:
    if login:
        signed_in(turn)
    turn.provider.speak = copying(turn.provider.copyist)
    command = [str(installed("codex")), "exec", "--skip-git-repo-check", "-m", "gpt-5", DENIED]
    ended = await turn.run(command, {} if login else {"CODEX_API_KEY": "sk-dummy"})

    await turn.check_refusal(ended, attempts=1)
    assert ended.status != 0
    assert not any("Refund" in str(m) for socket in turn.provider.sockets for m in socket.messages)
