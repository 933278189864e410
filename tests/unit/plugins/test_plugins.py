"""Plug-ins are inert until they are named, and never chosen by chance."""

import sys
import tomllib
from pathlib import Path

import pytest

from gateway import plugins
from gateway.errors import SetupError

ROOT = Path(__file__).parents[3]


def distribution(
    folder: Path, name: str, module: str, group: str = plugins.DETECTORS, point: str = "extra"
) -> None:
    """An installed distribution as pip leaves it, whose module marks that it was imported."""
    info = folder / f"{name}-1.2.3.dist-info"
    info.mkdir()
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.2.3\n")
    (info / "entry_points.txt").write_text(f"[{group}]\n{point} = {module}:build\n")
    (folder / f"{module}.py").write_text("def build():\n    return 'built'\n")


def test_the_built_in_table_is_what_the_project_file_registers() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())

    assert project["project"]["entry-points"] == plugins.BUILT_IN


def test_a_named_plugin_is_found_with_its_version_and_loaded_on_demand(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    distribution(tmp_path, "extra-detector", "extra_detector_module")
    monkeypatch.syspath_prepend(str(tmp_path))
    (plugin,) = plugins.activate(plugins.DETECTORS, ["extra"])

    assert (plugin.version, plugin.distribution) == ("1.2.3", "extra-detector")
    assert "extra_detector_module" not in sys.modules
    assert plugin.load()() == "built"


def test_an_installed_plugin_that_is_not_named_stays_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    distribution(tmp_path, "lurker", "lurker_module")
    monkeypatch.syspath_prepend(str(tmp_path))

    assert [plugin.name for plugin in plugins.activate(plugins.DETECTORS, ["builtin"])] == ["builtin"]
    assert "lurker_module" not in sys.modules


def test_a_plugin_cannot_take_the_name_of_another(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    distribution(tmp_path, "usurper", "usurper_module", point="builtin")
    distribution(tmp_path, "second", "second_module", point="builtin")
    monkeypatch.syspath_prepend(str(tmp_path))
    with pytest.raises(SetupError) as caught:
        plugins.activate(plugins.DETECTORS, ["builtin"])

    assert "usurper" in str(caught.value)


def test_built_ins_work_without_distribution_metadata(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(plugins, "entry_points", lambda group: ())
    found = plugins.activate(plugins.PROVIDERS, ["gemini", "anthropic"])

    assert [(p.name, p.distribution) for p in found] == [
        ("gemini", "model-egress-gateway"),
        ("anthropic", "model-egress-gateway"),
    ]


@pytest.mark.parametrize("factory", ["no_such_module_at_all:build", "json:no_such_attribute"])
def test_one_that_cannot_be_loaded_says_what_to_do(factory: str) -> None:
    plugin = plugins.Plugin(plugins.DETECTORS, "broken", factory, "1", "broken-detector")
    with pytest.raises(SetupError) as caught:
        plugin.load()

    assert "broken-detector" in caught.value.hint


def test_an_unknown_name_lists_the_known_ones() -> None:
    with pytest.raises(SetupError) as caught:
        plugins.activate(plugins.STORES, ["oracle"])

    assert "sqlite" in caught.value.hint
