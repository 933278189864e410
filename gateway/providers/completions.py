"""What dialects of the Chat Completions family share: message parts, prompts, choices of a stream, member names.

OpenAI's own shape is `openai_chat`; Mistral, Cohere and Ollama differ from it each in a file of its own.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from gateway.context.objects import Channel, ObjectKind, WalkRules
from gateway.ports import Delta
from gateway.providers import base

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
TEXTS: Final = ("content", "refusal", "reasoning_content", "reasoning")


def part(value: Any, role: str) -> base.Reading:
    """A message's text or one of its parts."""
    if isinstance(value, list):
        return None
    kind, channel = base.by_role(role)
    kind_of = base.type_of(value)
    if kind_of in {"", "text"}:
        return kind, channel
    named = _PARTS.get(kind_of, kind)
    url = base.text_at(value, "image_url", "url") or base.text_at(value, "image_url")
    if url and url[:5].lower() != "data:":
        named = ObjectKind.REFERENCE
    if base.text_at(value, "file", "file_id") and not base.text_at(value, "file", "file_data"):
        named = ObjectKind.REFERENCE
    return named, channel


def prompt(value: Any, role: str) -> base.Reading:
    """A prompt or an input, or one of its elements; token ids hide text that nothing here can read."""
    if not isinstance(value, list):
        return None if isinstance(value, dict) and "content" in value else part(value, role or "user")
    flat = value[0] if value and isinstance(value[0], list) else value
    return (ObjectKind.OPAQUE, Channel.USER) if flat and isinstance(flat[0], int) else None


def messages(*texts: str, where: str = "messages[]") -> dict[str, base.Reader]:
    """The places of messages: their content, its parts, calls, and these other members that hold text."""
    call = base.constant(ObjectKind.TOOL_CALL, Channel.ASSISTANT)
    found: dict[str, base.Reader] = dict.fromkeys((*TEXTS, *texts), part)
    found |= {"content[]": part, "tool_calls[]": call, "function_call": call}
    return {f"{where}.{name}": reader for name, reader in found.items()}


def definitions() -> dict[str, base.Reader]:
    """The places of tool definitions."""
    tool = base.constant(ObjectKind.TOOL_DEFINITION, Channel.OTHER)
    return {"tools[]": tool, "functions[]": tool}


def prompts(*names: str) -> dict[str, base.Reader]:
    """The places of prompts and inputs under these names: a text, a list of texts, of messages, or token ids."""
    found: dict[str, base.Reader] = {}
    for name in names:
        found |= {name: prompt, f"{name}[]": prompt, f"{name}[].content": part, f"{name}[].content[]": part}
    return found


def choices(data: dict[str, Any]) -> tuple[list[Delta], list[str]]:
    """(deltas, channels that end) of one chunk: each choice extends its own channels, and its finish ends them."""
    deltas: list[Delta] = []
    ends: list[str] = []
    found = data.get("choices")
    for place, choice in enumerate(found if isinstance(found, list) else ()):
        if isinstance(choice, dict):
            key = f"{choice.get('index', place)}:"
            deltas.extend(_choice(("choices", place), key, choice))
            if choice.get("finish_reason"):
                ends.append(key + "*")
    return deltas, ends


_SAID_ONCE: Final = frozenset(
    {
        *("role", "id", "type", "name", "tool_call_id", "finish_reason"),
        *("signature", "thought_signature", "encrypted_content", "reasoning_opaque"),  # the provider's own
    }
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


RULES: Final = WalkRules(
    structural=base.SCHEMA_STRUCTURAL
    | base.names(
        "id name role model tool_call_id call_id user safety_identifier prompt_cache_key service_tier "
        "reasoning_effort detail voice modalities encoding_format truncation size authorization authorization_token "
        "key connection_string syntax verbosity quality style route models provider transforms search_context_size "
        "finish_reason object mode effort"
    ),
    sealed=frozenset({"signature", "encrypted_content", "reasoning_opaque"}),
    thinking=frozenset(),
    references=frozenset({"file_id", "url", "image_url", "file_url", "video_url"}),
    media=frozenset({"data", "file_data", "images", "image", "b64_json", "image_base64"}),
    free_form=frozenset({"metadata", "arguments", "default", "examples", "labels", "extra_body"}),
    known_names=base.SCHEMA_NAMES
    | base.names(
        "messages content text refusal tool_calls function function_call custom input tools functions tool_choice "
        "parallel_tool_calls parameters strict response_format json_schema schema stream stream_options "
        "include_usage include_obfuscation temperature top_p top_k n max_tokens max_completion_tokens "
        "presence_penalty frequency_penalty repetition_penalty seed stop logit_bias logprobs top_logprobs store "
        "prediction audio input_audio file filename web_search_options user_location approximate city country "
        "region timezone reasoning reasoning_content reasoning_details prompt suffix echo best_of dimensions "
        "documents query inputs system index grammar definition cache_control data_sources index_name endpoint "
        "authentication filters weight annotations extra_headers thinking instructions response enabled exclude "
        "max_price plugins"
    ),
)
"""Member names of the family."""
