"""How those who speak OpenAI's shapes with differences report an error: by the host's provider, or by the path.

SDKs read what they know: Cohere's a `message`, Ollama's an `error` that is text, FastAPI services a `detail`.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

from gateway.context.objects import Json
from gateway.ports import NativeAnswer, Refusal
from gateway.providers import base, hosts

_OLLAMA: Final = re.compile(r"/api/(?:chat|generate|embed|embeddings|create|push|pull)", re.IGNORECASE)


def _cohere(refusal: Refusal, text: str) -> Json:
    return {"message": text, "id": refusal.request_id}


def _text(refusal: Refusal, text: str) -> Json:
    return {"error": text}


def _detail(refusal: Refusal, text: str) -> Json:
    return {"detail": text}


def _openrouter(refusal: Refusal, text: str) -> Json:
    return {"error": {"code": refusal.status, "message": text, "metadata": {"reason": "gateway_blocked"}}}


def _mistral(refusal: Refusal, text: str) -> Json:
    kind = "internal_server_error" if refusal.status >= 500 else "invalid_request_error"
    return {"object": "error", "message": text, "type": kind, "param": None, "code": "gateway_blocked"}


_BY_PROVIDER: Final[Mapping[str, base.Errors]] = {
    "cohere": base.Errors(_cohere),
    "ollama": base.Errors(_text),
    "huggingface": base.Errors(_text),
    "voyage": base.Errors(_detail),
    "jina": base.Errors(_detail),
    "openrouter": base.Errors(_openrouter),
    "mistral": base.Errors(_mistral),
    # a code of Azure's own (content_filter) would be taken for its policy, and tried again
    "azure": base.Errors(base.openai_error, id_header="apim-request-id"),
}


def errors_at(refusal: Refusal) -> base.Errors:
    """The shape that clients of a request's host and path read; OpenAI's where nothing else is known."""
    path = base.normalise(refusal.path)
    if _OLLAMA.fullmatch(path):
        return _BY_PROVIDER["ollama"]
    if path.startswith(("/compatibility/", "/v1/chat/completions")) and hosts.provider(refusal.host) in {
        "cohere",
        "ollama",
    }:
        return base.OPENAI_ERRORS
    return _BY_PROVIDER.get(hosts.provider(refusal.host), base.OPENAI_ERRORS)


def refuse(refusal: Refusal) -> NativeAnswer:
    """The refusal in that shape."""
    return base.error_answer(refusal, errors_at(refusal))


def stream_error(refusal: Refusal) -> bytes:
    """What ends a stream in that shape: a line for Ollama, an event elsewhere."""
    errors = errors_at(refusal)
    data = errors.body(refusal, base.error_text(refusal))
    return base.encode(data) + b"\n" if errors is _BY_PROVIDER["ollama"] else base.sse_event(data)
