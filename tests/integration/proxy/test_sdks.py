"""The official SDKs through the proxy against the fake provider, unread and unchanged: both are what they claim."""

from __future__ import annotations

import asyncio
import importlib.util
from typing import Any

import pytest

from gateway.proxy.routes import HostRules
from tests.integration.proxy.conftest import Start, World
from tests.support.pki import make
from tests.support.usecase import refusing

HOSTS = ("api.openai.com", "api.anthropic.com")
MESSAGES: list[Any] = [{"role": "user", "content": "héllo wörld"}]

pytestmark = pytest.mark.skipif(
    not all(importlib.util.find_spec(name) for name in ("openai", "anthropic")),
    reason="the SDKs of the extra `demo` are not installed",
)


@pytest.fixture
async def sdk_world(start: Start, tmp_path: Any, monkeypatch: pytest.MonkeyPatch) -> World:
    pki = make(tmp_path / "sdk-pki", *HOSTS)
    world = await start(hosts=HostRules(intercept=frozenset(HOSTS)), pki=pki)
    assert isinstance(world, World)
    for host in HOSTS:
        world.proxy._settings.connect_to[host, 443] = ("127.0.0.1", world.provider.port)  # type: ignore[index]
    monkeypatch.setenv("HTTPS_PROXY", f"http://acme@127.0.0.1:{world.proxy.port}")
    monkeypatch.setenv("SSL_CERT_FILE", str(world.ca))
    return world


async def test_openai(sdk_world: World) -> None:
    import openai

    async with openai.AsyncOpenAI(api_key="k") as client:
        whole = await client.chat.completions.create(model="m", messages=MESSAGES)
        assert whole.choices[0].message.content == "You said: héllo wörld"
        text = ""
        async for chunk in await client.chat.completions.create(model="m", messages=MESSAGES, stream=True):
            text += chunk.choices[0].delta.content or "" if chunk.choices else ""
        assert text == "You said: héllo wörld"
        response = await client.responses.create(model="m", input="héllo wörld")
        assert response.output_text == "You said: héllo wörld"
        events = [e async for e in await client.responses.create(model="m", input="x", stream=True)]
        assert events[-1].type == "response.completed"
    assert {r.peer.project for r in sdk_world.use_case.handled} == {"acme"}


async def test_anthropic(sdk_world: World) -> None:
    import anthropic

    async with anthropic.AsyncAnthropic(api_key="k") as client:
        whole = await client.messages.create(model="m", max_tokens=9, messages=MESSAGES)
        assert whole.content[0].text == "You said: héllo wörld"
        tools: Any = [{"name": "Bash", "input_schema": {"type": "object"}}]
        async with client.messages.stream(model="m", max_tokens=9, messages=MESSAGES, tools=tools) as stream:
            asked = await stream.get_final_message()
        assert asked.stop_reason == "tool_use"
        call = asked.content[0]
        history: Any = [
            *MESSAGES,
            {"role": "assistant", "content": [call.model_dump(include={"type", "id", "name", "input"})]},
            {"role": "user", "content": [{"type": "tool_result", "tool_use_id": call.id, "content": "done"}]},
        ]
        last = await client.messages.create(model="m", max_tokens=9, messages=history, tools=tools)
        assert last.content[0].text == "You said: done"


async def test_a_refusal_is_an_exception_after_one_attempt(sdk_world: World) -> None:
    import openai

    sdk_world.use_case.behaviour = refusing("secret.denied")
    async with openai.AsyncOpenAI(api_key="k") as client:
        with pytest.raises(openai.BadRequestError):
            await client.chat.completions.create(model="m", messages=MESSAGES)
    await asyncio.sleep(0)
    assert len(sdk_world.use_case.handled) == 1
    assert sdk_world.provider.arrived == []
