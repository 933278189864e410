"""`egress account hash|check|list`: accounts at providers that may be used."""

from __future__ import annotations

import sys
from getpass import getpass
from pathlib import Path

import click

from gateway.cli.options import JSON, echo_json, echo_lines, echo_table, read_config, with_config
from gateway.errors import ConfigError


@click.group()
def account() -> None:
    """Accounts at providers that may be used (`[accounts.NAME]`)."""


@account.command("hash")
@with_config
@JSON
def hash_(config_path: Path | None, as_json: bool) -> None:
    """Print the keyed hash of a credential, for `hashes` of an account.

    The credential is read from standard input, or asked for where a person sits there; never from the arguments, which
    other users of the machine can see. Of Bearer tokens it is what follows `Bearer`, of AWS signatures the access key
    id. The hash holds for this installation's keys alone.
    """
    from gateway.app.accounts import keyed_hash  # noqa: PLC0415 - heavy
    from gateway.app.signing import keyring  # noqa: PLC0415

    settings = read_config(config_path)
    hashed = keyed_hash(
        keyring(settings, create=not settings.state.database.exists()).account_key(), _credential()
    )
    if as_json:
        echo_json({"hash": hashed})
    else:
        click.echo(hashed)


@account.command()
@with_config
@JSON
def check(config_path: Path | None, as_json: bool) -> int:
    """Say which listed account a credential belongs to, read as `hash` reads it; exit status 1 where it is none."""
    from gateway.app.accounts import accounts_of  # noqa: PLC0415 - heavy
    from gateway.app.signing import keyring  # noqa: PLC0415
    from gateway.providers.credentials import credential  # noqa: PLC0415

    settings = read_config(config_path)
    table = accounts_of(
        settings, keyring(settings, create=not settings.state.database.exists()).account_key()
    )
    found = table.find(credential(_credential().decode("latin-1")))
    if as_json:
        echo_json({"account": found.name if found else None, "provider": found.provider if found else None})
    elif found is None:
        click.echo("no listed account")
    else:
        click.echo(f"{found.name} ({found.provider})")
    return 0 if found is not None else 1


@account.command("list")
@with_config
@JSON
def list_(config_path: Path | None, as_json: bool) -> None:
    """List the accounts of the configuration."""
    rows = [
        {
            "name": each.name,
            "provider": each.provider,
            "hashes": len(each.hashes),
            "tenants": list(each.tenants),
            "organization_managed": each.organization_managed,
            "projects": list(each.projects),
        }
        for each in read_config(config_path).accounts.values()
    ]
    if as_json:
        echo_lines(rows)
        return
    head = ("NAME", "PROVIDER", "CREDENTIALS", "TENANTS", "MANAGED", "PROJECTS")
    echo_table(head, [_cells(row) for row in rows])


def _cells(row: dict[str, object]) -> tuple[str, ...]:
    def listed(name: str) -> str:
        value = row[name]
        return ",".join(map(str, value)) if isinstance(value, list) and value else "-"

    managed = "yes" if row["organization_managed"] else "no"
    shown = (row["name"], row["provider"], row["hashes"], listed("tenants"), managed, listed("projects"))
    return tuple(map(str, shown))


def _credential() -> bytes:
    """One credential; ConfigError where there is none, or more than one line."""
    text = getpass("Credential: ") if sys.stdin.isatty() else sys.stdin.read(65_536)
    value = text.strip()
    if not value or "\n" in value or not value.isascii():
        raise ConfigError(["standard input: one credential is needed, in one line of ASCII"])
    return value.encode("ascii")
