"""Sealed values on disk: found by keyed digest or by placeholder, opened by nobody here.

Values arrive sealed and leave sealed; this file knows no key. A value keeps the placeholder under which
it was issued first.
"""

from __future__ import annotations

import os
import time
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

import apsw

from gateway.ports import SealedValue
from gateway.store.private import PrivateDatabase

_SCHEMA = """
CREATE TABLE IF NOT EXISTS vault (
    id INTEGER PRIMARY KEY, project TEXT NOT NULL, token TEXT NOT NULL, label TEXT NOT NULL, mac BLOB NOT NULL,
    sealed BLOB NOT NULL, used INTEGER NOT NULL, UNIQUE (project, mac), UNIQUE (project, token));
"""
_COLUMNS = "project, token, label, mac, sealed"
_DAY = 86_400
MAX_NEWS = 10_000
"""Entries that are remembered in the order in which they were issued, for those who ask what is new."""


class SqliteVault:
    """VaultStore over one file, `<state>/vault/vault.db`."""

    def __init__(self, path: Path, now: Callable[[], float] = time.time) -> None:
        """Open or create it; `now` gives seconds. SetupError where the file cannot be used."""
        self._database = PrivateDatabase(path, _SCHEMA, "vault.unavailable")
        self._now = now
        self._life = os.urandom(8).hex()  # marks of another life say nothing
        self._issued = 0
        self._news: deque[SealedValue] = deque(maxlen=MAX_NEWS)

    async def keep(self, values: Sequence[SealedValue]) -> None:
        """Keep entries; one whose value or placeholder is known in its project stays as it was issued first."""
        sql = f"INSERT INTO vault ({_COLUMNS}, used) VALUES (?, ?, ?, ?, ?, ?) ON CONFLICT DO NOTHING"  # noqa: S608  # names
        now = int(self._now())

        def work(connection: apsw.Connection) -> list[SealedValue]:
            new = []
            for v in values:
                connection.execute(sql, (v.project, v.token, v.label, v.mac, v.sealed, now))
                if connection.changes():
                    new.append(v)
            return new

        for value in await self._database.run(work):
            self._issued += 1
            self._news.append(value)

    async def by_mac(self, project: str, macs: Sequence[bytes]) -> dict[bytes, SealedValue]:
        """The entries of values that are known, by keyed digest."""
        found = await self._database.run(lambda db: self._find(db, "mac", project, macs))
        return {entry.mac: entry for entry in found}

    async def by_token(self, project: str, tokens: Sequence[str]) -> dict[str, SealedValue]:
        """The entries of placeholders that were issued, by placeholder."""
        found = await self._database.run(lambda db: self._find(db, "token", project, tokens))
        return {entry.token: entry for entry in found}

    def _find(
        self, connection: apsw.Connection, column: str, project: str, keys: Iterable[bytes | str]
    ) -> list[SealedValue]:
        now = int(self._now())
        sql = f"SELECT {_COLUMNS}, id, used FROM vault WHERE project = ? AND {column} = ?"  # noqa: S608  # names
        found: list[SealedValue] = []
        for key in dict.fromkeys(keys):
            row: Any = connection.execute(sql, (project, key)).fetchone()
            if row is None:
                continue
            found.append(SealedValue(*row[:5]))
            if row[6] < now - _DAY:  # a use is noted once a day: reading stays reading
                connection.execute("UPDATE vault SET used = ? WHERE id = ?", (now, row[5]))
        return found

    async def since(self, project: str, mark: str, limit: int) -> tuple[str, list[SealedValue]]:
        """See VaultStore; marks hold for as long as this object lives, and the news reach back so far."""
        now = (
            f"{self._life}.{self._issued}"  # first: what is issued meanwhile is told twice, and not left out
        )
        life, _, number = mark.partition(".")
        missed = self._issued - int(number) if life == self._life and number.isdigit() else -1
        if 0 <= missed <= len(self._news):
            news = [self._news[at] for at in range(len(self._news) - missed, len(self._news))]
            return now, [value for value in news if value.project == project]
        return now, await self._recent(project, limit)

    async def _recent(self, project: str, limit: int) -> list[SealedValue]:
        sql = f"SELECT {_COLUMNS} FROM vault WHERE project = ? ORDER BY id DESC LIMIT ?"  # noqa: S608  # names
        rows: list[Any] = await self._database.run(lambda db: db.execute(sql, (project, limit)).fetchall())
        return [SealedValue(*row) for row in reversed(rows)]

    async def forget_project(self, project: str) -> int:
        """Delete all entries of a project; returns how many. Delete its key as well (`Keyring.forget`)."""
        return await self._delete("project = ?", project)

    async def forget_value(self, project: str, mac: bytes) -> bool:
        """Delete the entry of one value, found by its keyed digest."""
        return await self._delete("project = ? AND mac = ?", project, mac) > 0

    async def expire(self, unused_s: int) -> int:
        """Delete entries that nobody asked for in so many seconds (to a day); returns how many."""
        return await self._delete("used < ?", int(self._now()) - unused_s)

    async def _delete(self, condition: str, *values: str | bytes | int) -> int:
        def work(connection: apsw.Connection) -> int:
            connection.execute(f"DELETE FROM vault WHERE {condition}", values)  # noqa: S608  # fixed texts
            return connection.changes()

        count = await self._database.run(work)
        self._life = os.urandom(8).hex()
        self._news.clear()
        await self._database.scrub()
        return count

    async def stat(self) -> dict[str, Any]:
        """How many values are kept: {"values", "projects": [{"project", "values", "labels": {label: count}}]}."""
        sql = "SELECT project, label, count(*) FROM vault GROUP BY project, label ORDER BY project, label"
        rows: list[Any] = await self._database.run(lambda db: db.execute(sql).fetchall())
        projects: dict[str, dict[str, int]] = {}
        for project, label, count in rows:
            projects.setdefault(project, {})[label] = count
        return {
            "values": sum(row[2] for row in rows),
            "projects": [
                {"project": name, "values": sum(labels.values()), "labels": labels}
                for name, labels in projects.items()
            ],
        }

    async def close(self) -> None:
        """Close the file."""
        await self._database.close()
