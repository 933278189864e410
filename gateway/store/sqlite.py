"""The evidence store on SQLite: one writer thread, write-ahead log, full sync, group commit.

An append has been synced to the disk when it returns. Any failure (disk full, input/output error, lock,
damage) fails every append of that transaction with EvidenceError and leaves no half of it; the next
transaction starts again from what the database itself says, so that the store recovers when the cause is
gone.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any, Self

import apsw

from gateway.errors import EvidenceError, GatewayError, SetupError
from gateway.evidence.sign import Signer
from gateway.ports import Clock, Record, RequestRow
from gateway.store.disk import EvidenceDisk
from gateway.store.lock import StateLock
from gateway.store.log import prepare
from gateway.store.reader import SqliteReader, unreadable
from gateway.store.retention import SLICE, Pruned, above, before, dead_parts, pruned
from gateway.store.rows import Query
from gateway.store.writer import Writer

QUEUE = 4096
_AFTERWARDS = frozenset({"observation", "lineage", "event"})
STUCK_SECONDS = 5.0
"""After this long in one transaction the disk is said to hang."""


class SqliteStore:
    """EvidenceStore over `path` (a database file); the last checkpoint lies beside it in `checkpoint`."""

    def __init__(self, path: Path, signer: Signer, clock: Clock) -> None:
        """Nothing is touched before `open`."""
        self._path = path
        self._clock = clock
        self._lock = StateLock(path.with_name("lock"))
        self._disk = EvidenceDisk(path, signer, clock)
        self._writer = Writer(self._disk, QUEUE)
        self._readers = ThreadPoolExecutor(1, thread_name_prefix="evidence-reader")
        self._reader: SqliteReader | None = None
        self._watched = ((-1, 0), 0.0)
        self.left_open: frozenset[str] = frozenset()

    def open(self, *, close_open: bool = True) -> Self:
        """Take the folder, check the log against its last checkpoint, close what a crash left open.

        Without `close_open` requests stay open, as whoever sent them may live on: `left_open` names them.

        SetupError where another gateway holds the folder, or where the store is damaged or cannot be
        written.
        """
        self._lock.acquire()
        try:
            self.left_open = self._disk.begin(close_open=close_open)
            self._reader = SqliteReader(self._path)
        except SetupError:
            self._lock.release()
            raise
        except GatewayError as error:
            self._disk.drop()
            self._lock.release()
            raise SetupError(error.code, str(error), hint=error.hint) from error
        self._writer.start()
        return self

    async def close(self) -> None:
        """Write what waits, checkpoint the log, let go of the folder."""
        reader, self._reader = self._reader, None
        self._readers.shutdown(wait=True)
        if reader is not None:
            reader.close()  # before the writer: the last connection to close folds the write-ahead log back
        await self._writer.stop()
        self._lock.release()

    async def append(self, records: Sequence[Record], row: RequestRow | None = None) -> None:
        """All records in one transaction, synced when this returns, or EvidenceError and none.

        Cancelling the caller does not take the append back.
        """
        await self._writer.submit(prepare(records, row), patient=_can_wait(records, row))

    async def settle(self, requests: Collection[str]) -> None:
        """Write the lineages of those of these requests that are open, as after a crash; EvidenceError."""
        await self._writer.submit(None, lambda: self._disk.settle(requests))

    async def hand_over(self, new: Signer) -> None:
        """Let `new` sign from now on, after an entry in which the present key hands the log over to it.

        `new` must have the present signer's name. Make it the key of the next start as well (`Keyring.adopt`).
        """
        await self._writer.submit(None, lambda: self._disk.hand_over(new))

    async def prune(self, older_than: str = "", keep_bytes: int = 0) -> Pruned:
        """Let go of entries before an instant, and of the oldest ones until about `keep_bytes` stay (0: no limit).

        The log goes on and stays verifiable (gateway.store.retention). EvidenceError where that fails half way;
        what was let go of until then is gone, and the next run goes on from there.
        """
        try:
            return await self._prune(older_than, keep_bytes)
        except apsw.Error as error:
            raise unreadable(error) from error

    async def _prune(self, older_than: str, keep_bytes: int) -> Pruned:
        entries = parts = 0
        start, upto = await self._read(lambda reader: _bounds(reader, older_than, keep_bytes))
        while start < upto:
            step = min(start + SLICE, upto)
            await self._writer.submit(None, partial(self._disk.prune, step))
            entries, start = entries + step - start, step
        if entries:
            await self._writer.submit(None, self._disk.watch_parts)
            dead = await self._read(lambda reader: list(dead_parts(reader.connection)))
            for at in range(0, len(dead), SLICE):
                await self._writer.submit(None, partial(self._disk.sweep, dead[at : at + SLICE]))
            parts = len(dead)
        return Pruned(entries, parts)

    async def rows(self, query: Mapping[str, Any]) -> tuple[list[dict[str, Any]], str | None]:
        """A page of rows, newest first, and the cursor of the next page.

        With `kind` other than `receipt`, the records of that kind as they are.
        """
        wanted = Query.read(query)
        return await self._read(lambda reader: reader.rows(wanted))

    async def record(self, digest: str) -> bytes | None:
        """The canonical bytes of one record, None where there is none."""
        return await self._read(lambda reader: reader.record(digest))

    async def health(self) -> str:
        """Empty when evidence can be written now, else why not. Tries the disk when the last word is old or bad."""
        if self._reader is None or self._writer.ended:
            return "the evidence store is closed"
        progress, now = self._writer.progress, self._clock.monotonic_us() / 1e6
        if progress != self._watched[0] or not progress[1]:
            self._watched = (progress, now)
        elif now - self._watched[1] > STUCK_SECONDS:
            return "the disk does not answer"
        if not self._disk.fresh:
            try:
                async with asyncio.timeout(STUCK_SECONDS):
                    await self._writer.submit(None)
            except TimeoutError:
                return "the disk does not answer"
            except EvidenceError as error:
                return str(error)
        return self._disk.warning

    async def _read[T](self, look: Callable[[SqliteReader], T]) -> T:
        reader = self._reader
        if reader is None:
            raise EvidenceError("evidence.unavailable", "the evidence store is closed")
        return await asyncio.get_running_loop().run_in_executor(self._readers, look, reader)


def _can_wait(records: Sequence[Record], row: RequestRow | None) -> bool:
    """Whether an append tells of a request that has left: nothing waits for it, so it may share another one's sync."""
    return row is not None and all(record.kind in _AFTERWARDS for record in records)


def _bounds(reader: SqliteReader, older_than: str, keep_bytes: int) -> tuple[int, int]:
    """(entries that are pruned already, entries that are to be): the last checkpoint must cover one more."""
    db = reader.connection
    covered = db.execute("SELECT coalesce(max(size), 0) FROM checkpoints").get
    wanted = max(before(db, older_than) if older_than else 0, above(db, keep_bytes) if keep_bytes else 0)
    return pruned(db), min(wanted, covered - 1)
