"""What a model says, in the wire shapes of four dialects: a text or one tool call, whole or as a stream of events.

Streams are cut into pieces of a few characters, shorter than any placeholder, so that every value that a client gets
back whole was put together from several events.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

PIECE = 7  # characters of an event

type Shape = tuple[list[tuple[str, str]], list[bytes]]
"""Headers and network writes of an answer."""


@dataclass(frozen=True)
class Say:
    """The model ends its turn with a text."""

    text: str


@dataclass(frozen=True)
class Call:
    """The model calls a tool. Number `n` of the conversation, so that ids differ from turn to turn."""

    name: str
    arguments: dict[str, Any]
    n: int = 1


type Step = Say | Call


def whole(document: Any) -> Shape:
    """A JSON answer."""
    return [("content-type", "application/json")], [json.dumps(document).encode()]


def stream(events: Iterator[bytes]) -> Shape:
    """An event stream, one network write an event."""
    return [("content-type", "text/event-stream"), ("cache-control", "no-cache")], list(events)


def event(data: Any, name: str = "") -> bytes:
    """One server-sent event."""
    head = f"event: {name}\n" if name else ""
    return f"{head}data: {data if isinstance(data, str) else json.dumps(data)}\n\n".encode()


def pieces(text: str) -> Iterator[str]:
    """A text as a stream cuts it."""
    return (text[at : at + PIECE] for at in range(0, len(text), PIECE))


# -- Anthropic Messages ----------------------------------------------------------------------------------------------


def anthropic(step: Step, model: str, *, streamed: bool) -> Shape:
    """POST /v1/messages."""
    if isinstance(step, Say):
        block: dict[str, Any] = {"type": "text", "text": step.text}
        reason = "end_turn"
    else:
        block = {"type": "tool_use", "id": f"toolu_{step.n:04}", "name": step.name, "input": step.arguments}
        reason = "tool_use"
    message = {
        "id": "msg_scripted",
        "type": "message",
        "role": "assistant",
        "model": model,
        "content": [block],
        "stop_reason": reason,
        "stop_sequence": None,
        "usage": {"input_tokens": 5, "output_tokens": 5},
    }
    return stream(_anthropic_events(message, block, step)) if streamed else whole(message)


def _anthropic_events(message: dict[str, Any], block: dict[str, Any], step: Step) -> Iterator[bytes]:
    started = {**message, "content": [], "stop_reason": None}
    yield event({"type": "message_start", "message": started}, "message_start")
    if isinstance(step, Say):
        opened, key, kind, text = {**block, "text": ""}, "text", "text_delta", step.text
    else:
        opened, key, kind = {**block, "input": {}}, "partial_json", "input_json_delta"
        text = json.dumps(step.arguments)
    yield event({"type": "content_block_start", "index": 0, "content_block": opened}, "content_block_start")
    yield event({"type": "ping"}, "ping")
    for piece in pieces(text):
        delta = {"type": kind, key: piece}
        yield event({"type": "content_block_delta", "index": 0, "delta": delta}, "content_block_delta")
    yield event({"type": "content_block_stop", "index": 0}, "content_block_stop")
    ended = {"stop_reason": message["stop_reason"], "stop_sequence": None}
    yield event({"type": "message_delta", "delta": ended, "usage": {"output_tokens": 5}}, "message_delta")
    yield event({"type": "message_stop"}, "message_stop")


# -- OpenAI Chat -----------------------------------------------------------------------------------------------------


def chat(step: Step, model: str, *, streamed: bool) -> Shape:
    """POST /v1/chat/completions."""
    base = {"id": "chatcmpl-scripted", "created": 1_700_000_000, "model": model}
    if streamed:
        return stream(_chat_events({**base, "object": "chat.completion.chunk"}, step))
    message: dict[str, Any] = {"role": "assistant", "content": None, "refusal": None}
    if isinstance(step, Say):
        message["content"] = step.text
    else:
        function = {"name": step.name, "arguments": json.dumps(step.arguments)}
        message["tool_calls"] = [{"id": f"call_{step.n:04}", "type": "function", "function": function}]
    reason = "stop" if isinstance(step, Say) else "tool_calls"
    usage = {"prompt_tokens": 5, "completion_tokens": 5, "total_tokens": 10}
    choice = {"index": 0, "message": message, "finish_reason": reason, "logprobs": None}
    return whole({**base, "object": "chat.completion", "choices": [choice], "usage": usage})


def _chat_events(base: dict[str, Any], step: Step) -> Iterator[bytes]:
    def chunk(delta: dict[str, Any], reason: str | None = None) -> bytes:
        return event({**base, "choices": [{"index": 0, "delta": delta, "finish_reason": reason}]})

    yield chunk({"role": "assistant", "content": "" if isinstance(step, Say) else None})
    if isinstance(step, Say):
        for piece in pieces(step.text):
            yield chunk({"content": piece})
        yield chunk({}, "stop")
    else:
        head = {
            "id": f"call_{step.n:04}",
            "type": "function",
            "function": {"name": step.name, "arguments": ""},
        }
        yield chunk({"tool_calls": [{"index": 0, **head}]})
        for piece in pieces(json.dumps(step.arguments)):
            yield chunk({"tool_calls": [{"index": 0, "function": {"arguments": piece}}]})
        yield chunk({}, "tool_calls")
    usage = {"prompt_tokens": 5, "completion_tokens": 5, "total_tokens": 10}
    yield event({**base, "choices": [], "usage": usage})
    yield event("[DONE]")


# -- OpenAI Responses ------------------------------------------------------------------------------------------------


def responses(step: Step, model: str, *, streamed: bool) -> Shape:
    """POST /v1/responses. The same text stands in deltas, in `done` events and in the completed response."""
    if isinstance(step, Say):
        part = {"type": "output_text", "text": step.text, "annotations": []}
        item: dict[str, Any] = {"id": "msg_1", "type": "message", "role": "assistant", "content": [part]}
    else:
        call = {"call_id": f"call_{step.n:04}", "name": step.name, "arguments": json.dumps(step.arguments)}
        item = {"id": f"fc_{step.n}", "type": "function_call", **call}
    item["status"] = "completed"
    usage = {
        "input_tokens": 5,
        "input_tokens_details": {"cached_tokens": 0},
        "output_tokens": 5,
        "output_tokens_details": {"reasoning_tokens": 0},
        "total_tokens": 10,
    }
    response = {
        "id": f"resp_{getattr(step, 'n', 0):04}",
        "object": "response",
        "created_at": 1_700_000_000,
        "status": "completed",
        "model": model,
        "output": [item],
        "parallel_tool_calls": True,
        "tool_choice": "auto",
        "tools": [],
        "error": None,
        "incomplete_details": None,
        "instructions": None,
        "metadata": {},
        "temperature": 1.0,
        "top_p": 1.0,
        "usage": usage,
    }
    return stream(_responses_events(response, item, step)) if streamed else whole(response)


def _responses_events(response: dict[str, Any], item: dict[str, Any], step: Step) -> Iterator[bytes]:
    number = 0

    def typed(kind: str, **fields: Any) -> bytes:
        nonlocal number
        number += 1
        return event({"type": kind, "sequence_number": number - 1, **fields}, kind)

    at: dict[str, Any] = {"item_id": item["id"], "output_index": 0}
    begun = {**response, "status": "in_progress", "output": [], "usage": None}
    yield typed("response.created", response=begun)
    yield typed("response.in_progress", response=begun)
    if isinstance(step, Say):
        at["content_index"] = 0
        part = item["content"][0]
        opened = {**item, "status": "in_progress", "content": []}
        yield typed("response.output_item.added", output_index=0, item=opened)
        yield typed("response.content_part.added", **at, part={**part, "text": ""})
        for piece in pieces(step.text):
            yield typed("response.output_text.delta", **at, delta=piece, logprobs=[])
        yield typed("response.output_text.done", **at, text=step.text, logprobs=[])
        yield typed("response.content_part.done", **at, part=part)
    else:
        opened = {**item, "status": "in_progress", "arguments": ""}
        yield typed("response.output_item.added", output_index=0, item=opened)
        for piece in pieces(item["arguments"]):
            yield typed("response.function_call_arguments.delta", **at, delta=piece)
        yield typed(
            "response.function_call_arguments.done", **at, name=step.name, arguments=item["arguments"]
        )
    yield typed("response.output_item.done", output_index=0, item=item)
    yield typed("response.completed", response=response)


# -- Gemini ----------------------------------------------------------------------------------------------------------


def gemini(step: Step, model: str, *, streamed: bool) -> Shape:
    """POST .../models/{model}:generateContent, or :streamGenerateContent?alt=sse. Calls come whole, never in pieces."""

    def answer(part: dict[str, Any], *, last: bool) -> dict[str, Any]:
        candidate: dict[str, Any] = {"content": {"role": "model", "parts": [part]}, "index": 0}
        if last:
            candidate["finishReason"] = "STOP"
        usage = {"promptTokenCount": 5, "candidatesTokenCount": 5, "totalTokenCount": 10}
        return {"candidates": [candidate], "usageMetadata": usage, "modelVersion": model, "responseId": "r1"}

    if isinstance(step, Call):
        part = {"functionCall": {"name": step.name, "args": step.arguments}, "thoughtSignature": "c2ln"}
        document = answer(part, last=True)
        return stream(iter([event(document)])) if streamed else whole(document)
    if not streamed:
        return whole(answer({"text": step.text}, last=True))
    cut = list(pieces(step.text))
    return stream(event(answer({"text": piece}, last=n == len(cut))) for n, piece in enumerate(cut, 1))
