"""Provider accounts through the real proxy: what is let in, what is attested, and what the provider is told."""

from __future__ import annotations

import json
import ssl
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio
from websockets.asyncio.client import connect

from gateway.app.accounts import keyed_hash
from gateway.store.keys import Keyring
from tests.support.client import Connection, Http2, Reply
from tests.support.gateway import Bench, gateway
from tests.support.sockets import create, echo
from tests.unit.providers.test_credentials import jwt

pytestmark = pytest.mark.asyncio(loop_scope="module")

OURS, PERSONAL = "sk-ant-api03-ours-8Zk1", "sk-ant-api03-mine-77Qx"
CHATGPT = jwt(**{"https://api.openai.com/auth": {"chatgpt_account_id": "ws-1"}})
BODY = json.dumps({"model": "m", "max_tokens": 5, "messages": [{"role": "user", "content": "hi"}]}).encode()
RULE = """
[[rule]]
id = "managed.only"
why = "w"
when = { kind = "system" }
unless = { organization_managed = true }
then = { disposition = "deny", reason_codes = ["custom.unmanaged"] }
"""


def document(folder: Path, **policy: Any) -> dict[str, Any]:
    layer = folder / "layer"
    (layer / "rules").mkdir(parents=True, exist_ok=True)
    (layer / "bundle.toml").write_text('name = "layer"\nversion = "1.0.0"\ndescription = "d"\n')
    (layer / "rules" / "r.toml").write_text(RULE)
    key = Keyring(folder / "state" / "keys").account_key()
    return {
        "policy": {"bundles": ["policies/default", str(layer)], **policy},
        "accounts": {
            "acme-api": {
                "provider": "anthropic",
                "hashes": [keyed_hash(key, OURS.encode())],
                "organization_managed": True,
                "region": "eu",
            },
            "acme-login": {"provider": "anthropic", "tenants": ["org-uuid"], "organization_managed": True},
            "acme-gpt": {
                "provider": "openai",
                "tenants": ["ws-1"],
                "hashes": [keyed_hash(key, b"sk-ours")],
            },
        },
    }


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def place(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Bench]:
    """One gateway for most tests: nothing of one request is carried to the next."""
    folder = tmp_path_factory.mktemp("accounts")
    (folder / "state").mkdir(mode=0o700)
    async with gateway(folder, document(folder)) as running:
        yield running


@pytest.fixture
def bench(place: Bench) -> Bench:
    place.arrived.clear()
    return place


async def ask(
    bench: Bench,
    *headers: str,
    host: str = "api.anthropic.com",
    target: str = "/v1/messages",
    body: bytes = BODY,
) -> Reply:
    """One request with these header lines and no others but framing."""
    connection = await Connection.open(bench.port)
    try:
        await connection.connect(f"{host}:443")
        await connection.tls(bench.state / "ca.pem", host)
        lines = [f"POST {target} HTTP/1.1", f"host: {host}", "content-type: application/json"]
        lines += [f"content-length: {len(body)}", *headers, "", ""]
        return await connection.ask("\r\n".join(lines).encode() + body)
    finally:
        await connection.close()


def told(bench: Bench) -> list[list[bytes]]:
    """What each request told its provider about who may come in."""
    return [
        [value for name, value in arrived.headers if name.lower() == b"anthropic-allowed-org-ids"]
        for arrived in bench.arrived
    ]


async def test_a_listed_key_goes_is_attested_and_rules_see_it(bench: Bench) -> None:
    system = json.dumps({**json.loads(BODY), "system": "be brief"}).encode()
    reply = await ask(bench, f"x-api-key: {OURS}", body=system)
    (row,) = await bench.rows(limit=1)

    assert reply.status == 200
    for place in (row["receipt"]["destination"], row["admission"]["destination"]):
        assert (place["account_ref"], place["organization_managed"], place["region"]) == (
            "acme-api",
            True,
            "eu",
        )
    assert (row["evaluation"]["organization_managed"], row["evaluation"]["region"]) == (True, "eu")
    assert row["receipt_state"] == "observed_model_egress"
    assert bytes(bench.arrived[0].body) == system


async def test_a_personal_key_at_the_same_provider_is_refused_and_written_nowhere(bench: Bench) -> None:
    replies = [
        await ask(bench, f"x-api-key: {PERSONAL}"),
        await ask(bench, f"authorization: Bearer {PERSONAL}"),
        await ask(bench, f"x-api-key: {OURS}", f"Authorization: bearer {PERSONAL}"),
        await ask(bench, f"x-api-key: {OURS}", target=f"/v1/messages?key={PERSONAL}"),
        await ask(bench, "cookie: sessionKey=x"),
    ]
    rows = await bench.rows(limit=5)

    assert bench.arrived == []
    for reply, code in zip(replies, ["account.not_allowed"] * 4 + ["account.missing"], strict=True):
        assert reply.status == 400
        assert json.loads(reply.body)["type"] == "error"
        assert code in reply.body.decode()
        assert reply.header("x-should-retry") == "false"
        assert reply.header("x-egress-receipt")
    assert [row["effect"] for row in rows] == ["refused"] * 5
    assert all(not row["receipt"]["destination"]["organization_managed"] for row in rows)
    for name, data in bench.written().items():
        assert PERSONAL.encode() not in data, name
        assert OURS.encode() not in data, name


@pytest.mark.parametrize(
    "lines",
    [
        (),
        ("anthropic-allowed-org-ids: org-home",),
        ("Anthropic-Allowed-Org-Ids: org-home", "ANTHROPIC-ALLOWED-ORG-IDS: org-uuid,org-home"),
        ("connection: keep-alive, anthropic-allowed-org-ids", "anthropic-allowed-org-ids: org-home"),
        ("connection: anthropic-allowed-org-ids, close",),
        ("trailer: anthropic-allowed-org-ids", "te: trailers"),
    ],
)
async def test_the_tenant_header_is_ours_whatever_the_client_says(
    bench: Bench, lines: tuple[str, ...]
) -> None:
    reply = await ask(bench, f"x-api-key: {OURS}", *lines)

    assert reply.status == 200
    assert told(bench) == [[b"org-uuid"]]


async def test_it_goes_with_http2_and_with_logins_too(bench: Bench) -> None:
    connection = await Connection.open(bench.port)
    await connection.connect("api.anthropic.com:443")
    await connection.tls(bench.state / "ca.pem", "api.anthropic.com", alpn=("h2",))
    client = Http2(connection)
    fields = [("content-type", "application/json"), ("x-api-key", OURS), ("anthropic-allowed-org-ids", "x")]
    stream = await client.begin(BODY, authority="api.anthropic.com", headers=fields)
    reply = await client.finish(stream)
    await connection.close()
    login = await ask(
        bench, body=b'{"grant_type":"refresh_token","refresh_token":"r"}', target="/v1/oauth/token"
    )
    opaque = await ask(bench, "authorization: Bearer sk-ant-oat01-abc")
    rows = await bench.rows()

    assert (reply.status, login.status, opaque.status) == (200, 200, 200)
    assert told(bench) == [[b"org-uuid"]] * 3
    assert rows[0]["receipt"]["destination"]["account_ref"] == "acme-login"
    assert rows[0]["receipt"]["destination"]["organization_managed"] is True


async def test_chatgpt_logins_are_known_by_their_workspace(bench: Bench) -> None:
    body = json.dumps({"model": "m", "input": "hi"}).encode()
    place: dict[str, Any] = {"host": "chatgpt.com", "target": "/backend-api/codex/responses", "body": body}
    ours = await ask(bench, f"authorization: Bearer {CHATGPT}", "chatgpt-account-id: ws-1", **place)
    other = await ask(bench, f"authorization: Bearer {CHATGPT}", "chatgpt-account-id: ws-home", **place)
    home = jwt(**{"https://api.openai.com/auth": {"chatgpt_account_id": "ws-home"}})
    personal = await ask(bench, f"authorization: Bearer {home}", **place)

    assert [r.status for r in (ours, other, personal)] == [200, 400, 400]
    (arrived,) = bench.arrived
    assert arrived.header("chatgpt-allowed-workspace-id") == "ws-1"


async def test_messages_of_a_websocket_belong_to_the_account_of_its_upgrade(bench: Bench) -> None:
    bench.provider.speak = echo
    context = ssl.create_default_context(cafile=str(bench.state / "ca.pem"))

    async def say(**headers: str) -> dict[str, Any]:
        socket = await connect(
            "wss://api.openai.com/v1/responses",
            proxy=f"http://127.0.0.1:{bench.port}",
            ssl=context,
            additional_headers=headers,
        )
        try:
            await socket.send(create("hello"))
            return dict(json.loads(await socket.recv()))
        finally:
            await socket.close()

    ours = await say(Authorization="Bearer sk-ours")
    nobody = await say()
    rows = await bench.rows()

    assert ours["type"] != "response.failed"
    assert nobody["type"] == "response.failed"
    assert "account.missing" in json.dumps(nobody)
    said = [row for row in rows if row["evaluation"]["transport"] == "websocket"][:2]
    assert [row["effect"] for row in said] == ["refused", "forwarded"]
    assert said[1]["receipt"]["destination"]["account_ref"] == "acme-gpt"
