"""Write the tables of the documentation from what they describe: settings, metrics, codes and commands.

Each table stands between `<!-- begin: NAME -->` and `<!-- end: NAME -->`; the prose around it is written by hand.
A test fails where a table is not what this would write: `make docs` writes them.
"""

from __future__ import annotations

import ast
import json
import re
import sys
import textwrap
import tomllib
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import click

from gateway import errors
from gateway.cli.main import cli
from gateway.config.rows import settings_of
from gateway.config.settings import NAMED_SECTIONS, SECTIONS
from gateway.contract.reasons import REASONS
from gateway.providers import hosts
from gateway.telemetry import metrics

ROOT = Path(__file__).resolve().parents[1]


def _table(head: tuple[str, ...], rows: Sequence[tuple[str, ...]]) -> str:
    lines = [head, tuple("---" for _ in head), *rows]
    return "\n".join("| " + " | ".join(cell.replace("|", "\\|") for cell in line) + " |" for line in lines)


def settings() -> str:
    """A heading and a table for each section of gateway.toml."""
    parts = []
    for name, section in {
        **SECTIONS,
        **{f"{key}.NAME": value for key, value in NAMED_SECTIONS.items()},
    }.items():
        rows = [
            (f"`{s.key}`", s.kind.name, f"`{json.dumps(s.default)}`", s.help) for s in settings_of(section)
        ]
        parts.append(
            f"### `[{name}]`\n\n{section.__doc__}\n\n" + _table(("key", "value", "default", "meaning"), rows)
        )
    return "\n\n".join(parts)


def metric_families() -> str:
    """A row for each metric, in the order in which they are made."""
    rows = []
    for family in metrics.Metrics().registry.collect():
        name = family.name + ("_total" if family.type == "counter" else "")
        labels = ", ".join(f"`{label}`" for label in LABELS.get(name, ()))
        rows.append((f"`{name}`", family.type, labels, family.documentation))
    return _table(("metric", "type", "labels", "meaning"), rows)


LABELS = {
    "gateway_requests_total": ("effect", "provider"),
    "gateway_objects_total": ("disposition", "provider"),
    "gateway_findings_total": ("type", "severity"),
    "gateway_answer_findings_total": ("type", "severity"),
    "gateway_fail_closed_total": ("code",),
    "gateway_queue_depth": ("queue",),
    "gateway_placeholders_total": ("action",),
    "gateway_connections_total": ("action",),
    "gateway_sink_dropped_total": ("sink",),
    "gateway_shadow_objects_total": ("code",),
    "gateway_policy_reloads_total": ("result",),
    "gateway_policy_fetches_total": ("result",),
    "gateway_notifications_total": ("channel", "result"),
    "gateway_bundle_info": ("id", "version", "digest"),
    "gateway_build_info": ("version",),
}


def label_values() -> str:
    """The closed sets of label values."""
    sets = {
        "effect": metrics.EFFECTS,
        "provider": metrics.PROVIDERS,
        "disposition": metrics.DISPOSITIONS,
        "severity": metrics.SEVERITIES,
        "queue": metrics.QUEUES,
        "action": metrics.CONNECTIONS | metrics.RESTORATIONS,
    }
    return _table(
        ("label", "values"), [(f"`{name}`", ", ".join(sorted(values))) for name, values in sets.items()]
    )


def reasons() -> str:
    """A row for each reason code."""
    return _table(("code", "meaning"), [(f"`{code}`", REASONS[code]) for code in sorted(REASONS)])


ERRORS = {
    name: value
    for name, value in vars(errors).items()
    if isinstance(value, type) and issubclass(value, errors.GatewayError)
}


def error_codes() -> Iterator[tuple[str, str]]:
    """(code, error type) of every error that the package raises with a code of its own, from its source."""
    for path in sorted((ROOT / "gateway").rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if (
                isinstance(node, ast.Call)
                and isinstance(node.func, ast.Name)
                and node.func.id in ERRORS
                and node.args
            ):
                first = node.args[0]
                if isinstance(first, ast.Constant) and isinstance(first.value, str):
                    yield first.value, node.func.id


def errors_table() -> str:
    """A row for each code of an error that is no reason code."""
    found = sorted({(code, name) for code, name in error_codes() if code not in REASONS})
    return _table(("code", "error"), [(f"`{code}`", f"`{name}`") for code, name in found])


def _leaves(group: click.Group, path: str) -> Iterator[tuple[str, click.Command]]:
    for name, command in sorted(group.commands.items()):
        full = f"{path} {name}"
        if isinstance(command, click.Group):
            yield from _leaves(command, full)
        else:
            yield full, command


_HELP: dict[str, Any] = {"help_option_names": ["-h", "--help"]}


def commands() -> str:
    """The help text of each command, as it is printed."""
    parts = []
    for path, command in _leaves(cli, "egress"):
        context = click.Context(command, info_name=path, terminal_width=100, max_content_width=100, **_HELP)
        text = re.sub(r"[ \t]+$", "", command.get_help(context), flags=re.MULTILINE)
        parts.append(f"### `{path}`\n\n```text\n{text}\n```")
    return "\n\n".join(parts)


def coverage() -> str:
    """A row for each path of each provider, from the table that the tests try."""
    table = tomllib.loads((ROOT / "tests" / "vectors" / "coverage.toml").read_text(encoding="utf-8"))
    rows = [
        (
            provider["name"],
            f"`{provider['host']}`",
            f"`{row['path']}`",
            row["dialect"],
            row["body"].replace("_", " "),
            row.get("request", "rewritten"),
            ", ".join(row["answers"]) or "none",
        )
        for provider in table["provider"]
        for row in provider["paths"]
    ]
    return _table(("provider", "host", "path", "dialect", "body", "request", "answers"), rows)


def refused() -> str:
    """The names of places whose values are refused, as the sweep over recorded requests found them."""
    names = json.loads((ROOT / "tests" / "vectors" / "refused.json").read_text(encoding="utf-8"))
    return textwrap.fill(", ".join(f"`{name}`" for name in names), 118, break_long_words=False)


def sockets() -> str:
    """A row for each kind of WebSocket."""
    table = tomllib.loads((ROOT / "tests" / "vectors" / "coverage.toml").read_text(encoding="utf-8"))
    rows = [
        (
            row["name"],
            "<br>".join(f"`{place}`" for place in row["places"]),
            row["dialect"] or "any",
            row["handling"],
            row["refusal"],
        )
        for row in table["socket"]
    ]
    return _table(("WebSocket", "for example", "dialect", "handling", "refusal"), rows)


def provider_hosts() -> str:
    """A row for each host, or pattern of hosts, of the shipped table."""
    rows = [(entry.provider, f"`{host}`", entry.dialect) for host, entry in hosts.table()]
    return _table(("provider", "host", "dialect"), sorted(rows))


TABLES: dict[str, dict[str, Callable[[], str]]] = {
    "docs/coverage.md": {
        "coverage": coverage,
        "sockets": sockets,
        "refused": refused,
        "hosts": provider_hosts,
    },
    "docs/configuration.md": {"settings": settings},
    "docs/metrics.md": {"metrics": metric_families, "labels": label_values},
    "docs/reasons.md": {"reasons": reasons, "errors": errors_table},
    "docs/cli.md": {"commands": commands},
}


def filled(text: str, tables: dict[str, Callable[[], str]]) -> str:
    """The document with its tables written anew; KeyError where it has no place for one."""
    for name, write in tables.items():
        begin, end = f"<!-- begin: {name} -->\n", f"\n<!-- end: {name} -->"
        if begin not in text or end not in text:
            raise KeyError(name)
        text = text[: text.index(begin) + len(begin)] + write() + text[text.index(end) :]
    return text


def main() -> None:
    """Write every table; with `--check`, name the documents that are not up to date and fail."""
    stale = []
    for name, tables in TABLES.items():
        path = ROOT / name
        before = path.read_text(encoding="utf-8")
        after = filled(before, tables)
        if after != before:
            stale.append(name)
            if "--check" not in sys.argv:
                path.write_text(after, encoding="utf-8")
    sys.stdout.write("".join(f"{name}\n" for name in stale))
    sys.exit(1 if stale and "--check" in sys.argv else 0)


if __name__ == "__main__":
    main()
