"""`egress lineage show`."""

from __future__ import annotations

from pathlib import Path

import click

from gateway.cli.options import echo_json, read_config, with_config


@click.group()
def lineage() -> None:
    """What became of a request, from its receipt to the last byte that was seen to leave."""


@lineage.command()
@click.argument("digest")
@click.option("--json", "as_json", is_flag=True, help="One line instead of indented JSON.")
@with_config
def show(digest: str, config_path: Path | None, as_json: bool) -> None:
    """Print one lineage with its receipt, admission and observations."""
    from gateway import app  # noqa: PLC0415 - heavy

    found = app.lineage(read_config(config_path), digest)
    if found is None:
        raise click.ClickException(f"no lineage {digest} in this store")
    echo_json(found, indent=not as_json)
