"""Files that `egress receipts` reads and writes: what is wrong with one is said before it is judged."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, BinaryIO, Final

import click

from gateway.config import Config
from gateway.errors import ConfigError, VerificationError, words_of

_KINDS: Final = frozenset({"header", "record", "entry", "end", "disclosure"})
_LOOKED_AT: Final = 1 << 20


def checkpoints(file: BinaryIO | None) -> list[bytes]:
    """The checkpoints of `--older`, oldest first; ConfigError where the file holds none."""
    from gateway.evidence.checkpoint import split_notes  # noqa: PLC0415 - heavy

    if file is None:
        return []
    try:
        return split_notes(file.read())
    except VerificationError as error:
        raise ConfigError([f"--older: {error}"]) from None


def check_key(path: Path | None) -> None:
    """Raise ConfigError where `--key` names a file that holds no public key."""
    from gateway.evidence.sign import read_public_key  # noqa: PLC0415 - heavy

    if path is None:
        return
    try:
        read_public_key(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, VerificationError) as error:
        raise ConfigError(
            [f"--key: {path} is no public key of a log ({words_of(error)}): <keys>/signing.pub"]
        ) from None


def check_bundle(path: Path | None) -> None:
    """Raise ConfigError where a file is not even in the form of an exported bundle.

    One that is, and was changed, is for `verify` to judge.
    """
    if path is None:
        return
    with path.open("rb") as file:
        first = file.read(_LOOKED_AT).partition(b"\n")[0]
    try:
        document = json.loads(first)
    except ValueError:
        document = None
    # Cut or changed within the line: members stand in order, and a header's first one is its checkpoint.
    begins_like_one = first.startswith(b'{"') and (b'"type"' in first or first.startswith(b'{"checkpoint"'))
    kind = document.get("type") if isinstance(document, dict) else None
    if kind not in _KINDS and not begins_like_one:
        raise ConfigError([f"{path}: not an exported bundle (egress receipts export)"])


def known_receipt(config: Config, receipt: str, project: str) -> str:
    """The whole digest of a receipt, and nothing for none; ClickException where the log has nothing of either."""
    from gateway import app  # noqa: PLC0415 - heavy

    digest = find_receipt(config, receipt)["digest"] if receipt else ""
    if project:
        query = {"limit": 1, "project": project, **({"digest": digest} if digest else {})}
        if not app.receipts(config, query)[0]:
            raise click.ClickException(f"the log has nothing of project {project}")
    return str(digest)


def find_receipt(config: Config, digest: str) -> dict[str, Any]:
    """The row of a receipt; `digest` may be cut short where it is still the only one. ClickException otherwise."""
    from gateway import app  # noqa: PLC0415 - heavy

    if len(digest) == len("sha256:") + 64:
        rows, _ = app.receipts(config, {"limit": 1, "digest": digest})
    else:
        recent, _ = app.receipts(config, {"limit": 1000})
        rows = [row for row in recent if str(row["digest"]).startswith(digest)]
    if len(rows) != 1:
        raise click.ClickException("more than one receipt begins so" if rows else f"no receipt {digest}")
    found: dict[str, Any] = rows[0]
    return found


def tell_left_out(last_line: bytes) -> None:
    """Say what the end of a bundle says was left out of it, and where the bundle is empty."""
    end = json.loads(last_line) if last_line else {}
    if later := end.get("not_yet_logged", 0):
        click.echo(
            f"egress: {later} entries are under no checkpoint yet and were left out; export again", err=True
        )
    elif not end.get("entries", 0):
        click.echo("egress: warning: there is nothing of that in the log: the bundle is empty", err=True)
