"""`egress ca init|show|rotate`."""

from __future__ import annotations

from pathlib import Path

import click
from cryptography import x509
from cryptography.hazmat.primitives import hashes

from gateway.cli.health import is_healthy
from gateway.cli.options import JSON, echo_json, read_config, with_config
from gateway.config import Config
from gateway.errors import SetupError


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
        from gateway.app import wiring  # noqa: PLC0415 - heavy
        from gateway.app.signing import keyring  # noqa: PLC0415 - heavy

        config.state.dir.mkdir(mode=0o700, parents=True, exist_ok=True)
        wiring.authority_of(config, keyring(config))
    return path


def _read(config: Config) -> x509.Certificate:
    path = certificate_file(config)
    try:
        return x509.load_pem_x509_certificate(path.read_bytes())
    except (OSError, ValueError):
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
    """Print what the CA's certificate says."""
    config = read_config(config_path)
    certificate = _read(config)
    if pem:
        click.echo(certificate_file(config).read_text(encoding="ascii"), nl=False)
        return
    facts = {
        "certificate": str(certificate_file(config)),
        "subject": certificate.subject.rfc4514_string(),
        "sha256": certificate.fingerprint(hashes.SHA256()).hex(),
        "not_before": certificate.not_valid_before_utc.isoformat(),
        "not_after": certificate.not_valid_after_utc.isoformat(),
    }
    if as_json:
        echo_json(facts)
    else:
        for name, value in facts.items():
            click.echo(f"{name:<12} {value}")


@ca.command()
@with_config
@JSON
def rotate(config_path: Path | None, as_json: bool) -> None:
    """Make a new CA in the place of the old one, whose key is removed.

    Every client must be given the new certificate; commands under `egress exec` get it by themselves. The gateway
    must not run meanwhile: it would go on with the old one.
    """
    config = read_config(config_path)
    if is_healthy(config):
        raise SetupError("ca.in_use", "a gateway runs with this CA", hint="stop it first")
    for path in (config.state.ca_key, certificate_file(config)):
        path.unlink(missing_ok=True)
    path = ensure(config)
    if as_json:
        echo_json({"certificate": str(path)})
    else:
        click.echo(path)
