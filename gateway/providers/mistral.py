"""Mistral: Chat Completions with parts of its own, fill-in-the-middle, agents, OCR and classifiers.

Its conversations are read as those of `openai_responses`, whose events they share.
"""

from __future__ import annotations

import re
from typing import Any, Final, override

from gateway.context.objects import Channel, Json, ObjectKind
from gateway.ports import EventReading
from gateway.providers import base, completions, hosts
from gateway.providers.dialect import Dialect

_ANYWHERE: Final = re.compile(r"(?:/[^/]+)*/(?:fim|agents)/completions|/v1/ocr")
_AT_HOME: Final = re.compile(
    r"/v1/(?:chat/completions|embeddings|moderations|chat/moderations|classifications|chat/classifications)"
)


def _document(value: Any, _role: str) -> base.Reading:
    """What is to be read by OCR: an address, an uploaded file, or the document itself as a data URI."""
    if isinstance(value, list):
        return None
    kind = base.type_of(value)
    url = base.text_at(value, kind) or base.text_at(value, kind, "url")
    held = url[:5].lower() == "data:"
    return (ObjectKind.DOCUMENT if held else ObjectKind.REFERENCE), Channel.USER


def _shape() -> base.Shape:
    user = base.constant(ObjectKind.TEXT, Channel.USER)
    places = completions.messages() | completions.definitions()
    places |= completions.prompts("prompt", "input", "inputs")
    for where in ("input", "input[]"):  # classifiers of conversations
        places |= completions.messages(where=f"{where}.messages[]")
    places |= {"suffix": user, "document": _document}
    places |= {"prediction.content": user, "prediction.content[]": user}
    return base.Shape(places)


_SHAPE: Final = _shape()


class Mistral(Dialect):
    """La Plateforme and Codestral."""

    id = "mistral"
    paths = _ANYWHERE
    shape = _SHAPE
    rules = base.extended(
        completions.RULES,
        structural={"agent_id", "prompt_mode", "include_image_base64"},
        references={"document_url", "conversation_id"},
        known_names=base.names(
            "random_seed safe_prompt min_tokens document document_name pages image_limit image_min_size "
            "bbox_annotation_format document_annotation_format table_format extract_header extract_footer "
            "guardrails output_dimension output_dtype"
        ),
    )

    @override
    def matches(self, host: str, path: str) -> bool:
        """Paths of its own on any host, and at its hosts those that others have too."""
        if _ANYWHERE.fullmatch(path) is not None:
            return True
        return hosts.provider(host) == "mistral" and _AT_HOME.fullmatch(path) is not None

    @override
    def destination(self, host: str, path: str, body: Json) -> tuple[str, str]:
        """The model, or the agent, stands in the body."""
        return hosts.provider(host), base.text_at(body, "model") or base.text_at(body, "agent_id")

    @override
    def read_event(self, name: str, data: Json) -> EventReading:
        """One chunk of choices; content may be a list of parts, thinking a list of parts again."""
        if not isinstance(data, dict):
            return EventReading(ends=("*",)) if data == "[DONE]" else EventReading()
        deltas, ends = completions.choices(data)
        return EventReading(tuple(deltas), (*ends, *(("*",) if "error" in data else ())))
