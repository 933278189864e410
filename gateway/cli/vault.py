"""`egress vault stat|forget`."""

from __future__ import annotations

import sys
from getpass import getpass
from pathlib import Path

import click

from gateway.cli.options import JSON, echo_json, echo_table, read_config, with_config


@click.group()
def vault() -> None:
    """Sealed values: how many there are, and forgetting them."""


@vault.command()
@with_config
@JSON
def stat(config_path: Path | None, as_json: bool) -> None:
    """Count sealed values by project and kind; opens none."""
    from gateway.app import upkeep  # noqa: PLC0415 - heavy

    found = upkeep.vault_stat(read_config(config_path))
    if as_json:
        echo_json(found)
        return
    rows: list[tuple[str, ...]] = [
        (str(project["project"]), label, str(count))
        for project in found["projects"]
        for label, count in project["labels"].items()
    ]
    echo_table(("PROJECT", "KIND", "VALUES"), rows)


@vault.command()
@click.option("--project", required=True, help="The project whose values are meant.")
@click.option("--value", "one", is_flag=True, help="One value only, read from standard input or asked for.")
@with_config
@JSON
def forget(project: str, one: bool, config_path: Path | None, as_json: bool) -> int:
    """Forget a project's values with their key, or one value; a gateway that runs forgets them too.

    Placeholders that stand for them are not restored any more. Evidence stays and still verifies. Exit status 1 where
    there was nothing to forget.
    """
    from gateway.app import upkeep  # noqa: PLC0415 - heavy

    value = _read_value() if one else None
    count = upkeep.vault_forget(read_config(config_path), project, value)
    if as_json:
        echo_json({"forgotten": count})
    else:
        click.echo(f"{count} forgotten")
    return 0 if count else 1


def _read_value() -> str:
    """From standard input, without its line end; asked for where a person sits there. Never from the arguments."""
    if sys.stdin.isatty():
        return getpass("Value: ")
    return sys.stdin.read().removesuffix("\n")
