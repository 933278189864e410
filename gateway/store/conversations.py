"""What conversations have sent before: small JSON states by project and anchor, bounded in age and number.

In the vault's folder, because a state may hold keyed digests of values. A state that is lost costs the
stickiness of edits, not their presence: values that were masked are found again through the vault.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import apsw
import orjson

from gateway.errors import EvidenceError
from gateway.store.private import PrivateDatabase

MAX_STATES = 20_000
MAX_STATE_BYTES = 4 * 1024 * 1024
MAX_AGE_S = 30 * 86_400

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


class SqliteConversations:
    """ConversationStore over one file, `<state>/vault/conversations.db`."""

    def __init__(
        self, path: Path, now: Callable[[], float] = time.time, max_states: int = MAX_STATES
    ) -> None:
        """Open or create it; `now` gives seconds. SetupError where the file cannot be used."""
        self._database = PrivateDatabase(path, _SCHEMA, "conversations.unavailable")
        self._now = now
        self._max_states = max_states

    async def load(self, project: str, anchor: bytes) -> Mapping[str, Any] | None:
        """The state kept under an anchor; None where there is none or it is too old."""
        oldest = int(self._now()) - MAX_AGE_S
        sql = "SELECT state FROM conversations WHERE project = ? AND anchor = ? AND used >= ?"
        found: Any = await self._database.run(lambda db: db.execute(sql, (project, anchor, oldest)).get)
        if found is None:
            return None
        state: Mapping[str, Any] = orjson.loads(found)
        return state

    async def save(self, project: str, anchor: bytes, state: Mapping[str, Any]) -> None:
        """Keep a state, durable when this returns; the ones that were used least recently make room."""
        data, now = pack(state), int(self._now())

        def work(connection: apsw.Connection) -> None:
            connection.execute(
                "INSERT INTO conversations (project, anchor, used, state) VALUES (?, ?, ?, ?)"
                " ON CONFLICT (project, anchor) DO UPDATE SET used = excluded.used, state = excluded.state",
                (project, anchor, now, data),
            )
            connection.execute("DELETE FROM conversations WHERE used < ?", (now - MAX_AGE_S,))
            connection.execute(
                "DELETE FROM conversations WHERE id IN (SELECT id FROM conversations ORDER BY used DESC, id DESC"
                " LIMIT -1 OFFSET ?)",
                (self._max_states,),
            )

        await self._database.run(work)

    async def close(self) -> None:
        """Close the file."""
        await self._database.close()
