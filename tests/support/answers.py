"""Realistic answers of four dialects: they echo the last text they were given, or first ask for a planned tool.

Good enough for the official SDKs and for agents: streamed where the request says so, cut into small deltas, with ids,
usage and the events that clients wait for.
"""

from __future__ import annotations

import gzip
import json
import zlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

import zstandard

type Parts = tuple[int, list[tuple[str, str]], list[bytes]]

# What an agent is asked to run when it offers one of these tools and has not answered with a result yet.
PLAN: dict[str, dict[str, Any]] = {
    "Bash": {"command": "echo from-a-tool", "description": "Say something"},
    "exec_command": {"cmd": "echo from-a-tool"},
    "shell": {"command": ["bash", "-lc", "echo from-a-tool"]},
    "shell_command": {"command": "echo from-a-tool"},
    "run_shell_command": {"command": "echo from-a-tool"},
    "bash": {"command": "echo from-a-tool", "description": "Say something"},
}


@dataclass
class Asked:
    """What a request asks for, the same for every dialect."""

    model: str = "fake-model"
    stream: bool = False
    last: str = ""
    answered: bool = False  # the last message is a tool's result
    tools: list[str] = field(default_factory=list)

    @property
    def call(self) -> str | None:
        """The tool to ask for, if any."""
        return None if self.answered else next((name for name in self.tools if name in PLAN), None)

    @property
    def text(self) -> str:
        return f"You said: {self.last}"


def realistic(target: str, coding: str | None, body: bytes) -> Parts:
    """Status, headers and network writes for a request; an unknown one gets a small document."""
    path = target.partition("?")[0]
    try:
        request = json.loads(decoded(coding, body) or b"{}")
    except (ValueError, zlib.error, OSError, zstandard.ZstdError):
        request = {}
    if not isinstance(request, dict):
        request = {}
    if path.endswith("/chat/completions"):
        return _chat(_asked_openai(request))
    if path.endswith("/responses"):
        return _responses(_asked_responses(request))
    if path.endswith("/messages"):
        return _messages(_asked_openai(request))
    if "enerateContent" in path:
        return _gemini(_asked_gemini(request, path))
    if path.endswith("/count_tokens"):
        return _document({"input_tokens": 7})
    if path.endswith("/models"):
        return _document({"object": "list", "data": [{"id": "fake-model", "object": "model"}], "models": []})
    return _document({"ok": True, "bytes": len(body)})


def decoded(coding: str | None, body: bytes) -> bytes:
    """A body without its content coding."""
    if coding == "zstd":
        return bytes(zstandard.ZstdDecompressor().decompressobj().decompress(body))
    if coding == "gzip":
        return gzip.decompress(body)
    return zlib.decompress(body) if coding == "deflate" else body


def _document(document: Any, status: int = 200) -> Parts:
    return status, [("content-type", "application/json")], [json.dumps(document).encode()]


def _stream(events: Iterable[tuple[str, Any]]) -> Parts:
    pieces = []
    for name, data in events:
        payload = data if isinstance(data, str) else json.dumps(data)
        pieces.append((f"event: {name}\n" if name else "").encode() + f"data: {payload}\n\n".encode())
    return 200, [("content-type", "text/event-stream; charset=utf-8")], pieces


def _deltas(text: str, size: int = 7) -> list[str]:
    return [text[at : at + size] for at in range(0, len(text), size)] or [""]


def _texts(content: Any) -> str:
    """All text of a message's content, whatever its shape."""
    if isinstance(content, str):
        return content
    if isinstance(content, Mapping):
        return _texts(content.get("text") or content.get("content") or content.get("output") or "")
    return "\n".join(t for t in map(_texts, content) if t) if isinstance(content, list) else ""


def _names(tools: Any) -> list[str]:
    found = []
    for tool in tools if isinstance(tools, list) else []:
        found.append(str(tool.get("name") or tool.get("function", {}).get("name") or ""))
        found += [str(f.get("name")) for f in tool.get("functionDeclarations", [])]
        found += _names(tool.get("tools"))
    return found


# -- what was asked ------------------------------------------------------------------------------------------------


def _asked_openai(request: dict[str, Any]) -> Asked:
    """Chat completions and Messages: a list of messages."""
    asked = Asked(str(request.get("model")), bool(request.get("stream")), tools=_names(request.get("tools")))
    for message in request.get("messages", []):
        content = message.get("content")
        blocks = content if isinstance(content, list) else []
        result = message.get("role") == "tool" or any(b.get("type") == "tool_result" for b in blocks)
        if message.get("role") in {"user", "tool"}:
            asked.last, asked.answered = _texts(content) or asked.last, result
    return asked


def _asked_responses(request: dict[str, Any]) -> Asked:
    given = request.get("input", [])
    items = [{"role": "user", "content": given}] if isinstance(given, str) else given
    asked = Asked(str(request.get("model")), bool(request.get("stream")), tools=_names(request.get("tools")))
    for item in items:
        if item.get("type") == "additional_tools":
            asked.tools += _names(item.get("tools"))
        elif str(item.get("type", "")).endswith("_call_output"):
            asked.last, asked.answered = _texts(item.get("output")), True
        elif item.get("role") == "user":
            asked.last, asked.answered = _texts(item.get("content")), False
    return asked


def _asked_gemini(request: dict[str, Any], path: str) -> Asked:
    inner = request.get("request", request)  # Code Assist wraps it
    asked = Asked(
        path.partition(":")[0].rpartition("/")[2], "stream" in path, tools=_names(inner.get("tools"))
    )
    for content in inner.get("contents", []):
        parts = content.get("parts", [])
        results = [p["functionResponse"] for p in parts if "functionResponse" in p]
        if results:
            asked.last, asked.answered = json.dumps(results[-1].get("response")), True
        elif content.get("role", "user") == "user":
            asked.last, asked.answered = _texts(parts), False
    return asked


# -- what is answered ----------------------------------------------------------------------------------------------


def _chat(asked: Asked) -> Parts:
    usage = {"prompt_tokens": 7, "completion_tokens": 5, "total_tokens": 12}
    head = {"id": "chatcmpl-1", "created": 1, "model": asked.model}
    call = asked.call
    finish = "tool_calls" if call else "stop"
    function = {"name": call, "arguments": json.dumps(PLAN[call])} if call else {}
    if not asked.stream:
        message: dict[str, Any] = {"role": "assistant", "content": None if call else asked.text}
        if call:
            message["tool_calls"] = [{"id": "call_1", "type": "function", "function": function}]
        choice = {"index": 0, "message": message, "finish_reason": finish}
        return _document(head | {"object": "chat.completion", "choices": [choice], "usage": usage})
    deltas: list[dict[str, Any]] = [{"role": "assistant", "content": None if call else ""}]
    if call:
        first = {"index": 0, "id": "call_1", "type": "function", "function": {"name": call, "arguments": ""}}
        deltas.append({"tool_calls": [first]})
        deltas += [
            {"tool_calls": [{"index": 0, "function": {"arguments": piece}}]}
            for piece in _deltas(function["arguments"])
        ]
    else:
        deltas += [{"content": piece} for piece in _deltas(asked.text)]
    head["object"] = "chat.completion.chunk"
    chunks: list[Any] = [
        head | {"choices": [{"index": 0, "delta": delta, "finish_reason": None}]} for delta in deltas
    ]
    chunks.append(head | {"choices": [{"index": 0, "delta": {}, "finish_reason": finish}]})
    chunks.append(head | {"choices": [], "usage": usage})
    return _stream([("", chunk) for chunk in [*chunks, "[DONE]"]])


def _responses(asked: Asked) -> Parts:
    call = asked.call
    if call:
        arguments = json.dumps(PLAN[call])
        item: dict[str, Any] = {"type": "function_call", "id": "fc_1", "call_id": "call_1", "name": call}
        item |= {"arguments": arguments, "status": "completed"}
        began = item | {"arguments": "", "status": "in_progress"}
        inside = [
            ("response.function_call_arguments.delta", {"item_id": "fc_1", "output_index": 0, "delta": piece})
            for piece in _deltas(arguments)
        ]
        inside.append(
            (
                "response.function_call_arguments.done",
                {"item_id": "fc_1", "output_index": 0, "arguments": arguments, "name": call},
            )
        )
    else:
        part = {"type": "output_text", "text": asked.text, "annotations": []}
        item = {
            "type": "message",
            "id": "msg_1",
            "role": "assistant",
            "status": "completed",
            "content": [part],
        }
        began = item | {"content": [], "status": "in_progress"}
        place = {"item_id": "msg_1", "output_index": 0, "content_index": 0}
        inside = [("response.content_part.added", place | {"part": part | {"text": ""}})]
        inside += [
            ("response.output_text.delta", place | {"delta": piece, "logprobs": []})
            for piece in _deltas(asked.text)
        ]
        inside.append(("response.output_text.done", place | {"text": asked.text, "logprobs": []}))
        inside.append(("response.content_part.done", place | {"part": part}))
    details = {"input_tokens_details": {"cached_tokens": 0}, "output_tokens_details": {"reasoning_tokens": 0}}
    usage = {"input_tokens": 7, "output_tokens": 5, "total_tokens": 12, **details}
    whole = {
        "id": "resp_1",
        "object": "response",
        "created_at": 1,
        "model": asked.model,
        "status": "completed",
    }
    whole |= {
        "output": [item],
        "usage": usage,
        "error": None,
        "incomplete_details": None,
        "instructions": None,
    }
    whole |= {"parallel_tool_calls": True, "tool_choice": "auto", "tools": [], "metadata": {}}
    if not asked.stream:
        return _document(whole)
    start = whole | {"status": "in_progress", "output": [], "usage": None}
    events: list[tuple[str, dict[str, Any]]] = [
        ("response.created", {"response": start}),
        ("response.in_progress", {"response": start}),
        ("response.output_item.added", {"output_index": 0, "item": began}),
        *inside,
        ("response.output_item.done", {"output_index": 0, "item": item}),
        ("response.completed", {"response": whole}),
    ]
    return _stream(
        [(name, {"type": name, "sequence_number": n} | data) for n, (name, data) in enumerate(events)]
    )


def _messages(asked: Asked) -> Parts:
    call = asked.call
    block: dict[str, Any] = {"type": "text", "text": asked.text}
    if call:
        block = {"type": "tool_use", "id": "toolu_1", "name": call, "input": PLAN[call]}
    stop = "tool_use" if call else "end_turn"
    message = {
        "id": "msg_1",
        "type": "message",
        "role": "assistant",
        "model": asked.model,
        "content": [block],
    }
    message |= {"stop_reason": stop, "stop_sequence": None, "usage": {"input_tokens": 7, "output_tokens": 5}}
    if not asked.stream:
        return _document(message)
    if call:
        empty: dict[str, Any] = block | {"input": {}}
        deltas = [
            {"type": "input_json_delta", "partial_json": piece} for piece in _deltas(json.dumps(PLAN[call]))
        ]
    else:
        empty = block | {"text": ""}
        deltas = [{"type": "text_delta", "text": piece} for piece in _deltas(asked.text)]
    start = message | {"content": [], "stop_reason": None}
    events: list[dict[str, Any]] = [
        {"type": "message_start", "message": start},
        {"type": "content_block_start", "index": 0, "content_block": empty},
        {"type": "ping"},
        *({"type": "content_block_delta", "index": 0, "delta": delta} for delta in deltas),
        {"type": "content_block_stop", "index": 0},
        {
            "type": "message_delta",
            "delta": {"stop_reason": stop, "stop_sequence": None},
            "usage": {"output_tokens": 5},
        },
        {"type": "message_stop"},
    ]
    return _stream([(event["type"], event) for event in events])


def _gemini(asked: Asked) -> Parts:
    call = asked.call
    usage = {"promptTokenCount": 7, "candidatesTokenCount": 5, "totalTokenCount": 12}

    def chunk(part: dict[str, Any], last: bool) -> dict[str, Any]:
        candidate: dict[str, Any] = {"content": {"role": "model", "parts": [part]}, "index": 0}
        if last:
            candidate["finishReason"] = "STOP"
        return {
            "candidates": [candidate],
            "usageMetadata": usage,
            "modelVersion": asked.model,
            "responseId": "r1",
        }

    if call:
        whole = chunk({"functionCall": {"name": call, "args": PLAN[call]}}, last=True)
        return _stream([("", whole)]) if asked.stream else _document(whole)
    if not asked.stream:
        return _document(chunk({"text": asked.text}, last=True))
    pieces = _deltas(asked.text)
    return _stream([("", chunk({"text": p}, last=n == len(pieces) - 1)) for n, p in enumerate(pieces)])
