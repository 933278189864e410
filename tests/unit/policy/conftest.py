"""Small bundles as bytes."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

MANIFEST = b'name = "NAME"\nversion = "1.0.0"\ndescription = "For tests."\n'
POLICIES = Path(__file__).parents[3] / "policies"

type Files = dict[str, bytes]
type Write = Callable[..., Files]


@pytest.fixture(scope="session")
def write() -> Write:
    """A bundle with one rules file: write("[[rule]]...", name=..., manifest=..., more={"texts.toml": "..."})."""

    def bundle(
        rules: str = "", *, name: str = "test", manifest: str = "", more: Mapping[str, str] | None = None
    ) -> Files:
        files = {
            "bundle.toml": MANIFEST.replace(b"NAME", name.encode()) + manifest.encode(),
            "rules/rules.toml": rules.encode(),
        }
        return files | {file: text.encode() for file, text in (more or {}).items()}

    return bundle


@pytest.fixture(scope="session")
def shipped() -> Callable[[str], Files]:
    """A shipped bundle by its folder."""

    def read(name: str) -> Files:
        folder = POLICIES / name
        return {p.relative_to(folder).as_posix(): p.read_bytes() for p in sorted(folder.rglob("*.toml"))}

    return read
