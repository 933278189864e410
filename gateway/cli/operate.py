"""`egress kill on|off|status`, `egress budget list` and `egress reload`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from gateway.cli.control import ControlPort, with_reviewer
from gateway.cli.options import JSON, echo_json, echo_lines, echo_table, read_config, with_config
from gateway.config import unknown_name

NAMED = (
    click.option("--project", default="", help="Only this project's requests."),
    click.option("--principal", default="", help="Only this principal's requests."),
)


@click.group()
def kill() -> None:
    """Stop requests to models at once: a file in the state folder, which works with and without a gateway."""


def _turn(name: str, text: str, *, on: bool) -> click.Command:
    @click.command(name, help=text)
    @NAMED[0]
    @NAMED[1]
    @with_config
    @JSON
    def command(project: str, principal: str, config_path: Path | None, as_json: bool) -> None:
        from gateway.app import turn_kill_switch  # noqa: PLC0415 - heavy

        config = read_config(config_path)
        document = turn_kill_switch(config, on=on, project=project, principal=principal)
        if on and (unknown := unknown_name(config, project, principal)):  # it stops even so: never in the way
            click.echo(f"egress: warning: {unknown}, so that this stops nothing that is known here", err=True)
        _show(document, as_json=as_json)

    return command


kill.add_command(_turn("on", "Stop all requests, or those of a project or a principal.", on=True))
kill.add_command(_turn("off", "Let them pass again.", on=False))


@kill.command()
@with_config
@JSON
def status(config_path: Path | None, as_json: bool) -> None:
    """Print what is stopped."""
    from gateway.app import kill_switch  # noqa: PLC0415 - heavy

    _show(kill_switch(read_config(config_path)), as_json=as_json)


def _show(document: dict[str, object], *, as_json: bool) -> None:
    if as_json:
        echo_json(document)
        return
    named = [f"{kind} {name}" for kind in ("projects", "principals") for name in document[kind]]  # type: ignore[attr-defined]
    click.echo("everything is stopped" if document["all"] else f"stopped: {', '.join(named) or 'nothing'}")


@click.group()
def budget() -> None:
    """How much principals and projects may ask of models (`[budgets]`)."""


@budget.command("list")
@with_config
@JSON
def list_budgets(config_path: Path | None, as_json: bool) -> None:
    """Print what is used of each budget in its present window; works with and without a running gateway."""
    from gateway.app import budget_rows  # noqa: PLC0415 - heavy

    rows = budget_rows(read_config(config_path))
    if as_json:
        echo_lines(rows)
        return
    cells = [
        (
            row["budget"],
            row["of"] or "(everybody)",
            row["window_ends"],
            *(_share(row, what) for what in _COUNTED),
        )
        for row in rows
    ]
    echo_table(("BUDGET", "OF", "WINDOW ENDS", *map(str.upper, _COUNTED)), cells)


_COUNTED = ("requests", "bytes", "tokens")


def _share(row: dict[str, Any], what: str) -> str:
    limit = row["limits"][what]
    return f"{row['used'][what]} of {limit}" if limit else str(row["used"][what])


@click.command()
@with_reviewer
@with_config
@JSON
def reload(config_path: Path | None, as_json: bool, token_file: Path | None) -> int:
    """Have the running gateway load its policy and gateway.toml anew; exit status 1 where one is not valid.

    What is not valid changes nothing: what was in force stays. Of gateway.toml the host lists are taken up
    (`hosts.intercept`, `tunnel`, `deny`, `unknown`); which other settings differ from those of the running gateway is
    said: they wait for a restart. Bundles are also taken up by themselves (`policy.poll_s`), gateway.toml is not.
    """
    done = ControlPort(read_config(config_path), token_file).post("reload")
    if as_json:
        echo_json(done)
    else:
        for problem in done["problems"]:
            click.echo(problem, err=True)
        for path in done["settings"]["applied"]:
            click.echo(f"taken up: {path}")
        for path in done["settings"]["restart"]:
            click.echo(f"waits for a restart: {path}")
        click.echo(f"{'in force' if done['ok'] else 'not valid; still in force'}: {done['digest']}")
    return 0 if done["ok"] else 1
