"""Every security switch in six states: left out, null, false, true, reloaded with a change, reloaded without one.

Of a bundle, a switch is one of the tables below; of the configuration, every setting that is one of a closed set of
words or true or false. A switch that is added without a row fails here.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

import pytest

from gateway.app.gatekeeper import read_stopped
from gateway.app.policies import LivePolicy, transformers_of
from gateway.config import SECTIONS, parse, settings_of
from gateway.config.settings import NAMED_SECTIONS
from gateway.context.findings import Category
from gateway.errors import ConfigError
from gateway.policy import CompiledPolicy
from gateway.policy.bundle import BOUNDARY_SWITCHES
from gateway.policy.modes import UNREAD, unread_action
from gateway.policy.rule import Outcome

MANIFEST = 'name = "org"\nversion = "1.0.0"\ndescription = "d"\n'


@dataclass(frozen=True)
class Switch:
    """One switch of a bundle: how it is written off and on, and how it is read back. `without` is its value left out."""

    name: str
    off: str
    on: str
    values: tuple[object, object]
    without: object
    read: Callable[[CompiledPolicy], object]
    file: str = "bundle.toml"
    table: str = ""


def _boundary(name: str) -> Switch:
    default = name in {"audit_cross_access", "universal_gotchas_enabled"}
    return Switch(name, "false", "true", (False, True), default, lambda p: p.boundary[name], table="boundary")


def _unread(name: str) -> Switch:
    default = unread_action(name, "governed", {})
    read: Callable[[CompiledPolicy], object] = lambda p: unread_action(name, "governed", p.layers.unread)  # noqa: E731
    return Switch(name, '"deny"', '"flag"', ("deny", "flag"), default, read, table="unread")


def _answers(name: str) -> Switch:
    read: Callable[[CompiledPolicy], object] = lambda p: str(dict(p.answers.levels).get(name, "off"))  # noqa: E731
    return Switch(name, '"off"', '"report"', ("off", "report"), "off", read, table="answers")


BUNDLE = [
    *map(_boundary, BOUNDARY_SWITCHES),
    *map(_unread, UNREAD),
    *(_answers(str(category)) for category in Category),
    Switch(
        "allow_cross_project_search",
        "false",
        "true",
        (False, True),
        False,
        lambda p: p.allows_cross_project_search(["dev"]),
        "roles/dev.toml",
        "io",
    ),
]


@dataclass
class Live:
    """A bundle on disk and the policy in force."""

    folder: Path
    switch: Switch

    def write(self, value: str | None) -> None:
        """Set the switch, or leave it out."""
        line = "" if value is None else f"[{self.switch.table}]\n{self.switch.name} = {value}\n"
        (self.folder / "bundle.toml").write_text(MANIFEST)
        path = self.folder / self.switch.file
        path.parent.mkdir(exist_ok=True)
        path.write_text((MANIFEST if self.switch.file == "bundle.toml" else "") + line)

    def load(self) -> LivePolicy:
        """The policy in force after a start."""
        config = parse({"policy": {"bundles": [str(self.folder)]}}, self.folder, {"HOME": str(self.folder)})
        return LivePolicy(
            config, transformers_of(config), config.policy.folders, lambda _: None, lambda _: None
        )


@pytest.fixture(params=BUNDLE, ids=lambda switch: f"{switch.table}.{switch.name}")
def live(request: pytest.FixtureRequest, tmp_path: Path) -> Live:
    return Live(tmp_path, request.param)


def test_left_out_false_and_true(live: Live) -> None:
    found = []
    for value in (None, live.switch.off, live.switch.on):
        live.write(value)
        found.append(live.switch.read(live.load()()))
    assert found == [live.switch.without, *live.switch.values]


@pytest.mark.parametrize("value", ["null", "", "1", "[]", '"yes"', "1.0", '"True"'])
def test_null_and_what_else_is_none_of_its_values_stops_the_start(live: Live, value: str) -> None:
    live.write(value)
    with pytest.raises(ConfigError):
        live.load()


async def test_reload_with_and_without_a_change(live: Live) -> None:
    live.write(live.switch.on)
    policy = live.load()
    first = policy()
    unchanged = await policy.reload()
    assert (unchanged.ok, unchanged.changed, policy() is first) == (True, False, True)
    live.write(live.switch.off)
    changed = await policy.reload()
    assert (changed.ok, changed.changed) == (True, True)
    assert live.switch.read(policy()) == live.switch.values[0]
    held = policy()
    live.write("null")
    broken = await policy.reload()
    assert (broken.ok, policy() is held) == (False, True)
    live.write(None)
    assert (await policy.reload()).ok
    assert live.switch.read(policy()) == live.switch.without


def test_every_flag_of_a_rule_is_known_here() -> None:
    """`then` has one flag, which only adds a reason; `when` has two, whose rows are in the truth table."""
    assert [f.name for f in fields(Outcome) if f.type == "bool"] == ["coverage_reason"]


# -- the configuration ---------------------------------------------------------------------------------------------


def _switches() -> list[tuple[str, str, Any]]:
    rows = [
        (name, row.key, row)
        for name, section in {**SECTIONS, **NAMED_SECTIONS}.items()
        for row in settings_of(section)
    ]
    words = re.compile(r"[\w-]+( \| [\w-]+)+")
    return [r for r in rows if r[2].kind.name == "true or false" or words.fullmatch(r[2].kind.name)]


CONFIGURED = _switches()


def _document(section: str, key: str, *value: Any) -> dict[str, Any]:
    table = {key: value[0]} if value else {}
    needed = {"budgets": {"requests": 1}, "accounts": {}, "local_models": {}}.get(section, {})
    return {section: {"one": {**needed, **table}} if section in NAMED_SECTIONS else table}


def _problems(document: dict[str, Any], folder: Path) -> list[str]:
    try:
        parse(document, folder, {"HOME": str(folder)})
    except ConfigError as error:
        return list(error.problems)
    return []


@pytest.mark.parametrize(("section", "key", "row"), CONFIGURED, ids=[f"{s}.{k}" for s, k, _ in CONFIGURED])
def test_a_setting_left_out_null_false_and_true(section: str, key: str, row: Any, tmp_path: Path) -> None:
    place = f"{section}.one.{key}" if section in NAMED_SECTIONS else f"{section}.{key}"

    def wrong(*value: Any) -> bool:
        return any(p.startswith(f"{place}: ") for p in _problems(_document(section, key, *value), tmp_path))

    is_flag = row.kind.name == "true or false"
    assert not wrong()
    assert not wrong(row.default)
    assert wrong(None)
    assert [wrong(value) for value in (False, True)] == [not is_flag, not is_flag]
    assert all(wrong(value) for value in (0, 1, "yes", "True", [], "false"))
    for word in [] if is_flag else row.kind.name.split(" | "):
        assert not wrong(word)


def test_the_switches_that_matter_most_are_among_them() -> None:
    names = {f"{section}.{key}" for section, key, _ in CONFIGURED}
    assert {
        "policy.mode",
        "policy.enforcement",
        "hosts.unknown",
        "hosts.websocket",
        "projects.privacy",
        "projects.classification",
        "budgets.per",
        "principals.kind",
    } <= names


@pytest.mark.parametrize(
    ("before", "after"), [("enforce", "shadow"), ("shadow", "enforce"), ("enforce", "enforce")]
)
async def test_a_reload_reads_bundles_and_no_settings(tmp_path: Path, before: str, after: str) -> None:
    """What gateway.toml says holds until the gateway is started again: a reload cannot switch enforcement off."""
    (tmp_path / "bundle.toml").write_text(MANIFEST)
    document = {"policy": {"bundles": [str(tmp_path)], "enforcement": before}}
    config = parse(document, tmp_path, {"HOME": str(tmp_path)})
    policy = LivePolicy(
        config, transformers_of(config), config.policy.folders, lambda _: None, lambda _: None
    )
    document["policy"]["enforcement"] = after
    (tmp_path / "bundle.toml").write_text(MANIFEST.replace("1.0.0", "1.0.1"))

    assert (await policy.reload()).changed
    assert (policy().version, policy().enforcement) == ("1.0.1", before)


@pytest.mark.parametrize(
    ("text", "stopped"),
    [
        ("{}", False),
        ('{"all": null}', True),
        ('{"all": false}', False),
        ('{"all": true}', True),
        ('{"all": "false"}', True),
        ('{"all": 0}', True),
    ],
)
def test_the_kill_file(text: str, stopped: bool) -> None:
    assert bool(read_stopped(text.encode())) is stopped
