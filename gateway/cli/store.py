"""`egress store check|compact|backup|rotate`."""

from __future__ import annotations

from pathlib import Path

import click

from gateway.cli.options import JSON, echo_json, read_config, with_config


@click.group()
def store() -> None:
    """The evidence store: look after it."""


@store.command()
@with_config
@JSON
def check(config_path: Path | None, as_json: bool) -> int:
    """Check the database file and the whole log, also while a gateway runs.

    Exit status 1 where something does not hold.
    """
    from gateway.app import upkeep  # noqa: PLC0415 - heavy

    report = upkeep.store_check(read_config(config_path))
    if as_json:
        echo_json(report)
    else:
        log, bad = report["log"], report["log"]["first_bad"]
        verdict = "holds" if bad is None else f"does not hold: entry {bad['index']} is bad ({bad['kind']})"
        click.echo(
            f"The log {verdict}; the file is {'in order' if report['integrity'] == 'ok' else 'damaged'}."
        )
        rows = ", ".join(f"{name} {count}" for name, count in report["rows"].items())
        click.echo(f"{rows}; pruned {report['pruned']}, not yet logged {log['not_yet_logged']}")
        click.echo(f"{report['file_bytes']} bytes, {report['used_bytes']} of them in use")
    return 0 if report["ok"] else 1


@store.command()
@with_config
@JSON
def compact(config_path: Path | None, as_json: bool) -> None:
    """Give unused pages back to the file system; the gateway must not run."""
    from gateway.app import upkeep  # noqa: PLC0415 - heavy

    done = upkeep.store_compact(read_config(config_path))
    if as_json:
        echo_json(done)
    else:
        click.echo(f"{done['before']} bytes before, {done['after']} after")


@store.command()
@click.argument("folder", type=click.Path(path_type=Path))
@with_config
@JSON
def backup(folder: Path, config_path: Path | None, as_json: bool) -> None:
    """Copy evidence, sealed values and conversations into a new FOLDER, also while a gateway runs.

    Keys are not copied: keep the key folder elsewhere, or whoever holds the copy holds the values.
    """
    from gateway.app import upkeep  # noqa: PLC0415 - heavy

    made = upkeep.store_backup(read_config(config_path), folder)
    if as_json:
        echo_json({"folder": str(folder), "files": made})
    else:
        click.echo("\n".join(str(folder / name) for name in made))


@store.command()
@click.option("--to", default="", help="The key that takes over, by URI; else a new one of the key folder.")
@with_config
@JSON
def rotate(to: str, config_path: Path | None, as_json: bool) -> None:
    """Let a new key sign from now on, after the old one hands over to it in the log; the gateway must not run.

    Whoever trusts one of the keys trusts both. What reviewers decided about held objects is signed anew and holds on;
    rules that were lifted (`egress break-glass`) are in force again. Bundles of evidence keep their signatures. A
    change that was cut short is finished when it is asked for again.
    """
    from gateway.app import upkeep  # noqa: PLC0415 - heavy

    done = upkeep.rotate_signing_key(read_config(config_path), to)
    if as_json:
        echo_json(done)
    else:
        click.echo(done["new"])
        click.echo(f"egress: {done['decisions']} decisions of reviewers hold on under the new key", err=True)
    if done["lifts_ended"]:
        click.echo("egress: warning: rules that were lifted are in force again", err=True)
    if to:
        click.echo(f'now name it in the configuration: [state] signer = "{to}"', err=True)
