"""Ollama's native API: chat and generate as JSON lines, embeddings, and models that are made from text.

Its layers for OpenAI's and Anthropic's clients are read as those.
"""

from __future__ import annotations

import re
from typing import Any, Final, override

from gateway.context.objects import Channel, Json, ObjectKind
from gateway.ports import Delta, EventReading
from gateway.providers import base, completions
from gateway.providers.dialect import Dialect

_PATH: Final = re.compile(r"/api/(?:chat|generate|embed|embeddings|create|show|push|pull|copy|delete)")
_PLACES: Final = (
    (("message", "content"), "content"),
    (("message", "thinking"), "thinking"),
    (("thinking",), "thinking"),
)


def _state(value: Any, _role: str) -> base.Reading:
    """What an earlier answer gave as the state of a conversation: ids that say the same as its text."""
    return ObjectKind.REFERENCE, Channel.OTHER


def _shape() -> base.Shape:
    user = base.constant(ObjectKind.TEXT, Channel.USER)
    media = base.constant(ObjectKind.MEDIA, Channel.USER)
    places = completions.messages("thinking") | completions.definitions()
    places |= completions.prompts("prompt", "input")
    places |= {"messages[].images[]": media, "images[]": media, "suffix": user, "context": _state}
    places |= dict.fromkeys(("system", "template"), base.constant(ObjectKind.SYSTEM, Channel.SYSTEM))
    return base.Shape(places)


_SHAPE: Final = _shape()


class Ollama(Dialect):
    """Local servers and ollama.com."""

    id = "ollama"
    paths = _PATH
    shape = _SHAPE
    rules = base.extended(
        completions.RULES,
        structural={"keep_alive", "from", "quantize", "digest"},
        known_names=base.names(
            "options num_ctx num_predict num_keep min_p typical_p repeat_last_n num_gpu repeat_penalty think raw "
            "template images context insecure files adapters license tool_name thinking"
        ),
    )

    @override
    def read_event(self, name: str, data: Json) -> EventReading:
        """A line: the next piece of a message or a response; `done` ends it. Tool calls are whole objects."""
        if not isinstance(data, dict):
            return EventReading()
        deltas = [Delta(path, ":" + named) for path, named in _PLACES if base.text_at(data, *path)]
        if isinstance(data.get("response"), str) and "done" in data:
            deltas.append(Delta(("response",), ":content"))
        return EventReading(tuple(deltas), ("*",) if data.get("done") is True or "error" in data else ())
