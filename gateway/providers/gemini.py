"""Gemini generateContent: the Gemini API, Vertex AI, and Code Assist, which wraps the same body.

REST takes camelCase and snake_case. A part that carries a thought signature goes back as it came; its text
is masked the same way in every turn, so that what the model signed is what it sees again.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, Final, override

from gateway.context.objects import Channel, Json, ObjectKind, WalkRules
from gateway.ports import Delta, EventReading, Refusal
from gateway.providers import base, gemini_live, hosts
from gateway.providers.dialect import Dialect

_PATH: Final = re.compile(
    r".*:(?:stream)?generatecontent|.*:(?:counttokens|computetokens|embedcontent|batchembedcontents|batchgeneratecontent"
    r"|asyncbatchembedcontent|generatemessage|generateanswer|predict|predictlongrunning)"
    r"|/ws/google\.(?:ai|cloud)\.[a-z0-9.]+(?:/|\.)bidigeneratecontent(?:constrained)?"
    r"|(?:/[^/]+)*/(?:cachedcontents(?:/[^/]+)?|interactions(?:/.*)?)"
)
_PARTS: Final = {
    "inlineData": (ObjectKind.MEDIA, None),
    "inline_data": (ObjectKind.MEDIA, None),
    "fileData": (ObjectKind.REFERENCE, None),
    "file_data": (ObjectKind.REFERENCE, None),
    "functionCall": (ObjectKind.TOOL_CALL, Channel.ASSISTANT),
    "function_call": (ObjectKind.TOOL_CALL, Channel.ASSISTANT),
    "toolCall": (ObjectKind.TOOL_CALL, Channel.ASSISTANT),
    "executableCode": (ObjectKind.TOOL_CALL, Channel.ASSISTANT),
    "executable_code": (ObjectKind.TOOL_CALL, Channel.ASSISTANT),
    "functionResponse": (ObjectKind.TOOL_RESULT, Channel.TOOL),
    "function_response": (ObjectKind.TOOL_RESULT, Channel.TOOL),
    "toolResponse": (ObjectKind.TOOL_RESULT, Channel.TOOL),
    "codeExecutionResult": (ObjectKind.TOOL_RESULT, Channel.TOOL),
    "code_execution_result": (ObjectKind.TOOL_RESULT, Channel.TOOL),
}


def _part(value: Any, role: str) -> base.Reading:
    """One part of a content."""
    if isinstance(value, list):
        return None
    kind, channel = base.by_role(role or "user")
    if isinstance(value, dict):
        for name, (named, speaker) in _PARTS.items():
            if name in value:
                return named, speaker or channel
        if value.get("thought") is True:
            return ObjectKind.THINKING, Channel.ASSISTANT
    return kind, channel


def _content(value: Any, role: str) -> base.Reading:
    """A content, which is looked into, or its text."""
    return None if isinstance(value, (dict, list)) else _part(value, role)


def _system(value: Any, _role: str) -> base.Reading:
    return None if isinstance(value, list) or "parts" in value else (ObjectKind.SYSTEM, Channel.SYSTEM)


def _tool(value: Any, _role: str) -> base.Reading:
    looked_into = isinstance(value, dict) and (
        "functionDeclarations" in value or "function_declarations" in value
    )
    return None if isinstance(value, list) or looked_into else (ObjectKind.TOOL_DEFINITION, Channel.OTHER)


def _shape() -> base.Shape:
    places: dict[str, base.Reader] = {"tools[]": _tool}
    for where in ("contents", "contents[]", "content", "input", "input[]"):
        places |= {where: _content, f"{where}.parts": _part, f"{where}.parts[]": _part}
        places |= {f"{where}.content": _part, f"{where}.content[]": _part}
    for where in ("systemInstruction", "system_instruction"):
        places |= {where: _system, f"{where}.parts": _system, f"{where}.parts[]": _system}
    for name in ("functionDeclarations", "function_declarations"):
        places |= {f"tools[].{name}[]": base.constant(ObjectKind.TOOL_DEFINITION, Channel.OTHER)}
    result = base.constant(ObjectKind.TOOL_RESULT, Channel.TOOL)
    for answers in ("functionResponses", "function_responses"):
        places |= {f"{answers}[]": result}
    for where in ("turns", "turns[]"):  # messages of the Live API
        places |= {where: _content, f"{where}.parts": _part, f"{where}.parts[]": _part}
    media = base.constant(ObjectKind.MEDIA, Channel.USER)
    places |= {"audio": media, "video": media, "mediaChunks[]": media, "media_chunks[]": media}
    places["text"] = base.constant(ObjectKind.TEXT, Channel.USER)
    places["instances[]"] = base.constant(ObjectKind.TEXT, Channel.USER)
    inner = base.Shape(places)
    shape = base.Shape(places)
    for where in (
        "request",
        "requests[]",
        "batch.inputConfig.requests.requests[].request",
        "generateContentRequest",
        *gemini_live.MEMBERS,
    ):
        shape.graft(where, inner)
    return shape


_SHAPE: Final = _shape()


def _error(refusal: Refusal, text: str) -> Json:
    status = "UNAVAILABLE" if refusal.status >= 500 else "INVALID_ARGUMENT"
    return {"error": {"code": refusal.status, "message": text, "status": status}}


class Gemini(Dialect):
    """generateContent and its relatives; Code Assist answers are the same under `response`."""

    id = "gemini"
    paths = _PATH
    shape = _SHAPE
    errors = base.Errors(_error)
    text_arguments = False
    rules = WalkRules(
        structural=base.SCHEMA_STRUCTURAL
        | base.names(
            "id name role model mimeType mime_type project user_prompt_id session_id behavior responseMimeType "
            "response_mime_type responseModalities taskType language outcome category threshold thinkingLevel "
            "thinking_level allowedFunctionNames allowed_function_names method mediaResolution voiceName "
            "languageCode ideType platform pluginType activityHandling turnCoverage "
            "startOfSpeechSensitivity endOfSpeechSensitivity handle"
        ),
        sealed=frozenset({"thoughtSignature", "thought_signature"}),
        references=base.names(
            "fileUri file_uri cachedContent cached_content previous_interaction_id fileSearchStoreNames fileName "
            "file_name duetProject cloudaicompanionProject"
        ),
        media=frozenset({"data"}),
        free_form=base.names("args partialArgs labels default examples metadata response"),
        known_names=base.SCHEMA_NAMES
        | gemini_live.NAMES
        | base.names(
            "contents content parts text systemInstruction system_instruction tools toolConfig request tool_config "
            "functionDeclarations function_declarations functionCall function_call requests functionResponse "
            "function_response inlineData inline_data fileData file_data executableCode executable_code "
            "codeExecutionResult code_execution_result code output thought willContinue parameters "
            "parametersJsonSchema parameters_json_schema responseJsonSchema responseSchema parts "
            "response_json_schema response_schema generationConfig generation_config safetySettings input "
            "temperature topP topK top_p top_k maxOutputTokens candidateCount stopSequences seed presencePenalty "
            "frequencyPenalty responseLogprobs logprobs thinkingConfig thinking_config includeThoughts "
            "include_thoughts thinkingBudget thinking_budget functionCallingConfig outputDimensionality "
            "function_calling_config googleSearch google_search codeExecution urlContext fileSearch topK "
            "videoMetadata partMetadata speechConfig generateContentRequest instances batch inputConfig toolCall "
            "toolResponse response title displayName display_name ttl expireTime scheduling enableEnhancedCivicAnswers"
        ),
    )

    @override
    def destination(self, host: str, path: str, body: Json) -> tuple[str, str]:
        """The model stands in the path, for Code Assist in the body."""
        found = re.search(r"/(?:models|tunedmodels)/([^/:]+)", path, re.IGNORECASE)
        named = base.text_at(body, "model") or base.text_at(body, "setup", "model").rpartition("/")[2]
        return hosts.provider(host), found[1] if found else named

    @override
    def read_event(self, name: str, data: Json) -> EventReading:
        """One chunk: each candidate's text goes on, calls are whole; thoughts are left as they are."""
        if isinstance(data, dict) and isinstance(data.get("event_type"), str):
            return _interaction(data)
        if isinstance(data, dict) and (reading := gemini_live.read(data)) is not None:
            return reading
        at: tuple[str | int, ...] = ()
        body = data
        if isinstance(data, dict) and isinstance(data.get("response"), dict):
            at, body = ("response",), data["response"]
        candidates = body.get("candidates") if isinstance(body, dict) else None
        deltas: list[Delta] = []
        sealed: list[tuple[str | int, ...]] = []
        ends: list[str] = []
        for place, candidate in enumerate(candidates if isinstance(candidates, list) else ()):
            if not isinstance(candidate, dict):
                continue
            key = f"{candidate.get('index', place)}:"
            for path, thought in _texts(candidate, (*at, "candidates", place)):
                if thought:
                    sealed.append(path)
                else:
                    deltas.append(Delta(path, key + "text"))
            if candidate.get("finishReason"):
                ends.append(key + "*")
        if isinstance(body, dict) and "error" in body:
            ends.append("*")
        return EventReading(tuple(deltas), tuple(ends), sealed=tuple(sealed))


def _interaction(data: dict[str, Any]) -> EventReading:
    """Events of the Interactions API: typed deltas by content index."""
    key = f"{data.get('index', '')}:"
    delta = base.text_at(data, "delta", "type")
    if delta.startswith("thought") or base.text_at(data, "content", "type") == "thought":
        return EventReading(whole=False)
    if base.text_at(data, "delta", "text"):
        return EventReading((Delta(("delta", "text"), key + "text"),))
    return EventReading(
        ends=("*",) if data["event_type"] in {"interaction.complete", "error"} else (key + "*",)
    )


def _texts(
    candidate: dict[str, Any], at: tuple[str | int, ...]
) -> Iterator[tuple[tuple[str | int, ...], bool]]:
    """Where the text parts of a candidate stand, and whether each is a thought."""
    content = candidate.get("content")
    parts = content.get("parts") if isinstance(content, dict) else None
    for index, part in enumerate(parts if isinstance(parts, list) else ()):
        if isinstance(part, dict) and isinstance(part.get("text"), str):
            yield (*at, "content", "parts", index, "text"), part.get("thought") is True
