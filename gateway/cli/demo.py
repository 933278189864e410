"""`egress demo`: the whole way on one machine, with every shown fact checked."""

from __future__ import annotations

import base64
import difflib
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import click
import orjson

from gateway.cli import demo_script
from gateway.cli.demo_script import Planted
from gateway.cli.environment import variables
from gateway.cli.fake_provider import HOSTS, FakeProvider, fake_provider
from gateway.cli.running import a_gateway
from gateway.config import Config, load
from gateway.errors import SetupError

CLIENT_S: Final = 30.0
MARK: Final = ".made-by-egress-demo"
SETTLE_S: Final = 10.0  # until the lineage of an answered request is written
_STATE: Final = "observed_model_egress"


class DemoFailed(Exception):  # noqa: N818 - a finding of the demonstration, not a fault of it
    """A shown fact does not hold."""


@dataclass(slots=True)
class Stage:
    """What the demonstration plays on; `check` notes a fact and ends it where the fact does not hold."""

    config: Config
    provider: FakeProvider
    planted: Planted
    facts: int = 0
    started: float = field(default_factory=time.monotonic)

    def check(self, fact: str, holds: object) -> None:
        """Show a fact that was checked."""
        if not holds:
            raise DemoFailed(fact)
        self.facts += 1
        click.secho(f"   ✓ {fact}", fg="green")


@click.command()
@click.option("--keep", is_flag=True, help="Leave gateway and provider running until Ctrl-C.")
@click.option(
    "--dir",
    "folder",
    type=click.Path(file_okay=False, path_type=Path),
    default=".demo",
    show_default=True,
    help="Where state and evidence go: a new folder, or that of an earlier demonstration, made anew.",
)
def demo(keep: bool, folder: Path) -> int:
    """Send an agent's requests through a gateway to a provider on this machine, and check what arrives.

    Exit status 0 only where every fact that is shown was checked and holds.
    """
    try:
        return _demo(folder.absolute(), keep=keep)
    except DemoFailed as error:
        click.secho(f"   ✗ {error}", fg="red")
        return 1


def _demo(folder: Path, *, keep: bool) -> int:
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # so that what was started is ended too
    _anew(folder)
    with ExitStack() as stack:
        provider = stack.enter_context(fake_provider(folder))
        config = load(_configuration(folder, provider), {"HOME": str(folder)})
        click.echo("Starting a gateway, and a provider that it takes for the real ones ...")
        stack.enter_context(a_gateway(config))
        stage = Stage(config, provider, demo_script.plant())
        _masked_turn(
            stage, "anthropic", demo_script.anthropic_turn(stage.planted), demo_script.ANTHROPIC_TOOLS
        )
        _masked_turn(stage, "openai", demo_script.openai_turn(stage.planted), demo_script.OPENAI_TOOLS)
        _denied_turn(stage)
        _evidence(stage)
        click.secho(
            f"\n{stage.facts} facts shown, all checked; {time.monotonic() - stage.started:.1f} s.", bold=True
        )
        if keep:
            _wait(config)
    return 0


def _anew(folder: Path) -> None:
    """An empty folder; one that is not an earlier demonstration's is left alone, an operator's above all.

    The mark is a file that nothing else makes: `gateway.toml` stands in every operator's folder, beside state and keys.
    """
    mark = folder / MARK
    if folder.exists() and any(folder.iterdir()) and not mark.is_file():
        raise SetupError(
            "demo.folder",
            f"{folder} is not empty and was not made by `egress demo`",
            hint="name a new folder with --dir, or remove this one yourself",
        )
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(mode=0o700, parents=True)
    mark.touch()


def _free_ports(count: int) -> Iterator[int]:
    with ExitStack() as stack:
        sockets = [stack.enter_context(socket.socket()) for _ in range(count)]
        for one in sockets:
            one.bind(("127.0.0.1", 0))
        yield from [int(one.getsockname()[1]) for one in sockets]


def _configuration(folder: Path, provider: FakeProvider) -> Path:
    proxy, control = _free_ports(2)
    dial = "{}:{}".format(*provider.address)
    table = ", ".join(f"{json.dumps(host + ':443')} = {json.dumps(dial)}" for host in HOSTS)
    for name, text in demo_script.POLICY.items():
        path = folder / "policy" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    path = folder / "gateway.toml"
    path.write_text(
        f'[listen]\nproxy = "127.0.0.1:{proxy}"\ncontrol = "127.0.0.1:{control}"\n\n[state]\ndir = "state"\n\n'
        f"[upstream]\nca_file = {json.dumps(str(provider.ca_file))}\nconnect_to = {{ {table} }}\n\n"
        '[policy]\nbundles = ["policies/default", "policy"]\n',
        encoding="utf-8",
    )
    return path


def _ask(
    stage: Stage, client: str, messages: list[dict[str, Any]], tools: list[dict[str, Any]]
) -> dict[str, Any]:
    """Run the SDK in a process of its own, which knows the gateway from its environment alone."""
    task = {"client": client, "messages": messages, "tools": tools}
    clean = {
        name: value for name, value in os.environ.items() if not name.startswith(("OPENAI_", "ANTHROPIC_"))
    }
    done = subprocess.run(
        [sys.executable, "-P", "-m", "gateway.cli.demo_client"],
        input=json.dumps(task).encode(),
        env=clean | variables(stage.config, os.environ),
        capture_output=True,
        timeout=CLIENT_S,
        check=False,
    )
    if done.returncode != 0:
        last = done.stderr.decode(errors="replace").strip().splitlines()[-1:]
        raise SetupError(
            "demo.client", f"the {client} SDK did not run: {''.join(last)}", hint="run: make install"
        )
    result: dict[str, Any] = json.loads(done.stdout)
    return result


def _masked_turn(
    stage: Stage, client: str, messages: list[dict[str, Any]], tools: list[dict[str, Any]]
) -> None:
    click.secho(f"\n{client}: a prompt and a tool result, each with a token and an e-mail address", bold=True)
    before = len(stage.provider.received)
    result = _ask(stage, client, messages, tools)
    if "exception" in result:
        raise DemoFailed(f"the SDK raised {result['exception']}: {result['message']}")
    (sent,) = (base64.b64decode(body) for body in result["sent"])
    arrived = stage.provider.received[before:]
    stage.check("one request reached the provider", len(arrived) == 1)
    received = arrived[0].body
    _show_difference(sent, received)
    planted = (stage.planted.token, stage.planted.mail)
    stage.check(
        "neither value reached the provider", not any(value.encode() in received for value in planted)
    )
    stage.check("nothing else was changed: with the values back it is the same body, byte for byte",
                _restored(received, sent, planted) == sent)  # fmt: skip
    shown = result["text"].replace("\n", " ⏎ ")
    click.echo(f"   streamed back: {shown[:160]} ...")
    whole = all(result["text"].count(value) == 2 for value in planted)
    stage.check("the values are back in the answer, which came in pieces shorter than a placeholder", whole)


def _show_difference(sent: bytes, received: bytes) -> None:
    """Changed lines of both bodies, laid out alike."""
    old, new = (
        json.dumps(orjson.loads(body), indent=1, ensure_ascii=False).splitlines() for body in (sent, received)
    )
    for line in difflib.unified_diff(
        old, new, "sent by the agent", "received by the provider", n=0, lineterm=""
    ):
        if not line.startswith("@@"):
            click.secho(f"   {line}", fg={"-": "red", "+": "cyan"}.get(line[0]))


def _restored(received: bytes, sent: bytes, values: tuple[str, ...]) -> bytes:
    """The received body with each placeholder turned back; empty where a value's surroundings are not there.

    A placeholder is what stands, in the received body, between the bytes that stood on both sides of a value.
    """
    restored = received
    for value in values:
        start = sent.index(value.encode())
        end = start + len(value.encode())
        before, after = sent[max(0, start - 8) : start], sent[end : end + 8]
        begin = received.find(before) + len(before)
        stop = received.find(after, begin)
        if begin < len(before) or stop < 0:
            return b""
        restored = restored.replace(received[begin:stop], value.encode())
    return restored


def _denied_turn(stage: Stage) -> None:
    click.secho("\nopenai: a prompt that the policy denies", bold=True)
    before = len(stage.provider.received)
    result = _ask(stage, "openai", demo_script.denied_turn(stage.planted), demo_script.OPENAI_TOOLS)
    click.echo(f"   raised in the agent: {result.get('exception')}: {result.get('message')}")
    stage.check("the SDK raised its own exception", result.get("exception") == "openai.BadRequestError")
    stage.check("its code names the gateway", result["code"] == "gateway_blocked")
    named = "pii.card_blocked" in result["message"] and "sha256:" in result["message"]
    stage.check("its text names the reason and the receipt", named)
    stage.check("and not the card number", stage.planted.card not in result["message"])
    stage.check("the provider received nothing", len(stage.provider.received) == before)


def _evidence(stage: Stage) -> None:
    click.secho("\nevidence", bold=True)
    rows = _settled_rows(stage)
    stage.check("one receipt for each of the three requests", len(rows) == 3)
    denied, *delivered = rows
    for row in delivered:
        click.echo(f"   {row['digest']} {row['effect']}, {row['receipt_state']}")
    stage.check(f"both rewritten requests are {_STATE}", all(
        row["effect"] == "rewritten" and row["receipt_state"] == _STATE for row in delivered))  # fmt: skip
    click.echo(f"   {denied['digest']} {denied['effect']}, {denied['receipt_state']}")
    stage.check("the denied one is refused, and claims no delivery", denied["effect"] == "refused" and (
        denied["receipt_state"] != _STATE))  # fmt: skip
    values = (stage.planted.token, stage.planted.mail, stage.planted.card)
    stage.check("no value stands in any record", not any(value in json.dumps(rows) for value in values))
    report = json.loads(_egress(stage.config, "receipts", "verify", "--json"))
    stage.check(f"the log verifies: {report['entries']} entries, chained and signed", report["ok"])


def _egress(config: Config, *arguments: str) -> bytes:
    """Standard output of another command; DemoFailed where it fails."""
    done = subprocess.run(  # noqa: S603 - our own interpreter and module
        [sys.executable, "-P", "-m", "gateway.cli", *arguments, "--config", str(config.source)],
        capture_output=True,
        timeout=CLIENT_S,
        check=False,
    )
    if done.returncode != 0:
        raise DemoFailed(f"egress {' '.join(arguments)} ended with status {done.returncode}")
    return done.stdout


def _settled_rows(stage: Stage) -> list[dict[str, Any]]:
    """Rows newest first, once every one of them has its lineage: it is written after the answer ended."""
    deadline = time.monotonic() + SETTLE_S
    while True:
        rows = [
            orjson.loads(line) for line in _egress(stage.config, "receipts", "list", "--json").splitlines()
        ]
        if all(row["lineage"] for row in rows) or time.monotonic() > deadline:
            return rows
        time.sleep(0.2)


def _wait(config: Config) -> None:
    control, token = config.listen.control, config.state.dir / "control.token"
    click.echo(
        f'\nRunning until Ctrl-C. In another terminal:\n  eval "$(egress env --config {config.source})"'
    )
    click.echo(f"  console: http://{control}/ (any user name; the password is in {token})")
    try:
        while True:
            time.sleep(3600)
    except KeyboardInterrupt:
        click.echo("")
