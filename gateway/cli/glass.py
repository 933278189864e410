"""`egress break-glass begin|end|list`: rules lifted by a person for a short while, signed and announced."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from gateway.cli.control import ControlPort, with_reviewer
from gateway.cli.options import JSON, echo_json, echo_lines, echo_table, read_config, with_config


@click.group("break-glass")
def break_glass() -> None:
    """Lift rules of the policy for a short while, where something must go out now.

    Needs a reviewer with the role break_glass. It is signed and stands in the evidence log before it has any effect;
    log, metrics, /healthz and every decision it touches say that it is in force. What the mode decides stays.
    """


@break_glass.command()
@click.option(
    "--rule", "rules", multiple=True, required=True, help="A rule's id; * stands for any part of one."
)
@click.option("--minutes", type=click.IntRange(1), required=True, help="At most review.break_glass_minutes.")
@click.option("--reason", required=True, help="One line, for those who read the evidence.")
@click.option("--project", default="", help="Only for this project's requests.")
@click.option("--principal", default="", help="Only for this principal's requests.")
@with_reviewer
@with_config
@JSON
def begin(config_path: Path | None, as_json: bool, token_file: Path | None, **wish: Any) -> None:
    """Lift rules from now on; ends by itself."""
    port = ControlPort(read_config(config_path), token_file)
    done = port.post("break-glass", **{**wish, "rules": list(wish["rules"])})
    if as_json:
        echo_json(done)
    else:
        click.echo(f"{done['id']}: {', '.join(done['rules'])} lifted until {done['expires']}")


@break_glass.command()
@click.argument("name", metavar="ID")
@with_reviewer
@with_config
@JSON
def end(name: str, config_path: Path | None, as_json: bool, token_file: Path | None) -> None:
    """Put the rules back in force before the time is over; an ID may be cut short where it is still the only one."""
    done = ControlPort(read_config(config_path), token_file).post("break-glass", name, "end")
    if as_json:
        echo_json(done)
    else:
        click.echo(f"{done['id']}: {', '.join(done['rules'])} in force again")


@break_glass.command("list")
@with_reviewer
@with_config
@JSON
def list_(config_path: Path | None, as_json: bool, token_file: Path | None) -> None:
    """Print what is lifted now."""
    rows = ControlPort(read_config(config_path), token_file).get("break-glass")["items"]
    if as_json:
        echo_lines(rows)
        return
    names = ("id", "owner", "expires", "project", "principal")
    cells = [(*(row[name] or "*" for name in names), ",".join(row["rules"]), row["reason"]) for row in rows]
    echo_table((*map(str.upper, names), "RULES", "REASON"), cells)
