"""Options and output that commands share."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import click
import orjson

from gateway.config import Config, load

CONFIG = click.option(
    "--config",
    "config_path",
    type=click.Path(dir_okay=False, path_type=Path),
    help="The configuration file; else $EGRESS_CONFIG, ./gateway.toml, the user's.",
)
JSON = click.option("--json", "as_json", is_flag=True, help="JSON on standard output.")


def read_config(path: Path | None) -> Config:
    """The configuration with this process's environment; raises ConfigError."""
    return load(path, os.environ)


def with_config[**P, R](command: Callable[P, R]) -> Callable[P, R]:
    """Give a command the option `--config`, as the parameter `config_path`."""
    return CONFIG(command)


def echo_json(document: Any, *, indent: bool = False) -> None:
    """One JSON document on standard output."""
    click.echo(orjson.dumps(document, option=orjson.OPT_INDENT_2 if indent else 0))


def echo_lines(documents: Iterable[Any]) -> None:
    """JSON lines on standard output."""
    for document in documents:
        echo_json(document)


def echo_table(head: tuple[str, ...], rows: list[tuple[str, ...]]) -> None:
    """Columns that are as wide as they must be; control characters of values are not printed."""
    shown = [tuple("".join(c if c.isprintable() else "?" for c in cell) for cell in row) for row in rows]
    widths = [max(len(row[i]) for row in (head, *shown)) for i in range(len(head))]
    for row in (head, *shown):
        click.echo("  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip())
