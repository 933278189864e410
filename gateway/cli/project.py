"""`egress project list`."""

from __future__ import annotations

from pathlib import Path

import click

from gateway.cli.options import JSON, echo_lines, echo_table, read_config, with_config
from gateway.config import DEFAULT_PROJECT, Config


@click.group()
def project() -> None:
    """Projects that requests can belong to."""


def rows(config: Config) -> list[dict[str, object]]:
    """Projects by name, the one of requests without credentials included."""
    found: dict[str, dict[str, object]] = {
        name: {
            "name": name,
            "roots": [str(root) for root in project.roots],
            "linked_projects": list(project.linked_projects),
            "team": project.team,
        }
        for name, project in config.projects.items()
    }
    found.setdefault(
        DEFAULT_PROJECT, {"name": DEFAULT_PROJECT, "roots": [], "linked_projects": [], "team": ""}
    )
    return [found[name] for name in sorted(found)]


@project.command("list")
@with_config
@JSON
def list_(config_path: Path | None, as_json: bool) -> None:
    """List the projects of the configuration."""
    config = read_config(config_path)
    found = rows(config)
    if as_json:
        echo_lines(found)
        return
    cells = [
        (p.name, p.team, ", ".join(p.linked_projects), ", ".join(map(str, p.roots)))
        for p in config.projects.values()
    ]
    if DEFAULT_PROJECT not in config.projects:
        cells.append((DEFAULT_PROJECT, "", "", ""))
    echo_table(("PROJECT", "TEAM", "LINKED", "ROOTS"), sorted(cells))
