"""What `egress ca install` and `egress ca revoke` change in trust stores: planned, shown, asked about, carried out."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import click
from cryptography import x509

from gateway.cli.options import echo_json
from gateway.cli.truststores import Step, TrustStore, name_of, stores
from gateway.config import Config
from gateway.errors import SetupError
from gateway.proxy.former import FILE, Former, fingerprint, pem_of, read_former


@dataclass(slots=True)
class Outcome:
    """Steps that were carried out, and those that were not, with why."""

    done: list[Step] = field(default_factory=list)
    left: list[tuple[Step, str]] = field(default_factory=list)

    def document(self) -> dict[str, Any]:
        """As JSON."""
        return {
            "done": [_row(step) for step in self.done],
            "left": [{**_row(step), "why": why} for step, why in self.left],
        }


@dataclass(frozen=True, slots=True)
class Planned:
    """A step, and why this user cannot make it (empty: they can)."""

    step: Step
    problem: str


def former_of(config: Config) -> tuple[Former, ...]:
    """CAs of this installation that are not in force any more; none where this user may not read the keys' folder."""
    path = config.state.keys_dir / FILE
    try:
        path.stat()
    except OSError:
        return ()
    return read_former(path) if os.access(path, os.R_OK) else ()


def plan(
    config: Config,
    kinds: Sequence[str],
    current: Sequence[x509.Certificate],
    *,
    everything: bool = False,
    strict: bool = True,
) -> list[Planned]:
    """What brings the stores to hold `current` and nothing else of this installation.

    `everything` takes out the CA in force as well. Without `strict` stores that are not there are passed over.
    """
    unwanted = [each.certificate for each in former_of(config)]
    if everything:
        unwanted += _in_force(config)
    wanted_names = {fingerprint(each) for each in current}
    names = sorted({name_of(each) for each in unwanted if fingerprint(each) not in wanted_names})
    wanted = [(name_of(each), _single(config, each)) for each in current]
    found: list[Planned] = []
    for store in _stores(kinds, strict=strict):
        found += [Planned(step, store.problem()) for step in store.changes(wanted, names)]
    return found


def _stores(kinds: Sequence[str], *, strict: bool) -> list[TrustStore]:
    found: list[TrustStore] = []
    for kind in dict.fromkeys(kinds):
        try:
            found += stores((kind,), Path.home())
        except SetupError as error:
            if strict:
                raise
            if error.code == "ca.no_tool":  # whether a browser trusts it is not known then
                click.echo(
                    f"egress: {error}: browsers of this user were not looked at ({error.hint})", err=True
                )
    return found


def _in_force(config: Config) -> list[x509.Certificate]:
    try:
        return x509.load_pem_x509_certificates((config.state.dir / "ca.pem").read_bytes())
    except (OSError, ValueError):
        return []


def _single(config: Config, certificate: x509.Certificate) -> Path:
    """One certificate in a file of its own, as the tools of trust stores want it."""
    folder = config.state.dir / "trust"
    path = folder / f"{name_of(certificate)}.crt"
    folder.mkdir(mode=0o700, exist_ok=True)
    content = pem_of(certificate)
    if not path.exists() or path.read_bytes() != content:
        path.write_bytes(content)
    owner = config.state.dir.stat()
    if os.geteuid() == 0:  # run as root for a gateway of another user: it must be able to replace them
        for made in (folder, path):
            os.chown(made, owner.st_uid, owner.st_gid)
    return path


def tell_plan(steps: Sequence[Planned], *, as_json: bool) -> None:
    """Show the commands; nothing is changed."""
    if as_json:
        rows = [{**_row(each.step), "problem": each.problem or None} for each in steps]
        echo_json({"ok": True, "plan": rows})
    elif not steps:
        click.echo("nothing to do: the store holds what it should")
    for each in () if as_json else steps:
        click.echo(f"{each.step.shell}    # {each.step.says}")


def confirmed(steps: Sequence[Planned], *, yes: bool) -> None:
    """Return where the person, or --yes, agrees; UsageError, Abort or SetupError otherwise."""
    problem = next((each.problem for each in steps if each.problem), "")
    if problem:
        raise SetupError(
            "ca.not_permitted",
            f"{problem}; nothing was changed",
            hint="run as root the commands that `egress ca install --print` shows",
        )
    if yes:
        return
    for each in steps:
        click.echo(each.step.shell, err=True)
    if not sys.stdin.isatty():
        raise click.UsageError("nobody is there to be asked: look at --print, then give --yes")
    click.confirm("Run these?", abort=True, err=True)


def carry_out(steps: Sequence[Planned]) -> Outcome:
    """Make the changes, each one said; one that fails or is not allowed does not keep the others from being made."""
    outcome = Outcome()
    for each in steps:
        if each.problem:
            outcome.left.append((each.step, each.problem))
            continue
        try:
            each.step.run()
        except SetupError as error:
            outcome.left.append((each.step, str(error)))
        else:
            outcome.done.append(each.step)
    return outcome


def _row(step: Step) -> dict[str, Any]:
    return {"store": step.store, "change": step.says, "command": list(step.argv)}
