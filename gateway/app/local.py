"""Models on this machine, from the configuration."""

from __future__ import annotations

from collections.abc import Mapping
from urllib.parse import urlsplit

from gateway.app.tokens import token_of
from gateway.config import Config
from gateway.egress.detour import LocalModel


def local_models_of(config: Config) -> Mapping[str, LocalModel]:
    """By name; SetupError where the file of a key cannot be read."""
    found = {}
    for settings in config.local_models.values():
        parts = urlsplit(settings.url)
        found[settings.name] = LocalModel(
            name=settings.name,
            model=settings.model,
            scheme=parts.scheme,
            host=parts.hostname or "",
            port=parts.port or 0,
            base=parts.path,
            dialects=frozenset(settings.dialects),
            key=token_of(settings.key_file),
        )
    return found
