"""Accounts where the gateway signs in the client's place: what nobody checks opens nothing."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from gateway.providers.credentials import aws_account
from gateway.providers.sigv4 import Credentials, Outgoing, Scope, resigned
from tests.support.client import Reply
from tests.support.gateway import Bench, gateway

HOST = "bedrock-runtime.us-east-1.amazonaws.com"
TARGET = "/model/anthropic.claude-3%3A0/converse"
BODY = json.dumps({"messages": [{"role": "user", "content": [{"text": "hello"}]}]}).encode()
CLIENT, OWN = "AKIAQ7YPOS7YUDJUUMJG", "AKIA2OGYBAH6QLWPLGVM"
SCOPE = Scope("us-east-1", "bedrock", ("content-type", "host", "x-amz-date"))


def settings(file: Path, listed: str) -> dict[str, object]:
    return {
        "upstream": {"aws_credentials": str(file)},
        "accounts": {"cloud": {"provider": "aws", "tenants": [aws_account(listed)]}},
    }


async def send(bench: Bench) -> Reply:
    """A signature by a secret that belongs to nobody, under a key id that anybody may know."""
    plain = ((b"content-type", b"application/json"),)
    made = resigned(
        Outgoing("POST", HOST, TARGET, plain, BODY), SCOPE, Credentials(CLIENT, "?"), "20261130T120000Z"
    )
    headers = [(name.decode(), value.decode()) for name, value in made if name != b"content-type"]
    return await bench.send(BODY, host=HOST, target=TARGET, headers=headers)


@pytest.mark.parametrize(("listed", "status"), [(CLIENT, 400), (OWN, 200)])
async def test_the_account_is_that_of_the_signature_which_the_provider_checks(
    tmp_path: Path, listed: str, status: int
) -> None:
    file = tmp_path / "credentials"
    file.write_text(f"[default]\naws_access_key_id = {OWN}\naws_secret_access_key = own\n")
    async with gateway(tmp_path / "gateway", settings(file, listed), hosts=(HOST,)) as bench:
        reply = await send(bench)
        (row, *_) = await bench.rows()
        arrived = len(bench.arrived)

    assert (reply.status, arrived) == (status, int(status == 200))
    if status == 200:
        assert row["receipt"]["destination"]["account_ref"] == "cloud"
    else:
        assert b"account.not_allowed" in reply.body


async def test_without_credentials_to_sign_with_nothing_leaves_and_a_record_says_so(tmp_path: Path) -> None:
    file = tmp_path / "credentials"
    file.write_text(f"[default]\naws_access_key_id = {OWN}\naws_secret_access_key = own\n")
    async with gateway(tmp_path / "gateway", settings(file, OWN), hosts=(HOST,)) as bench:
        file.write_text("[default]\n")
        reply = await send(bench)
        (row, *_) = await bench.rows()

    assert (reply.status, bench.arrived) == (503, [])
    assert row["effect"] == "refused"
