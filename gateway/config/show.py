"""The effective configuration as plain data, with secrets left out."""

from __future__ import annotations

from typing import Any

from gateway.config.rows import settings_of
from gateway.config.settings import NAMED_SECTIONS, SECTIONS, Config


def _table(section: object) -> dict[str, Any]:
    return {row.key: row.kind.show(getattr(section, row.key)) for row in settings_of(type(section))}


def show(config: Config) -> dict[str, Any]:
    """Section to key to value, as it could be written in the file; user and password of URLs are `***`.

    Tokens never stand in a configuration: only the files that hold them do.
    """
    shown: dict[str, Any] = {name: _table(getattr(config, name)) for name in SECTIONS}
    for name in NAMED_SECTIONS:
        shown[name] = {key: _table(entry) for key, entry in getattr(config, name).items()}
    return shown
