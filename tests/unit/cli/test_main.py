"""Exit statuses, and that an error is told in lines and not in a traceback."""

import errno
import json
import os
from pathlib import Path

import click
import pytest

from gateway.cli.main import cli, status_of
from gateway.errors import (
    ConfigError,
    ContractError,
    DetectorError,
    EvidenceError,
    PolicyError,
    SetupError,
    VerificationError,
)
from tests.unit.cli.conftest import Run


@pytest.mark.parametrize(
    ("error", "status"),
    [
        (VerificationError("v"), 1),
        (ConfigError(["x"]), 2),
        (PolicyError("p"), 2),
        (ContractError("c"), 2),
        (EvidenceError("query.invalid"), 2),
        (EvidenceError("evidence.unavailable"), 3),
        (SetupError("s"), 3),
        (DetectorError("d"), 3),
    ],
)
def test_every_error_has_its_status(error: Exception, status: int) -> None:
    assert status_of(error) == status  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "arguments", [["nothing"], ["receipts", "list", "--limit", "0"], ["exec"], ["env", "--shell", "dos"]]
)
def test_wrong_usage_is_status_2(egress: Run, arguments: list[str]) -> None:
    done = egress(*arguments)

    assert done.status == 2
    assert "Traceback" not in done.err


def test_a_configuration_with_problems_is_status_2_and_names_them_all(egress: Run, folder: Path) -> None:
    (folder / "gateway.toml").write_text('[listen]\nproxy = "x"\ncolour = 1\n[nope]\n')
    for arguments in (["config", "check"], ["receipts", "list"], ["env"], ["up"]):
        done = egress(*arguments)

        assert done.status == 2
        for path in ("listen.proxy", "listen.colour", "nope"):
            assert path in done.err


def _commands(group: click.Group) -> list[tuple[str, click.Command]]:
    found: list[tuple[str, click.Command]] = []
    for name, command in group.commands.items():
        if isinstance(command, click.Group):
            found += [(f"{name} {inner}", leaf) for inner, leaf in _commands(command)]
        else:
            found.append((name, command))
    return found


@pytest.mark.parametrize(("name", "command"), _commands(cli))
def test_every_command_takes_a_configuration_and_is_described(name: str, command: click.Command) -> None:
    options = {option for parameter in command.params for option in parameter.opts}

    assert command.help
    assert name == "demo" or "--config" in options
    writes = {
        "up",
        "demo",
        "exec",
        "env",
        "project add",
        "project link",
        "project canary",
        "memory inbox discard",
    }
    assert name in writes or "--json" in options


def test_the_search_for_a_configuration_follows_the_environment(
    egress: Run, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    other = folder / "other.toml"
    other.write_text("[limits]\nmax_depth = 7\n")
    monkeypatch.setenv("EGRESS_CONFIG", str(other))
    monkeypatch.setenv("EGRESS_LIMITS__MAX_NODES", "8")
    shown = json.loads(egress("config", "show", "--json").out)

    assert (shown["limits"]["max_depth"], shown["limits"]["max_nodes"]) == (7, 8)
    given = json.loads(egress("config", "show", "--json", "--config", str(folder / "gateway.toml")).out)
    assert given["limits"]["max_depth"] == 128


def test_what_config_show_prints_is_a_configuration(egress: Run, folder: Path) -> None:
    (folder / "gateway.toml").write_text(
        '[upstream]\nproxy = "http://me:hunter2@p:1"\n'
        'connect_to = { "a.example:443" = "127.0.0.1:9" }\n[projects.web]\nroots = ["src"]\n'
    )
    first = egress("config", "show").out
    (folder / "shown.toml").write_text(first)

    assert "hunter2" not in first
    assert egress("config", "show", "--config", "shown.toml").out == first


def test_config_check_warns_and_passes(egress: Run, folder: Path) -> None:
    (folder / "gateway.toml").write_text('[projects.web]\nroots = ["gone"]\n')
    done = egress("config", "check")

    assert done.status == 0
    assert "projects.web.roots" in done.err
    assert json.loads(egress("config", "check", "--json").out)["warnings"]


def test_projects_are_listed(egress: Run, folder: Path) -> None:
    (folder / "gateway.toml").write_text('[projects.web]\nteam = "platform"\nlinked_projects = ["default"]\n')
    rows = [json.loads(line) for line in egress("project", "list", "--json").out.splitlines()]

    assert [row["name"] for row in rows] == ["default", "web"]
    assert rows[1]["team"] == "platform"
    assert "platform" in egress("project", "list").out


def test_policy_check_and_test_answer_for_the_packaged_bundle(egress: Run) -> None:
    checked = json.loads(egress("policy", "check", "--json").out)
    tested = json.loads(egress("policy", "test", "default", "--json").out)

    assert checked["ok"]
    assert checked["digest"].startswith("sha256:")
    assert tested["ok"]
    assert tested["tests"]


def test_policy_faults_are_told_with_their_status(egress: Run, folder: Path) -> None:
    bundle = folder / "mine"
    (bundle / "rules").mkdir(parents=True)
    (bundle / "bundle.toml").write_text('name = "mine"\nversion = "1"\n')
    (bundle / "rules" / "a.toml").write_text('[[rule]]\nid = "A"\n')
    done = egress("policy", "check", "mine")

    assert done.status == 2
    assert "version" in done.err
    assert "rules/a.toml" in done.err
    assert egress("policy", "check", "no-such").status == 2


def test_commands_that_read_evidence_say_what_is_missing(egress: Run) -> None:
    for arguments in (
        ["receipts", "list"],
        ["receipts", "verify"],
        ["receipts", "show", "sha256:ab"],
        ["ca", "show"],
    ):
        done = egress(*arguments)

        assert done.status == 3
        assert done.err.startswith("egress: ")
        assert "Traceback" not in done.err


def test_a_fault_is_told_by_type_and_place_and_never_by_its_text(
    egress: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(_path: object) -> None:
        raise RuntimeError("canary-9f3a")

    monkeypatch.setattr("gateway.cli.project.read_config", broken)
    done = egress("project", "list")

    assert done.status == 3
    assert "RuntimeError" in done.err
    assert "test_main.py" in done.err
    assert "canary" not in done.err + done.out


@pytest.mark.parametrize("number", [errno.EACCES, errno.EROFS, errno.ENOSPC])
def test_what_the_machine_does_not_let_one_do_is_told_without_places(
    egress: Run, monkeypatch: pytest.MonkeyPatch, number: int
) -> None:
    def broken(_path: object) -> None:
        raise OSError(number, "canary-9f3a", "/canary-9f3a")

    monkeypatch.setattr("gateway.cli.project.read_config", broken)
    done = egress("project", "list")

    assert done.status == 3
    assert os.strerror(number) in done.err
    assert "[state] dir" in done.err
    assert "canary" not in done.err + done.out
