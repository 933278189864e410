"""Stored evidence for `egress policy replay` and `explain`: read from the store's file, beside a running gateway."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import closing
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

from gateway.app.clock import SystemClock
from gateway.app.policies import load_bundles, transformers_of
from gateway.classify.replay import Report, object_facts, request_facts
from gateway.classify.replay import replay as replay_records
from gateway.config import Config
from gateway.policy import Explanation, explain
from gateway.store.reader import SqliteReader
from gateway.store.rows import Query

_PAGE = 1000


def _records(config: Config, since: str | None, project: str | None, limit: int) -> Iterator[dict[str, Any]]:
    """Evaluation records, newest first."""
    query: dict[str, Any] = {"limit": min(limit, _PAGE)}
    query |= {k: v for k, v in (("since", since), ("project", project)) if v}
    with closing(SqliteReader(config.state.database)) as reader:
        while limit > 0:
            rows, cursor = reader.rows(Query.read(query))
            for row in rows[:limit]:
                yield row["evaluation"]
            limit -= len(rows)
            if cursor is None:
                return
            query["after"] = cursor


def days_ago(days: int) -> str:
    """The instant so many days ago, as listings take it."""
    at = datetime.fromisoformat(SystemClock().now()) - timedelta(days=days)
    return at.strftime("%Y-%m-%dT%H:%M:%SZ")


def replay(
    config: Config, folders: Sequence[Path], *, since: str | None, project: str | None, limit: int
) -> Report:
    """What these bundles would have decided about what is stored; PolicyError where they are not valid."""
    policy = load_bundles(config, folders, transformers_of(config), enforcement="enforce")
    return replay_records(policy, _records(config, since, project, limit))


def explain_stored(
    config: Config, folders: Sequence[Path], evaluation: dict[str, Any], pointer: str | None
) -> list[tuple[str, str, Explanation]]:
    """Why these bundles decide as they do about the objects of one record: (pointer, kind, explanation)."""
    policy = load_bundles(config, folders, transformers_of(config), enforcement="enforce")
    request = request_facts(evaluation, policy.mode)
    return [
        (item["pointer"], item["kind"], explain(policy, request, object_facts(item)))
        for item in evaluation.get("objects", ())
        if pointer is None or item["pointer"] == pointer
    ]
