"""`egress exec` and `egress env`: a program behind the gateway."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import Any, Final

import click

from gateway.cli.environment import export_lines, variables
from gateway.cli.options import JSON, echo_json, read_config, with_config
from gateway.cli.running import a_gateway
from gateway.errors import GatewayError

# env(1): 125 it failed itself, 126 the command cannot be run, 127 there is none.
FAILED: Final = 125
NOT_RUNNABLE: Final = 126
NOT_FOUND: Final = 127
FORWARDED: Final = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)

_PROJECT = click.option("--project", help="The project that the requests belong to.")
_PRINCIPAL = click.option("--principal", help="Who sends them.")


@click.command("exec", context_settings={"allow_interspersed_args": False})
@click.argument("command", nargs=-1, required=True, type=click.UNPROCESSED)
@_PROJECT
@_PRINCIPAL
@with_config
def exec_(
    command: Sequence[str], project: str | None, principal: str | None, config_path: Path | None
) -> int:
    """Run COMMAND behind the gateway, and start a gateway for it where none runs.

    Write `egress exec -- COMMAND ...`. The exit status is COMMAND's, and 125 to 127 where it could not be run.
    """
    try:
        config = read_config(config_path)
        with a_gateway(config):
            values = variables(config, os.environ, project=project, principal=principal)
            return run(command, {**os.environ, **values})
    except (GatewayError, click.UsageError) as error:
        hint = f" ({error.hint})" if isinstance(error, GatewayError) and error.hint else ""
        click.echo(
            f"egress exec: {error.message if isinstance(error, click.UsageError) else error}{hint}", err=True
        )
        return FAILED


def run(command: Sequence[str], environ: Mapping[str, str]) -> int:
    """Run a command, pass signals on to it, and return its status as a shell would."""
    try:
        process = subprocess.Popen(list(command), env=environ)  # noqa: S603 - the command the user asked for
    except FileNotFoundError:
        click.echo(f"egress exec: {command[0]}: no such command", err=True)
        return NOT_FOUND
    except OSError as error:
        click.echo(f"egress exec: {command[0]}: {error.strerror}", err=True)
        return NOT_RUNNABLE
    with _forwarding(process):
        status = process.wait()
    return 128 - status if status < 0 else status


@contextmanager
def _forwarding(process: subprocess.Popen[Any]) -> Iterator[None]:
    """Signals go to the command and not to us: how it ends is its own affair."""

    def forward(number: int, _frame: FrameType | None) -> None:
        # From a terminal the whole foreground group gets SIGINT, the command too; a second one would cut it short.
        if number != signal.SIGINT or not sys.stdin.isatty():
            process.send_signal(number)

    before = {number: signal.signal(number, forward) for number in FORWARDED}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


@click.command()
@click.option(
    "--shell",
    type=click.Choice(["sh", "fish", "powershell"]),
    default="sh",
    show_default=True,
    help="Whose quoting: sh is also that of bash, zsh, dash and ksh; powershell of pwsh.",
)
@_PROJECT
@_PRINCIPAL
@with_config
@JSON
def env(
    shell: str, project: str | None, principal: str | None, config_path: Path | None, as_json: bool
) -> None:
    """Print the variables of `egress exec` as lines for a shell, or as one JSON object.

    A gateway is not started: `egress up` must run, or be started before the variables are used.
    """
    values = variables(read_config(config_path), os.environ, project=project, principal=principal)
    if as_json:
        echo_json(values)
    else:
        click.echo(export_lines(values, shell))
