"""`egress policy check|test`."""

from __future__ import annotations

from pathlib import Path

import click

from gateway.cli.options import JSON, echo_json, read_config, with_config
from gateway.config import Config, find_bundle, read_bundle
from gateway.policy.decide import load_policy
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
    """Report every problem of the bundles at once; exit status 2 if there is one."""
    config = read_config(config_path)
    folders = _folders(config, bundles)
    settings = config.policy
    compiled = load_policy(
        [read_bundle(folder) for folder in folders], mode=settings.mode, enforcement=settings.enforcement
    )
    if as_json:
        echo_json({"ok": True, "id": compiled.id, "version": compiled.version, "digest": compiled.digest})
    else:
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
