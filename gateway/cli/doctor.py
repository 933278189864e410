"""`egress doctor`: whether the set-up is right, and for each thing that is not, what to do."""

from __future__ import annotations

import shutil
import socket
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import click

from gateway.cli.ca import certificate_file
from gateway.cli.health import is_healthy
from gateway.cli.options import JSON, echo_json, read_config, with_config
from gateway.config import Address, Config, read_bundle, warnings
from gateway.errors import GatewayError
from gateway.policy.decide import load_policy

LOOKED_AT: Final = 200  # refused requests
SHOWN: Final = 10
MIN_FREE_BYTES: Final = 256 << 20  # less is gone within a day of agent traffic


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that was looked at; `advice` says what to do where it is not right."""

    name: str
    ok: bool
    says: str
    advice: str = ""


def _policy(config: Config) -> Finding:
    folders = [read_bundle(folder) for folder in config.policy.folders]
    policy = load_policy(folders, mode=config.policy.mode, enforcement=config.policy.enforcement)
    return Finding("policy", True, f"{policy.id} {policy.version}")


def _state(config: Config) -> Finding:
    folder = config.state.dir
    if not folder.is_dir():
        return Finding("state", True, f"{folder} is made at the first start")
    if folder.stat().st_mode & 0o077:
        return Finding("state", False, f"{folder} is open to others", f"chmod 700 {folder}")
    free = shutil.disk_usage(folder).free
    if free < MIN_FREE_BYTES:
        return Finding(
            "state", False, f"{free >> 20} MiB free", "make room: without evidence nothing is sent"
        )
    return Finding("state", True, f"{folder}, {free >> 20} MiB free")


def _ca(config: Config) -> Finding:
    path = certificate_file(config)
    if not path.is_file():
        return Finding("ca", False, f"no {path}", "egress ca init")
    return Finding("ca", True, str(path))


def _hosts(config: Config) -> Finding:
    """No client shows why a CONNECT was refused, so that it is said here."""
    if not config.state.database.exists():
        return Finding("hosts", True, "none refused")
    from gateway import app  # noqa: PLC0415 - heavy

    rows, _ = app.receipts(config, {"limit": LOOKED_AT, "effect": "refused"})
    names = Counter(
        str(row.get("provider", ""))
        for row in rows
        if any(str(code).startswith("host.") for code in row["evaluation"].get("reason_codes", ()))
    )
    if not names:
        return Finding("hosts", True, "none refused of late")
    told = ", ".join(f"{name} ({count})" for name, count in names.most_common(SHOWN))
    return Finding("hosts", True, f"refused of late: {told}", "name in [hosts] those that are needed")


def _in_use(address: Address) -> bool:
    try:
        with socket.create_connection((address.host, address.port), 1):
            return True
    except OSError:
        return False


def _gateway(config: Config) -> Finding:
    if is_healthy(config):
        proxy = config.listen.proxy
        if not _in_use(proxy):
            return Finding(
                "gateway", False, f"healthy, but nothing listens on {proxy}", "compare listen.proxy"
            )
        return Finding("gateway", True, f"running on {proxy}")
    taken = [str(a) for a in (config.listen.proxy, config.listen.control) if a.port and _in_use(a)]
    if taken:
        says = f"something else listens on {', '.join(taken)}, or a gateway that is not ready"
        return Finding("gateway", False, says, "stop it, or change [listen]")
    return Finding("gateway", False, "not running", "egress up, or egress exec -- COMMAND")


CHECKS: Final[tuple[tuple[str, Callable[[Config], Finding]], ...]] = (
    ("policy", _policy),
    ("state", _state),
    ("ca", _ca),
    ("hosts", _hosts),
    ("gateway", _gateway),
)


def examine(config: Config) -> Iterator[Finding]:
    """Every check; one that cannot be made is a finding too."""
    source = str(config.source) if config.source else "embedded defaults"
    yield Finding("configuration", True, source)
    yield from (Finding("configuration", True, warning, "a warning") for warning in warnings(config))
    for name, check in CHECKS:
        try:
            yield check(config)
        except GatewayError as error:
            advice = error.hint or (
                "correct it; egress policy check shows every problem" if name == "policy" else ""
            )
            yield Finding(name, False, str(error), advice)
        except OSError as error:
            yield Finding(name, False, f"cannot be looked at ({error.strerror})", "check its owner and mode")


@click.command()
@with_config
@JSON
def doctor(config_path: Path | None, as_json: bool) -> int:
    """Check configuration, policy, state, CA and the running gateway; exit status 3 where one is not right.

    Also says which hosts were refused of late, which clients do not show.
    """
    found = list(examine(read_config(config_path)))
    ok = all(finding.ok for finding in found)
    if as_json:
        checks = [{"name": f.name, "ok": f.ok, "says": f.says, "advice": f.advice} for f in found]
        echo_json({"ok": ok, "checks": checks})
    else:
        for finding in found:
            advice = f"  -> {finding.advice}" if finding.advice else ""
            click.echo(f"{'ok  ' if finding.ok else 'FAIL'} {finding.name:<14} {finding.says}{advice}")
    return 0 if ok else 3
