"""OpenAI Responses: over HTTP, SSE and WebSocket frames; the ChatGPT backend and Copilot speak it too.

Its relatives are read by the same shape: conversations, assistants and threads, and realtime client events.
Reasoning items go back as they came (their summary belongs to an encrypted value), so they are read and
never edited.
"""

from __future__ import annotations

import re
from typing import Any, Final, override

from gateway.context.objects import Channel, Json, ObjectKind, WalkRules
from gateway.ports import EventReading, Refusal
from gateway.providers import base, hosts, responses_events
from gateway.providers.dialect import Dialect

_PATH: Final = re.compile(
    r"(?:/[^/]+)*/(?:responses(?:/.*)?|conversations(?:/.*)?|assistants(?:/.*)?|threads(?:/.*)?"
    r"|realtime(?:/.*)?)|(?:/openai)?(?:/v1)?/live(?:/.*)?"
)
_ITEMS: Final = {
    "reasoning": (ObjectKind.THINKING, Channel.ASSISTANT),
    "compaction": (ObjectKind.SEALED, Channel.ASSISTANT),
    "compaction_summary": (ObjectKind.SEALED, Channel.ASSISTANT),
    "item_reference": (ObjectKind.REFERENCE, Channel.OTHER),
    "mcp_list_tools": (ObjectKind.TOOL_DEFINITION, Channel.OTHER),
    "mcp_approval_request": (ObjectKind.TOOL_CALL, Channel.ASSISTANT),
    "mcp_approval_response": (ObjectKind.TOOL_RESULT, Channel.TOOL),
    "image_generation_call": (ObjectKind.MEDIA, Channel.TOOL),
    # these calls carry what came back beside what was asked
    "mcp_call": (ObjectKind.TOOL_RESULT, Channel.TOOL),
    "file_search_call": (ObjectKind.TOOL_RESULT, Channel.TOOL),
    "code_interpreter_call": (ObjectKind.TOOL_RESULT, Channel.TOOL),
    "program": (ObjectKind.TOOL_CALL, Channel.ASSISTANT),
}
_PARTS: Final = {
    "input_image": ObjectKind.MEDIA,
    "input_audio": ObjectKind.MEDIA,
    "input_file": ObjectKind.DOCUMENT,
    "image_url": ObjectKind.MEDIA,
    "image_file": ObjectKind.REFERENCE,
}
_HELD: Final = ("image_url", "file_data", "data", "input_audio")


def _item(value: Any, role: str) -> base.Reading:
    """One input item; messages and lists of tools are looked into."""
    kind = base.type_of(value)
    if kind in _ITEMS:
        return _ITEMS[kind]
    if kind.endswith("_output"):
        return ObjectKind.TOOL_RESULT, Channel.TOOL
    if kind.endswith("_call"):
        return ObjectKind.TOOL_CALL, Channel.ASSISTANT
    if isinstance(value, dict) and ("content" in value or "tools" in value):
        return None
    return None if isinstance(value, list) else _part(value, role or "user")


def _part(value: Any, role: str) -> base.Reading:
    """A message's text or one of its parts."""
    if isinstance(value, list):
        return None
    kind, channel = base.by_role(role)
    named = _PARTS.get(base.type_of(value), kind)
    if named in {ObjectKind.MEDIA, ObjectKind.DOCUMENT} and not any(
        base.text_at(value, name)[:5].lower() == "data:" or (name in value and name != "image_url")
        for name in _HELD
    ):
        named = ObjectKind.REFERENCE
    return named, channel


def _tool(value: Any, _role: str) -> base.Reading:
    """A tool definition; a namespace is looked into."""
    if isinstance(value, list) or (isinstance(value, dict) and isinstance(value.get("tools"), list)):
        return None
    return ObjectKind.TOOL_DEFINITION, Channel.OTHER


def _shape() -> base.Shape:
    system = base.constant(ObjectKind.SYSTEM, Channel.SYSTEM)
    tools: dict[str, base.Reader] = {"tools[]": _tool, "tools[].tools[]": _tool}
    message: dict[str, base.Reader] = {"content": _part, "content[]": _part, **tools}
    places: dict[str, base.Reader] = {"instructions": system, "additional_instructions": system, **tools}
    for where in ("input[]", "items[]", "item", "messages[]", "additional_messages[]", "thread.messages[]"):
        places[where] = _item
        places |= {f"{where}.{name}": reader for name, reader in message.items()}
    places |= {"input": _item, "content": _part, "content[]": _part}
    places["tool_outputs[]"] = base.constant(ObjectKind.TOOL_RESULT, Channel.TOOL)
    places["prompt.variables"] = base.constant(ObjectKind.TEXT, Channel.USER)
    inner = base.Shape(places)
    shape = base.Shape(places)
    for frame in ("response", "session"):  # client events of WebSocket and realtime connections
        shape.graft(frame, inner)
    return shape


_SHAPE: Final = _shape()


class OpenAIResponses(Dialect):
    """The Responses API: items in, typed events out."""

    id = "openai_responses"
    paths = _PATH
    shape = _SHAPE
    errors = base.OPENAI_ERRORS
    rules = WalkRules(
        structural=base.SCHEMA_STRUCTURAL
        | base.names(
            "id name role model call_id tool_call_id status user safety_identifier phase prompt_cache_key "
            "service_tier effort verbosity detail include truncation syntax scope server_label authorization "
            "authorization_token connector_id environment execution voice approval_request_id "
            "prompt_cache_retention initiator agent_task_id stream_id event_id mode search_context_size "
            "allowed_tools require_approval assistant_id namespace version tool_choice context generate_summary"
        ),
        sealed=frozenset({"encrypted_content", "signature", "fingerprint"}),
        references=base.names(
            "previous_response_id conversation file_id file_ids vector_store_ids image_url file_url server_url url "
            "container thread_id"
        ),
        media=frozenset({"file_data", "data", "audio", "b64_json"}),
        free_form=frozenset({"metadata", "arguments", "variables", "client_metadata", "default", "examples"}),
        known_names=base.SCHEMA_NAMES
        | base.names(
            "input output content text instructions tools parameters strict tool_choice reasoning summary stream "
            "store parallel_tool_calls temperature top_p max_output_tokens prompt max_tool_calls background "
            "stream_options include_obfuscation input_audio filename refusal annotations logprobs top_logprobs "
            "action commands command operation path diff schema stdout stderr outcome exit_code code outputs "
            "results score attributes queries query result error message headers definition grammar function custom "
            "generate timeout_ms working_directory env max_output_length user_location city country region timezone "
            "approximate filters max_num_results ranking_options item items session response messages tool_outputs "
            "truncation_strategy response_format json_schema tool_resources thread compact_threshold display "
            "context_management input_schema server_description defer_loading end_turn allow_implicit_invocation"
        ),
    )

    @override
    def destination(self, host: str, path: str, body: Json) -> tuple[str, str]:
        """The model stands in the body, or in that of a client event."""
        model = base.text_at(body, "model") or base.text_at(body, "response", "model")
        return hosts.provider(host), model or base.text_at(body, "session", "model")

    @override
    def read_event(self, name: str, data: Json) -> EventReading:
        """Typed events: deltas, their `done` twins, and snapshots that repeat everything."""
        return responses_events.read(name, data)

    @override
    def stream_error(self, refusal: Refusal) -> bytes:
        """A failed response, as an event."""
        return base.sse_event(failed(refusal), "response.failed")


def failed(refusal: Refusal) -> dict[str, Any]:
    """The server event that ends a turn: `invalid_prompt` is the one code that clients show and do not retry.

    On a WebSocket this is the refusal itself, as one text frame.
    """
    response = {
        "id": refusal.request_id or "resp_gateway",
        "object": "response",
        "status": "failed",
        "output": [],
    }
    error = {"code": "invalid_prompt", "message": base.error_text(refusal)}
    return {"type": "response.failed", "sequence_number": 0, "response": {**response, "error": error}}
