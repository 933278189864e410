"""`egress quarantine list|show|release|discard` and `egress approvals list|show|approve|deny`."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any, Final

import click

from gateway.cli.control import ControlPort, with_reviewer
from gateway.cli.options import (
    JSON,
    LIMIT,
    OF_PROJECT,
    echo_json,
    echo_lines,
    echo_table,
    read_config,
    with_config,
)

_HEAD: Final = ("TIME", "PROJECT", "STATE", "KIND", "BYTES", "REASONS", "ID")


@click.group()
def quarantine() -> None:
    """Objects that are held back, with a stub in their place."""


@click.group()
def approvals() -> None:
    """Requests that wait until a person approves what they carry."""


def _list(noun: str) -> click.Command:
    @click.command("list")
    @LIMIT
    @click.option("--after", help="The cursor of the page before.")
    @OF_PROJECT
    @with_reviewer
    @with_config
    @JSON
    def command(config_path: Path | None, as_json: bool, token_file: Path | None, **query: Any) -> None:
        """List what is held, newest first; never its content."""
        page = ControlPort(read_config(config_path), token_file).get(noun, **query)
        if as_json:
            echo_lines(page["items"])
        else:
            echo_table(_HEAD, [_cells(noun, item) for item in page["items"]])
        if page["next"] is not None:
            click.echo(f"more: --after {page['next']}", err=True)

    return command


_WORDS: Final = {
    "quarantine": {"refused": "discarded"},
    "approvals": {"released": "approved", "refused": "denied"},
}


def _word(noun: str, state: str) -> str:
    """A state in the words of the commands."""
    return _WORDS[noun].get(state, state)


def _cells(noun: str, item: dict[str, Any]) -> tuple[str, ...]:
    codes = ",".join(item["reason_codes"])
    shown = (
        item["time"],
        item["project"],
        _word(noun, item["state"]),
        item["object_kind"],
        item["bytes"],
        codes,
        item["id"],
    )
    return tuple(map(str, shown))


def _show(noun: str) -> click.Command:
    @click.command("show")
    @click.argument("name", metavar="ID")
    @click.option("--content", is_flag=True, help="Print the content itself; that you looked is recorded.")
    @with_reviewer
    @with_config
    @JSON
    def command(
        name: str, content: bool, config_path: Path | None, as_json: bool, token_file: Path | None
    ) -> None:
        """Print what is known of one object; an ID may be cut short where it is still the only one."""
        port = ControlPort(read_config(config_path), token_file)
        if content:
            sys.stdout.buffer.write(port.read(noun, name, "content") + b"\n")
        else:
            echo_json(port.get(noun, name), indent=not as_json)

    return command


def _act(noun: str, act: str, text: str) -> click.Command:
    @click.command(act, help=text)
    @click.argument("name", metavar="ID")
    @with_reviewer
    @with_config
    @JSON
    def command(name: str, config_path: Path | None, as_json: bool, token_file: Path | None) -> None:
        done = ControlPort(read_config(config_path), token_file).post(noun, name, act)
        if as_json:
            echo_json(done)
            return
        click.echo(f"{done['id']}: {_word(noun, done['state'])}")
        said, needed = len(done["reviewers"]), done["reviewers_needed"]
        if done["state"] == "held":
            click.echo(f"{said} of {needed} reviewers have said so")

    return command


for _group, _noun in ((quarantine, "quarantine"), (approvals, "approvals")):
    _group.add_command(_list(_noun))
    _group.add_command(_show(_noun))
quarantine.add_command(
    _act("quarantine", "release", "Let an object go, for this project, destination and policy.")
)
quarantine.add_command(_act("quarantine", "discard", "Delete the content; its stub stays."))
approvals.add_command(_act("approvals", "approve", "Let requests with this object go, for a while."))
approvals.add_command(_act("approvals", "deny", "Refuse requests with this object."))
