"""Anthropic Messages: api.anthropic.com, and Copilot, OpenRouter, Foundry, Vertex and local servers speak it too.

Thinking blocks are signed over what they say and over everything before them, so they are read and never
edited.
"""

from __future__ import annotations

import re
from typing import Any, Final, override

from gateway.context.objects import Channel, Json, ObjectKind, WalkRules
from gateway.ports import Delta, EventReading, Refusal
from gateway.providers import base, hosts
from gateway.providers.dialect import Dialect

_PATH: Final = re.compile(
    r"(?!.*/threads/)(?:/[^/]+)*/(?:messages(?:/count_tokens|/batches(?:/.*)?)?|complete)"
    r"|.*/publishers/anthropic/models/[^/]+:(?:streamrawpredict|rawpredict)"
)
_KINDS: Final = {
    "tool_use": (ObjectKind.TOOL_CALL, Channel.ASSISTANT),
    "server_tool_use": (ObjectKind.TOOL_CALL, Channel.ASSISTANT),
    "mcp_tool_use": (ObjectKind.TOOL_CALL, Channel.ASSISTANT),
    "thinking": (ObjectKind.THINKING, Channel.ASSISTANT),
    "compaction": (ObjectKind.THINKING, Channel.ASSISTANT),
    "redacted_thinking": (ObjectKind.SEALED, Channel.ASSISTANT),
    "tool_addition": (ObjectKind.TOOL_DEFINITION, Channel.OTHER),
    "tool_removal": (ObjectKind.TOOL_DEFINITION, Channel.OTHER),
}
_FILES: Final = {
    "image": ObjectKind.MEDIA,
    "document": ObjectKind.DOCUMENT,
    "search_result": ObjectKind.DOCUMENT,
}
_SIGNED: Final = frozenset({"thinking", "redacted_thinking", "compaction"})
_SIGNED_DELTAS: Final = frozenset({"thinking_delta", "signature_delta", "compaction_delta"})
_PIECES: Final = {"text_delta": ("text", False), "input_json_delta": ("partial_json", True)}


def _part(value: Any, role: str) -> base.Reading:
    """One content part, or a message's whole text."""
    if isinstance(value, list):
        return None
    kind = base.type_of(value)
    if kind in _KINDS:
        return _KINDS[kind]
    if kind.endswith("tool_result"):
        return ObjectKind.TOOL_RESULT, Channel.TOOL
    channel = base.by_role(role)[1]
    if kind == "container_upload" or (
        kind in _FILES and base.text_at(value, "source", "type") in {"url", "file"}
    ):
        return ObjectKind.REFERENCE, channel
    return (_FILES[kind], channel) if kind in _FILES else base.by_role(role)


def _shape() -> base.Shape:
    system = base.constant(ObjectKind.SYSTEM, Channel.SYSTEM)
    tool = base.constant(ObjectKind.TOOL_DEFINITION, Channel.OTHER)
    shape = base.Shape(
        {
            "system": system,
            "system[]": system,
            "messages[].content": _part,
            "messages[].content[]": _part,
            "tools[]": tool,
            "prompt": base.constant(ObjectKind.TEXT, Channel.USER),
        }
    )
    batch = base.Shape()
    batch.members.update(shape.members)
    batch.graft("requests[].params", shape)
    return batch


_SHAPE: Final = _shape()


def _error(refusal: Refusal, text: str) -> Json:
    kind = {413: "request_too_large", 503: "api_error"}.get(refusal.status, "invalid_request_error")
    return {"type": "error", "error": {"type": kind, "message": text}, "request_id": refusal.request_id}


class AnthropicMessages(Dialect):
    """The Messages API: requests, count_tokens, batches, and its events."""

    id = "anthropic"
    paths = _PATH
    shape = _SHAPE
    errors = base.Errors(_error, id_header="request-id")
    error_event = "error"
    text_arguments = False
    rules = WalkRules(
        structural=base.SCHEMA_STRUCTURAL
        | base.names(
            "id name role model tool_use_id media_type server_name tool_name custom_id user_id scope ttl "
            "stop_reason service_tier anthropic_version anthropic_beta betas effort caller tool_id allowed_callers "
            "error_code inference_geo container_id skill_id authorization_token authorization command_type mode "
            "strategy eager_input_streaming"
        ),
        sealed=frozenset({"signature", "encrypted_content", "encrypted_stdout", "encrypted_index"}),
        thinking=frozenset({"thinking"}),
        references=frozenset({"url", "file_id", "container", "previous_message_id"}),
        media=frozenset({"data"}),
        free_form=frozenset({"input", "input_examples", "default", "examples"}),
        known_names=base.SCHEMA_NAMES
        | base.names(
            "messages system content text source context citations cited_text tools tool_choice max_tokens "
            "temperature top_p top_k stop_sequences stream metadata mcp_servers headers input_schema is_error "
            "cache_control output_config budget_tokens requests params prompt context_management edits trigger "
            "value keep clear_at_least exclude_tools diagnostics stdout stderr return_code "
            "disable_parallel_tool_use allowed_tools allowed_domains speed blocked_domains max_uses user_location "
            "city region country timezone page_age enabled tool_configuration start_char_index end_char_index "
            "document_index document_title display start_page_number end_page_number start_block_index "
            "end_block_index search_result_index schema max_tokens_to_sample skills file_type lines num_lines "
            "start_line total_lines usage defer_loading retrieved_at display_width_px display_height_px "
            "display_number block_binding prefix_mismatch_behavior clear_thinking clear_tool_inputs task_budget "
            "total remaining"
        ),
    )

    @override
    def destination(self, host: str, path: str, body: Json) -> tuple[str, str]:
        """The model stands in the body, on Vertex in the path."""
        found = re.search(r"/models/([^/:]+)", path)
        model = base.text_at(body, "model") or (found[1] if found else "")
        return hosts.provider(host), model or base.text_at(body, "requests", 0, "params", "model")

    @override
    def read_event(self, name: str, data: Json) -> EventReading:
        """Events of a stream (platform.claude.com, streaming); a whole message reads as one event."""
        kind = base.type_of(data) or name
        key = str(data.get("index", "")) if isinstance(data, dict) else ""
        match kind:
            case "content_block_start":
                return self._start(data, key)
            case "content_block_delta":
                delta = base.text_at(data, "delta", "type")
                if delta in _SIGNED_DELTAS:
                    return EventReading(whole=False)
                if delta in _PIECES:
                    member, json_string = _PIECES[delta]
                    return EventReading((Delta(("delta", member), key, json_string),))
            case "content_block_stop":
                return EventReading(ends=(key,))
            case "completion":
                return EventReading((Delta(("completion",), key),))
            case "message_stop" | "error":
                return EventReading(ends=("*",))
            case "message":
                return EventReading(ends=("*",), sealed=_signed_parts(data))
            case _:
                pass
        return EventReading()

    def _start(self, data: Json, key: str) -> EventReading:
        kind = base.text_at(data, "content_block", "type")
        if kind in _SIGNED:
            return EventReading(whole=False)
        deltas = (
            (Delta(("content_block", "text"), key),) if base.text_at(data, "content_block", "text") else ()
        )
        return EventReading(deltas)


def _signed_parts(data: Json) -> tuple[tuple[str | int, ...], ...]:
    parts = data.get("content") if isinstance(data, dict) else None
    if not isinstance(parts, list):
        return ()
    return tuple(("content", i) for i, part in enumerate(parts) if base.type_of(part) in _SIGNED)
