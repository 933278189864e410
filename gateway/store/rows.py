"""Listings: the query of `EvidenceStore.rows`, and one row as the control port and the command line show it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

import orjson

from gateway.errors import EvidenceError
from gateway.ports import RequestRow

MAX_LIMIT = 1000
LEVELS = ("answered", "acknowledged", "handed_over", "maybe", "not_sent", "not_attempted")
"""Evidence levels of an attempt, strongest first."""

_KEYS = frozenset({"limit", "after", "since", "until", "project", "effect", "state", "digest", "kind"})


@dataclass(frozen=True, slots=True)
class Query:
    """What to list; an empty text means any. `after` is the number of the last item of the page before, or 0."""

    limit: int = 100
    after: int = 0
    since: str = ""
    until: str = ""
    project: str = ""
    effect: str = ""
    state: str = ""
    digest: str = ""
    kind: str = ""

    @classmethod
    def read(cls, query: Mapping[str, Any]) -> Query:
        """Check a query; EvidenceError `query.invalid` names what is wrong with it."""
        if unknown := sorted(query.keys() - _KEYS):
            raise EvidenceError("query.invalid", f"unknown filter: {', '.join(unknown)}")
        given = {name: value for name, value in query.items() if value is not None and value != ""}
        for name in ("limit", "after"):
            if name in given:
                given[name] = _whole(name, given[name])
        if not 1 <= given.get("limit", 1) <= MAX_LIMIT:
            raise EvidenceError("query.invalid", f"limit must be from 1 to {MAX_LIMIT}")
        if not all(isinstance(value, str) for name, value in given.items() if name not in {"limit", "after"}):
            raise EvidenceError("query.invalid", "filters are texts")
        for name in ("since", "until"):
            if name in given:
                given[name] = instant(given[name])
        return cls(**given)

    @property
    def lists_requests(self) -> bool:
        """Whether rows of requests are asked for, and not records of one kind."""
        return self.kind in {"", "receipt"}


def instant(text: str) -> str:
    """An RFC 3339 instant in the one form in which times are stored: UTC with microseconds and `Z`.

    EvidenceError `query.invalid` where it is none, or does not say its offset from UTC.
    """
    try:
        moment = datetime.fromisoformat(text)
        if moment.tzinfo is None:
            raise EvidenceError("query.invalid", "an instant must say its offset from UTC, or end in Z")
        return moment.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
    except (ValueError, OverflowError) as error:
        raise EvidenceError("query.invalid", "not an RFC 3339 instant") from error


def _whole(name: str, value: object) -> int:
    if isinstance(value, bool) or not isinstance(value, int | str):
        raise EvidenceError("query.invalid", f"{name} must be a whole number")
    text = str(value)
    if not text.isascii() or not text.isdigit() or len(text) > 18:
        raise EvidenceError("query.invalid", f"{name} must be a whole number")
    return int(text)


@dataclass(frozen=True, slots=True)
class Linked:
    """A record that belongs to a request, beside those that its row names."""

    kind: str
    digest: str
    data: bytes


def assemble(
    row: RequestRow,
    log_index: int | None,
    record: Callable[[str], bytes | None],
    linked: Iterable[Linked],
) -> dict[str, Any]:
    """One row of `/v1/receipts`.

    Records are shown as they were written, with one exception: `evaluation.response` and
    `evaluation.evidence_level` are known only after the record was made, and come from the records of the
    attempts and of the ending. Beside the fixed members, `request_id` and `provider` come from the index
    and `attempts` lists what was seen of each transport attempt. EvidenceError where a record is gone.
    """
    evaluation = dict(_required(record, row.evaluation))
    observations, attempts = [], []
    for item in linked:
        document = document_of(item.data)
        if item.kind == "observation":
            observations.append(document)
        elif document.get("event") == "attempt":
            attempts.append(document)
        elif document.get("event") == "response":
            response: dict[str, Any] = document.get("response") or {}
            evaluation["response"] = {**response, "reason_codes": document.get("reason_codes", [])}
    levels = [attempt["level"] for attempt in attempts if attempt.get("level") in LEVELS]
    if levels:
        evaluation["evidence_level"] = min(levels, key=LEVELS.index)
    return {
        "digest": row.receipt,
        "time": row.time,
        "request_id": row.request_id,
        "project": row.project,
        "provider": row.provider,
        "effect": row.effect,
        "receipt_state": row.receipt_state,
        "receipt": _required(record, row.receipt),
        "lineage": row.lineage,
        "evaluation": evaluation,
        "admission": _required(record, row.admission) if row.admission else None,
        "observations": observations,
        "attempts": attempts,
        "log_index": log_index,
    }


def _required(record: Callable[[str], bytes | None], digest: str) -> dict[str, Any]:
    data = record(digest)
    if data is None:
        raise EvidenceError("evidence.missing", "a record that the index names is not in the store")
    return document_of(data)


def document_of(data: bytes) -> dict[str, Any]:
    """A stored record as JSON; EvidenceError where it is no object any more."""
    try:
        document = orjson.loads(data)
    except ValueError as error:
        raise EvidenceError("evidence.damaged", "a stored record cannot be read") from error
    if not isinstance(document, dict):
        raise EvidenceError("evidence.damaged", "a stored record cannot be read")
    return document
