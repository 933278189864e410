"""`egress boundary events`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from gateway.cli.options import (
    JSON,
    LIMIT,
    SINCE,
    UNTIL,
    echo_lines,
    echo_table,
    read_config,
    with_config,
)

_HEAD = ("TIME", "EVENT", "ASKING", "OWNER", "ACTION", "FACTS", "ALLOWED", "REASON")


@click.group()
def boundary() -> None:
    """What was reached for across projects."""


@boundary.command()
@LIMIT
@click.option("--after", help="The cursor of the page before.")
@SINCE
@UNTIL
@with_config
@JSON
def events(config_path: Path | None, as_json: bool, **filters: Any) -> None:
    """List attempts to reach another project's content, newest first; --json: the contract's events as they are."""
    from gateway.app.evidence import boundary_events  # noqa: PLC0415 - heavy

    query = {name: value for name, value in filters.items() if value is not None}
    rows, cursor = boundary_events(read_config(config_path), query)
    if as_json:
        echo_lines(rows)
    else:
        echo_table(_HEAD, [_cells(row) for row in rows])
    if cursor is not None:
        click.echo(f"more: --after {cursor}", err=True)


def _cells(event: dict[str, Any]) -> tuple[str, ...]:
    source, target = event["source_project_hash"], event["target_project_hash"]
    asking, owner = (target, source) if event["event_type"] == "import" else (source, target)
    shown = "yes" if event["allowed"] else "no"
    return (
        event["timestamp"],
        event["event_type"],
        asking,
        owner,
        event["action"],
        str(event["facts_accessed"]),
        shown,
        event["policy_reason"],
    )
