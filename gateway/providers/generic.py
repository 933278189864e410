"""Any other JSON: telemetry, side calls, and providers whose shape nobody has written down.

Nothing is taken for sealed or structural beyond what every dialect shares, so that everything is scanned.
"""

from __future__ import annotations

from typing import Any, Final, override

from gateway.context.objects import Json, WalkRules
from gateway.ports import EventReading
from gateway.providers import base
from gateway.providers.dialect import Dialect

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


class Generic(Dialect):
    """JSON of no known dialect."""

    id = "generic"
    shape = _SHAPE
    errors = base.OPENAI_ERRORS
    rules = WalkRules(
        structural=base.names("type id role model tool_use_id tool_call_id call_id"),
        references=frozenset({"file_id"}),
        free_form=frozenset({*_LISTS, "metadata", "attributes", "data", "input", "arguments", "parameters"}),
        known_names=base.names("content text prompt system tools stream temperature max_tokens"),
    )

    @override
    def matches(self, host: str, path: str) -> bool:
        """Everywhere: it is asked last."""
        return True

    @override
    def read_event(self, name: str, data: Json) -> EventReading:
        """Every string is taken for complete text."""
        return EventReading()
