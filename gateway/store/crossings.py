"""The cross-project audit as a file of its own: `<state>/audit/cross-project.jsonl` (contract.md §9.1).

One event a line, exactly the contract's JSON, for tools that follow files. Appended under a lock, so that several
processes may write, synced, never rewritten; a file that is full is renamed to `.1`, the one before to `.2`.
"""

from __future__ import annotations

import asyncio
import fcntl
import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from gateway.errors import EvidenceError
from gateway.files import private_folder
from gateway.ports import EvidenceStore, Record, RequestRow

MAX_BYTES: Final = 16 << 20
KEPT: Final = 8


class CrossProjectLog:
    """`path` is the file; `max_bytes` the size from which it is rotated, `kept` how many older ones stay."""

    def __init__(self, path: Path, *, max_bytes: int = MAX_BYTES, kept: int = KEPT) -> None:
        """The file and its folder are made with the first event."""
        self._path = path
        self._max_bytes = max_bytes
        self._kept = kept

    def append(self, events: Sequence[bytes]) -> None:
        """Append events in canonical bytes; on disk when it returns, EvidenceError where that is not possible."""
        data = b"".join(event + b"\n" for event in events)
        try:
            private_folder(self._path.parent)
            with self._locked():
                self._rotate(len(data))
                flags = os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC
                with os.fdopen(os.open(self._path, flags, 0o600), "rb+", buffering=0) as file:
                    file.write(data if _ends_a_line(file.fileno()) else b"\n" + data)
                    os.fsync(file.fileno())
        except OSError as error:
            reason = os.strerror(error.errno or 0)
            raise EvidenceError(
                "evidence.unavailable", f"the cross-project audit cannot be written: {reason}"
            ) from error

    @contextmanager
    def _locked(self) -> Iterator[None]:
        """Hold the lock file: the log itself is renamed, so a lock on it would be a lock on the past."""
        lock = self._path.with_suffix(".lock")
        descriptor = os.open(lock, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX)
            yield
        finally:
            os.close(descriptor)

    def _rotate(self, coming: int) -> None:
        try:
            size = self._path.stat().st_size
        except FileNotFoundError:
            return
        if not size or size + coming <= self._max_bytes:
            return
        for number in range(self._kept, 0, -1):
            older = self._numbered(number - 1)
            if older.exists():
                older.replace(self._numbered(number))

    def _numbered(self, number: int) -> Path:
        return self._path.with_name(f"{self._path.name}.{number}") if number else self._path


def _ends_a_line(descriptor: int) -> bool:
    """Whether a file is empty or ends with a line: a crash may have left half an event."""
    size = os.fstat(descriptor).st_size
    return size == 0 or os.pread(descriptor, 1, size - 1) == b"\n"


@dataclass(slots=True)
class AuditedStore:
    """An EvidenceStore that appends cross-project events to the log as well, before anything else is stored.

    In this order nothing leaves unless the attempt stands in the log; an event whose request could then not be stored
    tells of an attempt all the same.
    """

    store: EvidenceStore
    log: CrossProjectLog

    async def append(self, records: Sequence[Record], row: RequestRow | None = None) -> None:
        """See EvidenceStore."""
        events = [b"".join(record.parts) for record in records if record.kind == "boundary_event"]
        if events:
            await asyncio.to_thread(self.log.append, events)
        await self.store.append(records, row)

    async def rows(self, query: Mapping[str, Any]) -> tuple[list[dict[str, Any]], str | None]:
        """See EvidenceStore."""
        return await self.store.rows(query)

    async def record(self, digest: str) -> bytes | None:
        """See EvidenceStore."""
        return await self.store.record(digest)

    async def health(self) -> str:
        """See EvidenceStore."""
        return await self.store.health()
