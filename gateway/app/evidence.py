"""Evidence read from the store's files: a running gateway is not asked and not disturbed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

import orjson

from gateway.app.signing import keyring
from gateway.config import Config
from gateway.evidence.sign import read_public_key
from gateway.store.audit import verify_store
from gateway.store.reader import SqliteReader
from gateway.store.rows import Query


def _database(config: Config) -> Path:
    return config.state.dir / "egress.db"


def receipts(config: Config, query: Mapping[str, Any]) -> tuple[list[dict[str, Any]], str | None]:
    """A page of rows, newest first, and the cursor of the next one (interfaces.md, `/v1/receipts`)."""
    with closing(SqliteReader(_database(config))) as reader:
        return reader.rows(Query.read(query))


def boundary_events(config: Config, query: Mapping[str, Any]) -> tuple[list[dict[str, Any]], str | None]:
    """A page of cross-project events, newest first, exactly as the contract has them (contract.md §9.1)."""
    with closing(SqliteReader(_database(config))) as reader:
        return reader.rows(Query.read({**query, "kind": "boundary_event"}))


def lineage(config: Config, digest: str) -> dict[str, Any] | None:
    """One lineage with its receipt, admission and observations; None where there is none of that digest."""
    with closing(SqliteReader(_database(config))) as reader:
        found = reader.record(digest)
        if found is None:
            return None
        document = orjson.loads(found)
        if "decision_receipt" not in document:
            return None  # a record of another kind
        rows, _ = reader.rows(Query.read({"digest": str(document["decision_receipt"]), "limit": 1}))
        return {"lineage": document, **({"row": rows[0]} if rows else {})}


def verify(
    config: Config, bundle: Path | None, key: Path | None, older: Sequence[bytes] = ()
) -> dict[str, Any]:
    """The report of `receipts verify`, over this gateway's log or an exported bundle.

    `older` are checkpoints that were kept elsewhere; of a bundle the last of them must be the one that it grew out of.
    """
    public = read_public_key(key.read_text(encoding="utf-8")) if key is not None else None
    if bundle is not None:
        from gateway.store.export import verify_bundle  # noqa: PLC0415 - only for bundles

        kept = older[-1] if older else None
        return verify_bundle(bundle.read_bytes(), public or _own_key(config), kept).document()
    return verify_store(_database(config), public or _own_key(config), older).document()


def _own_key(config: Config) -> bytes:
    return keyring(config, create=False).signing_key().public_key
