"""What conversations have sent before: small JSON states by project and anchor, bounded in age and number.

In the vault's folder, because a state may hold keyed digests of values. A state that is lost costs the
stickiness of edits, not their presence: values that were masked are found again through the vault.
"""

from __future__ import annotations

import asyncio
import time
from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import apsw
import orjson

from gateway.errors import EvidenceError
from gateway.store.private import PrivateDatabase

MAX_STATES = 20_000
MAX_STATE_BYTES = 4 * 1024 * 1024
MAX_AGE_S = 30 * 86_400
_PRUNE_EVERY = 256  # saves: looking for states that are too many or too old reads a whole index
MAX_NOTES = 200_000
MAX_NOTE_BYTES = 64 * 1024 * 1024

_SCHEMA = """
CREATE TABLE IF NOT EXISTS conversations (
    id INTEGER PRIMARY KEY, project TEXT NOT NULL, anchor BLOB NOT NULL, used INTEGER NOT NULL,
    state BLOB NOT NULL, UNIQUE (project, anchor));
CREATE INDEX IF NOT EXISTS conversations_by_use ON conversations (used);
"""


def pack(state: Mapping[str, Any]) -> bytes:
    """The stored form of a state; EvidenceError where it is no JSON or too large."""
    try:
        data = orjson.dumps(state)
    except TypeError as error:
        raise EvidenceError("conversations.state", "a conversation's state is no JSON") from error
    if len(data) > MAX_STATE_BYTES:
        raise EvidenceError("conversations.state", "a conversation's state is too large to keep")
    return data


def _anchors(connection: apsw.Connection) -> set[bytes]:
    """All anchors of a database; most requests begin a conversation, or go on with one that was not stored."""
    return {row[0] for row in connection.execute("SELECT anchor FROM conversations")}


@dataclass(slots=True)
class _Batch:
    """States that are stored together, and the task that does it."""

    written: asyncio.Future[None]
    rows: list[tuple[str, bytes, int, bytes]] = field(default_factory=list, repr=False)


def _looked_at(written: asyncio.Future[None]) -> None:
    """Take the failure of a batch whose callers have all gone, so that nothing is printed of it."""
    if not written.cancelled():
        written.exception()


class SqliteConversations:
    """ConversationStore over one file, `<state>/vault/conversations.db`."""

    def __init__(
        self, path: Path, now: Callable[[], float] = time.time, max_states: int = MAX_STATES
    ) -> None:
        """Open or create it; `now` gives seconds. SetupError where the file cannot be used."""
        self._database = PrivateDatabase(path, _SCHEMA, "conversations.unavailable")
        self._now = now
        self._max_states = max_states
        self._anchors: set[bytes] | None = (
            None  # of every state that may be stored; None before the first look
        )
        self._saves = 0
        self._turn = asyncio.Lock()  # one transaction at a time
        self._next: _Batch | None = None  # what waits for its turn
        self._notes: OrderedDict[tuple[str, bytes], bytes] = OrderedDict()
        self._noted_bytes = 0

    async def load(self, project: str, anchor: bytes) -> Mapping[str, Any] | None:
        """The state kept under an anchor; None where there is none or it is too old."""
        found = await self.find(project, (anchor,))
        return None if found is None else found[1]

    async def find(self, project: str, anchors: Sequence[bytes]) -> tuple[bytes, Mapping[str, Any]] | None:
        """See ConversationStore."""
        found = await self.find_packed(project, anchors)
        return None if found is None else (anchors[found[0]], orjson.loads(found[1]))

    async def find_packed(self, project: str, anchors: Sequence[bytes]) -> tuple[int, bytes] | None:
        """`find` with the place of the anchor and the state as it is stored."""
        noted = next(
            (at for at, anchor in enumerate(anchors) if (project, anchor) in self._notes), len(anchors)
        )
        oldest = int(self._now()) - MAX_AGE_S
        sql = "SELECT state FROM conversations WHERE project = ? AND anchor = ? AND used >= ?"
        known = self._anchors
        stored = [at for at in range(noted) if known is None or anchors[at] in known]

        def work(connection: apsw.Connection) -> tuple[int, bytes] | None:
            if self._anchors is None:
                self._anchors = _anchors(connection)
            for at in stored:
                anchor = anchors[at]
                data: Any = connection.execute(sql, (project, anchor, oldest)).get
                if data is not None:
                    return at, data
            return None

        kept = await self._database.run(work) if stored else None
        if kept is None and noted < len(anchors):
            data = self._notes.get((project, anchors[noted]))
            return None if data is None else (noted, data)
        return kept

    async def note(self, project: str, anchor: bytes, state: Mapping[str, Any]) -> None:
        """See ConversationStore; lost with the process."""
        self.note_packed(project, anchor, pack(state))

    def note_packed(self, project: str, anchor: bytes, data: bytes) -> None:
        """`note` of a state as it is stored."""
        before = self._notes.pop((project, anchor), b"")
        self._notes[project, anchor] = data
        self._noted_bytes += len(data) - len(before)
        while len(self._notes) > MAX_NOTES or self._noted_bytes > MAX_NOTE_BYTES:
            _, oldest = self._notes.popitem(last=False)
            self._noted_bytes -= len(oldest)

    async def save(self, project: str, anchor: bytes, state: Mapping[str, Any]) -> None:
        """Keep a state, durable when this returns; the ones that were used least recently make room."""
        await self.save_packed(project, anchor, pack(state))

    async def save_packed(self, project: str, anchor: bytes, data: bytes) -> None:
        """`save` of a state as it is stored; EvidenceError where it is too large."""
        if len(data) > MAX_STATE_BYTES:
            raise EvidenceError("conversations.state", "a conversation's state is too large to keep")
        self._noted_bytes -= len(self._notes.pop((project, anchor), b""))
        if self._next is None:
            self._next = _Batch(asyncio.ensure_future(self._write()))
            self._next.written.add_done_callback(_looked_at)
        self._next.rows.append((project, anchor, int(self._now()), data))
        await asyncio.shield(self._next.written)

    async def _write(self) -> None:
        """Store what was given while the batch before was being synced, in one transaction."""
        async with self._turn:
            batch, self._next = self._next, None
            rows = [] if batch is None else batch.rows
            every = max(1, min(_PRUNE_EVERY, self._max_states // 64))
            prune = self._saves // every < (self._saves + len(rows)) // every
            self._saves += len(rows)

            def work(connection: apsw.Connection) -> None:
                connection.executemany(
                    "INSERT INTO conversations (project, anchor, used, state) VALUES (?, ?, ?, ?)"
                    " ON CONFLICT (project, anchor) DO UPDATE SET used = excluded.used, state = excluded.state",
                    rows,
                )
                if self._anchors is not None:  # on this thread, as the first look is
                    self._anchors.update(row[1] for row in rows)
                if prune:
                    self._prune(connection)

            await self._database.run(work)

    def _prune(self, connection: apsw.Connection) -> None:
        connection.execute("DELETE FROM conversations WHERE used < ?", (int(self._now()) - MAX_AGE_S,))
        connection.execute(
            "DELETE FROM conversations WHERE id IN (SELECT id FROM conversations ORDER BY used DESC, id DESC"
            " LIMIT -1 OFFSET ?)",
            (self._max_states,),
        )
        if self._anchors is not None and len(self._anchors) > 2 * self._max_states:
            self._anchors = _anchors(connection)

    async def close(self) -> None:
        """Store what waits, and close the file."""
        while (batch := self._next) is not None:
            await asyncio.wait({batch.written})
        async with self._turn:
            await self._database.close()
