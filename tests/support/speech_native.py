"""What a model says in the wire shapes of Mistral, Cohere, Ollama and Bedrock; see `tests.support.speech`."""

from __future__ import annotations

import base64
import json
from collections.abc import Iterator
from typing import Any

from gateway.context import eventstream
from tests.support.speech import Call, Say, Shape, Step, anthropic, chat, event, pieces, stream, whole

# -- Mistral ---------------------------------------------------------------------------------------------------------


def mistral(step: Step, model: str, *, streamed: bool) -> Shape:
    """POST /v1/chat/completions of Mistral: as OpenAI's, but a call comes whole in one chunk."""
    headers, written = chat(step, model, streamed=streamed)
    if not streamed or isinstance(step, Say):
        return headers, written
    function = {"name": step.name, "arguments": json.dumps(step.arguments)}
    call = {"index": 0, "id": f"call{step.n:05}", "type": "function", "function": function}
    delta = {"content": "", "tool_calls": [call]}
    chunk = json.loads(written[0].removeprefix(b"data: "))
    chunk["choices"] = [{"index": 0, "delta": delta, "finish_reason": "tool_calls"}]
    return headers, [written[0], event(chunk), *written[-2:]]


# -- Cohere v2 -------------------------------------------------------------------------------------------------------


def cohere(step: Step, model: str, *, streamed: bool) -> Shape:
    """POST /v2/chat."""
    usage = {
        "billed_units": {"input_tokens": 5, "output_tokens": 5},
        "tokens": {"input_tokens": 70, "output_tokens": 6},
    }
    reason = "COMPLETE" if isinstance(step, Say) else "TOOL_CALL"
    if streamed:
        return stream(_cohere_events(step, reason, usage))
    message: dict[str, Any] = {"role": "assistant"}
    if isinstance(step, Say):
        message["content"] = [{"type": "text", "text": step.text}]
    else:
        message["tool_plan"] = "I will use a tool."
        message["tool_calls"] = [_cohere_call(step, json.dumps(step.arguments))]
    return whole({"id": "c-1", "finish_reason": reason, "message": message, "usage": usage})


def _cohere_call(step: Call, arguments: str) -> dict[str, Any]:
    function = {"name": step.name, "arguments": arguments}
    return {"id": f"{step.name}_{step.n}", "type": "function", "function": function}


def _cohere_events(step: Step, reason: str, usage: dict[str, Any]) -> Iterator[bytes]:
    def typed(kind: str, **members: Any) -> bytes:
        return event({"type": kind, **members}, kind)

    opened = {"role": "assistant", "content": [], "tool_plan": "", "tool_calls": [], "citations": []}
    yield typed("message-start", id="c-1", delta={"message": opened})
    if isinstance(step, Say):
        content = {"type": "text", "text": ""}
        yield typed("content-start", index=0, delta={"message": {"content": content}})
        for piece in pieces(step.text):
            yield typed("content-delta", index=0, delta={"message": {"content": {"text": piece}}})
        yield typed("content-end", index=0)
    else:
        yield typed("tool-plan-delta", delta={"message": {"tool_plan": "I will use a tool."}})
        call = _cohere_call(step, "")
        yield typed("tool-call-start", index=0, delta={"message": {"tool_calls": call}})
        for piece in pieces(json.dumps(step.arguments)):
            function = {"function": {"arguments": piece}}
            yield typed("tool-call-delta", index=0, delta={"message": {"tool_calls": function}})
        yield typed("tool-call-end", index=0)
    yield typed("message-end", id="c-1", delta={"finish_reason": reason, "usage": usage})


# -- Ollama ----------------------------------------------------------------------------------------------------------


def ollama(step: Step, model: str, *, streamed: bool) -> Shape:
    """POST /api/chat: one JSON document a line. Calls come whole."""

    def line(message: dict[str, Any], **more: Any) -> bytes:
        said = {"role": "assistant", "content": "", **message}
        document = {"model": model, "created_at": "2026-11-30T00:00:00Z", "message": said, **more}
        return json.dumps(document).encode() + b"\n"

    ended = {"done": True, "done_reason": "stop", "prompt_eval_count": 5, "eval_count": 6}
    calls = (
        {"tool_calls": [{"function": {"name": step.name, "arguments": step.arguments}}]}
        if isinstance(step, Call)
        else {}
    )
    said = {"content": step.text} if isinstance(step, Say) else calls
    if not streamed:
        return whole(json.loads(line(said, **ended)))
    cut = [{"content": piece} for piece in pieces(step.text)] if isinstance(step, Say) else [calls]
    lines = [*(line(message, done=False) for message in cut), line({}, **ended)]
    return [("content-type", "application/x-ndjson")], lines


# -- Bedrock ---------------------------------------------------------------------------------------------------------


def converse(step: Step, model: str, *, streamed: bool) -> Shape:
    """POST /model/{model}/converse, or /converse-stream."""
    reason = "end_turn" if isinstance(step, Say) else "tool_use"
    usage = {"inputTokens": 5, "outputTokens": 6, "totalTokens": 11}
    if isinstance(step, Call):
        start = {"toolUse": {"toolUseId": f"tooluse_{step.n}", "name": step.name}}
        part: dict[str, Any] = {"toolUse": {**start["toolUse"], "input": step.arguments}}
        deltas = [{"toolUse": {"input": piece}} for piece in pieces(json.dumps(step.arguments))]
    else:
        start, part = {}, {"text": step.text}
        deltas = [{"text": piece} for piece in pieces(step.text)]
    if not streamed:
        message = {"role": "assistant", "content": [part]}
        metrics = {"latencyMs": 12}
        return whole(
            {"output": {"message": message}, "stopReason": reason, "usage": usage, "metrics": metrics}
        )
    frames = [_frame("messageStart", {"role": "assistant", "p": "abcd"})]
    if start:
        frames.append(_frame("contentBlockStart", {"contentBlockIndex": 0, "start": start, "p": "ab"}))
    frames += [
        _frame("contentBlockDelta", {"contentBlockIndex": 0, "delta": delta, "p": "abcdef"})
        for delta in deltas
    ]
    frames.append(_frame("contentBlockStop", {"contentBlockIndex": 0, "p": "a"}))
    frames.append(_frame("messageStop", {"stopReason": reason, "p": "abc"}))
    frames.append(_frame("metadata", {"usage": usage, "metrics": {"latencyMs": 12}, "p": "abcdefg"}))
    return [("content-type", "application/vnd.amazon.eventstream")], frames


def invoke(step: Step, model: str, *, streamed: bool) -> Shape:
    """POST /model/{model}/invoke, or /invoke-with-response-stream, of an Anthropic model."""
    headers, written = anthropic(step, model, streamed=streamed)
    if not streamed:
        return headers, written
    events = [piece.split(b"data: ", 1)[1].strip() for piece in written]
    frames = [_frame("chunk", {"bytes": base64.b64encode(e).decode(), "p": "abcdefghij"}) for e in events]
    return [("content-type", "application/vnd.amazon.eventstream")], frames


def _frame(name: str, payload: Any) -> bytes:
    headers = ((":event-type", name), (":content-type", "application/json"), (":message-type", "event"))
    return eventstream.encode(headers, json.dumps(payload).encode())
