"""`egress receipts list|tail|show|verify|export`."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any, BinaryIO, Final

import click

from gateway.cli.bundles import (
    check_bundle,
    check_key,
    checkpoints,
    find_receipt,
    known_receipt,
    tell_left_out,
)
from gateway.cli.options import (
    EFFECT,
    JSON,
    LIMIT,
    OF_PROJECT,
    SINCE,
    UNTIL,
    echo_json,
    echo_lines,
    echo_table,
    read_config,
    with_config,
    writing,
)
from gateway.errors import SetupError

_POLL_S: Final = 0.5
_SHORT: Final = 20  # of a digest in a table: enough to be told from every other one, and to be copied
STATES: Final = (
    "prepared",
    "handed_off",
    "observed_model_egress",
    "rejected",
    "partial",
)  # ContextReceiptStateV1
_HEAD: Final = ("TIME", "PROJECT", "PROVIDER", "EFFECT", "STATE", "REASONS", "RECEIPT")


@click.group()
def receipts() -> None:
    """Evidence: what was decided, what left, and that it was not changed since."""


@receipts.command("list")
@LIMIT
@click.option("--after", help="The cursor of the page before.")
@SINCE
@UNTIL
@OF_PROJECT
@EFFECT
@click.option("--state", type=click.Choice(STATES), help="Only what is known to have got so far.")
@with_config
@JSON
def list_(config_path: Path | None, as_json: bool, **filters: Any) -> None:
    """List requests, newest first."""
    from gateway import app  # noqa: PLC0415 - heavy

    query = {name: value for name, value in filters.items() if value is not None}
    rows, cursor = app.receipts(read_config(config_path), query)
    if as_json:
        echo_lines(rows)
    else:
        echo_table(_HEAD, [_cells(row) for row in rows])
    if cursor is not None:
        click.echo(f"more: --after {cursor}", err=True)


def _cells(row: dict[str, Any]) -> tuple[str, ...]:
    objects = row["evaluation"].get("objects", ())
    codes = {code for item in objects for code in item.get("reason_codes", ())}
    codes.update(row["evaluation"].get("reason_codes", ()))  # a host that was refused has no objects
    return (
        str(row["time"]),
        str(row["project"]),
        str(row.get("provider", "")),
        str(row["effect"]),
        str(row["receipt_state"]),
        ",".join(sorted(codes)),
        str(row["digest"])[:_SHORT],
    )


@receipts.command()
@OF_PROJECT
@EFFECT
@click.option(
    "--lines", "-n", type=click.IntRange(0, 1000), default=10, show_default=True, help="Of the past."
)
@click.option("--once", is_flag=True, help="Do not wait for more.")
@with_config
@JSON
def tail(config_path: Path | None, lines: int, once: bool, as_json: bool, **filters: Any) -> None:
    """Follow requests as they come, oldest first, until interrupted."""
    from gateway import app  # noqa: PLC0415 - heavy

    config, query = read_config(config_path), {k: v for k, v in filters.items() if v is not None}
    seen: set[str] = set()
    limit = max(lines, 1)
    while True:
        rows, _ = app.receipts(config, {**query, "limit": limit})
        fresh = [row for row in reversed(rows[: lines if not seen else None]) if row["digest"] not in seen]
        for row in fresh:
            if as_json:
                echo_json(row)
            else:
                click.echo("  ".join(_cells(row)))
        seen = {row["digest"] for row in rows} | {""}
        if once:
            return
        limit = 1000
        time.sleep(_POLL_S)


@receipts.command()
@click.argument("digest")
@click.option("--json", "as_json", is_flag=True, help="One line instead of indented JSON.")
@with_config
def show(digest: str, config_path: Path | None, as_json: bool) -> None:
    """Print one request with all its records; a digest may be cut short where it is still the only one."""
    row = find_receipt(read_config(config_path), digest)
    echo_json(row, indent=not as_json)


@receipts.command()
@click.argument("bundle", required=False, type=click.Path(exists=True, dir_okay=False, path_type=Path))
@click.option("--key", type=click.Path(exists=True, dir_okay=False, path_type=Path), help="The public key.")
@click.option(
    "--older",
    type=click.File("rb"),
    help="Checkpoints kept elsewhere (`receipts anchor`): the log must have grown out of them.",
)
@with_config
@JSON
def verify(
    bundle: Path | None, key: Path | None, older: BinaryIO | None, config_path: Path | None, as_json: bool
) -> int:
    """Check every entry, its chain and its signatures: of this gateway's log, or of an exported BUNDLE.

    Exit status 1 where something does not hold. A BUNDLE is held against the last checkpoint of --older, and must have
    been exported with that one.
    """
    from gateway import app  # noqa: PLC0415 - heavy

    config, kept = read_config(config_path), checkpoints(older)
    check_key(key)
    check_bundle(bundle)
    report = app.verify(config, bundle, key, kept)
    if as_json:
        echo_json(report)
    else:
        _tell(report)
    return 0 if report["ok"] else 1


def _tell(report: dict[str, Any]) -> None:
    bad = report["first_bad"]
    verdict = "holds" if bad is None else f"does not hold: entry {bad['index']} is bad ({bad['kind']})"
    click.echo(f"The log {verdict}.")
    of = f" of {report['logged']} under the checkpoint" if "logged" in report else ""
    click.echo(
        f"entries {report['entries']}{of}, not yet logged {report['not_yet_logged']}, torn {report['torn']},"
        f" pruned {report.get('pruned', 0)}"
    )


@receipts.command()
@SINCE
@UNTIL
@click.option("--project", default="", help="Of one project only.")
@click.option("--receipt", default="", help="Of one receipt only, by its digest.")
@click.option(
    "--object", "pointer", help="With --receipt: the one decision about this object, without the others."
)
@click.option(
    "--older", type=click.File("rb"), help="A checkpoint from before: prove that the log only grew since."
)
@click.option(
    "--output",
    "-o",
    type=click.Path(dir_okay=False, writable=True, path_type=Path),
    help="A file, which stays as it is where the export fails; else standard output.",
)
@click.option("--json", "as_json", is_flag=True, help="Accepted for uniformity: a bundle is JSON lines.")
@with_config
def export(
    since: str | None,
    until: str | None,
    project: str,
    receipt: str,
    pointer: str | None,
    older: BinaryIO | None,
    output: Path | None,
    as_json: bool,
    config_path: Path | None,
) -> None:
    """Write a piece of the log that anybody can verify with the public key alone."""
    from gateway.app.signing import keyring  # noqa: PLC0415 - heavy
    from gateway.store.export import Selection, export_bundle, export_object  # noqa: PLC0415 - heavy

    del as_json
    config = read_config(config_path)
    state = config.state
    try:
        key = state.public_key.read_text(encoding="ascii")
    except (OSError, UnicodeDecodeError):
        raise SetupError(
            "keys.missing", f"{state.public_key} cannot be read", hint="start the gateway once"
        ) from None
    if pointer is not None and not receipt:
        raise click.UsageError("--object needs --receipt")
    kept, receipt = checkpoints(older), known_receipt(config, receipt, project)
    with writing(output) as target:
        if pointer is not None:
            keys = keyring(config, create=False)
            target.write(export_object(state.database, key, receipt, pointer, keys.salt_key))
            return
        line, last = b"", kept[-1] if kept else None
        for line in export_bundle(
            state.database, key, Selection(since or "", until or "", project, receipt), last
        ):
            target.write(line)
    tell_left_out(line)


@receipts.command()
@click.option(
    "--file", "file", type=click.Path(dir_okay=False, path_type=Path), help="Append it to this file."
)
@click.option("--url", help="POST it there.")
@click.option(
    "--tsa", help="Have it time-stamped there (RFC 3161); the answer is kept in <state.dir>/anchors."
)
@with_config
@JSON
def anchor(
    file: Path | None, url: str | None, tsa: str | None, config_path: Path | None, as_json: bool
) -> None:
    """Copy the last checkpoint to where the gateway's own state cannot be put back; run it from time to time.

    Without an option, to the places of [anchor] in the configuration, where a running gateway sends it by itself.
    """
    from gateway.app.anchoring import anchor_to  # noqa: PLC0415 - heavy
    from gateway.config.anchors import Anchor  # noqa: PLC0415
    from gateway.store.anchor import last_checkpoint  # noqa: PLC0415 - heavy

    if any(each is not None and not each.startswith(("https://", "http://")) for each in (url, tsa)):
        raise click.UsageError("--url and --tsa take an https:// or http:// URL")
    config = read_config(config_path)
    to = config.anchor
    if file or url or tsa:
        to = Anchor(file=file, url=url or "", tsa=tsa or "", every_minutes=to.every_minutes)
    if not to.is_set:
        raise click.UsageError("name where: --file, --url or --tsa, or [anchor] in the configuration")
    note = last_checkpoint(config.state.dir)
    done = {"checkpoint": note.decode(), **anchor_to(note, to, config.state.dir)}
    if as_json:
        echo_json(done)
    else:
        click.echo("\n".join(f"{name}: {text}" for name, text in done.items() if name != "checkpoint"))


@receipts.command()
@SINCE
@UNTIL
@OF_PROJECT
@LIMIT
@with_config
@JSON
def statements(config_path: Path | None, as_json: bool, **filters: Any) -> None:
    """Print receipts as signed in-toto statements (DSSE envelopes), newest first, one a line."""
    from gateway import app  # noqa: PLC0415 - heavy
    from gateway.app.signing import keyring  # noqa: PLC0415 - heavy
    from gateway.evidence.statement import receipt_statement  # noqa: PLC0415 - heavy

    del as_json
    config = read_config(config_path)
    signer = keyring(config, create=False).signing_key()
    rows, _ = app.receipts(config, {name: value for name, value in filters.items() if value is not None})
    for row in rows:
        click.echo(receipt_statement(row["digest"], row["receipt"], signer).to_json())
