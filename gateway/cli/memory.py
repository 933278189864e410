"""`egress memory guard` and `egress memory inbox list|assign|discard`."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO

import click

from gateway.cli.options import JSON, echo_json, echo_lines, echo_table, read_config, with_config
from gateway.errors import ContractError

if TYPE_CHECKING:
    from gateway.store.queues import MemoryQueues

_HEAD = ("ID", "QUEUE", "QUEUED", "CANDIDATE", "TYPE", "CONFIDENCE", "BYTES", "REASON")


@click.group()
def memory() -> None:
    """What may enter a project's memory, and what waits for a person."""


@memory.command()
@click.argument("file", type=click.File("rb"), default="-")
@click.option("--exit-code", is_flag=True, help="Exit status 1 if the record is not accepted.")
@click.option("--json", "as_json", is_flag=True, help="Accepted for uniformity: the answer is always JSON.")
@with_config
def guard(file: BinaryIO, exit_code: bool, as_json: bool, config_path: Path | None) -> int:
    """Judge the record in FILE (or standard input), as `POST /v1/memory/guard` does.

    Secrets and personal data are taken out first; what is rerouted to the inbox or to cleanup is queued there.
    """
    from gateway.app.wiring import memory_desk_of  # noqa: PLC0415 - heavy

    del as_json
    config = read_config(config_path)
    try:
        record = json.loads(file.read())
    except ValueError:
        raise ContractError("input.malformed", "not JSON") from None
    result = memory_desk_of(config)(record)
    echo_json(result)
    return 1 if exit_code and result["decision"] != "accept" else 0


@memory.group()
def inbox() -> None:
    """Records that were put aside: `inbox` is not sure enough, `cleanup` speaks of several projects."""


@inbox.command("list")
@click.option("--queue", type=click.Choice(["inbox", "cleanup"]), help="One queue; else both.")
@with_config
@JSON
def list_(queue: str | None, config_path: Path | None, as_json: bool) -> None:
    """List what waits, oldest first, without its content."""
    rows = [queued.row() for queued in _queues(config_path).all(queue or "")]
    if as_json:
        echo_lines(rows)
        return
    names = (
        "id",
        "queue",
        "queued_at",
        "candidate_project_id",
        "memory_type",
        "confidence",
        "bytes",
        "reason",
    )
    echo_table(_HEAD, [tuple(str(row[name]) for name in names) for row in rows])


@inbox.command()
@click.argument("identity", metavar="ID")
@click.argument("project")
@click.option("--json", "as_json", is_flag=True, help="Accepted for uniformity: the answer is always JSON.")
@with_config
def assign(identity: str, project: str, as_json: bool, config_path: Path | None) -> None:
    """Print the record ID as one of PROJECT's, for its memory, and take it out of the queue.

    A person decided, so the assignment is sure (confidence 1); everything else of the record stays.
    """
    del as_json
    config = read_config(config_path)
    if project not in config.projects:
        raise click.ClickException(f"no project {project} in the configuration")
    queues = _queues(config_path)
    queued = queues.find(identity)
    if queued is None:
        raise click.ClickException(f"no record {identity} waits")
    record: dict[str, Any] = {**queued.record, "project_id": project, "confidence": 1.0}
    for name in ("candidate_project_id", "queue_id"):
        record.pop(name, None)
    echo_json(record)
    queues.discard(identity)


@inbox.command()
@click.argument("identity", metavar="ID")
@with_config
def discard(identity: str, config_path: Path | None) -> None:
    """Delete the record ID."""
    if not _queues(config_path).discard(identity):
        raise click.ClickException(f"no record {identity} waits")


def _queues(config_path: Path | None) -> MemoryQueues:
    from gateway.app.remembering import memory_queues  # noqa: PLC0415 - heavy
    from gateway.app.signing import keyring  # noqa: PLC0415 - heavy

    config = read_config(config_path)
    return memory_queues(config, keyring(config))
