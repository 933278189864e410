"""The document about clients names the versions that are tested, and each variable that is set."""

from importlib.metadata import version
from pathlib import Path

import pytest

from gateway.cli.environment import FIXED
from tests.clients.packages import PACKAGES, SDKS

TEXT = (Path(__file__).parents[2] / "docs" / "clients.md").read_text()


@pytest.mark.parametrize("name", sorted(PACKAGES.keys() - {"sdks", "pii-leak-benchmark", "mcp-memory"}))
def test_pinned_versions_are_the_documented_ones(name: str) -> None:
    assert f"| {PACKAGES[name].version} |" in TEXT


def test_the_version_of_the_memory_server_is_the_documented_one() -> None:
    boundaries = (Path(__file__).parents[2] / "docs" / "boundaries.md").read_text()
    assert f"server-memory` {PACKAGES['mcp-memory'].version} " in boundaries


@pytest.mark.parametrize("name", SDKS)
def test_pinned_versions_of_sdks_are_the_documented_ones(name: str) -> None:
    assert name == "websockets" or f"| {SDKS[name]} |" in TEXT


@pytest.mark.parametrize("name", ["openai", "anthropic"])
def test_versions_of_the_sdks_are_the_documented_ones(name: str) -> None:
    assert f"| {version(name)} |" in TEXT


@pytest.mark.parametrize(("name", "value"), FIXED.items())
def test_fixed_variables_are_documented(name: str, value: str) -> None:
    assert f"`{name}={value}`" in TEXT
