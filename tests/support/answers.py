"""What a request asks of a model, the same for every dialect, and realistic answers to it.

`realistic` echoes the last text it was given, or first asks for a planned tool: good enough for the official SDKs and
for agents. How answers look on the wire is `tests.support.speech`.
"""

from __future__ import annotations

import gzip
import json
import zlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

import zstandard

from tests.support import speech, speech_native
from tests.support.speech import Call, Say, Shape, Step

type Parts = tuple[int, list[tuple[str, str]], list[bytes]]
"""Status, headers and network writes of an answer."""

# What an agent is asked to run when it offers one of these tools and has not answered with a result yet.
PLAN: dict[str, dict[str, Any]] = {
    "Bash": {"command": "echo from-a-tool", "description": "Say something"},
    "exec_command": {"cmd": "echo from-a-tool"},
    "shell": {"command": ["bash", "-lc", "echo from-a-tool"]},
    "shell_command": {"command": "echo from-a-tool"},
    "run_shell_command": {"command": "echo from-a-tool"},
    "bash": {"command": "echo from-a-tool", "description": "Say something"},
}


class Dialect(Protocol):
    """How a step is written on the wire."""

    def __call__(self, step: Step, model: str, *, streamed: bool) -> Shape:
        """Headers and network writes."""
        ...


@dataclass
class Asked:
    """What a request asks for. `results` are the texts of all tool results, oldest first."""

    dialect: Dialect
    model: str = "fake-model"
    stream: bool = False
    last: str = ""
    answered: bool = False  # the last message is a tool's result
    tools: list[str] = field(default_factory=list)
    results: list[str] = field(default_factory=list)
    wants_json: bool = False

    def answer(self, step: Step) -> Parts:
        """A step as this client wants it."""
        return (200, *self.dialect(step, self.model, streamed=self.stream))


def realistic(target: str, coding: str | None, body: bytes) -> Parts:
    """Status, headers and network writes for a request; an unknown one gets a small document."""
    request = asked(target, coding, body)
    if request is not None:
        call = None if request.answered else next((name for name in request.tools if name in PLAN), None)
        return request.answer(Call(call, PLAN[call]) if call else Say(f"You said: {request.last}"))
    path = target.partition("?")[0]
    if path.endswith("/count_tokens"):
        return (200, *speech.whole({"input_tokens": 7}))
    if path.endswith("/models"):
        models = [{"id": "fake-model", "object": "model"}]
        return (200, *speech.whole({"object": "list", "data": models, "models": []}))
    return (200, *speech.whole({"ok": True, "bytes": len(body)}))


def asked(target: str, coding: str | None, body: bytes) -> Asked | None:
    """Read a request; None for one that asks no model."""
    path = target.partition("?")[0]
    try:
        request = json.loads(decoded(coding, body) or b"{}")
    except (ValueError, zlib.error, OSError, zstandard.ZstdError):
        request = {}
    if not isinstance(request, dict):
        request = {}
    if path.endswith("/chat/completions"):
        is_mistral = str(request.get("model")).startswith("mistral")
        return _asked_messages(speech_native.mistral if is_mistral else speech.chat, request)
    if path.endswith("/responses"):
        return _asked_responses(request)
    if path.endswith("/messages"):
        return _asked_messages(speech.anthropic, request)
    if path.startswith("/model/"):
        return _asked_bedrock(request, path)
    if path.endswith("/v2/chat"):
        return _asked_messages(speech_native.cohere, request)
    if path.endswith("/api/chat"):
        return _asked_messages(speech_native.ollama, {"stream": True, **request})
    return _asked_gemini(request, path) if "enerateContent" in path else None


def decoded(coding: str | None, body: bytes) -> bytes:
    """A body without its content coding."""
    if coding == "zstd":
        return bytes(zstandard.ZstdDecompressor().decompressobj().decompress(body))
    if coding == "gzip":
        return gzip.decompress(body)
    return zlib.decompress(body) if coding == "deflate" else body


def _texts(content: Any) -> str:
    """All text of a message's content, whatever its shape."""
    if isinstance(content, str):
        return content
    if isinstance(content, Mapping):
        names = ("text", "content", "output", "document")
        inner = next((content[name] for name in names if content.get(name)), "")
        return _texts(inner or json.loads(content.get("data", '{"result": ""}'))["result"])
    return "\n".join(t for t in map(_texts, content) if t) if isinstance(content, list) else ""


def _names(tools: Any) -> Iterator[str]:
    for tool in tools if isinstance(tools, list) else []:
        yield str(tool.get("name") or tool.get("function", {}).get("name") or "")
        yield from (str(f.get("name")) for f in tool.get("functionDeclarations", []))
        yield from _names(tool.get("tools"))


def _asked_messages(dialect: Dialect, request: dict[str, Any]) -> Asked:
    """Chat completions and Messages: a list of messages."""
    found = Asked(dialect, str(request.get("model")), bool(request.get("stream")))
    found.tools += _names(request.get("tools"))
    for message in request.get("messages", []):
        content, role = message.get("content"), message.get("role")
        blocks = [b for b in content if b.get("type") == "tool_result"] if isinstance(content, list) else []
        found.results += [_texts(block) for block in blocks]
        if role == "tool":
            found.results.append(_texts(content))
        if role in {"user", "tool"}:
            found.last, found.answered = _texts(content) or found.last, role == "tool" or bool(blocks)
    return found


def _asked_bedrock(request: dict[str, Any], path: str) -> Asked | None:
    """Converse and, with an Anthropic model, Invoke."""
    model, _, operation = path.removeprefix("/model/").partition("/")
    streamed = operation.endswith("-stream")
    if operation.startswith("invoke"):
        return _asked_messages(speech_native.invoke, {**request, "model": model, "stream": streamed})
    if not operation.startswith("converse"):
        return None
    found = Asked(speech_native.converse, model, streamed)
    specs = [tool.get("toolSpec", {}) for tool in request.get("toolConfig", {}).get("tools", [])]
    found.tools += [str(spec.get("name")) for spec in specs]
    for message in request.get("messages", []):
        parts = message.get("content", [])
        results = [_texts(p["toolResult"].get("content")) for p in parts if "toolResult" in p]
        found.results += results
        if message.get("role") == "user":
            found.last, found.answered = (results or [_texts(parts)])[-1], bool(results)
    return found


def _asked_responses(request: dict[str, Any]) -> Asked:
    given = request.get("input", [])
    found = Asked(speech.responses, str(request.get("model")), bool(request.get("stream")))
    found.tools += _names(request.get("tools"))
    for item in [{"role": "user", "content": given}] if isinstance(given, str) else given:
        if item.get("type") == "additional_tools":
            found.tools += _names(item.get("tools"))
        elif str(item.get("type", "")).endswith("_call_output"):
            found.last, found.answered = _texts(item.get("output")), True
            found.results.append(found.last)
        elif item.get("role") == "user":
            found.last, found.answered = _texts(item.get("content")), False
    return found


def _asked_gemini(request: dict[str, Any], path: str) -> Asked:
    inner = request.get("request", request)  # Code Assist wraps it
    found = Asked(speech.gemini, path.partition(":")[0].rpartition("/")[2], "stream" in path)
    found.tools += _names(inner.get("tools"))
    generation = inner.get("generationConfig", {})
    found.wants_json = generation.get("responseMimeType") == "application/json"
    for content in inner.get("contents", []):
        parts = content.get("parts", [])
        results = [
            json.dumps(p["functionResponse"].get("response")) for p in parts if "functionResponse" in p
        ]
        if results:
            found.last, found.answered = results[-1], True
            found.results += results
        elif content.get("role", "user") == "user":
            found.last, found.answered = _texts(parts), False
    return found
