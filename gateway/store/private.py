"""A small SQLite database for the owner alone, used from one thread of its own.

Every call is one synced transaction. After a failure the connection is dropped and opened again by the
next call, so that the database recovers when the cause is gone.
"""

from __future__ import annotations

import asyncio
import os
import stat
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import apsw

from gateway.errors import EvidenceError, SetupError
from gateway.files import private_folder, sync_folder
from gateway.store.disk import reason

BUSY_MS = 2000


class PrivateDatabase:
    """`path` is the file, 0600 in a folder 0700; `schema` made the first tables, `migrations` what they are now."""

    def __init__(self, path: Path, schema: str, code: str, migrations: Sequence[str] = ()) -> None:
        """Open it. `code` names failures (`vault.unavailable`). `migrations` follow on `schema`, in order.

        SetupError where it cannot be used, or was written by a newer version.
        """
        self._path = path
        self._versions = (schema, *migrations)
        self._code = code
        self._connection: apsw.Connection | None = None
        self._thread = ThreadPoolExecutor(1, thread_name_prefix=code.partition(".")[0])
        self._closed = False
        try:
            self._create()
            self._connection = self._connect()
        except (OSError, apsw.Error) as error:
            raise SetupError(
                code,
                f"{path} cannot be used: {reason(error)}",
                hint="look at free space and permissions; the folder belongs to the gateway's user alone",
            ) from error

    def _create(self) -> None:
        private_folder(self._path.parent)
        if not self._path.exists():
            os.close(os.open(self._path, os.O_CREAT | os.O_RDWR | os.O_CLOEXEC, 0o600))
            sync_folder(self._path.parent)
        for path, wanted in ((self._path.parent, "700"), (self._path, "600")):
            if stat.S_IMODE(path.stat().st_mode) & 0o077:
                raise SetupError("vault.open", f"other users can reach {path}", hint=f"chmod {wanted} {path}")

    def _connect(self) -> apsw.Connection:
        connection = apsw.Connection(str(self._path), flags=apsw.SQLITE_OPEN_READWRITE)
        try:
            connection.set_busy_timeout(BUSY_MS)
            for pragma in ("journal_mode = WAL", "synchronous = FULL", "secure_delete = ON"):
                connection.execute(f"PRAGMA {pragma}")
            self._migrate(connection)
        except (apsw.Error, SetupError):
            connection.close(True)
            raise
        return connection

    def _migrate(self, connection: apsw.Connection) -> None:
        """Bring the tables up to date; each step and its number (SQLite's `user_version`) are one transaction."""
        have = int(connection.pragma("user_version"))
        if have > len(self._versions):
            raise SetupError(
                "store.newer",
                f"{self._path} was written by a newer version",
                hint="run that version, or give this one its own [state] dir",
            )
        for version in range(have, len(self._versions)):
            with connection:
                connection.execute(self._versions[version])
                connection.pragma("user_version", version + 1)

    async def run[T](self, work: Callable[[apsw.Connection], T]) -> T:
        """Do `work` in one transaction, synced when this returns; EvidenceError, and nothing done, otherwise."""
        if self._closed:
            raise EvidenceError(self._code, "the store is closed")
        return await asyncio.get_running_loop().run_in_executor(self._thread, self._run, work)

    def _run[T](self, work: Callable[[apsw.Connection], T]) -> T:
        try:
            if self._connection is None:
                self._connection = self._connect()
            with self._connection:
                result = work(self._connection)
        except apsw.Error as error:
            connection, self._connection = self._connection, None
            if connection is not None:
                connection.close(True)
            raise EvidenceError(self._code, f"the store cannot be used: {reason(error)}") from error
        return result

    async def scrub(self) -> None:
        """Fold the write-ahead log back, so that deleted bytes are gone from it as well; EvidenceError."""

        def work() -> None:
            if self._connection is not None:
                self._connection.wal_checkpoint(mode=apsw.SQLITE_CHECKPOINT_TRUNCATE)

        try:
            await asyncio.get_running_loop().run_in_executor(self._thread, work)
        except apsw.Error as error:
            raise EvidenceError(self._code, f"the store cannot be used: {reason(error)}") from error

    async def close(self) -> None:
        """Close the database; nothing happens the second time."""
        if not self._closed:
            self._closed = True
            await asyncio.get_running_loop().run_in_executor(self._thread, self._shut)
            self._thread.shutdown()

    def _shut(self) -> None:
        if self._connection is not None:
            self._connection.close(True)
            self._connection = None
