"""`egress policy check|test|explain|replay|key|sign`."""

from __future__ import annotations

import asyncio
from dataclasses import asdict
from pathlib import Path
from typing import Any, Final

import click

from gateway.cli.options import (
    JSON,
    OF_PROJECT,
    SINCE,
    echo_json,
    echo_table,
    read_config,
    with_config,
    writing,
)
from gateway.config import Config, find_bundle, read_bundle
from gateway.contract.reasons import REASONS
from gateway.policy.explain import render
from gateway.policy.selftest import run_trials


@click.group()
def policy() -> None:
    """Policy bundles."""


def _folders(config: Config, names: tuple[str, ...]) -> list[Path]:
    """The bundles named on the command line, else those of the configuration."""
    try:
        return [find_bundle(name, Path.cwd()) for name in names] or list(config.policy.folders)
    except FileNotFoundError as error:
        raise click.UsageError(f"no such bundle: {error}") from None


@policy.command()
@click.argument("bundles", nargs=-1)
@with_config
@JSON
def check(bundles: tuple[str, ...], config_path: Path | None, as_json: bool) -> None:
    """Report every problem of the bundles at once; exit status 2 if there is one.

    A detection rule for which the fast pattern engine is given up is a warning.
    """
    from gateway import app  # noqa: PLC0415 - heavy

    config = read_config(config_path)
    compiled = app.load_bundles(config, _folders(config, bundles), app.transformers_of(config))
    warnings = app.policy_warnings(compiled)
    if as_json:
        known = {"id": compiled.id, "version": compiled.version, "digest": compiled.digest}
        echo_json({"ok": True, **known, "warnings": warnings})
        return
    for warning in warnings:
        click.echo(f"warning: {warning}", err=True)
    click.echo(f"ok: {compiled.id} {compiled.version} {compiled.digest}")


@policy.command()
@click.argument("bundles", nargs=-1)
@with_config
@JSON
def test(bundles: tuple[str, ...], config_path: Path | None, as_json: bool) -> int:
    """Run the tests of the last bundle, under all of them; exit status 1 where one fails."""
    folders = _folders(read_config(config_path), bundles)
    results = run_trials([read_bundle(folder) for folder in folders])
    failed = [result for result in results if not result.passed]
    if as_json:
        tests = [
            {"name": r.name, "mode": r.mode, "passed": r.passed, "problems": r.problems} for r in results
        ]
        echo_json({"ok": not failed, "tests": tests})
    else:
        for result in failed:
            click.echo(f"FAILED {result.name} ({result.mode}): {'; '.join(result.problems)}")
        click.echo(f"{len(results) - len(failed)} passed, {len(failed)} failed")
    return 1 if failed else 0


@policy.command()
@click.argument("bundles", nargs=-1)
@click.option(
    "--receipt", help="The request: the digest of its receipt, or how that begins; else the last one."
)
@click.option("--pointer", help="Only the object at this place.")
@click.option("--all", "everything", is_flag=True, help="Also the rules that kept silent, and why.")
@with_config
@JSON
def explain(
    bundles: tuple[str, ...],
    receipt: str | None,
    pointer: str | None,
    everything: bool,
    config_path: Path | None,
    as_json: bool,
) -> None:
    """Say why objects of a stored request are decided about as they are, rule by rule."""
    from gateway import app  # noqa: PLC0415 - heavy

    config = read_config(config_path)
    rows, _ = app.receipts(config, {"limit": 1000 if receipt else 1})
    found = [row for row in rows if str(row["digest"]).startswith(receipt or "")]
    if len(found) != 1:
        raise click.UsageError("no such receipt" if not found else "more than one receipt begins so")
    evaluation = found[0]["evaluation"]
    explained = app.explain_stored(config, _folders(config, bundles), evaluation, pointer)
    if pointer is not None and not explained:
        raise click.UsageError("this request has no object there; without --pointer all of them are shown")
    if as_json:
        echo_json([_explained(*one) for one in explained])
        return
    for code in _about_the_request(evaluation):
        click.echo(f"the request: {code}\n      {REASONS.get(code, '')}".rstrip())
    for place, kind, explanation in explained:
        click.echo(f"{place or '/'} ({kind}): {render(explanation, everything=everything)}")


def _about_the_request(evaluation: dict[str, Any]) -> list[str]:
    """Reasons that were given before any object was read: no rule explains them."""
    read = [item for item in evaluation.get("objects", ()) if item["coverage"] != "failed"]
    explained = {code for item in read for code in item.get("reason_codes", ())}
    return [code for code in evaluation.get("reason_codes", ()) if code not in explained]


def _explained(place: str, kind: str, explanation: Any) -> dict[str, Any]:
    decision = explanation.decision
    return {
        "pointer": place,
        "kind": kind,
        "disposition": str(decision.disposition),
        "reason_codes": decision.reason_codes,
        "mask": sorted(decision.mask),
        "rules": [
            {
                "id": step.rule,
                "source": step.source,
                "answer": str(step.answer),
                "exceptions": step.exceptions,
            }
            for step in explanation.steps
        ],
    }


_CHANGES: Final = {
    "deny": "newly denied",
    "hold": "newly held",
    "redact": "newly redacted",
    "transform": "newly cut down or summarised",
    "allow": "newly let through as it is",
}


@policy.command()
@click.argument("bundles", nargs=-1)
@SINCE
@click.option("--days", type=click.IntRange(1), help="Only the last days, instead of --since.")
@OF_PROJECT
@click.option(
    "--limit", type=click.IntRange(1), default=100_000, show_default=True, help="Requests, newest first."
)
@with_config
@JSON
def replay(
    bundles: tuple[str, ...],
    since: str | None,
    days: int | None,
    project: str | None,
    limit: int,
    config_path: Path | None,
    as_json: bool,
) -> None:
    """Decide about stored traffic again, under these bundles, and report what would be different.

    Rules are replayed over stored facts; no prompt is needed or kept. The decisions are those of enforcing mode.
    """
    from gateway import app  # noqa: PLC0415 - heavy

    if since and days:
        raise click.UsageError("--since and --days say the same")
    config = read_config(config_path)
    since = app.days_ago(days) if days else since
    report = app.replay(config, _folders(config, bundles), since=since, project=project, limit=limit)
    if as_json:
        echo_json(report.document())
        return
    document = report.document()
    click.echo(
        f"{report.requests} requests, {report.objects} objects: {report.same} the same,"
        f" {report.bound} bound by their history"
    )
    for effect in document["effects"]:
        click.echo(f"{effect['requests']} requests {effect['before']} -> {effect['after']}")
    rows = [_cells(difference) for difference in document["differences"]]
    if rows:
        echo_table(("OBJECTS", "CHANGE", "DISPOSITION", "RULE", "PROJECT", "PROVIDER"), rows)


def _cells(found: dict[str, Any]) -> tuple[str, ...]:
    change = f"{found['before']} -> {found['after']}"
    return (
        str(found["objects"]), _CHANGES[found["change"]], change, found["rule"], found["project"], found["provider"],
    )  # fmt: skip


@policy.command()
@click.argument("path", type=click.Path(dir_okay=False, path_type=Path))
@with_config
@JSON
def key(path: Path, config_path: Path | None, as_json: bool) -> None:
    """Make a key that bundles are signed with: PATH for whoever signs, PATH.pub for `policy.public_key`."""
    from gateway import app  # noqa: PLC0415 - heavy

    present = read_config(config_path).policy.public_key
    public = app.new_policy_key(path)
    if present is not None:
        click.echo(f"policy.public_key still names {present}; bundles are checked with that one", err=True)
    if as_json:
        echo_json({"ok": True, "key": str(path), "public_key": str(public)})
    else:
        click.echo(f"{path}: keep it where bundles are released\n{public}: name it in policy.public_key")


@policy.command()
@click.argument("bundle")
@click.option(
    "--key",
    required=True,
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="An Ed25519 private key in PEM (egress policy key, or openssl genpkey -algorithm ed25519).",
)
@with_config
@JSON
def sign(bundle: str, key: Path, config_path: Path | None, as_json: bool) -> None:
    """Sign a bundle's revision; the signature stands in its folder, beside the manifest."""
    from gateway import app  # noqa: PLC0415 - heavy

    (folder,) = _folders(read_config(config_path), (bundle,))
    revision = app.sign_bundle(folder, app.signer_of(key))
    if as_json:
        echo_json({"ok": True, "digest": revision})
    else:
        click.echo(f"signed: {revision}")


@policy.command()
@click.argument("bundle")
@click.argument("archive", type=click.Path(dir_okay=False, path_type=Path))
@with_config
@JSON
def pack(bundle: str, archive: Path, config_path: Path | None, as_json: bool) -> None:
    """Pack a bundle, with its signature if it has one, into the archive that an HTTPS server hands out."""
    from gateway.app.fetching import pack as packed  # noqa: PLC0415 - heavy

    (folder,) = _folders(read_config(config_path), (bundle,))
    data = packed(folder)
    with writing(archive) as file:
        file.write(data)
    if as_json:
        echo_json({"ok": True, "archive": str(archive)})
    else:
        click.echo(f"packed: {archive}")


@policy.command()
@with_config
@JSON
def fetch(config_path: Path | None, as_json: bool) -> int:
    """Fetch the bundles that have a URL now, as a gateway does by itself; exit status 1 where one fails."""
    from gateway import app  # noqa: PLC0415 - heavy
    from gateway.app.fetching import fetcher_of  # noqa: PLC0415

    config = read_config(config_path)
    results = asyncio.run(fetcher_of(config, app.transformers_of(config)).fetch())
    if as_json:
        echo_json([asdict(each) for each in results])
    elif not results:
        click.echo("no bundle of policy.bundles has a URL")
    for each in () if as_json else results:
        said = f"{each.code}: {'; '.join(each.problems)}" if each.result == "failed" else each.version
        click.echo(f"{each.url}: {each.result} {said}")
    return 1 if any(each.result == "failed" for each in results) else 0
