"""More dialects' streams (see `tests.support.streams`): relatives, older shapes, and what else a stream may carry.

A dialect whose tool input does not come in pieces ignores `arguments`.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from typing import Any

from tests.support.streams import (
    AWS,
    AWS_HOST,
    GOOGLE,
    LINES,
    MODEL,
    SSE,
    Dialect,
    Heard,
    _anthropic,
    _gemini,
    _hear_anthropic,
)

type Events = Iterator[tuple[str, Any]]


def _reasoning(text: Sequence[str], arguments: Sequence[str]) -> Events:
    """Chat with reasoning beside the text, and the free input of a custom tool."""

    def chunk(delta: dict[str, Any], finish: str | None = None) -> tuple[str, Any]:
        return "", {"id": "c", "choices": [{"index": 0, "delta": delta, "finish_reason": finish}]}

    for piece in text:
        yield chunk({"reasoning_content": piece})
    for piece in text:
        yield chunk({"content": piece, "some_new_member": piece})
    yield chunk(
        {"tool_calls": [{"index": 0, "id": "t", "type": "custom", "custom": {"name": "f", "input": ""}}]}
    )
    for piece in arguments:
        yield chunk({"tool_calls": [{"index": 0, "custom": {"input": piece}}]})
    yield chunk({}, "tool_calls")
    yield "", "[DONE]"


def _hear_reasoning(heard: Heard, name: str, data: dict[str, Any]) -> None:
    delta = data["choices"][0]["delta"]
    heard.text += delta.get("content", "")
    runs = heard.__dict__.setdefault("runs", {"reasoning_content": "", "some_new_member": ""})
    for member in runs:
        runs[member] += delta.get(member, "")
    for call in delta.get("tool_calls", []):
        heard.arguments += call["custom"]["input"]
    if data["choices"][0]["finish_reason"]:
        heard.snapshots += runs.values()


def _conversations(text: Sequence[str], arguments: Sequence[str]) -> Events:
    """Mistral's conversations."""

    def named(kind: str, **members: Any) -> tuple[str, Any]:
        return kind, {"type": kind, **members}

    yield named("conversation.response.started", conversation_id="c")
    for piece in text:
        yield named("message.output.delta", id="m", output_index=0, content_index=0, content=piece)
    for piece in arguments:
        yield named(
            "function.call.delta", id="f", output_index=1, name="f", tool_call_id="t", arguments=piece
        )
    yield named("conversation.response.done", usage={"prompt_tokens": 1, "completion_tokens": 2})


def _hear_conversations(heard: Heard, name: str, data: dict[str, Any]) -> None:
    heard.text += data.get("content", "")
    heard.arguments += data.get("arguments", "")


def _code_assist(text: Sequence[str], arguments: Sequence[str]) -> Events:
    for name, data in _gemini(text, arguments):
        yield name, {"response": data, "traceId": "x"}


def _hear_code_assist(heard: Heard, name: str, data: dict[str, Any]) -> None:
    for part in data["response"]["candidates"][0]["content"]["parts"]:
        heard.text += part.get("text", "")
        if "functionCall" in part:
            heard.arguments = json.dumps(part["functionCall"]["args"])


def _custom(text: Sequence[str], arguments: Sequence[str]) -> Events:
    """Responses with the free input of a custom tool."""
    place = {"item_id": "m", "output_index": 0, "content_index": 0}
    tool = {"item_id": "f", "output_index": 1}
    events: list[dict[str, Any]] = [{"type": "response.created", "response": {"id": "r", "output": []}}]
    events += [{"type": "response.output_text.delta", **place, "delta": piece} for piece in text]
    events.append({"type": "response.output_text.done", **place, "text": "".join(text)})
    events += [
        {"type": "response.custom_tool_call_input.delta", **tool, "delta": piece} for piece in arguments
    ]
    events.append({"type": "response.custom_tool_call_input.done", **tool, "input": "".join(arguments)})
    item = {"type": "custom_tool_call", "id": "f", "call_id": "t", "name": "f", "input": "".join(arguments)}
    events.append({"type": "response.output_item.done", "output_index": 1, "item": item})
    for number, event in enumerate(events):
        yield event["type"], {"sequence_number": number, **event}


def _hear_custom(heard: Heard, name: str, data: dict[str, Any]) -> None:
    match name:
        case "response.output_text.delta":
            heard.text += data["delta"]
        case "response.custom_tool_call_input.delta":
            heard.arguments += data["delta"]
        case "response.output_text.done":
            heard.snapshots.append(data["text"])
        case "response.custom_tool_call_input.done":
            heard.snapshots.append(data["input"])
        case "response.output_item.done":
            heard.snapshots.append(data["item"]["input"])


def _text_only(wrap: Any, *last: Any) -> Any:
    """Events of which each holds one piece of the text."""

    def events(text: Sequence[str], arguments: Sequence[str]) -> Events:
        for piece in text:
            yield wrap(piece)
        yield from last

    return events


def _hear_at(*path: str | int) -> Any:
    def hear(heard: Heard, name: str, data: Any) -> None:
        for token in path:
            known = token in data if isinstance(data, dict) else isinstance(token, int) and token < len(data)
            if not known:
                return
            data = data[token]
        heard.text += data

    return hear


def _interactions(text: Sequence[str], arguments: Sequence[str]) -> Events:
    yield "", {"event_type": "interaction.start", "interaction": {"id": "i"}}
    for piece in text:
        yield "", {"event_type": "content.delta", "index": 0, "delta": {"type": "text", "text": piece}}
    yield "", {"event_type": "content.stop", "index": 0}
    yield "", {"event_type": "interaction.complete", "interaction": {"id": "i", "usage": {"total_tokens": 3}}}


def _thread(piece: str) -> tuple[str, Any]:
    value = {"index": 0, "type": "text", "text": {"value": piece}}
    return "thread.message.delta", {
        "id": "m",
        "object": "thread.message.delta",
        "delta": {"content": [value]},
    }


VERTEX = "/v1/projects/p/locations/us-east5/publishers/anthropic/models/claude-x:streamRawPredict"
INVOKE = f"{MODEL}/invoke-with-response-stream"
MORE = (
    Dialect("chat-reasoning", "api.deepseek.com", "/chat/completions", SSE, _reasoning, _hear_reasoning),
    Dialect("conversations", "api.mistral.ai", "/v1/conversations", SSE, _conversations, _hear_conversations),
    Dialect(
        "code-assist",
        "cloudcode-pa.googleapis.com",
        "/v1internal:streamGenerateContent",
        SSE,
        _code_assist,
        _hear_code_assist,
        whole_arguments=True,
    ),
    Dialect(
        "vertex-anthropic", "us-east5-aiplatform.googleapis.com", VERTEX, SSE, _anthropic, _hear_anthropic
    ),
    Dialect("responses-custom", "api.openai.com", "/v1/responses", SSE, _custom, _hear_custom),
    Dialect(
        "completions",
        "api.openai.com",
        "/v1/completions",
        SSE,
        _text_only(
            lambda p: ("", {"choices": [{"index": 0, "text": p, "finish_reason": None}]}), ("", "[DONE]")
        ),
        _hear_at("choices", 0, "text"),
    ),
    Dialect(
        "ollama-generate",
        "ollama.com",
        "/api/generate",
        LINES,
        _text_only(
            lambda p: ("", {"model": "m", "response": p, "done": False}), ("", {"response": "", "done": True})
        ),
        _hear_at("response"),
    ),
    Dialect(
        "cohere-v1",
        "api.cohere.com",
        "/v1/chat",
        LINES,
        _text_only(
            lambda p: ("", {"event_type": "text-generation", "text": p}),
            ("", {"event_type": "stream-end", "finish_reason": "COMPLETE"}),
        ),
        _hear_at("text"),
    ),
    Dialect(
        "invoke-llama",
        AWS_HOST,
        INVOKE,
        AWS,
        _text_only(
            lambda p: ("chunk", {"generation": p, "stop_reason": None}),
            ("chunk", {"generation": "", "stop_reason": "stop"}),
        ),
        _hear_at("generation"),
    ),
    Dialect(
        "invoke-titan",
        AWS_HOST,
        INVOKE,
        AWS,
        _text_only(lambda p: ("chunk", {"outputText": p, "index": 0, "completionReason": None})),
        _hear_at("outputText"),
    ),
    Dialect("interactions", GOOGLE, "/v1beta/interactions", SSE, _interactions, _hear_at("delta", "text")),
    Dialect(
        "threads",
        "api.openai.com",
        "/v1/threads/t/runs",
        SSE,
        _text_only(_thread, ("thread.message.completed", {"id": "m", "content": []}), ("done", "[DONE]")),
        _hear_at("delta", "content", 0, "text", "value"),
    ),
    Dialect(
        "legacy-anthropic",
        "api.anthropic.com",
        "/v1/complete",
        SSE,
        _text_only(lambda p: ("completion", {"type": "completion", "completion": p, "stop_reason": None})),
        _hear_at("completion"),
    ),
    Dialect(
        "transcription",
        "api.openai.com",
        "/v1/audio/transcriptions",
        SSE,
        _text_only(
            lambda p: ("transcript.text.delta", {"type": "transcript.text.delta", "delta": p}),
            ("transcript.text.done", {"type": "transcript.text.done"}),
        ),
        _hear_at("delta"),
    ),
)
