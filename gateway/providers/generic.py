"""Any other JSON: telemetry, side calls, and providers whose shape nobody has written down.

Nothing is taken for sealed or structural beyond what every dialect shares, so that everything is scanned.
"""

from __future__ import annotations

from typing import Any, Final

from gateway.context.objects import Block, Json, WalkRules
from gateway.ports import EventReading, NativeAnswer, Refusal
from gateway.providers import base, hosts

_LISTS: Final = (
    "messages",
    "contents",
    "input",
    "inputs",
    "items",
    "events",
    "requests",
    "documents",
    "instances",
)


def _any(value: Any, role: str) -> base.Reading:
    return None if isinstance(value, list) else base.by_role(role)


_SHAPE: Final = base.Shape({place: _any for name in _LISTS for place in (name, f"{name}[]")})


class Generic:
    """JSON of no known dialect."""

    id = "generic"
    version = "1"
    rules = WalkRules(
        structural=base.names("type id role model tool_use_id tool_call_id call_id"),
        references=frozenset({"file_id"}),
        free_form=frozenset({*_LISTS, "metadata", "attributes", "data", "input", "arguments", "parameters"}),
        known_names=base.names("content text prompt system tools stream temperature max_tokens"),
    )

    def matches(self, host: str, path: str) -> bool:
        """Everywhere: it is asked last."""
        return True

    def blocks(self, body: Json) -> list[Block]:
        """The elements of members that look like lists of messages; then the rest."""
        return base.list_blocks(body, _SHAPE)

    def destination(self, host: str, path: str, body: Json) -> tuple[str, str]:
        """The host's provider, and a model if the body names one."""
        return hosts.provider(host), base.text_at(body, "model")

    def read_event(self, name: str, data: Json) -> EventReading:
        """Every string is taken for complete text."""
        return EventReading()

    def arguments(self, path: tuple[str | int, ...]) -> bool:
        """Where a member is called so."""
        return path[-1:] == ("arguments",)

    def refuse(self, refusal: Refusal) -> NativeAnswer:
        """The shape that most clients read."""
        return base.error_answer(refusal, base.OPENAI_ERRORS)

    def stream_error(self, refusal: Refusal) -> bytes:
        """An error in place of an event."""
        return base.sse_event(base.openai_error(refusal, base.error_text(refusal)))
