"""Options and output that commands share."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, nullcontext
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, BinaryIO, Final, override

import click
import orjson

from gateway.config import Config, load
from gateway.errors import EvidenceError, SetupError

CONFIG = click.option(
    "--config",
    "config_path",
    type=click.Path(dir_okay=False, path_type=Path),
    help="The configuration file; else $EGRESS_CONFIG, ./gateway.toml, the user's.",
)


class Instant(click.ParamType[str]):
    """An instant as RFC 3339 has it, or how long ago it was (`30m`, `2h`, `7d`); gives it in UTC."""

    name = "instant"

    @override
    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        """See click.ParamType."""
        from gateway.store.rows import instant  # noqa: PLC0415 - heavy

        text = str(value)
        if not text:
            return ""
        if ago := _AGO.fullmatch(text):
            moment = datetime.now(UTC) - timedelta(seconds=int(ago[1]) * _SECONDS[ago[2]])  # noqa: TID251
            return moment.isoformat(timespec="microseconds").replace("+00:00", "Z")
        try:
            return instant(text)
        except EvidenceError:
            self.fail("an RFC 3339 instant is needed, as 2026-01-31T12:00:00Z, or how long ago: 30m, 2h, 7d")


_AGO: Final = re.compile(r"([0-9]{1,6})([smhd])", re.ASCII)
_SECONDS: Final = {"s": 1, "m": 60, "h": 3600, "d": 86_400}
SINCE = click.option(
    "--since", type=Instant(), help="Only from then on: an RFC 3339 instant, or 30m, 2h, 7d ago."
)
UNTIL = click.option(
    "--until", type=Instant(), help="Only up to then: an RFC 3339 instant, or 30m, 2h, 7d ago."
)
LIMIT = click.option(
    "--limit",
    type=click.IntRange(1, 1000),
    default=100,
    show_default=True,
    help="At most so many; what is more is on the next page.",
)
OF_PROJECT = click.option("--project", help="Of one project only.")
EFFECT = click.option(
    "--effect",
    type=click.Choice(["forwarded", "rewritten", "refused", "held"]),
    help="Only what was done with: sent as it was, sent rewritten, not sent, waiting for a person.",
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


@contextmanager
def writing(path: Path | None) -> Iterator[BinaryIO]:
    """Where output goes: standard output, or a file that takes its place once everything has been written.

    SetupError where the file cannot be written. What stands there already stays as it is where anything fails.
    """
    if path is None or (path.exists() and not path.is_file()):  # a pipe or a device is written as it is
        with nullcontext(sys.stdout.buffer) if path is None else path.open("wb") as target:
            yield target
        return
    beside = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        with beside.open("wb") as target:
            yield target
        beside.replace(path)
    except OSError as error:
        why = os.strerror(error.errno or 0)
        raise SetupError(
            "output.unwritable", f"{path} cannot be written: {why}", hint="name another file"
        ) from error
    finally:
        beside.unlink(missing_ok=True)
