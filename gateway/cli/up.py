"""`egress up`."""

from __future__ import annotations

import json
import os
from pathlib import Path

import click

from gateway.cli.guarding import close_to_others
from gateway.cli.options import read_config, with_config
from gateway.config import warnings


@click.command()
@click.option(
    "--bundle",
    "bundles",
    multiple=True,
    type=click.Path(exists=True, file_okay=False, resolve_path=True),
    help="A policy bundle for this run alone, as the last layer.",
)
@with_config
def up(bundles: tuple[str, ...], config_path: Path | None) -> int:
    """Run the gateway in the foreground until SIGTERM or SIGINT.

    What is in flight is finished, and the evidence log is closed cleanly. Lines of JSON on standard error tell what
    happens (never content); `ready` is the one to wait for. The state folder, keys and token files that others could
    read are closed to them first, which is said. SIGHUP loads the policy anew, SIGUSR1 turns the kill switch on.
    """
    from gateway import app  # noqa: PLC0415 - the proxy core takes a second to import, which no other command needs

    if bundles:
        os.environ["EGRESS_POLICY__RUN"] = json.dumps(bundles)  # its processes read the configuration, too
    config = read_config(config_path)
    for warning in (*warnings(config), *close_to_others(config)):
        click.echo(f"warning: {warning}", err=True)
    return app.run(config)
