"""Small agents on the official SDKs: they run the model's tool calls until it answers with a text.

An SDK is told nothing of the gateway: address and trust come from the environment. Each agent works whole and streamed,
sync (in a thread) and async.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import anthropic
import openai

_PATH = {"type": "string", "description": "A path."}
_PARAMETERS: dict[str, dict[str, Any]] = {
    "read_file": {"file_path": _PATH},
    "write_file": {"file_path": _PATH, "content": {"type": "string", "description": "The new content."}},
}


def _schema(name: str) -> dict[str, Any]:
    members = _PARAMETERS[name]
    return {"type": "object", "properties": members, "required": [*members], "additionalProperties": False}


def use_tool(name: str, arguments: dict[str, str]) -> str:
    """What the agent's tools do."""
    path = Path(arguments["file_path"])
    if name == "read_file":
        return path.read_text()
    path.write_text(arguments["content"])
    return "The file was written."


@dataclass(frozen=True)
class ToolCall:
    """A call as the SDK hands it to a tool."""

    id: str
    name: str
    arguments: dict[str, str]


class Agent(Protocol):
    """One API of one SDK."""

    refusal: type[Exception]

    def client(self, *, is_async: bool, http2: bool = False) -> Any:
        """A client with the SDK's own defaults: it retries where the SDK would."""
        ...

    def ask(self, client: Any, transcript: list[Any], *, streamed: bool) -> Any:
        """One request: the answer, or with an async client an awaitable of it."""
        ...

    def read(self, answer: Any) -> tuple[str, list[ToolCall]]:
        """Text and tool calls of an answer."""
        ...

    def replies(self, answer: Any, results: dict[str, str]) -> list[Any]:
        """What the transcript gains: the answer, and the results by the ids of their calls."""
        ...


async def converse(agent: Agent, prompt: str, *, is_async: bool, streamed: bool, http2: bool = False) -> str:
    """Work until the model ends its turn; the text it ends with."""
    transcript: list[Any] = [{"role": "user", "content": prompt}]
    client = agent.client(is_async=is_async, http2=http2)
    try:
        while True:
            if is_async:
                answer = await agent.ask(client, transcript, streamed=streamed)
            else:
                answer = await asyncio.to_thread(agent.ask, client, transcript, streamed=streamed)
            text, calls = agent.read(answer)
            if not calls:
                return text
            results = {call.id: use_tool(call.name, call.arguments) for call in calls}
            transcript += agent.replies(answer, results)
    finally:
        closed = client.close()
        if is_async:
            await closed


def _transport(sdk: Any, *, is_async: bool, http2: bool) -> dict[str, Any]:
    """Options for HTTP/2, which the SDKs speak where they are told to."""
    if not http2:
        return {}
    made = sdk.DefaultAsyncHttpxClient if is_async else sdk.DefaultHttpxClient
    return {"http_client": made(http2=True)}


def _final(manager: Any, of: Callable[[Any], Any]) -> Any:
    with manager as stream:
        return of(stream)


async def _final_async(manager: Any, of: Callable[[Any], Any]) -> Any:
    async with manager as stream:
        return await of(stream)


def _streamed(client: Any, manager: Any, of: Callable[[Any], Any]) -> Any:
    is_async = isinstance(client, openai.AsyncOpenAI | anthropic.AsyncAnthropic)
    return (_final_async if is_async else _final)(manager, of)


class OpenAIChat:
    """Chat Completions."""

    refusal = openai.BadRequestError

    def client(self, *, is_async: bool, http2: bool = False) -> Any:
        return (openai.AsyncOpenAI if is_async else openai.OpenAI)(
            api_key="sk-dummy", **_transport(openai, is_async=is_async, http2=http2)
        )

    def ask(self, client: Any, transcript: list[Any], *, streamed: bool) -> Any:
        functions = [
            {"name": name, "description": "A tool.", "parameters": _schema(name), "strict": True}
            for name in _PARAMETERS
        ]
        tools = [{"type": "function", "function": function} for function in functions]
        made = {"model": "gpt-5", "messages": transcript, "tools": tools}
        if not streamed:
            return client.chat.completions.create(**made)
        return _streamed(client, client.chat.completions.stream(**made), lambda s: s.get_final_completion())

    def read(self, answer: Any) -> tuple[str, list[ToolCall]]:
        message = answer.choices[0].message
        calls = [
            ToolCall(call.id, call.function.name, json.loads(call.function.arguments))
            for call in message.tool_calls or ()
        ]
        return message.content or "", calls

    def replies(self, answer: Any, results: dict[str, str]) -> list[Any]:
        said = answer.choices[0].message
        calls = [
            {
                "id": call.id,
                "type": "function",
                "function": {"name": call.function.name, "arguments": call.function.arguments},
            }
            for call in said.tool_calls
        ]
        results_ = [{"role": "tool", "tool_call_id": at, "content": text} for at, text in results.items()]
        return [{"role": "assistant", "content": said.content, "tool_calls": calls}, *results_]


class OpenAIResponses:
    """Responses."""

    refusal = openai.BadRequestError

    def client(self, *, is_async: bool, http2: bool = False) -> Any:
        return (openai.AsyncOpenAI if is_async else openai.OpenAI)(
            api_key="sk-dummy", **_transport(openai, is_async=is_async, http2=http2)
        )

    def ask(self, client: Any, transcript: list[Any], *, streamed: bool) -> Any:
        tools = [
            {"type": "function", "name": name, "parameters": _schema(name), "strict": True}
            for name in _PARAMETERS
        ]
        made = {"model": "gpt-5", "input": transcript, "tools": tools}
        if not streamed:
            return client.responses.create(**made)
        return _streamed(client, client.responses.stream(**made), lambda s: s.get_final_response())

    def read(self, answer: Any) -> tuple[str, list[ToolCall]]:
        calls = [
            ToolCall(item.call_id, item.name, json.loads(item.arguments))
            for item in answer.output
            if item.type == "function_call"
        ]
        return answer.output_text, calls

    def replies(self, answer: Any, results: dict[str, str]) -> list[Any]:
        said = [
            {
                "type": "function_call",
                "call_id": item.call_id,
                "name": item.name,
                "arguments": item.arguments,
            }
            for item in answer.output
        ]
        return [
            *said,
            *({"type": "function_call_output", "call_id": at, "output": t} for at, t in results.items()),
        ]


class AnthropicMessages:
    """Messages."""

    refusal = anthropic.BadRequestError

    def client(self, *, is_async: bool, http2: bool = False) -> Any:
        return (anthropic.AsyncAnthropic if is_async else anthropic.Anthropic)(
            api_key="sk-ant-dummy", **_transport(anthropic, is_async=is_async, http2=http2)
        )

    def ask(self, client: Any, transcript: list[Any], *, streamed: bool) -> Any:
        tools = [
            {"name": name, "description": "A tool.", "input_schema": _schema(name)} for name in _PARAMETERS
        ]
        made = {
            "model": "claude-opus-5",
            "max_tokens": 1024,
            "messages": transcript,
            "tools": tools,
        }
        if not streamed:
            return client.messages.create(**made)
        return _streamed(client, client.messages.stream(**made), lambda s: s.get_final_message())

    def read(self, answer: Any) -> tuple[str, list[ToolCall]]:
        text = "".join(block.text for block in answer.content if block.type == "text")
        return text, [ToolCall(b.id, b.name, b.input) for b in answer.content if b.type == "tool_use"]

    def replies(self, answer: Any, results: dict[str, str]) -> list[Any]:
        said = [
            {"type": "tool_use", "id": block.id, "name": block.name, "input": block.input}
            for block in answer.content
        ]
        back = [{"type": "tool_result", "tool_use_id": at, "content": text} for at, text in results.items()]
        return [{"role": "assistant", "content": said}, {"role": "user", "content": back}]
