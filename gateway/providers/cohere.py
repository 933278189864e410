"""Cohere: chat of both versions, embeddings, rerank, and the older text endpoints.

Version 2 streams typed events, version 1 JSON lines. Its OpenAI layer under `/compatibility` is read as `openai_chat`.
"""

from __future__ import annotations

import re
from typing import Final, override

from gateway.context.objects import Channel, Json, ObjectKind
from gateway.ports import Delta, EventReading
from gateway.providers import base, completions, hosts
from gateway.providers.dialect import Dialect

_AT_HOME: Final = re.compile(
    r"/v[12]/(?:chat|embed|rerank|generate|classify|summarize|tokenize|detokenize|embed-jobs|datasets)(?:/.*)?"
)
_ANYWHERE: Final = re.compile(r"(?:/[^/]+)*/(?:v2/(?:chat|embed)|v1/(?:chat|generate|classify|summarize))")
_ENDINGS: Final = frozenset({"message-end", "stream-end", "content-end", "tool-call-end"})
_PLACES: Final = (
    (("delta", "message", "content", "text"), "text", False),
    (("delta", "message", "content", "thinking"), "thinking", False),
    (("delta", "message", "tool_plan"), "tool_plan", False),
    (("delta", "message", "tool_calls", "function", "arguments"), ":tool", True),
)


def _shape() -> base.Shape:
    user = base.constant(ObjectKind.TEXT, Channel.USER)
    places = completions.messages("tool_plan") | completions.definitions()
    places |= completions.messages("message", where="chat_history[]")
    places |= completions.prompts("prompt", "inputs", "texts")
    places |= {"preamble": base.constant(ObjectKind.SYSTEM, Channel.SYSTEM)}
    places |= dict.fromkeys(("message", "query", "text", "examples[].text"), user)
    places |= {
        "documents[]": base.constant(ObjectKind.DOCUMENT, Channel.USER),
        "images[]": base.constant(ObjectKind.MEDIA, Channel.USER),
        "tool_results[]": base.constant(ObjectKind.TOOL_RESULT, Channel.TOOL),
    }
    return base.Shape(places)


_SHAPE: Final = _shape()


class Cohere(Dialect):
    """The native API."""

    id = "cohere"
    paths = _ANYWHERE
    shape = _SHAPE
    rules = base.extended(
        completions.RULES,
        structural={
            "input_type",
            "embedding_types",
            "truncate",
            "citation_quality",
            "safety_mode",
            "prompt_truncation",
        },
        references={"conversation_id"},
        known_names=base.names(
            "chat_history message preamble connectors tool_plan tool_results texts citation_options "
            "return_documents top_n p k max_tokens_per_doc rank_fields stop_sequences search_queries_only "
            "force_single_step num_generations thinking token_budget"
        ),
    )

    @override
    def matches(self, host: str, path: str) -> bool:
        """At its hosts every native path, elsewhere those that nobody else has."""
        known = _AT_HOME if hosts.provider(host) == "cohere" else _ANYWHERE
        return known.fullmatch(path) is not None

    @override
    def read_event(self, name: str, data: Json) -> EventReading:
        """A typed event of version 2, or a line of version 1."""
        if not isinstance(data, dict):
            return EventReading()
        key = f"{data.get('index', '')}:"
        deltas = [Delta(path, key + named, js) for path, named, js in _PLACES if base.text_at(data, *path)]
        if data.get("event_type") == "text-generation" and isinstance(data.get("text"), str):
            deltas.append(Delta(("text",), key + "text"))
        over = {base.type_of(data), base.text_at(data, "event_type")} & _ENDINGS or "error" in data
        return EventReading(tuple(deltas), ("*",) if over else ())
