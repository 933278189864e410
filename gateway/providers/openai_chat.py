"""OpenAI Chat Completions, and the many that speak it; completions, embeddings and their relatives too.

The shape also covers the native bodies of Cohere, Mistral and Ollama, which differ in a few members only.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, Final

from gateway.context.objects import Block, Channel, Json, ObjectKind, WalkRules
from gateway.ports import Delta, EventReading, NativeAnswer, Refusal
from gateway.providers import base, hosts, refusals

_PATH: Final = re.compile(
    r"(?:/[^/]+)*/(?:(?:chat|fim|agents)/completions|completions|completion|infill|embeddings|embed|moderations|rerank"
    r"|api/(?:chat|generate|embed|embeddings)|v[12]/(?:chat|embed|rerank|generate|classify|summarize)"
    r"|images/generations|audio/speech|multimodalembeddings|contextualizedembeddings|inference|tokenize)"
)
_PARTS: Final = {
    "image_url": ObjectKind.MEDIA,
    "image": ObjectKind.MEDIA,
    "input_audio": ObjectKind.MEDIA,
    "video_url": ObjectKind.MEDIA,
    "document_url": ObjectKind.REFERENCE,
    "reference": ObjectKind.REFERENCE,
    "file": ObjectKind.DOCUMENT,
    "document": ObjectKind.DOCUMENT,
    "tool_result": ObjectKind.TOOL_RESULT,
    "tool_use": ObjectKind.TOOL_CALL,
    "thinking": ObjectKind.THINKING,
}
_TEXTS: Final = ("content", "refusal", "reasoning_content", "reasoning", "tool_plan")


def _part(value: Any, role: str) -> base.Reading:
    """A message's text or one of its parts."""
    if isinstance(value, list):
        return None
    kind, channel = base.by_role(role)
    part = base.type_of(value)
    if part in {"", "text"}:
        return kind, channel
    named = _PARTS.get(part, kind)
    url = base.text_at(value, "image_url", "url") or base.text_at(value, "image_url")
    if url and url[:5].lower() != "data:":
        named = ObjectKind.REFERENCE
    if base.text_at(value, "file", "file_id") and not base.text_at(value, "file", "file_data"):
        named = ObjectKind.REFERENCE
    return named, channel


def _prompt(value: Any, role: str) -> base.Reading:
    """A prompt or an input, or one of its elements; token ids hide text that nothing here can read."""
    if not isinstance(value, list):
        return None if isinstance(value, dict) and "content" in value else _part(value, role or "user")
    flat = value[0] if value and isinstance(value[0], list) else value
    return (ObjectKind.OPAQUE, Channel.USER) if flat and isinstance(flat[0], int) else None


def _shape() -> base.Shape:
    call = base.constant(ObjectKind.TOOL_CALL, Channel.ASSISTANT)
    tool = base.constant(ObjectKind.TOOL_DEFINITION, Channel.OTHER)
    user = base.constant(ObjectKind.TEXT, Channel.USER)
    system = base.constant(ObjectKind.SYSTEM, Channel.SYSTEM)
    document = base.constant(ObjectKind.DOCUMENT, Channel.USER)
    message: dict[str, base.Reader] = dict.fromkeys(_TEXTS, _part)
    message |= {
        "content[]": _part,
        "message": _part,
        "tool_calls[]": call,
        "function_call": call,
        "images[]": base.constant(ObjectKind.MEDIA, Channel.USER),
    }
    places: dict[str, base.Reader] = {
        f"{where}.{name}": reader
        for where in ("messages[]", "chat_history[]")
        for name, reader in message.items()
    }
    places |= {"tools[]": tool, "functions[]": tool}
    places |= dict.fromkeys(("system", "instructions", "preamble", "template"), system)
    places |= dict.fromkeys(("suffix", "query", "message", "input_extra[]", "prediction.content"), user)
    places |= {"prediction.content[]": user, "images[]": base.constant(ObjectKind.MEDIA, Channel.USER)}
    for name in ("prompt", "input", "inputs", "texts"):
        places |= {
            name: _prompt,
            f"{name}[]": _prompt,
            f"{name}[].content": _part,
            f"{name}[].content[]": _part,
        }
    places |= {"documents[]": document, "tool_results[]": base.constant(ObjectKind.TOOL_RESULT, Channel.TOOL)}
    return base.Shape(places)


_SHAPE: Final = _shape()


class OpenAIChat:
    """Chat Completions: choices with deltas, tool arguments as JSON in strings."""

    id = "openai_chat"
    version = "1"
    rules = WalkRules(
        structural=base.SCHEMA_STRUCTURAL
        | {
            "id",
            "name",
            "role",
            "model",
            "tool_call_id",
            "call_id",
            "user",
            "safety_identifier",
            "prompt_cache_key",
        }
        | {
            "service_tier",
            "reasoning_effort",
            "detail",
            "voice",
            "modalities",
            "encoding_format",
            "truncation",
            "size",
        }
        | {
            "authorization",
            "authorization_token",
            "key",
            "connection_string",
            "syntax",
            "verbosity",
            "quality",
            "style",
        }
        | {"input_type", "embedding_types", "keep_alive", "route", "models", "provider", "transforms"}
        | {"search_context_size", "finish_reason", "object", "mode", "effort"},
        sealed=frozenset({"signature", "encrypted_content", "reasoning_opaque"}),
        thinking=frozenset(),
        references=frozenset(
            {"file_id", "url", "image_url", "document_url", "file_url", "video_url", "conversation_id"}
        ),
        media=frozenset({"data", "file_data", "images", "image", "b64_json", "image_base64"}),
        free_form=frozenset({"metadata", "arguments", "default", "examples", "labels", "extra_body"}),
        known_names=base.SCHEMA_NAMES
        | {
            "messages",
            "content",
            "text",
            "refusal",
            "tool_calls",
            "function",
            "function_call",
            "custom",
            "input",
            "tools",
        }
        | {
            "functions",
            "tool_choice",
            "parallel_tool_calls",
            "parameters",
            "strict",
            "response_format",
            "json_schema",
        }
        | {
            "schema",
            "stream",
            "stream_options",
            "include_usage",
            "include_obfuscation",
            "temperature",
            "top_p",
            "top_k",
            "n",
        }
        | {
            "max_tokens",
            "max_completion_tokens",
            "presence_penalty",
            "frequency_penalty",
            "repetition_penalty",
            "seed",
            "stop",
        }
        | {
            "logit_bias",
            "logprobs",
            "top_logprobs",
            "store",
            "prediction",
            "audio",
            "input_audio",
            "file",
            "filename",
        }
        | {
            "web_search_options",
            "user_location",
            "approximate",
            "city",
            "country",
            "region",
            "timezone",
            "reasoning",
        }
        | {
            "reasoning_content",
            "reasoning_details",
            "prompt",
            "suffix",
            "echo",
            "best_of",
            "dimensions",
            "documents",
            "query",
        }
        | {
            "chat_history",
            "message",
            "preamble",
            "connectors",
            "tool_plan",
            "tool_results",
            "texts",
            "inputs",
            "options",
        }
        | {
            "num_ctx",
            "num_predict",
            "think",
            "raw",
            "system",
            "template",
            "index",
            "grammar",
            "definition",
            "cache_control",
        }
        | {
            "data_sources",
            "index_name",
            "endpoint",
            "authentication",
            "filters",
            "random_seed",
            "safe_prompt",
            "weight",
        }
        | {
            "annotations",
            "extra_headers",
            "thinking",
            "instructions",
            "response",
            "enabled",
            "exclude",
            "max_price",
            "plugins",
        },
    )

    def matches(self, host: str, path: str) -> bool:
        """Completions paths on any host."""
        return _PATH.fullmatch(path) is not None

    def blocks(self, body: Json) -> list[Block]:
        """Message parts, tool calls and definitions, prompts and inputs; then the parameters."""
        return base.list_blocks(body, _SHAPE)

    def destination(self, host: str, path: str, body: Json) -> tuple[str, str]:
        """The model stands in the body, on Azure the deployment in the path."""
        found = re.search(r"/(?:deployments|engines)/([^/]+)/", path)
        return hosts.provider(host), base.text_at(body, "model") or (found[1] if found else "")

    def read_event(self, name: str, data: Json) -> EventReading:
        """One chunk: each choice extends its own channels, and its finish ends them."""
        if not isinstance(data, dict):
            return EventReading(ends=("*",)) if data == "[DONE]" else EventReading()
        deltas: list[Delta] = []
        ends: list[str] = []
        choices = data.get("choices")
        for place, choice in enumerate(choices if isinstance(choices, list) else ()):
            if not isinstance(choice, dict):
                continue
            key = f"{choice.get('index', place)}:"
            deltas.extend(_choice(("choices", place), key, choice))
            if choice.get("finish_reason"):
                ends.append(key + "*")
        deltas.extend(_native(data))
        if data.get("done") is True or base.type_of(data) in _ENDINGS or "error" in data:
            ends.append("*")
        return EventReading(tuple(deltas), tuple(ends))

    def arguments(self, path: tuple[str | int, ...]) -> bool:
        """Tool calls of a whole answer carry their arguments as JSON in a string."""
        return path[-1:] == ("arguments",)

    def refuse(self, refusal: Refusal) -> NativeAnswer:
        """An invalid_request_error with the code gateway_blocked, or what the host's own clients read."""
        return refusals.refuse(refusal)

    def stream_error(self, refusal: Refusal) -> bytes:
        """An error in place of a chunk, which SDKs raise."""
        return refusals.stream_error(refusal)


_ENDINGS: Final = frozenset(
    {"message-end", "stream-end", "content-end", "tool-call-end", "transcript.text.done"}
)


_SAID_ONCE: Final = frozenset(
    {"role", "id", "type", "name", "tool_call_id", "signature", "encrypted_content"}
)


def _choice(path: tuple[str | int, ...], key: str, choice: dict[str, Any]) -> Iterator[Delta]:
    if isinstance(choice.get("text"), str):
        yield Delta((*path, "text"), key + "text")
    delta = choice.get("delta")
    if not isinstance(delta, dict):
        return
    inside = (*path, "delta")
    for name, text in delta.items():  # also those that nobody knows yet
        if text and isinstance(text, str) and name not in _SAID_ONCE:
            yield Delta((*inside, name), key + name)
    yield from _parts((*inside, "content"), key, delta.get("content"))
    if base.text_at(delta, "audio", "transcript"):
        yield Delta((*inside, "audio", "transcript"), key + "transcript")
    if base.text_at(delta, "function_call", "arguments"):
        yield Delta((*inside, "function_call", "arguments"), key + "function_call", json_string=True)
    calls = delta.get("tool_calls")
    for place, call in enumerate(calls if isinstance(calls, list) else ()):
        number = call.get("index", place) if isinstance(call, dict) else place
        for kind, member, json_string in (("function", "arguments", True), ("custom", "input", False)):
            if base.text_at(call, kind, member):
                where = (*inside, "tool_calls", place, kind, member)
                yield Delta(where, f"{key}tool:{number}", json_string, tool=not json_string)


def _parts(path: tuple[str | int, ...], key: str, content: Any) -> Iterator[Delta]:
    """Mistral's deltas of reasoning models: content as a list of parts, thinking as a list of parts again."""
    for place, part in enumerate(content if isinstance(content, list) else ()):
        kind = base.type_of(part)
        if base.text_at(part, "text"):
            yield Delta((*path, place, "text"), key + kind)
        inner = part.get("thinking") if isinstance(part, dict) else None
        yield from _parts((*path, place, "thinking"), f"{key}{kind}:", inner)


_OWN: Final = (
    # Ollama: chat, generate
    (("message", "content"), "content"),
    (("message", "thinking"), "thinking"),
    (("thinking",), "thinking"),
    # and those of Cohere
    (("delta", "message", "content", "text"), "text"),
    (("delta", "message", "content", "thinking"), "thinking"),
    (("delta", "message", "tool_plan"), "tool_plan"),
)


def _native(data: dict[str, Any]) -> Iterator[Delta]:
    """Streams of Ollama and Cohere, and of transcriptions."""
    key = str(data.get("index", "")) + ":"
    for path, name in _OWN:
        if base.text_at(data, *path):
            yield Delta(path, key + name)
    if isinstance(data.get("response"), str) and "done" in data:
        yield Delta(("response",), key + "content")
    if data.get("event_type") == "text-generation" and isinstance(data.get("text"), str):  # Cohere: v1
        yield Delta(("text",), key + "text")
    if base.type_of(data).endswith(".delta") and isinstance(data.get("delta"), str):
        yield Delta(("delta",), key + base.type_of(data))
    arguments = ("delta", "message", "tool_calls", "function", "arguments")
    if base.text_at(data, *arguments):
        yield Delta(arguments, key + ":tool", json_string=True)
