"""Agents on the official SDKs, run by an interpreter that has them: one conversation each, told as a line of JSON.

    python agents.py AGENT PROMPT COPY (whole|streamed) (sync|async) ...

COPY is the file that the model's second call writes; ways come in pairs. An SDK is told nothing of the gateway: address
and trust come from the environment.
"""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import AsyncIterator, Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

PATH = {"type": "string", "description": "A path."}
TOOLS: dict[str, dict[str, Any]] = {
    "read_file": {"type": "object", "properties": {"file_path": PATH}, "required": ["file_path"]},
    "write_file": {
        "type": "object",
        "properties": {"file_path": PATH, "content": {"type": "string"}},
        "required": ["file_path", "content"],
    },
}
BEDROCK_MODEL = "anthropic.claude-3-haiku-20240307-v1:0"


@dataclass
class Way:
    """How one conversation is held."""

    streamed: bool
    is_async: bool


@dataclass
class Turn:
    """What the model said: its text, its calls as (id, name, arguments), and the message that repeats it."""

    text: str
    calls: list[tuple[str, str, dict[str, Any]]]
    message: Any


type Agent = Callable[[str, Way], Any]
"""Holds a conversation (a coroutine): what the model said last."""


def use(name: str, arguments: dict[str, Any]) -> str:
    """What the agent's tools do."""
    path = Path(arguments["file_path"])
    if name == "read_file":
        return path.read_text()
    path.write_text(arguments["content"])
    return "The file was written."


def functions() -> list[dict[str, Any]]:
    """The tools as OpenAI, Mistral, Cohere and Ollama declare them."""
    return [
        {"type": "function", "function": {"name": name, "description": "A tool.", "parameters": schema}}
        for name, schema in TOOLS.items()
    ]


async def talk(prompt: Any, ask: Callable[[list[Any]], Any], answer: Callable[[str, str, str], Any]) -> str:
    """Work until the model calls no tool; `answer` makes a message of a result from (id, name, text)."""
    transcript = [prompt]
    for _ in range(8):
        turn = await ask(transcript)
        if not turn.calls:
            return str(turn.text)
        results = [answer(i, name, use(name, arguments)) for i, name, arguments in turn.calls]
        transcript += [turn.message, *results]
    return "no end"


async def every(stream: Any) -> list[Any]:
    """All that a stream gives, sync or async."""
    if isinstance(stream, AsyncIterator) or hasattr(stream, "__aiter__"):
        return [event async for event in stream]
    if isinstance(stream, Iterator) or hasattr(stream, "__iter__"):
        return list(stream)
    return await every(await stream)


async def given(value: Any) -> Any:
    """A value, or what an awaitable gives."""
    return await value if hasattr(value, "__await__") else value


# -- Mistral ---------------------------------------------------------------------------------------------------------


async def mistral(prompt: str, way: Way) -> str:
    """Chat of mistralai."""
    from mistralai.client import Mistral

    client = Mistral(api_key="dummy")

    async def ask(transcript: list[Any]) -> Turn:
        asked = {"model": "mistral-small-latest", "messages": transcript, "tools": functions()}
        name = ("stream" if way.streamed else "complete") + ("_async" if way.is_async else "")
        answer = await given(getattr(client.chat, name)(**asked))
        if not way.streamed:
            message = answer.choices[0].message
            return _spoken(message.content or "", message.tool_calls or [])
        text, pieces = "", {}
        for event in await every(answer):
            delta = event.data.choices[0].delta if event.data.choices else None
            text += (delta.content or "") if delta and isinstance(delta.content, str) else ""
            for call in (delta.tool_calls or []) if delta else []:
                held = pieces.setdefault(call.index or 0, [call, ""])
                held[1] += call.function.arguments or ""
        calls = []
        for call, arguments in pieces.values():
            call.function.arguments = arguments
            calls.append(call)
        return _spoken(text, calls)

    return await talk({"role": "user", "content": prompt}, ask, _tool_message)


def _spoken(text: str, calls: list[Any]) -> Turn:
    """A turn in OpenAI's words."""
    made = [
        {
            "id": c.id,
            "type": "function",
            "function": {"name": c.function.name, "arguments": c.function.arguments},
        }
        for c in calls
    ]
    message = {"role": "assistant", "content": text, **({"tool_calls": made} if made else {})}
    return Turn(text, [(c.id, c.function.name, json.loads(c.function.arguments)) for c in calls], message)


def _tool_message(call: str, name: str, text: str) -> dict[str, str]:
    return {"role": "tool", "tool_call_id": call, "name": name, "content": text}


# -- Cohere ----------------------------------------------------------------------------------------------------------


async def cohere(prompt: str, way: Way) -> str:
    """Chat v2 of cohere."""
    import cohere as sdk

    client = (sdk.AsyncClientV2 if way.is_async else sdk.ClientV2)(api_key="dummy")

    async def ask(transcript: list[Any]) -> Turn:
        asked = {"model": "command-a-03-2025", "messages": transcript, "tools": functions()}
        if not way.streamed:
            message = (await given(client.chat(**asked))).message
            text = message.content[0].text if message.content else ""
            return _cohere_turn(text, message.tool_plan, message.tool_calls or [])
        text, plan, calls = "", "", []
        for event in await every(client.chat_stream(**asked)):
            message = getattr(getattr(event, "delta", None), "message", None)
            if event.type == "content-delta":
                text += message.content.text
            elif event.type == "tool-plan-delta":
                plan += message.tool_plan
            elif event.type == "tool-call-start":
                calls.append(message.tool_calls)
            elif event.type == "tool-call-delta":
                calls[-1].function.arguments += message.tool_calls.function.arguments
        return _cohere_turn(text, plan, calls)

    def answer(call: str, _name: str, text: str) -> dict[str, Any]:
        document = {"type": "document", "document": {"data": json.dumps({"result": text})}}
        return {"role": "tool", "tool_call_id": call, "content": [document]}

    return await talk({"role": "user", "content": prompt}, ask, answer)


def _cohere_turn(text: str, plan: str | None, calls: list[Any]) -> Turn:
    turn = _spoken(text, calls)
    if calls:
        del turn.message["content"]
        turn.message["tool_plan"] = plan
    return turn


# -- Ollama ----------------------------------------------------------------------------------------------------------


async def ollama(prompt: str, way: Way) -> str:
    """Chat of ollama, at its cloud."""
    import ollama as sdk

    client = (sdk.AsyncClient if way.is_async else sdk.Client)(host="https://ollama.com")

    async def ask(transcript: list[Any]) -> Turn:
        asked = {"model": "gpt-oss:120b", "messages": transcript, "tools": functions()}
        answer = await given(client.chat(**asked, stream=way.streamed))
        parts = await every(answer) if way.streamed else [answer]
        text = "".join(part.message.content or "" for part in parts)
        calls = [call for part in parts for call in part.message.tool_calls or ()]
        made = [
            {"function": {"name": c.function.name, "arguments": dict(c.function.arguments)}} for c in calls
        ]
        message = {"role": "assistant", "content": text, "tool_calls": made}
        return Turn(text, [("", c.function.name, dict(c.function.arguments)) for c in calls], message)

    def answer(_call: str, name: str, text: str) -> dict[str, str]:
        return {"role": "tool", "tool_name": name, "content": text}

    return await talk({"role": "user", "content": prompt}, ask, answer)


# -- Bedrock ---------------------------------------------------------------------------------------------------------


async def converse(prompt: str, way: Way) -> str:
    """Converse of boto3, which has no async client: those calls run in a thread."""
    import boto3

    client = boto3.client("bedrock-runtime", region_name="us-east-1")
    specs = [
        {"toolSpec": {"name": name, "description": "A tool.", "inputSchema": {"json": schema}}}
        for name, schema in TOOLS.items()
    ]

    def once(transcript: list[Any]) -> dict[str, Any]:
        asked = {"modelId": BEDROCK_MODEL, "messages": transcript, "toolConfig": {"tools": specs}}
        if not way.streamed:
            return dict(client.converse(**asked)["output"]["message"])
        text, tool, arguments = "", None, ""
        for event in client.converse_stream(**asked)["stream"]:
            if "contentBlockStart" in event:
                tool = event["contentBlockStart"]["start"]["toolUse"]
            delta = event.get("contentBlockDelta", {}).get("delta", {})
            text += delta.get("text", "")
            arguments += delta.get("toolUse", {}).get("input", "")
        part = {"toolUse": {**tool, "input": json.loads(arguments)}} if tool else {"text": text}
        return {"role": "assistant", "content": [part]}

    async def ask(transcript: list[Any]) -> Turn:
        message = await asyncio.to_thread(once, transcript) if way.is_async else once(transcript)
        uses = [part["toolUse"] for part in message["content"] if "toolUse" in part]
        text = "".join(part.get("text", "") for part in message["content"])
        return Turn(text, [(u["toolUseId"], u["name"], u["input"]) for u in uses], message)

    def answer(call: str, _name: str, text: str) -> dict[str, Any]:
        result = {"toolUseId": call, "content": [{"text": text}]}
        return {"role": "user", "content": [{"toolResult": result}]}

    return await talk({"role": "user", "content": [{"text": prompt}]}, ask, answer)


async def invoke(prompt: str, way: Way) -> str:
    """Invoke of boto3 with an Anthropic model."""
    import boto3

    client = boto3.client("bedrock-runtime", region_name="us-east-1")
    tools = [
        {"name": name, "description": "A tool.", "input_schema": schema} for name, schema in TOOLS.items()
    ]

    def once(transcript: list[Any]) -> list[dict[str, Any]]:
        head = {"anthropic_version": "bedrock-2023-05-31", "max_tokens": 100, "tools": tools}
        body = json.dumps({**head, "messages": transcript})
        if not way.streamed:
            return list(
                json.loads(client.invoke_model(modelId=BEDROCK_MODEL, body=body)["body"].read())["content"]
            )
        blocks: list[dict[str, Any]] = []
        for event in client.invoke_model_with_response_stream(modelId=BEDROCK_MODEL, body=body)["body"]:
            data = json.loads(event["chunk"]["bytes"])
            if data["type"] == "content_block_start":
                blocks.append({**data["content_block"], "json": ""})
            elif data["type"] == "content_block_delta":
                blocks[-1]["text"] = blocks[-1].get("text", "") + data["delta"].get("text", "")
                blocks[-1]["json"] += data["delta"].get("partial_json", "")
        for block in blocks:
            pieces = block.pop("json")
            if block["type"] == "tool_use":
                block["input"] = json.loads(pieces)
                del block["text"]
        return blocks

    async def ask(transcript: list[Any]) -> Turn:
        blocks = await asyncio.to_thread(once, transcript) if way.is_async else once(transcript)
        calls = [(b["id"], b["name"], b["input"]) for b in blocks if b["type"] == "tool_use"]
        text = "".join(b.get("text", "") for b in blocks)
        return Turn(text, calls, {"role": "assistant", "content": blocks})

    def answer(call: str, _name: str, text: str) -> dict[str, Any]:
        result = {"type": "tool_result", "tool_use_id": call, "content": text}
        return {"role": "user", "content": [result]}

    return await talk({"role": "user", "content": prompt}, ask, answer)


# -- Gemini ----------------------------------------------------------------------------------------------------------


async def gemini(prompt: str, way: Way) -> str:
    """google-genai."""
    from google import genai
    from google.genai import types

    client = genai.Client(api_key="AIza-dummy")
    declared = [
        types.FunctionDeclaration(name=name, parameters_json_schema=schema) for name, schema in TOOLS.items()
    ]
    config = types.GenerateContentConfig(tools=[types.Tool(function_declarations=declared)])

    async def ask(transcript: list[Any]) -> Turn:
        models = client.aio.models if way.is_async else client.models
        name = "generate_content_stream" if way.streamed else "generate_content"
        asked = getattr(models, name)(model="gemini-3.8-flash", contents=transcript, config=config)
        answer = await given(asked)
        chunks = await every(answer) if way.streamed else [answer]
        parts = [part for chunk in chunks for part in chunk.candidates[0].content.parts]
        calls = [part.function_call for part in parts if part.function_call]
        text = "".join(part.text or "" for part in parts)
        message = types.Content(role="model", parts=parts)
        return Turn(text, [("", call.name, dict(call.args)) for call in calls], message)

    def answer(_call: str, name: str, text: str) -> Any:
        part = types.Part.from_function_response(name=name, response={"output": text})
        return types.Content(role="user", parts=[part])

    return await talk(types.Content(role="user", parts=[types.Part(text=prompt)]), ask, answer)


# -- OpenAI over a WebSocket -----------------------------------------------------------------------------------------


async def openai_websocket(prompt: str, way: Way) -> str:
    """Responses of openai over a WebSocket: each turn holds only what is new."""
    import openai

    tools = [{"type": "function", "name": name, "parameters": schema} for name, schema in TOOLS.items()]
    asked: dict[str, Any] = {"model": "gpt-5", "tools": tools}
    client = (openai.AsyncOpenAI if way.is_async else openai.OpenAI)(api_key="sk-dummy")
    manager = client.responses.connect()
    connection = await manager.__aenter__() if way.is_async else manager.__enter__()
    items: list[Any] = [{"role": "user", "content": prompt}]
    try:
        for _ in range(8):
            await given(connection.response.create(**asked, input=items))
            text, calls = "", []
            while True:
                event = await given(connection.recv())
                if event.type == "response.output_text.delta":
                    text += event.delta
                elif event.type == "response.output_item.done" and event.item.type == "function_call":
                    calls.append(event.item)
                elif event.type == "response.failed":
                    raise RuntimeError(event.response.error.message)
                elif event.type == "response.completed":
                    asked["previous_response_id"] = event.response.id
                    break
            if not calls:
                return text
            items = [
                {
                    "type": "function_call_output",
                    "call_id": call.call_id,
                    "output": use(call.name, json.loads(call.arguments)),
                }
                for call in calls
            ]
        return "no end"
    finally:
        closed = manager.__aexit__ if way.is_async else manager.__exit__
        await given(closed(None, None, None))


AGENTS: dict[str, Agent] = {
    "mistral": mistral,
    "cohere": cohere,
    "ollama": ollama,
    "converse": converse,
    "invoke": invoke,
    "gemini": gemini,
    "openai-websocket": openai_websocket,
}


def main() -> None:
    """One conversation for each way."""
    agent, prompt, copy, *ways = sys.argv[1:]
    for streamed, kind in zip(ways[::2], ways[1::2], strict=True):
        result = {"said": "", "exception": "", "message": ""}
        try:
            way = Way(streamed == "streamed", kind == "async")
            result["said"] = asyncio.run(AGENTS[agent](prompt, way))
        except Exception as error:
            result["exception"], result["message"] = type(error).__name__, str(error)
        written = Path(copy)
        result["copy"] = written.read_text() if written.exists() else ""
        written.unlink(missing_ok=True)
        print(json.dumps({"agent": agent, **result}), flush=True)


if __name__ == "__main__":
    main()
