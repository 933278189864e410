"""The parameters of a listing, checked before the store sees them."""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import datetime
from typing import Any, Final

from starlette.datastructures import QueryParams

from gateway.contract import ContextReceiptStateV1

DEFAULT_LIMIT: Final = 100
MAX_LIMIT: Final = 1000
DIGEST: Final = re.compile(r"sha256:[0-9a-f]{64}", re.ASCII)
_INSTANT: Final = re.compile(
    r"\d{4}-\d\d-\d\d[Tt]\d\d:\d\d:\d\d(\.\d{1,9})?([Zz]|[+-]\d\d:\d\d)", re.ASCII
)  # RFC 3339 §5.6
_PROJECT: Final = re.compile(r"[a-z0-9][a-z0-9._-]{0,62}", re.ASCII)
_CURSOR: Final = re.compile(r"[A-Za-z0-9._:=-]{1,256}", re.ASCII)
_EFFECTS: Final = frozenset({"forwarded", "rewritten", "refused", "held"})
_STATES: Final = frozenset(state.value for state in ContextReceiptStateV1)


class QueryError(ValueError):
    """A parameter is not what it must be; the text names it and does not quote its value."""


def _instant(text: str) -> str:
    """In UTC, as rows are ordered."""
    if not _INSTANT.fullmatch(text):
        raise QueryError("an RFC 3339 instant")
    try:
        moment = datetime.fromisoformat(text.upper())
    except ValueError:
        raise QueryError("an RFC 3339 instant that exists") from None
    zulu = moment - (moment.utcoffset() or moment - moment)
    return zulu.replace(tzinfo=None).isoformat(timespec="microseconds") + "Z"


def _limit(text: str) -> int:
    if not text.isascii() or not text.isdigit() or len(text) > 4 or not 1 <= int(text) <= MAX_LIMIT:
        raise QueryError(f"a number from 1 to {MAX_LIMIT}")
    return int(text)


def _one_of(options: frozenset[str]) -> Callable[[str], str]:
    def read(text: str) -> str:
        if text not in options:
            raise QueryError("one of " + ", ".join(sorted(options)))
        return text

    return read


def _matching(pattern: re.Pattern[str], what: str) -> Callable[[str], str]:
    def read(text: str) -> str:
        if not pattern.fullmatch(text):
            raise QueryError(what)
        return text

    return read


READERS: Final[dict[str, Callable[[str], Any]]] = {
    "limit": _limit,
    "after": _matching(_CURSOR, "the `next` of the page before"),
    "since": _instant,
    "until": _instant,
    "project": _matching(_PROJECT, "the name of a project"),
    "effect": _one_of(_EFFECTS),
    "state": _one_of(_STATES),
}


def read_query(parameters: QueryParams) -> dict[str, Any]:
    """The query for `EvidenceStore.rows`; raises QueryError for an unknown, repeated or wrong parameter."""
    query: dict[str, Any] = {"limit": DEFAULT_LIMIT}
    seen: set[str] = set()
    for name, text in parameters.multi_items():
        if name not in READERS:
            raise QueryError("unknown parameter; there are " + ", ".join(READERS))
        if name in seen:
            raise QueryError(f"{name} is given twice")
        seen.add(name)
        try:
            query[name] = READERS[name](text)
        except QueryError as error:
            raise QueryError(f"{name} must be {error}") from None
    return query
