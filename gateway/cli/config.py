"""`egress config check|show`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click
import orjson

from gateway.cli.options import JSON, echo_json, read_config, with_config
from gateway.config import show as shown
from gateway.config import warnings


@click.group()
def config() -> None:
    """The configuration."""


@config.command()
@with_config
@JSON
def check(config_path: Path | None, as_json: bool) -> None:
    """Report every problem of the configuration at once, with its path; exit status 2 if there is one."""
    read = read_config(config_path)
    found = warnings(read)
    source = str(read.source) if read.source else "embedded defaults"
    if as_json:
        echo_json({"ok": True, "source": source, "warnings": found})
        return
    for warning in found:
        click.echo(f"warning: {warning}", err=True)
    click.echo(f"ok: {source}")


@config.command()
@with_config
@JSON
def show(config_path: Path | None, as_json: bool) -> None:
    """Print the effective configuration, secrets left out."""
    document = shown(read_config(config_path))
    if as_json:
        echo_json(document)
        return
    click.echo("\n\n".join(_toml(name, section) for name, section in document.items() if section))


def _toml(name: str, section: dict[str, Any]) -> str:
    """A section as TOML: a JSON string, number or list is also a TOML one."""
    if all(isinstance(value, dict) for value in section.values()):
        return "\n\n".join(_toml(f"{name}.{key}", table) for key, table in section.items())
    lines = [f"{key} = {_value(value)}" for key, value in section.items()]
    return "\n".join([f"[{name}]", *lines])


def _value(value: Any) -> str:
    if isinstance(value, dict):
        return "{" + ", ".join(f"{_value(key)} = {_value(item)}" for key, item in value.items()) + "}"
    return orjson.dumps(value).decode()
