"""`egress project list|add|link|index|canary`."""

from __future__ import annotations

import os
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click

from gateway.cli.options import JSON, echo_json, echo_lines, echo_table, read_config, with_config
from gateway.config import DEFAULT_PROJECT, Config, load
from gateway.config.edit import add_project, set_links
from gateway.config.load import find

if TYPE_CHECKING:
    from gateway.app.indexing import Progress

_TELL_S: Final = 0.5
_RESTART: Final = "a gateway that runs takes this up when it is started again"


@click.group()
def project() -> None:
    """Projects that requests can belong to."""


@project.command("list")
@with_config
@JSON
def list_(config_path: Path | None, as_json: bool) -> None:
    """List projects: name, hash in evidence, roots, who may see what is theirs."""
    from gateway.app.projects import known_projects  # noqa: PLC0415 - heavy

    found, warnings = known_projects(read_config(config_path))
    rows = [
        {
            "name": p.name,
            "hash": p.hash,
            "roots": list(p.roots),
            "linked_projects": list(p.linked),
            "team": p.team,
            "privacy": str(p.privacy),
        }
        for _, p in sorted(found.items())
    ]
    for warning in warnings:
        click.echo(f"egress: {warning}", err=True)
    if as_json:
        echo_lines(rows)
        return
    cells = [
        (
            r["name"],
            r["hash"],
            r["team"],
            r["privacy"],
            ", ".join(r["linked_projects"]),
            ", ".join(r["roots"]),
        )
        for r in rows
    ]
    echo_table(("PROJECT", "HASH", "TEAM", "PRIVACY", "LINKED", "ROOTS"), [tuple(map(str, c)) for c in cells])


@project.command()
@click.argument("name")
@click.option(
    "--root", "roots", multiple=True, type=click.Path(file_okay=False, path_type=Path), help="A folder."
)
@click.option("--team", default="", help="The team it belongs to.")
@with_config
def add(name: str, roots: tuple[Path, ...], team: str, config_path: Path | None) -> None:
    """Add a project to the configuration file."""
    settings: dict[str, Any] = {"roots": [str(root.absolute()) for root in roots]}
    if team:
        settings["team"] = team
    path = _file(config_path)
    add_project(path, name, settings, os.environ)
    click.echo(f"added {name} to {path}; {_RESTART}", err=True)


@project.command()
@click.argument("owner")
@click.argument("others", nargs=-1, required=True)
@click.option("--remove", is_flag=True, help="Take the links away.")
@with_config
def link(owner: str, others: tuple[str, ...], remove: bool, config_path: Path | None) -> None:
    """Let OTHERS see what is OWNER's, where role and policy allow it; one direction."""
    path = _file(config_path)
    if not path.exists():
        raise click.ClickException(f"there is no {path} yet; `egress project add {owner}` makes one")
    config = load(path, os.environ)
    now = set(config.projects[owner].linked_projects) if owner in config.projects else set()
    wanted = now - set(others) if remove else now | set(others)
    set_links(path, owner, sorted(wanted), os.environ)
    click.echo(f"{owner} is linked to {', '.join(sorted(wanted)) or 'no project'}; {_RESTART}", err=True)


@project.command()
@click.argument("names", nargs=-1)
@click.option("--full", is_flag=True, help="Read every file again, not only those that changed.")
@click.option(
    "--values",
    multiple=True,
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="Replace the list of known values by the lines of this file instead.",
)
@with_config
@JSON
def index(
    names: tuple[str, ...], full: bool, values: tuple[Path, ...], config_path: Path | None, as_json: bool
) -> None:
    """Read the files of projects (all without NAMES) into fingerprints; progress on standard error."""
    from gateway.app.indexing import index_project  # noqa: PLC0415 - heavy

    config = read_config(config_path)
    if values:
        _index_values(config, values, as_json=as_json)
        return
    chosen = names or tuple(sorted(p.name for p in config.projects.values() if p.roots))
    if not chosen:
        click.echo("egress: no project has roots: egress project add NAME --root FOLDER", err=True)
    for name in chosen:
        began = time.monotonic()
        done = index_project(config, name, full=full, tell=_Teller())
        seconds = time.monotonic() - began
        row = {
            "project": name,
            "files": done.done,
            "read": done.read,
            "skipped": done.skipped,
            "bytes": done.bytes,
            "fingerprints": done.fingerprints,
            "seconds": round(seconds, 3),
        }
        if as_json:
            echo_json(row)
        else:
            click.echo(
                f"{name}: {done.done} files, {done.read} read ({done.bytes / 1e6:.1f} MB, "
                f"{done.bytes / 1e6 / max(seconds, 1e-6):.1f} MB/s), {done.skipped} skipped, "
                f"{done.fingerprints} fingerprints"
            )


def _index_values(config: Config, files: tuple[Path, ...], *, as_json: bool) -> None:
    from gateway.app.indexing import index_values  # noqa: PLC0415 - heavy

    began = time.monotonic()
    counts = index_values(config, files)
    seconds = round(time.monotonic() - began, 3)
    if as_json:
        echo_json({"values": counts.values, "passed_over": counts.passed_over, "seconds": seconds})
    else:
        click.echo(
            f"{counts.values} values known, {counts.passed_over} passed over (too short, too long, too many words), "
            f"{seconds} s"
        )
    click.echo(f"egress: {_RESTART}", err=True)


@project.command()
@click.argument("name")
@with_config
@JSON
def canary(name: str, config_path: Path | None, as_json: bool) -> None:
    """Print the text to plant in files of a project: wherever it turns up, it is known whose it is."""
    from gateway.app.belongings import fingerprint_key  # noqa: PLC0415
    from gateway.app.ownership import canary as canary_of  # noqa: PLC0415 - heavy
    from gateway.app.signing import keyring  # noqa: PLC0415 - heavy

    config = read_config(config_path)
    if name not in config.projects or name == DEFAULT_PROJECT:
        raise click.ClickException(f"no project {name} in the configuration")
    text = canary_of(fingerprint_key(keyring(config)), name)
    if as_json:
        echo_json({"project": name, "canary": text})
    else:
        click.echo(text)


def _file(path: Path | None) -> Path:
    """The configuration file to change; a new one in this folder where there is none."""
    return find(path, os.environ) or Path("gateway.toml")


class _Teller:
    """Progress on standard error now and then: in place on a terminal, a line each otherwise."""

    def __init__(self) -> None:
        self._last = time.monotonic()

    def __call__(self, progress: Progress) -> None:
        now = time.monotonic()
        if now - self._last < _TELL_S:
            return
        self._last = now
        end = "\r" if sys.stderr.isatty() else "\n"
        text = f"{progress.project}: {progress.done} files, {progress.bytes / 1e6:.1f} MB read"
        sys.stderr.write(text + end)
        sys.stderr.flush()
