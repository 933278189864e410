"""`egress up`."""

from __future__ import annotations

from pathlib import Path

import click

from gateway.cli.options import read_config, with_config
from gateway.config import warnings


@click.command()
@with_config
def up(config_path: Path | None) -> int:
    """Run the gateway in the foreground until SIGTERM or SIGINT.

    What is in flight is finished, and the evidence log is closed cleanly.
    """
    from gateway import app  # noqa: PLC0415 - the proxy core takes a second to import, which no other command needs

    config = read_config(config_path)
    for warning in warnings(config):
        click.echo(f"warning: {warning}", err=True)
    return app.run(config)
