"""Events of the Responses API and its relatives: assistants' threads, and Mistral's conversations.

Typed events: deltas, their `done` twins, and snapshots that repeat everything.
"""

from __future__ import annotations

from typing import Any, Final

from gateway.context.objects import Json
from gateway.ports import Delta, EventReading
from gateway.providers import base

_ENDINGS: Final = frozenset(
    {
        "response.completed",
        "response.incomplete",
        "response.failed",
        "response.done",
        "conversation.response.done",
        "conversation.response.error",
        "error",
    }
)
_SIGNED: Final = frozenset({"reasoning", "compaction", "compaction_summary"})


def read(name: str, data: Json) -> EventReading:
    """What one event carries; `name` is its SSE type, which counts where the event itself has none."""
    kind = base.type_of(data) or name
    if not isinstance(data, dict):
        return EventReading()
    if "reasoning" in kind or base.text_at(data, "item", "type") in _SIGNED:
        return EventReading(whole=False)
    place = str(data.get("output_index", data.get("item_id", "")))
    channel = f"{place}:{data.get('content_index', data.get('command_index', ''))}:"
    if kind.startswith("thread."):
        return _thread(kind, data)
    if kind.endswith(".delta"):
        return _delta(kind.removesuffix(".delta"), channel, data)
    if kind in {"response.output_item.done", "response.output_item.added"}:
        return EventReading(ends=(f"{place}:*",))
    if kind.endswith(".done"):
        stem = kind.removesuffix(".done")
        return EventReading(ends=(channel + ("*" if stem.endswith("content_part") else stem),))
    if kind in _ENDINGS:
        return EventReading(ends=("*",), sealed=_signed(data.get("response"), ("response",)))
    return EventReading(sealed=_signed(data, ()) or _signed(data.get("response"), ("response",)))


def _delta(stem: str, channel: str, data: dict[str, Any]) -> EventReading:
    # Mistral's conversations name the member after what it holds
    member = next((name for name in ("delta", "arguments", "content") if isinstance(data.get(name), str)), "")
    if not member or stem.endswith("audio"):
        return EventReading()
    json_string = "arguments" in stem or member == "arguments"
    tool = not json_string and "_call_" in stem
    return EventReading((Delta((member,), channel + stem, json_string, tool),))


def _thread(kind: str, data: dict[str, Any]) -> EventReading:
    """Events of assistants: deltas of a message, and of the tool calls of a step."""
    if not kind.endswith(".delta"):
        return EventReading(ends=("*",))
    deltas = []
    for path, members in (
        (("delta", "content"), (("text", "value"),)),
        (("delta", "step_details", "tool_calls"), (("function", "arguments"), ("code_interpreter", "input"))),
    ):
        for place, part in enumerate(base.list_at(data, *path)):
            for member in members:
                if base.text_at(part, *member):
                    key = f"{data.get('id', '')}:{part.get('index', place)}:{member[0]}"
                    tool = member[0] != "text"
                    deltas.append(Delta((*path, place, *member), key, member[-1] == "arguments", tool))
    return EventReading(tuple(deltas))


def _signed(response: Any, at: tuple[str | int, ...]) -> tuple[tuple[str | int, ...], ...]:
    """The items of a response that must come back as they were given."""
    output = response.get("output") if isinstance(response, dict) else None
    if not isinstance(output, list):
        return ()
    return tuple((*at, "output", i) for i, item in enumerate(output) if base.type_of(item) in _SIGNED)
