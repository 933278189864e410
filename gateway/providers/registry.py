"""Which dialect is spoken where: by the shape of the path first, then by the host, then none in particular."""

from __future__ import annotations

from collections.abc import Sequence

from gateway.errors import ConfigError
from gateway.ports import ProviderAdapter
from gateway.providers import hosts
from gateway.providers.anthropic import AnthropicMessages
from gateway.providers.base import normalise
from gateway.providers.bedrock import Bedrock
from gateway.providers.cohere import Cohere
from gateway.providers.gemini import Gemini
from gateway.providers.generic import Generic
from gateway.providers.mistral import Mistral
from gateway.providers.oauth import OAuthTokens
from gateway.providers.ollama import Ollama
from gateway.providers.openai_chat import OpenAIChat
from gateway.providers.openai_responses import OpenAIResponses


def builtin() -> list[ProviderAdapter]:
    """The dialects of this package, the most telling path first; the generic one is last."""
    return [
        AnthropicMessages(),
        Gemini(),
        Bedrock(),
        OAuthTokens(),
        OpenAIResponses(),
        Ollama(),
        Cohere(),
        Mistral(),
        OpenAIChat(),
        Generic(),
    ]


def tells(adapters: Sequence[ProviderAdapter], host: str, path: str) -> bool:
    """Whether a path is so much one of a dialect's that a request there, on any host, is one to a model."""
    host, path = host.lower().rstrip("."), normalise(path)
    return any(
        adapter.matches(host, path) for adapter in adapters if adapter.id not in {Generic.id, OAuthTokens.id}
    )


def find(adapters: Sequence[ProviderAdapter], host: str, path: str) -> ProviderAdapter:
    """The dialect spoken at a host and request path (as received, with or without its query).

    Adapters are asked in order. A path that none of them knows is read, and refused, as the host's own
    dialect, else as JSON of no known dialect. Raises ConfigError when there is no generic adapter to fall
    back on.
    """
    host, path = host.lower().rstrip("."), normalise(path)
    for adapter in adapters:
        if adapter.id != Generic.id and adapter.matches(host, path):
            return adapter
    by_id = {adapter.id: adapter for adapter in adapters}
    entry = hosts.lookup(host)
    chosen = (by_id.get(entry.dialect) if entry is not None else None) or by_id.get(Generic.id)
    if chosen is None:
        raise ConfigError(["providers: no adapter takes every request; the generic one is missing"])
    return chosen
