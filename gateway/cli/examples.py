"""Examples that stand under the help of commands; tests read each of them with the parser that it is for."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import click

EXAMPLES: Final[Mapping[str, tuple[str, ...]]] = {
    "": (
        "egress exec -- claude               # an agent behind the gateway, which is started for it",
        "egress exec -- egress doctor        # whether everything is right, and what to do where it is not",
        "egress receipts list --since 2h     # what left, what was rewritten, what was refused",
    ),
    "up": ("egress up", "egress up --config /etc/egress/gateway.toml --bundle ./stricter"),
    "exec": (
        "egress exec -- claude",
        "egress exec --project acme-web -- python agent.py",
        "egress exec -- sh -c 'curl -sS https://api.anthropic.com/v1/models'",
    ),
    "env": (
        'eval "$(egress env)"                           # sh, bash, zsh',
        "egress env --shell fish | source",
        "egress env --shell powershell | Out-String | Invoke-Expression",
    ),
    "inspect": (
        "egress inspect request.json",
        "egress inspect --jsonl --exit-code < requests.jsonl",
    ),
    "scan": ("egress scan < notes.txt", "egress scan --jsonl < texts.jsonl", "egress scan --types"),
    "receipts list": (
        "egress receipts list --since 2h --effect refused",
        "egress receipts list --json --limit 1000 | jq .receipt",
    ),
    "receipts tail": ("egress receipts tail --project acme-web",),
    "receipts show": ("egress receipts show sha256:0f3a",),
    "receipts verify": (
        "egress receipts verify                          # this gateway's log",
        "egress receipts verify march.jsonl --key signing.pub",
    ),
    "receipts export": (
        "egress receipts export --since 2026-03-01T00:00:00Z --until 2026-04-01T00:00:00Z -o march.jsonl",
        "egress receipts export --receipt sha256:0f3a -o one.jsonl",
    ),
    "receipts anchor": ("egress receipts anchor --file /mnt/elsewhere/checkpoints",),
    "policy check": ("egress policy check", "egress policy check default ./team"),
    "policy test": ("egress policy test default ./team",),
    "policy explain": ("egress policy explain --receipt sha256:0f3a --all",),
    "policy replay": ("egress policy replay default ./stricter --days 7",),
    "project add": ("egress project add acme-web --root ~/acme-web --team platform",),
    "project link": ("egress project link shared-library acme-web",),
    "project index": ("egress project index acme-web",),
    "quarantine release": ("egress quarantine release q-0f3a --as ann.token",),
    "approvals approve": ("egress approvals approve a-0f3a --as ann.token",),
    "break-glass begin": (
        "egress break-glass begin --rule 'secret.*' --minutes 30 --reason 'outage 4711' --as ann.token",
    ),
    "kill on": ("egress kill on", "egress kill on --project acme-web"),
    "kill off": ("egress kill off",),
    "account hash": ("egress account hash < key.txt",),
    "memory guard": ("egress memory guard record.json",),
    "store backup": ("egress store backup /backup/egress",),
    "store rotate": ("egress store rotate", "egress store rotate --to file:/secure/next.pem"),
    "vault forget": ("egress vault forget --project acme-web",),
    "ca install": ("egress ca install --print", "egress ca install --to nss --yes"),
    "ca revoke": ("egress ca revoke --reason 'laptop lost'",),
    "config check": ("egress config check --config gateway.toml",),
    "reload": ("egress reload",),
}


def add_examples(command: click.Command, path: str = "") -> None:
    """Put the examples under the help of a command and of all below it."""
    lines = EXAMPLES.get(path)
    if lines:
        # \b is click's, for lines that are not to be wrapped.
        command.epilog = "\b\nExamples:\n" + "\n".join(f"  {line}" for line in lines)
    if isinstance(command, click.Group):
        for name, each in command.commands.items():
            add_examples(each, f"{path} {name}".strip())
