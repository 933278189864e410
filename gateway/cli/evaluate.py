"""`egress inspect` and `egress scan`: the gateway's own evaluation without network or store."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, BinaryIO

import click

from gateway.cli.options import echo_json, echo_lines, read_config, with_config
from gateway.errors import ContractError


def _documents(source: BinaryIO, *, lines: bool) -> Iterator[dict[str, Any]]:
    """JSON objects of a file or of its lines; ContractError names the line of one that is none."""
    numbered = enumerate(source, 1) if lines else iter([(0, source.read())])
    for number, text in numbered:
        if lines and not text.strip():
            continue
        place = f"line {number}: " if lines else ""
        try:
            document = json.loads(text)  # the standard library: lone surrogates must survive
        except ValueError:
            raise ContractError("input.malformed", f"{place}not JSON") from None
        if not isinstance(document, dict):
            raise ContractError("input.malformed", f"{place}not a JSON object")
        yield document


@click.command()
@click.argument("file", type=click.File("rb"), default="-")
@click.option("--jsonl", is_flag=True, help="Many requests, one a line.")
@click.option("--exit-code", is_flag=True, help="Exit status 1 if a request is not delivered.")
@click.option("--json", "as_json", is_flag=True, help="Accepted for uniformity: the answer is always JSON.")
@with_config
def inspect(file: BinaryIO, jsonl: bool, exit_code: bool, as_json: bool, config_path: Path | None) -> int:
    """Evaluate the request in FILE (or standard input), and print what would leave.

    A request is {"method", "url", "headers", "body" or "body_b64", "project"}. Nothing is sent and nothing stored.
    """
    from gateway.app.offline import Inspector  # noqa: PLC0415 - heavy

    del as_json
    config = read_config(config_path)
    inspector: Inspector | None = None  # made for the first document: compiling its patterns takes a second
    delivered = True
    for document in _documents(file, lines=jsonl):
        inspector = inspector or Inspector(config)
        result = inspector(document)
        delivered = delivered and result["outcome"] == "delivered"
        echo_json(result)
    return 1 if exit_code and not delivered else 0


@click.command()
@click.option("--jsonl", is_flag=True, help='Lines {"id", "text"} in, lines {"id", "findings"} out.')
@click.option("--types", is_flag=True, help="List what can be found, and end.")
@click.option("--json", "as_json", is_flag=True, help="Accepted for uniformity: the answer is always JSON.")
@with_config
def scan(jsonl: bool, types: bool, as_json: bool, config_path: Path | None) -> None:
    """Look for secrets and personal data in the text on standard input."""
    from gateway import app  # noqa: PLC0415 - heavy

    del as_json
    config = read_config(config_path)
    if types:
        echo_lines(app.scan_types(config))
        return
    source = sys.stdin.buffer
    if not jsonl:
        text = source.read().decode("utf-8", "surrogateescape")
        (findings,) = app.scan(config, [text])
        echo_json({"findings": findings})
        return
    documents = list(_documents(source, lines=True))
    if not all(isinstance(document.get("text"), str) for document in documents):
        raise ContractError("input.malformed", 'every line is an object with the members "id" and "text"')
    for document, findings in zip(documents, app.scan(config, [d["text"] for d in documents]), strict=True):
        echo_json({"id": document.get("id"), "findings": findings})
