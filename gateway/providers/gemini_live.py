"""Messages of Gemini's Live API (BidiGenerateContent), which are JSON in frames of a WebSocket: one member each.

The server writes them as binary frames. Names are camelCase or snake_case, as everywhere in Gemini.
"""

from __future__ import annotations

from typing import Any, Final

from gateway.ports import Delta, EventReading
from gateway.providers import base

MEMBERS: Final = (
    "setup",
    "clientContent",
    "client_content",
    "realtimeInput",
    "realtime_input",
    "toolResponse",
    "tool_response",
)
"""What a client's message consists of."""

NAMES: Final = frozenset(
    {*MEMBERS, "turns", "turnComplete", "turn_complete", "functionResponses", "function_responses"}
    | {"audio", "video", "mediaChunks", "media_chunks", "activityStart", "activityEnd", "audioStreamEnd"}
    | {"realtimeInputConfig", "inputAudioTranscription", "outputAudioTranscription", "sessionResumption"}
    | {"contextWindowCompression", "slidingWindow", "triggerTokens", "targetTokens", "proactivity"}
    | {"proactiveAudio", "automaticActivityDetection"}
)
"""Member names of these messages."""

_SAME: Final = {
    "client_content": "clientContent",
    "tool_response": "toolResponse",
    "realtime_input": "realtimeInput",
    "setup_complete": "setupComplete",
    "server_content": "serverContent",
    "tool_call": "toolCall",
}
_SAID: Final = (
    "inputTranscription",
    "outputTranscription",
    "input_transcription",
    "output_transcription",
)
_OVER: Final = ("turnComplete", "turn_complete", "generationComplete", "generation_complete", "interrupted")


def kind(message: Any) -> str:
    """The member that a message consists of, in camelCase; with `.part` for a client's turn that goes on.

    A message of the server that ends a turn is `serverContent.turnComplete`; empty for what is no message.
    """
    members: dict[str, Any] = message if isinstance(message, dict) else {}
    named = {_SAME.get(name, name): value for name, value in members.items()}
    found = next((name for name in named if name not in {"usageMetadata", "usage_metadata"}), "")
    inner = named[found] if found and isinstance(named[found], dict) else {}
    complete = inner.get("turnComplete", inner.get("turn_complete"))
    if found == "clientContent" and complete is False:
        return "clientContent.part"
    return "serverContent.turnComplete" if found == "serverContent" and complete is True else found


def read(data: dict[str, Any]) -> EventReading | None:
    """A server message: pieces of a turn, of what was said and heard; tool calls are whole. None for anything else."""
    name = next((n for n in ("serverContent", "server_content", "toolCall", "tool_call") if n in data), "")
    content = data.get(name)
    if not name or not isinstance(content, dict):
        return None
    deltas: list[Delta] = []
    sealed: list[tuple[str | int, ...]] = []
    for turn in ("modelTurn", "model_turn"):
        for number, part in enumerate(base.list_at(content, turn, "parts")):
            place = (name, turn, "parts", number, "text")
            if not base.text_at(part, "text"):
                continue
            if part.get("thought") is True:
                sealed.append(place)
            else:
                deltas.append(Delta(place, "turn"))
    deltas += [Delta((name, said, "text"), said) for said in _SAID if base.text_at(content, said, "text")]
    over = any(content.get(end) is True for end in _OVER) or "tool" in name
    return EventReading(tuple(deltas), ("*",) if over else (), sealed=tuple(sealed))
