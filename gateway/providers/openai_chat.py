"""OpenAI Chat Completions, and the many that speak it; completions, embeddings and their relatives too."""

from __future__ import annotations

import re
from typing import Final, override

from gateway.context.objects import Channel, Json, ObjectKind
from gateway.ports import Delta, EventReading
from gateway.providers import base, completions, hosts
from gateway.providers.dialect import Dialect

_PATH: Final = re.compile(
    r"(?!.*/(?:fim|agents)/)(?:/[^/]+)*/(?:chat/completions|completions|completion|infill|embeddings|embed|moderations|rerank"
    r"|images/generations|audio/speech|multimodalembeddings|contextualizedembeddings|inference|tokenize)"
)


def _shape() -> base.Shape:
    user = base.constant(ObjectKind.TEXT, Channel.USER)
    system = base.constant(ObjectKind.SYSTEM, Channel.SYSTEM)
    places = completions.messages() | completions.definitions()
    places |= completions.prompts("prompt", "input", "inputs", "texts")
    places |= {"system": system, "instructions": system, "prediction.content[]": user}
    places |= dict.fromkeys(("suffix", "query", "input_extra[]", "prediction.content"), user)
    places |= {
        "images[]": base.constant(ObjectKind.MEDIA, Channel.USER),
        "documents[]": base.constant(ObjectKind.DOCUMENT, Channel.USER),
    }
    # token ids under other names, and tensors that stand for text (vLLM)
    places |= {"prompt_token_ids": completions.prompt, "prompt_embeds": _tensor, "prompt_embeds[]": _tensor}
    return base.Shape(places)


def _tensor(value: Json, _role: str) -> base.Reading:
    return None if isinstance(value, list) else (ObjectKind.OPAQUE, Channel.USER)


_SHAPE: Final = _shape()


class OpenAIChat(Dialect):
    """Chat Completions: choices with deltas, tool arguments as JSON in strings."""

    id = "openai_chat"
    paths = _PATH
    shape = _SHAPE
    rules = completions.RULES

    @override
    def matches(self, host: str, path: str) -> bool:
        """Completions paths on any host but one that has a dialect of its own for them."""
        return _PATH.fullmatch(path) is not None and hosts.provider(host) != "mistral"

    @override
    def destination(self, host: str, path: str, body: Json) -> tuple[str, str]:
        """The model stands in the body, on Azure the deployment in the path."""
        found = re.search(r"/(?:deployments|engines)/([^/]+)/", path)
        return hosts.provider(host), base.text_at(body, "model") or (found[1] if found else "")

    @override
    def read_event(self, name: str, data: Json) -> EventReading:
        """One chunk of choices, or a piece of a transcription."""
        if not isinstance(data, dict):
            return EventReading(ends=("*",)) if data == "[DONE]" else EventReading()
        deltas, ends = completions.choices(data)
        kind = base.type_of(data)
        if kind.endswith(".delta") and isinstance(data.get("delta"), str):
            deltas.append(Delta(("delta",), f"{data.get('index', '')}:{kind}"))
        if kind == "transcript.text.done" or "error" in data:
            ends.append("*")
        return EventReading(tuple(deltas), tuple(ends))
