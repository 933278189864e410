"""Amazon Bedrock: Converse, and Invoke with the bodies of the models behind it.

Bodies are signed (SigV4) unless the client uses a Bedrock API key; whether one may be rewritten is not decided here.
Streams are binary frames (application/vnd.amazon.eventstream), whose payloads read as events.
"""

from __future__ import annotations

import re
from typing import Any, Final, override
from urllib.parse import unquote

from gateway.context import eventstream
from gateway.context.objects import Channel, Json, ObjectKind, WalkRules
from gateway.ports import Delta, EventReading, Refusal
from gateway.providers import base, hosts
from gateway.providers.dialect import Dialect

_PATH: Final = re.compile(
    r"/model/.+/(?:converse|converse-stream|invoke|invoke-with-response-stream|count-tokens)"
    r"|/async-invoke|/guardrail/.+/apply|/guardrail-checks/invoke"
)
_MODEL: Final = re.compile(r"/model/(.+)/[a-z-]+$")
# a content part of Converse is a union: one member says what it is
_MEMBERS: Final = {
    "toolUse": (ObjectKind.TOOL_CALL, Channel.ASSISTANT),
    "toolResult": (ObjectKind.TOOL_RESULT, Channel.TOOL),
    "reasoningContent": (ObjectKind.THINKING, Channel.ASSISTANT),
    "image": (ObjectKind.MEDIA, None),
    "video": (ObjectKind.MEDIA, None),
    "audio": (ObjectKind.MEDIA, None),
    "document": (ObjectKind.DOCUMENT, None),
    "searchResult": (ObjectKind.DOCUMENT, None),
}
# and one of Anthropic's body has a type
_TYPES: Final = {
    "tool_use": (ObjectKind.TOOL_CALL, Channel.ASSISTANT),
    "tool_result": (ObjectKind.TOOL_RESULT, Channel.TOOL),
    "thinking": (ObjectKind.THINKING, Channel.ASSISTANT),
    "redacted_thinking": (ObjectKind.SEALED, Channel.ASSISTANT),
    "image": (ObjectKind.MEDIA, None),
    "document": (ObjectKind.DOCUMENT, None),
}
_PIECES: Final = {"text_delta": ("text", False), "input_json_delta": ("partial_json", True)}


def _part(value: Any, role: str) -> base.Reading:
    """A part of a message, or a message's whole text."""
    if isinstance(value, list):
        return None
    kind, channel = base.by_role(role or "user")
    if not isinstance(value, dict):
        return kind, channel
    member = next((name for name in value if name in _MEMBERS), "")
    named, speaker = _TYPES.get(base.type_of(value)) or _MEMBERS.get(member, (kind, None))
    if base.text_at(value, member, "source", "s3Location", "uri"):
        named = ObjectKind.REFERENCE
    return named, speaker or channel


def _shape() -> base.Shape:
    system = base.constant(ObjectKind.SYSTEM, Channel.SYSTEM)
    user = base.constant(ObjectKind.TEXT, Channel.USER)
    tool = base.constant(ObjectKind.TOOL_DEFINITION, Channel.OTHER)
    places: dict[str, base.Reader] = {
        "system": system,
        "system[]": system,
        "messages[].content": _part,
        "messages[].content[]": _part,
        "toolConfig.tools[]": tool,
        "tools[]": tool,
        "promptVariables": user,
        "content[]": _part,
    }
    places |= dict.fromkeys(("prompt", "inputText", "message", "texts[]", "query"), user)
    inner = base.Shape(places)
    shape = base.Shape(places)
    shape.graft("input.converse", inner)
    shape.graft("modelInput", inner)
    return shape


_SHAPE: Final = _shape()


def _error(refusal: Refusal, text: str) -> Json:
    return {"message": text}


_ERRORS: Final = base.Errors(
    _error, id_header="x-amzn-requestid", headers=(("x-amzn-errortype", "ValidationException"),)
)


class Bedrock(Dialect):
    """The Bedrock runtime."""

    id = "bedrock"
    paths = _PATH
    shape = _SHAPE
    errors = _ERRORS
    text_arguments = False
    rules = WalkRules(
        structural=base.SCHEMA_STRUCTURAL
        | base.names(
            "id name role model toolUseId tool_use_id status media_type modelId anthropic_version anthropic_beta "
            "guardrailIdentifier guardrailVersion trace latency"
        ),
        sealed=frozenset({"signature", "redactedContent", "encrypted_content"}),
        thinking=frozenset({"thinking"}),
        references=frozenset({"uri", "url", "file_id", "bucketOwner"}),
        media=frozenset({"bytes", "data"}),
        free_form=frozenset(
            {"input", "json", "additionalModelRequestFields", "requestMetadata", "default", "examples"}
        ),
        known_names=base.SCHEMA_NAMES
        | base.names(
            "messages content text system toolUse toolResult reasoningContent reasoningText image video audio "
            "document searchResult source s3Location toolConfig tools toolSpec inputSchema input_schema toolChoice "
            "auto any tool inferenceConfig maxTokens topP temperature stopSequences guardrailConfig guardContent "
            "cachePoint promptVariables context performanceConfig max_tokens top_p top_k stop_sequences prompt "
            "inputText citations textGenerationConfig maxTokenCount tool_choice budget_tokens outputEmbeddingLength "
            "converse"
        ),
    )

    @override
    def destination(self, host: str, path: str, body: Json) -> tuple[str, str]:
        """The model stands in the path, percent-encoded where it is an ARN."""
        found = _MODEL.search(unquote(path.partition("?")[0]))
        return hosts.provider(host), found[1] if found else ""

    @override
    def read_event(self, name: str, data: Json) -> EventReading:
        """Payloads of Converse streams; those of Invoke are the model's own."""
        if not isinstance(data, dict):
            return EventReading()
        if name.endswith("Exception"):
            return EventReading(ends=("*",))
        if base.type_of(data):
            return _anthropic(data)
        # some readers name the frame by its event type, others by a member around it
        for member in ("contentBlockDelta", "contentBlockStop"):
            if isinstance(data.get(member), dict):
                return _converse(member, data[member], (member,))
        if name == "messageStop" or "stopReason" in data or "messageStop" in data:
            return EventReading(ends=("*",))
        for member in (
            "outputText",
            "generation",
            "completion",
            "text",
        ):  # Titan, Llama, older Anthropic, Cohere
            if isinstance(data.get(member), str):
                return EventReading((Delta((member,), member),))
        return _converse(name, data, ())

    @override
    def stream_error(self, refusal: Refusal) -> bytes:
        """An exception frame, which boto3 raises."""
        headers = (
            (":exception-type", "validationException"),
            (":content-type", "application/json"),
            (":message-type", "exception"),
        )
        return eventstream.encode(headers, base.encode(_error(refusal, base.error_text(refusal))))


def _converse(name: str, data: dict[str, Any], at: tuple[str | int, ...]) -> EventReading:
    key = str(data.get("contentBlockIndex", ""))
    delta = data.get("delta")
    if name == "contentBlockStop":
        return EventReading(ends=(key,))
    if isinstance(delta, dict) and "reasoningContent" in delta:
        return EventReading(whole=False)
    if base.text_at(delta, "text"):
        return EventReading((Delta((*at, "delta", "text"), key),))
    if base.text_at(delta, "toolUse", "input"):
        return EventReading((Delta((*at, "delta", "toolUse", "input"), key, json_string=True),))
    return EventReading()


def _anthropic(data: dict[str, Any]) -> EventReading:
    """Events of Anthropic models, as Invoke carries them."""
    key = str(data.get("index", ""))
    match base.type_of(data):
        case "content_block_delta":
            kind = base.text_at(data, "delta", "type")
            if kind not in _PIECES:
                return EventReading(whole=False)
            member, json_string = _PIECES[kind]
            return EventReading((Delta(("delta", member), key, json_string),))
        case "content_block_stop":
            return EventReading(ends=(key,))
        case "message_stop":
            return EventReading(ends=("*",))
        case _:
            return EventReading()
