"""What was used of budgets: one small table, shared by every process of a machine and kept over restarts.

Counting must not delay a request, so nothing is synced: after a power cut the last counts may be missing.
Names and numbers only.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import apsw

from gateway.errors import EvidenceError, SetupError
from gateway.store.disk import reason

FILE: Final = "budgets.db"
BUSY_MS: Final = 500
_SCHEMA: Final = """
CREATE TABLE IF NOT EXISTS budgets (
    budget TEXT NOT NULL, who TEXT NOT NULL, ends INTEGER NOT NULL,
    requests INTEGER NOT NULL, bytes INTEGER NOT NULL, tokens INTEGER NOT NULL,
    PRIMARY KEY (budget, who)) WITHOUT ROWID;
"""


@dataclass(frozen=True, slots=True)
class Account:
    """One counter: of which budget, for whom, and when its window ends (seconds since 1970)."""

    budget: str
    who: str
    ends: int


@dataclass(frozen=True, slots=True)
class Used:
    """What was used in a window."""

    requests: int = 0
    bytes: int = 0
    tokens: int = 0


class BudgetCounts:
    """The counters of a state folder; `path` None keeps them in memory."""

    def __init__(self, path: Path | None) -> None:
        """Open or create the file. SetupError where it cannot be used."""
        try:
            if path is not None and not path.exists():
                os.close(os.open(path, os.O_CREAT | os.O_RDWR | os.O_CLOEXEC, 0o600))
            self._connection = apsw.Connection(":memory:" if path is None else str(path))
            self._connection.set_busy_timeout(BUSY_MS)
            for pragma in ("journal_mode = WAL", "synchronous = NORMAL"):
                self._connection.execute(f"PRAGMA {pragma}")
            self._connection.execute(_SCHEMA)
        except (OSError, apsw.Error) as error:
            raise SetupError(
                "budget.unavailable",
                f"{path} cannot be used: {reason(error)}",
                hint="look at free space and permissions; without this file nothing is counted",
            ) from error

    def take(self, asked: Sequence[tuple[Account, Used]], more: Used) -> str:
        """Count `more` in every account, unless one of them would go over its limit; then nothing is counted.

        Args:
            asked: accounts with their limits; a limit of 0 is none. What is used of tokens is known afterwards only,
                so that their limit stops the request after the one that reached it.
            more: what this request uses.

        Returns:
            `requests`, `bytes` or `tokens`; empty where all was counted.

        Raises:
            EvidenceError: `budget.unavailable`, nothing could be counted.
        """
        try:
            self._connection.execute("BEGIN IMMEDIATE")
            try:
                for account, limit in asked:
                    if over := _over(self._used(account), limit, more):
                        return over
                for account, _ in asked:
                    self._add(account, more)
            finally:
                self._connection.execute("COMMIT")
        except apsw.Error as error:
            raise EvidenceError("budget.unavailable", f"nothing can be counted: {reason(error)}") from error
        return ""

    def add(self, accounts: Sequence[Account], more: Used) -> None:
        """Count what became known afterwards; EvidenceError where it cannot be."""
        try:
            with self._connection:
                for account in accounts:
                    self._add(account, more)
        except apsw.Error as error:
            raise EvidenceError("budget.unavailable", f"nothing can be counted: {reason(error)}") from error

    def _used(self, account: Account) -> Used:
        sql = "SELECT requests, bytes, tokens FROM budgets WHERE budget = ? AND who = ? AND ends = ?"
        row = self._connection.execute(sql, (account.budget, account.who, account.ends)).fetchone()
        return Used() if row is None else Used(*map(int, row))

    def _add(self, account: Account, more: Used) -> None:
        """A counter of another window begins anew."""
        self._connection.execute(
            "INSERT INTO budgets (budget, who, ends, requests, bytes, tokens) VALUES (?1, ?2, ?3, ?4, ?5, ?6)"
            " ON CONFLICT (budget, who) DO UPDATE SET ends = ?3,"
            " requests = ?4 + iif(ends = ?3, requests, 0), bytes = ?5 + iif(ends = ?3, bytes, 0),"
            " tokens = ?6 + iif(ends = ?3, tokens, 0)",
            (account.budget, account.who, account.ends, more.requests, more.bytes, more.tokens),
        )

    def forget(self, now: int) -> None:
        """Drop the counters of windows that are over."""
        self._connection.execute("DELETE FROM budgets WHERE ends <= ?", (now,))

    def all(self, now: int) -> list[tuple[Account, Used]]:
        """Every counter of a window that is not over, by budget and name."""
        rows = self._connection.execute(
            "SELECT budget, who, ends, requests, bytes, tokens FROM budgets WHERE ends > ? ORDER BY budget, who",
            (now,),
        )
        return [(Account(str(b), str(w), int(e)), Used(int(r), int(n), int(t))) for b, w, e, r, n, t in rows]

    def close(self) -> None:
        """Close the file."""
        self._connection.close()


def _over(used: Used, limit: Used, more: Used) -> str:
    if limit.requests and used.requests + more.requests > limit.requests:
        return "requests"
    if limit.bytes and used.bytes + more.bytes > limit.bytes:
        return "bytes"
    return "tokens" if limit.tokens and used.tokens >= limit.tokens else ""
