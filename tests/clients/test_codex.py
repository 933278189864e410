"""Codex where WebSockets are refused: it asks for one first, and falls back to HTTP when that is answered 426."""

from __future__ import annotations

import base64
import json
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.clients.stage import DENIED, PROMPT, Stage

pytestmark = pytest.mark.timeout(900)


@pytest.fixture(autouse=True)
def _refuse_websockets(turn: Stage) -> None:
    config = turn.folder / "gateway.toml"
    config.write_text(config.read_text().replace("[hosts]\n", '[hosts]\nwebsocket = "refuse"\n'))


async def test_a_key_in_a_file_goes_out_masked_and_is_written_back_whole(
    turn: Stage, installed: Callable[[str], Path]
) -> None:
    options = ["--skip-git-repo-check", "--sandbox", "danger-full-access", "-m", "gpt-5"]
    ended = await turn.run([str(installed("codex")), "exec", *options, PROMPT], {"CODEX_API_KEY": "sk-dummy"})
    rows = await turn.rows()

    turn.check_round_trip(ended)
    turn.check_traces(rows)
    assert not any(request.header("upgrade") for request in turn.provider.arrived)


def signed_in(turn: Stage) -> None:
    """A login with ChatGPT as its file has it; nobody checks the signature of the token but OpenAI."""
    claims = {
        "email": "agent@example.com",
        "exp": 4_102_444_800,
        "https://api.openai.com/auth": {"chatgpt_plan_type": "plus", "chatgpt_account_id": "acct-1"},
    }
    parts = (json.dumps(part).encode() for part in ({"alg": "none", "typ": "JWT"}, claims))
    token = ".".join([*(base64.urlsafe_b64encode(part).rstrip(b"=").decode() for part in parts), "c2ln"])
    login = {
        "auth_mode": "chatgpt",
        "tokens": {
            "id_token": token,
            "access_token": token,
            "refresh_token": "refresh-dummy",
            "account_id": "acct-1",
        },
        "last_refresh": "2026-11-30T00:00:00Z",
    }
    (turn.home / ".codex").mkdir()
    (turn.home / ".codex" / "auth.json").write_text(json.dumps(login))
    account = {
        "id": "acct-1",
        "workspace_backend_origin": "NO_CONSTRAINT",
        "account_routing_override": "NO_CONSTRAINT",
        "structure": "personal",
        "plan_type": "plus",
    }
    turn.provider.documents["/backend-api/wham/accounts/check"] = {
        "accounts": [account],
        "account_ordering": ["acct-1"],
        "default_account_id": "acct-1",
    }


async def test_behind_a_chatgpt_login_the_same_holds_for_compressed_bodies(
    turn: Stage, installed: Callable[[str], Path]
) -> None:
    signed_in(turn)
    options = ["--skip-git-repo-check", "--sandbox", "danger-full-access", "-m", "gpt-5"]
    ended = await turn.run([str(installed("codex")), "exec", *options, PROMPT], {})
    rows = await turn.rows()

    turn.check_round_trip(ended)
    turn.check_traces(rows)
    assert {request.authority for request in turn.provider.asked_models()} == {"chatgpt.com"}
    assert {request.header("content-encoding") for request in turn.provider.asked_models()} == {"zstd"}


@pytest.mark.parametrize("login", [False, True], ids=["key", "login"])
async def test_a_denial_is_told_once(turn: Stage, installed: Callable[[str], Path], *, login: bool) -> None:
    if login:
        signed_in(turn)
    command = [str(installed("codex")), "exec", "--skip-git-repo-check", "-m", "gpt-5", DENIED]
    ended = await turn.run(command, {} if login else {"CODEX_API_KEY": "sk-dummy"})

    await turn.check_refusal(ended, attempts=1)
    assert ended.status != 0
