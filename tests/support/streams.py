"""Answers of every dialect that streams, written from pieces of text and read back as a client would.

`write` makes the bytes of an answer; `read` gives the text, the tool input, the event types in order, and the sequence
numbers that a client of that dialect would see.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from gateway.context import eventstream, sse

JSON = "application/json"
SSE = "text/event-stream"
LINES = "application/x-ndjson"
AWS = "application/vnd.amazon.eventstream"


@dataclass
class Heard:
    """What a client got."""

    text: str = ""
    arguments: str = ""
    snapshots: list[str] = field(default_factory=list)  # texts and arguments repeated as a whole
    types: list[str] = field(default_factory=list)
    numbers: list[int] = field(default_factory=list)


@dataclass(frozen=True)
class Dialect:
    """One dialect's stream: where it is spoken, how it is written and read."""

    name: str
    host: str
    path: str
    content_type: str
    events: Callable[[Sequence[str], Sequence[str]], Iterator[tuple[str, Any]]]
    hear: Callable[[Heard, str, Any], None]
    whole_arguments: bool = False  # tool input comes in one event, as an object

    def write(self, text: Sequence[str], arguments: Sequence[str]) -> bytes:
        """The bytes of an answer that says `text` and calls a tool with `arguments` (pieces of JSON)."""
        events = list(self.events(text, arguments))
        if self.content_type == SSE:
            return b"".join(_sse(name, data) for name, data in events)
        if self.content_type == LINES:
            return b"".join(_json(data) + b"\n" for _, data in events)
        if self.content_type == AWS:
            return b"".join(_frame(name, data) for name, data in events)
        return b"[" + b"\n,\r\n".join(_json(data) for _, data in events) + b"]\n"

    def read(self, answer: bytes) -> Heard:
        """What a client makes of the bytes; fails where they are not well-formed."""
        answer.decode("utf-8") if self.content_type != AWS else None
        heard = Heard()
        for name, data in self._events(answer):
            heard.types.append(name or str(data.get("type", "")) if isinstance(data, dict) else str(data))
            if isinstance(data, dict):
                if "sequence_number" in data:
                    heard.numbers.append(data["sequence_number"])
                self.hear(heard, name, data)
        return heard

    def _events(self, answer: bytes) -> Iterator[tuple[str, Any]]:
        if self.content_type == JSON:
            yield from (("", element) for element in json.loads(answer))
            return
        decoder: Any = {SSE: sse.Decoder, LINES: sse.JsonLines, AWS: eventstream.Decoder}[self.content_type]()
        for event in decoder.feed(answer):
            if event.data:
                yield event.name, "[DONE]" if event.data == "[DONE]" else json.loads(event.data)
        assert decoder.end() == b""


def _json(data: Any) -> bytes:
    return json.dumps(data, ensure_ascii=False).encode()


def _sse(name: str, data: Any) -> bytes:
    if name == ":":
        return f": {data}\n\n".encode()
    head = f"event: {name}\n".encode() if name else b""
    return head + b"data: " + (data.encode() if isinstance(data, str) else _json(data)) + b"\n\n"


def _frame(name: str, data: Any) -> bytes:
    payload = data
    if name == "chunk":
        payload = {"bytes": base64.b64encode(_json(data)).decode(), "p": "abcdefgh"}
    headers = ((":event-type", name), (":content-type", "application/json"), (":message-type", "event"))
    return eventstream.encode(headers, _json(payload))


# -- Anthropic -------------------------------------------------------------------------------------------------------


def _anthropic(text: Sequence[str], arguments: Sequence[str]) -> Iterator[tuple[str, Any]]:
    def named(data: dict[str, Any]) -> tuple[str, Any]:
        return data["type"], data

    yield named(
        {
            "type": "message_start",
            "message": {"id": "msg_1", "role": "assistant", "content": [], "usage": {"input_tokens": 3}},
        }
    )
    yield named({"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}})
    yield named({"type": "ping"})
    for piece in text:
        yield named(
            {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": piece}}
        )
        yield named({"type": "ping"})
    yield named({"type": "content_block_stop", "index": 0})
    yield named(
        {
            "type": "content_block_start",
            "index": 1,
            "content_block": {"type": "tool_use", "id": "t", "name": "f", "input": {}},
        }
    )
    for piece in arguments:
        yield named(
            {
                "type": "content_block_delta",
                "index": 1,
                "delta": {"type": "input_json_delta", "partial_json": piece},
            }
        )
    yield named({"type": "content_block_stop", "index": 1})
    yield named(
        {"type": "message_delta", "delta": {"stop_reason": "tool_use"}, "usage": {"output_tokens": 9}}
    )
    yield named({"type": "message_stop"})


def _hear_anthropic(heard: Heard, name: str, data: dict[str, Any]) -> None:
    delta = data.get("delta", {})
    heard.text += delta.get("text", "")
    heard.arguments += delta.get("partial_json", "")


# -- OpenAI ----------------------------------------------------------------------------------------------------------


def _chat(text: Sequence[str], arguments: Sequence[str]) -> Iterator[tuple[str, Any]]:
    def chunk(delta: dict[str, Any], finish: str | None = None) -> tuple[str, Any]:
        return "", {"id": "c", "choices": [{"index": 0, "delta": delta, "finish_reason": finish}]}

    yield chunk({"role": "assistant", "content": ""})
    for piece in text:
        yield chunk({"content": piece})
        yield ":", "OPENROUTER PROCESSING"
    yield chunk(
        {
            "tool_calls": [
                {"index": 0, "id": "t", "type": "function", "function": {"name": "f", "arguments": ""}}
            ]
        }
    )
    for piece in arguments:
        yield chunk({"tool_calls": [{"index": 0, "function": {"arguments": piece}}]})
    yield chunk({}, "tool_calls")
    yield "", {"id": "c", "choices": [], "usage": {"prompt_tokens": 3, "completion_tokens": 8}}
    yield "", "[DONE]"


def _hear_chat(heard: Heard, name: str, data: dict[str, Any]) -> None:
    for choice in data["choices"]:
        heard.text += choice["delta"].get("content") or ""
        for call in choice["delta"].get("tool_calls", []):
            heard.arguments += call["function"]["arguments"]


def _responses(text: Sequence[str], arguments: Sequence[str]) -> Iterator[tuple[str, Any]]:
    whole, call = "".join(text), "".join(arguments)
    part = {"type": "output_text", "text": whole, "annotations": []}
    message = {"type": "message", "id": "m", "role": "assistant", "content": [part]}
    function = {"type": "function_call", "id": "f", "call_id": "t", "name": "f", "arguments": call}
    place = {"item_id": "m", "output_index": 0, "content_index": 0}
    tool = {"item_id": "f", "output_index": 1}
    events: list[dict[str, Any]] = [
        {"type": "response.created", "response": {"id": "r", "output": []}},
        {"type": "response.output_item.added", "output_index": 0, "item": {**message, "content": []}},
        {"type": "response.content_part.added", **place, "part": {**part, "text": ""}},
        *(
            {"type": "response.output_text.delta", **place, "delta": piece, "obfuscation": "x"}
            for piece in text
        ),
        {"type": "response.output_text.done", **place, "text": whole},
        {"type": "response.content_part.done", **place, "part": part},
        {"type": "response.output_item.done", "output_index": 0, "item": message},
        {"type": "response.output_item.added", "output_index": 1, "item": {**function, "arguments": ""}},
        *({"type": "response.function_call_arguments.delta", **tool, "delta": piece} for piece in arguments),
        {"type": "response.function_call_arguments.done", **tool, "arguments": call},
        {"type": "response.output_item.done", "output_index": 1, "item": function},
        {
            "type": "response.completed",
            "response": {"id": "r", "output": [message, function], "usage": {"input_tokens": 1}},
        },
    ]
    for number, event in enumerate(events):
        yield event["type"], {"sequence_number": number, **event}


def _hear_responses(heard: Heard, name: str, data: dict[str, Any]) -> None:
    match name:
        case "response.output_text.delta":
            heard.text += data["delta"]
        case "response.function_call_arguments.delta":
            heard.arguments += data["delta"]
        case "response.output_text.done":
            heard.snapshots.append(data["text"])
        case "response.content_part.done":
            heard.snapshots.append(data["part"]["text"])
        case "response.function_call_arguments.done":
            heard.snapshots.append(data["arguments"])
        case "response.output_item.done" | "response.completed":
            for item in [data["item"]] if "item" in data else data["response"]["output"]:
                heard.snapshots.append(item.get("arguments") or item["content"][0]["text"])


# -- Gemini, Ollama, Cohere ------------------------------------------------------------------------------------------


def _gemini(text: Sequence[str], arguments: Sequence[str]) -> Iterator[tuple[str, Any]]:
    def chunk(part: dict[str, Any], **more: str) -> tuple[str, Any]:
        return "", {"candidates": [{"index": 0, "content": {"role": "model", "parts": [part]}, **more}]}

    for piece in text:
        yield chunk({"text": piece})
    yield chunk(
        {"functionCall": {"name": "f", "args": json.loads("".join(arguments))}, "thoughtSignature": "c2ln"}
    )
    yield chunk({"text": ""}, finishReason="STOP")


def _hear_gemini(heard: Heard, name: str, data: dict[str, Any]) -> None:
    for part in data["candidates"][0]["content"]["parts"]:
        heard.text += part.get("text", "")
        if "functionCall" in part:
            heard.arguments = json.dumps(part["functionCall"]["args"])


def _ollama(text: Sequence[str], arguments: Sequence[str]) -> Iterator[tuple[str, Any]]:
    for piece in text:
        yield "", {"model": "m", "message": {"role": "assistant", "content": piece}, "done": False}
    call = {"function": {"name": "f", "arguments": json.loads("".join(arguments))}}
    yield (
        "",
        {"model": "m", "message": {"role": "assistant", "content": "", "tool_calls": [call]}, "done": False},
    )
    yield "", {"model": "m", "message": {"role": "assistant", "content": ""}, "done": True, "eval_count": 3}


def _hear_ollama(heard: Heard, name: str, data: dict[str, Any]) -> None:
    heard.text += data["message"]["content"]
    for call in data["message"].get("tool_calls", []):
        heard.arguments = json.dumps(call["function"]["arguments"])


def _cohere(text: Sequence[str], arguments: Sequence[str]) -> Iterator[tuple[str, Any]]:
    def named(kind: str, **members: Any) -> tuple[str, Any]:
        return kind, {"type": kind, **members}

    yield named("message-start", id="1", delta={"message": {"role": "assistant", "content": []}})
    yield named("content-start", index=0, delta={"message": {"content": {"type": "text", "text": ""}}})
    for piece in text:
        yield named("content-delta", index=0, delta={"message": {"content": {"text": piece}}})
    yield named("content-end", index=0)
    call = {"id": "t", "type": "function", "function": {"name": "f", "arguments": ""}}
    yield named("tool-call-start", index=0, delta={"message": {"tool_calls": call}})
    for piece in arguments:
        yield named(
            "tool-call-delta", index=0, delta={"message": {"tool_calls": {"function": {"arguments": piece}}}}
        )
    yield named("tool-call-end", index=0)
    yield named("message-end", delta={"finish_reason": "TOOL_CALL", "usage": {"tokens": {"input_tokens": 1}}})


def _hear_cohere(heard: Heard, name: str, data: dict[str, Any]) -> None:
    message = data.get("delta", {}).get("message", {})
    if name == "content-delta":
        heard.text += message["content"]["text"]
    if name == "tool-call-delta":
        heard.arguments += message["tool_calls"]["function"]["arguments"]


# -- Bedrock ---------------------------------------------------------------------------------------------------------


def _converse(text: Sequence[str], arguments: Sequence[str]) -> Iterator[tuple[str, Any]]:
    yield "messageStart", {"role": "assistant"}
    for piece in text:
        yield "contentBlockDelta", {"contentBlockIndex": 0, "delta": {"text": piece}, "p": "abc"}
    yield "contentBlockStop", {"contentBlockIndex": 0}
    yield "contentBlockStart", {"contentBlockIndex": 1, "start": {"toolUse": {"toolUseId": "t", "name": "f"}}}
    for piece in arguments:
        yield "contentBlockDelta", {"contentBlockIndex": 1, "delta": {"toolUse": {"input": piece}}}
    yield "contentBlockStop", {"contentBlockIndex": 1}
    yield "messageStop", {"stopReason": "tool_use"}
    yield "metadata", {"usage": {"inputTokens": 1, "outputTokens": 2}}


def _hear_converse(heard: Heard, name: str, data: dict[str, Any]) -> None:
    delta = data.get("delta", {})
    heard.text += delta.get("text", "")
    heard.arguments += delta.get("toolUse", {}).get("input", "")


def _invoke(text: Sequence[str], arguments: Sequence[str]) -> Iterator[tuple[str, Any]]:
    for _, data in _anthropic(text, arguments):
        yield "chunk", data


MODEL = "/model/anthropic.claude-3-haiku-20240307-v1%3A0"
AWS_HOST = "bedrock-runtime.us-east-1.amazonaws.com"
GOOGLE = "generativelanguage.googleapis.com"
STREAM = "/v1beta/models/gemini-x:streamGenerateContent"
DIALECTS = (
    Dialect("anthropic", "api.anthropic.com", "/v1/messages", SSE, _anthropic, _hear_anthropic),
    Dialect("chat", "api.openai.com", "/v1/chat/completions", SSE, _chat, _hear_chat),
    Dialect("responses", "api.openai.com", "/v1/responses", SSE, _responses, _hear_responses),
    Dialect("gemini", GOOGLE, STREAM, SSE, _gemini, _hear_gemini, whole_arguments=True),
    Dialect("gemini-array", GOOGLE, STREAM, JSON, _gemini, _hear_gemini, whole_arguments=True),
    Dialect("ollama", "ollama.com", "/api/chat", LINES, _ollama, _hear_ollama, whole_arguments=True),
    Dialect("cohere", "api.cohere.com", "/v2/chat", SSE, _cohere, _hear_cohere),
    Dialect("converse", AWS_HOST, f"{MODEL}/converse-stream", AWS, _converse, _hear_converse),
    Dialect("invoke", AWS_HOST, f"{MODEL}/invoke-with-response-stream", AWS, _invoke, _hear_anthropic),
)
