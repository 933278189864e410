"""Plug-ins: found by entry point, active only when the configuration names them.

An installed package cannot put itself in the path of a request: nothing is imported that is not named.
Built-ins register the same way as third parties (`pyproject.toml`); the table below stands in for a checkout
that was never installed.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from importlib.metadata import EntryPoint, entry_points
from typing import Any, Final

import gateway
from gateway.errors import SetupError

DISTRIBUTION: Final = "model-egress-gateway"

PROVIDERS: Final = "gateway.providers"
DETECTORS: Final = "gateway.detectors"
STORES: Final = "gateway.stores"
SINKS: Final = "gateway.sinks"
MINIMISERS: Final = "gateway.minimisers"
SUMMARISERS: Final = "gateway.summarisers"
SIGNERS: Final = "gateway.signers"

BUILT_IN: Final[dict[str, dict[str, str]]] = {
    PROVIDERS: {
        "anthropic": "gateway.providers.anthropic:AnthropicMessages",
        "bedrock": "gateway.providers.bedrock:Bedrock",
        "cohere": "gateway.providers.cohere:Cohere",
        "gemini": "gateway.providers.gemini:Gemini",
        "mistral": "gateway.providers.mistral:Mistral",
        "oauth": "gateway.providers.oauth:OAuthTokens",
        "ollama": "gateway.providers.ollama:Ollama",
        "openai_chat": "gateway.providers.openai_chat:OpenAIChat",
        "openai_responses": "gateway.providers.openai_responses:OpenAIResponses",
    },
    DETECTORS: {
        "builtin": "gateway.detect.engine:build",
        "kingfisher": "gateway.workers.second:Kingfisher",
        "names": "gateway.workers.names:Names",
    },
    STORES: {"memory": "gateway.store.memory:MemoryStore", "sqlite": "gateway.store.sqlite:SqliteStore"},
    SIGNERS: {"file": "gateway.store.keys:file_signer"},
    SINKS: {"metrics": "gateway.telemetry.metrics:Metrics"},
    MINIMISERS: {
        "deduplicate": "gateway.classify.minimise:Deduplicate",
        "drop_fields": "gateway.classify.minimise:DropFields",
        "head_tail": "gateway.classify.minimise:HeadTail",
        "match_lines": "gateway.classify.minimise:MatchLines",
    },
    SUMMARISERS: {
        "auto": "gateway.classify.summarise:auto",
        "code_outline": "gateway.classify.summarise:code",
        "counts": "gateway.classify.summarise:sizes",
        "csv_schema": "gateway.classify.summarise:csv_",
        "json_schema": "gateway.classify.summarise:json_",
        "log_templates": "gateway.classify.summarise:logs",
        "python_outline": "gateway.classify.summarise:python",
    },
}
"""What this distribution registers itself; a test holds it equal to the project file."""


@dataclass(frozen=True, slots=True)
class Plugin:
    """One active plug-in; what stands in evidence of it is `name`, `version` and `distribution`."""

    group: str
    name: str
    factory: str  # package.module:attribute, which another process can load too
    version: str
    distribution: str

    def load(self) -> Any:
        """The registered object; SetupError where it cannot be imported."""
        try:
            return EntryPoint(self.name, self.factory, self.group).load()
        except (ImportError, AttributeError) as error:
            message = f"the plug-in {self.name} of {self.group} cannot be loaded ({type(error).__name__})"
            hint = f"reinstall {self.distribution}, or take {self.name} out of the configuration"
            raise SetupError("setup.plugin", message, hint=hint) from None


def _known(group: str) -> dict[str, list[Plugin]]:
    """Every registered plug-in of a group by name; two of one name are kept apart to be refused."""
    known: dict[str, list[Plugin]] = {}
    for point in entry_points(group=group):
        version, distribution = (point.dist.version, point.dist.name) if point.dist else ("0", "unknown")
        plugin = Plugin(group, point.name, point.value, version, distribution)
        same = known.setdefault(point.name, [])
        if plugin not in same:  # one distribution can stand on the import path twice
            same.append(plugin)
    for name, factory in BUILT_IN.get(group, {}).items():
        known.setdefault(name, [Plugin(group, name, factory, gateway.__version__, DISTRIBUTION)])
    return known


def activate(group: str, names: Sequence[str]) -> list[Plugin]:
    """The plug-ins of these names, in this order; nothing is imported yet.

    Raises:
        SetupError: no installed distribution registers one of the names, or two do: neither may win by
            chance.
    """
    known = _known(group)
    active: list[Plugin] = []
    for name in names:
        found = known.get(name, [])
        if not found:
            there = ", ".join(sorted(known)) or "none"
            raise SetupError("setup.plugin", f"no plug-in {name} in {group}", hint=f"there are: {there}")
        if len(found) > 1:
            owners = ", ".join(sorted(plugin.distribution for plugin in found))
            message = f"{name} of {group} is registered by more than one distribution: {owners}"
            raise SetupError("setup.plugin", message, hint="uninstall all but one")
        active.append(found[0])
    return active
