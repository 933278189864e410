"""`egress doctor`: whether the set-up is right, and for each thing that is not, what to do."""

from __future__ import annotations

import shutil
import socket
from collections import Counter
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

import click

from gateway.cli.ca import certificate_file, trusted
from gateway.cli.finding import Finding
from gateway.cli.guarding import exposed
from gateway.cli.health import ask_health
from gateway.cli.options import JSON, echo_json, read_config, with_config
from gateway.cli.trust import former_of
from gateway.config import Address, Config, read_bundle, warnings
from gateway.errors import GatewayError
from gateway.policy.decide import load_policy

LOOKED_AT: Final = 200  # refused requests
SHOWN: Final = 10
CA_LEFT_DAYS: Final = 30
MIN_FREE_BYTES: Final = 256 << 20  # less is gone within a day of agent traffic


def _policy(config: Config) -> Finding:
    folders = [read_bundle(folder) for folder in config.policy.folders]
    policy = load_policy(folders, mode=config.policy.mode, enforcement=config.policy.enforcement)
    return Finding("policy", True, f"{policy.id} {policy.version}")


def _state(config: Config) -> Finding:
    folder = config.state.dir
    blocked = next((each for each in (folder, *folder.parents) if each.exists() and not each.is_dir()), None)
    if blocked is not None:
        return Finding(
            "state", False, f"{blocked} is not a folder", "make [state] dir a folder that can be made"
        )
    if not folder.is_dir():
        return Finding("state", True, f"{folder} is made at the first start")
    for setting, path, wanted in exposed(config):
        return Finding("state", False, f"{setting}: {path} is open to others", f"chmod {wanted:o} {path}")
    free = shutil.disk_usage(folder).free
    if free < MIN_FREE_BYTES:
        return Finding(
            "state", False, f"{free >> 20} MiB free", "make room: without evidence nothing is sent"
        )
    return Finding("state", True, f"{folder}, {free >> 20} MiB free")


def _ca(config: Config) -> Finding:
    path = certificate_file(config)
    if not path.is_file():
        if any(each.revoked for each in former_of(config)):
            return Finding(
                "ca", False, "the CA was revoked", "egress ca rotate, then start the gateway again"
            )
        return Finding("ca", False, f"no {path}", "egress ca init")
    first, *following = trusted(config)
    left = (first.not_valid_after_utc - datetime.now(UTC)).days  # noqa: TID251 - compared with a certificate's end
    if left < CA_LEFT_DAYS:
        return Finding("ca", left >= 0, f"{path} ends in {left} days", "egress ca rotate --prepare")
    prepared = ", and the next one, for `egress ca rotate`" if following else ""
    return Finding("ca", True, f"{path}, for {left} days{prepared}")


def _stopped(config: Config) -> Finding:
    from gateway import app  # noqa: PLC0415 - heavy

    stopped = app.kill_switch(config)
    named = [f"{kind[:-1]} {name}" for kind in ("projects", "principals") for name in stopped[kind]]
    if stopped["all"] or named:
        says = "everything is stopped" if stopped["all"] else f"stopped: {', '.join(named)}"
        return Finding("kill switch", False, says, "egress kill off, when it is time")
    return Finding("kill switch", True, "nothing is stopped")


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
    said = ask_health(config)
    if said is not None and said["status"] != "ok":
        return Finding("gateway", False, f"not ready: {said.get('reason', 'no reason')}", "see the reason")
    if said is not None:
        proxy = config.listen.proxy
        if not _in_use(proxy):
            return Finding(
                "gateway", False, f"healthy, but nothing listens on {proxy}", "compare listen.proxy"
            )
        return Finding("gateway", True, f"running on {proxy}{_notes(said)}")
    taken = [str(a) for a in (config.listen.proxy, config.listen.control) if a.port and _in_use(a)]
    if taken:
        says = f"something else listens on {', '.join(taken)}, or a gateway that is not ready"
        return Finding("gateway", False, says, "stop it, or change [listen]")
    return Finding("gateway", False, "not running", "egress up, or egress exec -- COMMAND")


def _notes(said: dict[str, Any]) -> str:
    """What a gateway that works says beside that."""
    degraded = said.get("degraded", ())
    return f"; does not work: {', '.join(map(str, degraded))}" if degraded else ""


def _in_force(config: Config) -> Iterator[Finding]:
    """What the running gateway goes by: rules that are lifted, bundles that it could not load."""
    said = ask_health(config) or {}
    if said.get("policy") == "stale":
        says = "the bundles on disk are not valid, an older policy is in force"
        yield Finding("reload", False, says, "egress policy check, correct them, egress reload")
    for each in said.get("break_glass", ()):
        advice = f"egress break-glass end {each['id']}, when it is time"
        yield Finding("break-glass", True, f"rules are lifted until {each['expires']}", advice)


CHECKS: Final[tuple[tuple[str, Callable[[Config], Finding]], ...]] = (
    ("policy", _policy),
    ("state", _state),
    ("ca", _ca),
    ("kill switch", _stopped),
    ("hosts", _hosts),
    ("gateway", _gateway),
)


def examine(config: Config, project: str | None = None, principal: str | None = None) -> Iterator[Finding]:
    """Every check; one that cannot be made is a finding too. The canary is sent where a gateway runs."""
    source = str(config.source) if config.source else "embedded defaults"
    yield Finding("configuration", True, source)
    yield from (Finding("configuration", True, warning, "a warning") for warning in warnings(config))
    runs = False
    for name, check in CHECKS:
        finding = _tried(name, lambda check=check: check(config))  # type: ignore[misc]
        runs = runs or (name == "gateway" and finding.ok)
        yield finding
    if not runs:
        return
    yield from _in_force(config)
    from gateway.cli.canary import follow  # noqa: PLC0415 - heavy

    try:
        yield from follow(config, project, principal)
    except (GatewayError, click.UsageError, OSError) as error:
        yield _tried("canary", lambda error=error: _raise(error))  # type: ignore[misc]


def _tried(name: str, check: Callable[[], Finding]) -> Finding:
    try:
        return check()
    except GatewayError as error:
        advice = error.hint or (
            "correct it; egress policy check shows every problem" if name == "policy" else ""
        )
        return Finding(name, False, str(error), advice)
    except click.UsageError as error:
        return Finding(name, False, error.message)
    except OSError as error:
        return Finding(name, False, f"cannot be looked at ({error.strerror})", "check its owner and mode")


def _raise(error: Exception) -> Finding:
    raise error


@click.command()
@click.option("--project", help="Send the canary for this project.")
@click.option("--principal", help="Send it as this principal.")
@with_config
@JSON
def doctor(project: str | None, principal: str | None, config_path: Path | None, as_json: bool) -> int:
    """Check the set-up from end to end; exit status 3 where something is not right, each with what to do.

    Looks at configuration, policy, state, CA and kill switch, says which hosts were refused of late (clients do not
    show that), and sends a canary through the running gateway: a key that opens nothing, to a name that can be
    nobody's and is dialled on this machine, so that it cannot get out. It must be opened with this CA, leave as a
    placeholder, come back whole, have a receipt and stand in no file, and the log must hold.

    \b
    egress exec -- egress doctor    # with a gateway that is started for it, where none runs
    egress doctor --json | jq '.checks[] | select(.ok | not)'
    """  # noqa: D301 - \b is click's, for lines that are not to be wrapped
    found = list(examine(read_config(config_path), project, principal))
    ok = all(finding.ok for finding in found)
    if as_json:
        checks = [{"name": f.name, "ok": f.ok, "says": f.says, "advice": f.advice} for f in found]
        echo_json({"ok": ok, "checks": checks})
    else:
        for finding in found:
            advice = f"  -> {finding.advice}" if finding.advice else ""
            click.echo(f"{'ok  ' if finding.ok else 'FAIL'} {finding.name:<14} {finding.says}{advice}")
    return 0 if ok else 3
