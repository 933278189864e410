"""`egress ca init|show|rotate|install|revoke`."""

from __future__ import annotations

import sys
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import click
from cryptography import x509

from gateway.cli.options import JSON, echo_json, read_config, with_config
from gateway.cli.trust import Outcome, carry_out, confirmed, former_of, plan, tell_plan
from gateway.config import Config
from gateway.errors import SetupError
from gateway.proxy.authority import prepare_rotation, revoke_authority, revoked, rotate_authority
from gateway.proxy.former import fingerprint

_YES = click.option("--yes", "-y", is_flag=True, help="Do not ask before a trust store is changed.")
_PRINT = click.option(
    "--print", "only_print", is_flag=True, help="Only show the commands, for somebody else to run."
)


@click.group()
def ca() -> None:
    """The interception CA: what clients must trust."""


def certificate_file(config: Config) -> Path:
    """The certificate that clients must trust."""
    return config.state.dir / "ca.pem"


def ensure(config: Config) -> Path:
    """The certificate's file, made with its key where there is none; SetupError where that fails."""
    path = certificate_file(config)
    if not path.exists():
        _export(config)
    return path


def _export(config: Config) -> None:
    """Write ca.pem as the CA's keys have it, which are made where there are none."""
    from gateway.app import wiring  # noqa: PLC0415 - heavy
    from gateway.app.folder import make_state  # noqa: PLC0415 - heavy
    from gateway.app.signing import keyring  # noqa: PLC0415 - heavy

    make_state(config)
    wiring.authority_of(config, keyring(config))


def trusted(config: Config) -> list[x509.Certificate]:
    """What clients must trust: the CA in force, then a prepared one; SetupError where there is none."""
    path = certificate_file(config)
    try:
        return x509.load_pem_x509_certificates(path.read_bytes())
    except (OSError, ValueError):
        if any(each.revoked for each in former_of(config)):
            raise revoked() from None
        raise SetupError("ca.missing", f"{path} holds no certificate", hint="run: egress ca init") from None


@ca.command()
@with_config
@JSON
def init(config_path: Path | None, as_json: bool) -> None:
    """Make the CA where there is none, and say where its certificate is."""
    path = ensure(read_config(config_path))
    if as_json:
        echo_json({"certificate": str(path)})
    else:
        click.echo(path)


@ca.command()
@click.option("--pem", is_flag=True, help="The certificate itself.")
@with_config
@JSON
def show(pem: bool, config_path: Path | None, as_json: bool) -> None:
    """Print what the CA's certificate says, and which CAs of this installation are not in force any more."""
    config = read_config(config_path)
    first, *following = trusted(config)
    if pem:
        click.echo(certificate_file(config).read_text(encoding="ascii"), nl=False)
        return
    former = [each.row() for each in former_of(config)]
    facts: dict[str, Any] = {"certificate": str(certificate_file(config)), **_facts(first)}
    if as_json:
        echo_json({**facts, "next": _facts(following[0]) if following else None, "former": former})
        return
    for name, value in facts.items():
        click.echo(f"{name:<12} {value}")
    for each in following:
        click.echo(f"{'next':<12} {fingerprint(each)} (egress ca rotate puts it in force)")
    for row in former:
        said = f": {row['reason']}" if row["reason"] else ""
        click.echo(f"{'revoked' if row['revoked'] else 'retired':<12} {row['sha256']} {row['at']}{said}")


def _facts(certificate: x509.Certificate) -> dict[str, str]:
    return {
        "subject": certificate.subject.rfc4514_string(),
        "sha256": fingerprint(certificate),
        "not_before": certificate.not_valid_before_utc.isoformat(),
        "not_after": certificate.not_valid_after_utc.isoformat(),
    }


@ca.command()
@click.option("--prepare", is_flag=True, help="Only make the next CA, and add it to what clients must trust.")
@with_config
@JSON
def rotate(prepare: bool, config_path: Path | None, as_json: bool) -> None:
    """Put a new CA in the place of the old one, whose key is removed.

    Every client must be given the new certificate; commands under `egress exec` get it by themselves. So that none
    fails meanwhile, prepare it first: from then on ca.pem and `egress ca install` hold both certificates, and a gateway
    may run on with the old one. The change itself wants the gateway stopped.

    \b
    egress ca rotate --prepare    # then give ca.pem to the clients
    egress ca rotate              # later, and start the gateway again
    egress ca install             # takes the old one out of the trust store
    """  # noqa: D301 - \b is click's, for lines that are not to be wrapped
    config = read_config(config_path)
    if prepare:
        ensure(config)
        prepare_rotation(config.state.ca_key, now=_now())
    else:
        _not_running(config)
        rotate_authority(config.state.ca_key, now=_now())
    _export(config)
    path, certificates = certificate_file(config), trusted(config)
    if as_json:
        names = [fingerprint(each) for each in certificates]
        echo_json({"certificate": str(path), "sha256": names[0], "next": names[1] if prepare else None})
    else:
        click.echo(path)


def _not_running(config: Config) -> None:
    """SetupError while a gateway runs on this state folder: it would go on with the old CA."""
    if not config.state.dir.is_dir():
        return
    from gateway.store.lock import StateLock  # noqa: PLC0415 - heavy

    lock = StateLock(config.state.dir / "lock")
    try:
        lock.acquire()
    except SetupError as error:
        if error.code != "state.in_use":
            raise
        raise SetupError("ca.in_use", "a gateway runs with this CA", hint="stop it first") from None
    lock.release()


@ca.command()
@click.option(
    "--to",
    "kinds",
    type=click.Choice(["system", "nss"]),
    multiple=True,
    default=("system",),
    show_default=True,
    help="The system's trust store, which takes root, or the browsers' of this user (NSS); may be given twice.",
)
@click.option("--undo", is_flag=True, help="Take the certificates of this installation out again.")
@_PRINT
@_YES
@with_config
@JSON
def install(
    kinds: tuple[str, ...],
    undo: bool,
    only_print: bool,
    yes: bool,
    config_path: Path | None,
    as_json: bool,
) -> int:
    """Have this machine trust the CA; former CAs of this installation are taken out of the store.

    Nobody needs this who starts programs with `egress exec`. A store is changed by the commands that --print shows, and
    only after a question or with --yes. Programs that bring roots of their own (Python, Node) read no system store.
    """
    config = read_config(config_path)
    current = [] if undo else trusted(config)
    steps = plan(config, kinds, current, everything=undo)
    if only_print or not steps:
        tell_plan(steps, as_json=as_json)
        return 0
    confirmed(steps, yes=yes)
    return _told(carry_out(steps), as_json=as_json)


def _told(outcome: Outcome, *, as_json: bool, **also: Any) -> int:
    """Say what was done and what was not; 3 where something is left to do."""
    if as_json:
        echo_json({"ok": not outcome.left, **also, **outcome.document()})
        return 3 if outcome.left else 0
    for step in outcome.done:
        click.echo(f"done: {step.says}")
    for step, why in outcome.left:
        click.echo(f"egress: not done: {step.says} ({why}); run: {step.shell}", err=True)
    return 3 if outcome.left else 0


@ca.command()
@click.option("--reason", default="", help="One line for those who read `egress ca show`.")
@_YES
@with_config
@JSON
def revoke(reason: str, yes: bool, config_path: Path | None, as_json: bool) -> int:
    """Never use this CA again, because its key may be known: takes effect at once, also in a running gateway.

    Its key is destroyed, no new connection is opened with it, no gateway starts with it, ca.pem and the bundles
    that hold it are removed, and it is taken out of this machine's trust stores as far as this user may. Then make
    a new one with `egress ca rotate`. Machines that were given the certificate must be told: a client cannot find
    out by itself.
    """
    config = read_config(config_path)
    if not yes and not sys.stdin.isatty():
        raise click.UsageError("nobody is there to be asked: give --yes")
    if not yes:
        click.confirm("The CA cannot be used again. Revoke it?", abort=True, err=True)
    certificate = revoke_authority(config.state.ca_key, now=_now(), reason=reason)
    if certificate is None:
        raise SetupError("ca.missing", f"{config.state.ca_key} does not exist", hint="run: egress ca init")
    for path in (certificate_file(config), *config.state.dir.glob("ca-bundle*.pem")):
        path.unlink(missing_ok=True)
    outcome = carry_out(plan(config, ("system", "nss"), [], everything=True, strict=False))
    todo = [
        "run `egress ca rotate`, and start the gateway again",
        "give the new ca.pem to every client; on this machine: egress ca install",
        "take the old certificate out of every other machine that was given it",
    ]
    name = fingerprint(certificate)
    if not as_json:
        click.echo(f"revoked: {name}")
    status = _told(outcome, as_json=as_json, revoked=name, next=todo)
    if not as_json:
        for number, line in enumerate(todo, 1):
            click.echo(f"{number}. {line}")
    return status


def _now() -> datetime:
    return datetime.now(UTC)  # noqa: TID251 - the command line is where time comes in
