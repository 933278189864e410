"""Local models in the place of providers: what may stay on this machine only goes to one there, as its client wrote it."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio

from gateway.cli import demo_script
from gateway.cli.environment import PROXY, ROOTS
from tests.support.client import Connection, Http2, Reply
from tests.support.copyist import CopyingProvider, Copyist
from tests.support.gateway import Bench, gateway
from tests.support.pki import make
from tests.support.provider import Provider
from tests.support.sdk import Agent, AnthropicMessages, OpenAIChat, OpenAIResponses, converse

pytestmark = pytest.mark.asyncio(loop_scope="module")

AGENTS = {"chat": OpenAIChat(), "responses": OpenAIResponses(), "messages": AnthropicMessages()}
WORDS = "the merger is called Nightjar"
KEY = "sk-client-0011223344"
RULES = """
[[rule]]
id = "local.tool"
why = "Results of tools stay on this machine."
when = { kind = "tool_result" }
then = { disposition = "allow_local_model_only", parameters = { reroute = "ollama" }, reason_codes = ["custom.local"] }

[[rule]]
id = "local.system"
why = "No place is named."
when = { kind = "system" }
then = { disposition = "allow_local_model_only", reason_codes = ["custom.nowhere"] }

[[rule]]
id = "local.thinking"
why = "Another place is named."
when = { kind = "tool_definition" }
unless = { model = ["gpt-5", "claude-opus-5", "qwen3"] }
then = { disposition = "allow_local_model_only", parameters = { reroute = "chat-only" }, reason_codes = ["custom.local"] }
"""


@dataclass(frozen=True)
class Place:
    bench: Bench
    local: Provider
    copyist: Copyist
    token: str


def configured(folder: Path, port: int) -> dict[str, Any]:
    layer = folder / "layer"
    (layer / "rules").mkdir(parents=True)
    (layer / "bundle.toml").write_text('name = "layer"\nversion = "1.0.0"\ndescription = "d"\n')
    (layer / "rules" / "r.toml").write_text(RULES)
    (folder / "local.key").write_text("local-secret\n")
    every = ["openai_chat", "openai_responses", "anthropic"]
    return {
        "policy": {"bundles": ["policies/default", str(layer)], "poll_s": 0},
        "local_models": {
            "ollama": {
                "url": f"http://127.0.0.1:{port}/v1",
                "model": "qwen3",
                "dialects": every,
                "key_file": str(folder / "local.key"),
            },
            "chat-only": {"url": f"http://127.0.0.1:{port}/v1/", "model": "qwen3"},
        },
    }


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def place(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Place]:
    folder = tmp_path_factory.mktemp("reroute")
    copyist = Copyist(folder / "settings.conf", folder / "copy.conf")
    token = demo_script.github_token()
    copyist.source.write_text(f"GITHUB_TOKEN={token}\n")
    local = CopyingProvider(make(folder / "local", "localhost"), copyist)
    await local.start(plain=True)
    try:
        document = configured(folder, local.port)
        async with gateway(folder, document, lambda pki: CopyingProvider(pki, copyist)) as bench:
            yield Place(bench, local, copyist, token)
    finally:
        await local.stop()


@pytest.fixture(autouse=True)
def _fresh(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in PROXY:
        monkeypatch.setenv(name, f"http://127.0.0.1:{place.bench.port}")
    for name in ROOTS:
        monkeypatch.setenv(name, str(place.bench.state / "ca-bundle.pem"))
    for name in ("NO_PROXY", "no_proxy", "ALL_PROXY", "all_proxy"):
        monkeypatch.delenv(name, raising=False)
    place.bench.arrived.clear()
    place.local.arrived.clear()


def chat(text: str = WORDS, **more: Any) -> dict[str, Any]:
    call = {"id": "t1", "type": "function", "function": {"name": "run", "arguments": "{}"}}
    return {
        "messages": [
            {"role": "user", "content": "run"},
            {"role": "assistant", "content": None, "tool_calls": [call]},
            {"role": "tool", "tool_call_id": "t1", "content": text},
        ],
        "model": "gpt-5",
        "temperature": 0.10,
        **more,
    }


async def ask(
    bench: Bench, body: dict[str, Any], *, target: str = "/v1/chat/completions?x=1", **more: Any
) -> Reply:
    headers = [
        ("Authorization", f"Bearer {KEY}"),
        ("OpenAI-Organization", "org-client"),
        ("cookie", f"session={KEY}"),
        ("x-custom", "mine"),
    ]
    return await bench.send(body, host=more.pop("host", "api.openai.com"), target=target, headers=headers)


@pytest.mark.parametrize("streamed", [False, True], ids=["whole", "streamed"])
@pytest.mark.parametrize("agent", AGENTS.values(), ids=AGENTS.keys())
async def test_a_conversation_goes_on_at_the_local_model_with_tools_and_streams(
    place: Place, agent: Agent, *, streamed: bool
) -> None:
    place.copyist.target.unlink(missing_ok=True)
    said = await converse(agent, "Copy the token.", is_async=True, streamed=streamed)
    rows = (await place.bench.rows(limit=3))[::-1]
    token = place.token

    assert said == f"I copied {token} for you."
    assert place.copyist.target.read_text() == f"token={token}\n"
    assert [len(place.bench.arrived), len(place.local.arrived)] == [1, 2]
    assert not any(b"EGRESS_" in bytes(arrived.body) for arrived in place.bench.arrived)
    bodies = [json.loads(bytes(arrived.body)) for arrived in place.local.arrived]
    assert {body["model"] for body in bodies} == {"qwen3"}
    assert not any(token in json.dumps(body) for body in bodies)  # masked all the same
    one, two = (bytes(arrived.body) for arrived in place.local.arrived)
    assert two.startswith(one[: one.index(b"EGRESS_") + 40])
    assert [row["receipt"]["destination"]["locality"] for row in rows] == ["remote", "local", "local"]


async def test_it_goes_as_written_but_for_the_model_and_without_the_clients_credentials(place: Place) -> None:
    body = json.dumps(chat(), indent=3).replace("0.1", "1e-1").encode()
    connection = await Connection.open(place.bench.port)
    await connection.connect("api.openai.com:443")
    await connection.tls(place.bench.state / "ca.pem", "api.openai.com")
    head = "POST /v1/chat/completions?api-version=1 HTTP/1.1\r\nhost: api.openai.com\r\ncontent-type: application/json\r\n"
    head += (
        f"authorization: Bearer {KEY}\r\nx-api-key: {KEY}\r\ncookie: a={KEY}\r\naccept: application/json\r\n"
    )
    reply = await connection.ask(f"{head}content-length: {len(body)}\r\n\r\n".encode() + body)
    await connection.close()
    (row,) = await place.bench.rows(limit=1)

    assert reply.status == 200
    assert place.bench.arrived == []
    (arrived,) = place.local.arrived
    assert bytes(arrived.body) == body.replace(b'"gpt-5"', b'"qwen3"')
    assert arrived.target == "/v1/chat/completions"
    assert dict(arrived.headers) == {
        b"accept": b"application/json",
        b"content-type": b"application/json",
        b"authorization": b"Bearer local-secret",
        b"accept-encoding": b"identity",
        b"content-length": str(len(arrived.body)).encode(),
        b"Host": f"127.0.0.1:{place.local.port}".encode(),
    }
    assert KEY.encode() not in bytes(arrived.wire)
    expected = {"provider": "ollama", "model": "qwen3", "locality": "local", "organization_managed": False}
    assert row["receipt"]["destination"] == row["admission"]["destination"] == expected
    assert row["evaluation"]["provider"] == "ollama"
    assert (row["effect"], row["receipt_state"]) == ("rewritten", "observed_model_egress")
    assert reply.header("x-egress-effect") == "rewritten"
    objects = {item["kind"]: item for item in row["evaluation"]["objects"]}
    assert objects["tool_result"]["disposition"] == "allow_local_model_only"
    lineage = json.loads(await place.bench.running.core.egress.store.record(row["lineage"]) or b"")
    assert lineage["request"]["destination"] == expected


async def test_resends_are_the_same_bytes(place: Place) -> None:
    for _ in range(2):
        assert (await ask(place.bench, chat())).status == 200
    later = chat()
    later["messages"] += [{"role": "assistant", "content": "ok"}, {"role": "user", "content": "and?"}]
    third = await ask(place.bench, later)
    assert third.status == 200, third.body
    one, two, three = (bytes(arrived.body) for arrived in place.local.arrived)

    assert one == two
    assert three.startswith(one[: one.index(b"Nightjar")])


async def test_over_http2(place: Place) -> None:
    connection = await Connection.open(place.bench.port)
    await connection.connect("api.openai.com:443")
    await connection.tls(place.bench.state / "ca.pem", "api.openai.com", alpn=("h2",))
    client = Http2(connection)
    fields = [("content-type", "application/json"), ("authorization", f"Bearer {KEY}")]
    streams = [
        await client.begin(
            json.dumps(body).encode(), path="/v1/chat/completions", authority="api.openai.com", headers=fields
        )
        for body in (
            chat(),
            {"model": "gpt-5", "messages": [{"role": "user", "content": "hi"}]},
            chat("more"),
        )
    ]
    replies = [await client.finish(stream) for stream in streams]
    await connection.close()

    assert [reply.status for reply in replies] == [200, 200, 200]
    assert (len(place.bench.arrived), len(place.local.arrived)) == (1, 2)
    assert all(KEY.encode() not in bytes(arrived.wire) for arrived in place.local.arrived)


@pytest.mark.parametrize(
    ("body", "target", "host"),
    [
        (chat(messages=[{"role": "system", "content": "be brief"}]), "/v1/chat/completions", "api.openai.com"),
        (
            {"contents": [{"role": "user", "parts": [{"functionResponse": {"name": "r", "response": {"a": WORDS}}}]}]},
            "/v1beta/models/g:generateContent",
            "generativelanguage.googleapis.com",
        ),
        (
            {
                "model": "gpt-5",
                "previous_response_id": "resp_1",
                "input": [{"type": "function_call_output", "call_id": "c", "output": WORDS}],
            },
            "/v1/responses",
            "api.openai.com",
        ),
        ({k: v for k, v in chat().items() if k != "model"}, "/v1/chat/completions", "api.openai.com"),
        (
            {
                "model": "claude-opus-5",
                "messages": [{"role": "user", "content": [{"type": "tool_result", "tool_use_id": "t", "content": WORDS}]}],
            },
            "/v1/messages/count_tokens",
            "api.anthropic.com",
        ),
        (
            chat(model="other", tools=[{"type": "function", "function": {"name": "f", "parameters": {}}}]),
            "/v1/chat/completions",
            "api.openai.com",
        ),
        (
            {
                "model": "other",
                "max_tokens": 5,
                "tools": [{"name": "f", "input_schema": {"type": "object"}}],
                "messages": [{"role": "user", "content": "hi"}],
            },
            "/v1/messages",
            "api.anthropic.com",
        ),
    ],
    ids=["no place named", "no such dialect", "state of the provider", "no model named", "another endpoint",
         "two places", "a dialect that the place does not speak"],
)  # fmt: skip
async def test_what_cannot_go_there_exactly_goes_nowhere(
    place: Place, body: dict[str, Any], target: str, host: str
) -> None:
    reply = await ask(place.bench, body, target=target, host=host)
    (row,) = await place.bench.rows(limit=1)

    assert reply.status == 400
    assert "destination.remote_restricted" in reply.body.decode()
    assert (place.bench.arrived, place.local.arrived) == ([], [])
    assert row["effect"] == "refused"
    assert row["receipt"]["destination"]["locality"] == "remote"


async def test_what_the_local_model_may_not_have_either_is_refused(place: Place) -> None:
    secret = demo_script.github_token()
    reply = await ask(place.bench, chat(user=secret))

    assert reply.status == 400
    assert place.local.arrived == []
    assert secret not in reply.body.decode()


async def test_a_local_server_that_is_not_there_is_said_in_the_clients_own_shape(place: Place) -> None:
    await place.local.stop()
    try:
        reply = await ask(place.bench, chat())
    finally:
        await place.local.start(plain=True)

    assert reply.status in {502, 503}
    assert json.loads(reply.body)["error"]
    assert place.bench.arrived == []
