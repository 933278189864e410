"""The built-in rules: every `*.toml` beside this file, in order of name."""

from __future__ import annotations

import tomllib
from importlib.resources import files
from typing import Any


def builtin() -> list[dict[str, Any]]:
    """The parsed documents."""
    found = sorted((f for f in files(__name__).iterdir() if f.name.endswith(".toml")), key=lambda f: f.name)
    return [tomllib.loads(f.read_text("utf-8")) for f in found]
