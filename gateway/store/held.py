"""Objects that wait for a person, sealed; and what people said, signed. One file, `<state>/vault/held.db`.

The content is sealed with AES-256-GCM under the project's vault key; its associated data names project, id, digest and
policy, so that an entry that is moved, renamed or given another policy does not open. This file knows no key.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import apsw
import orjson
from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

from gateway.errors import VerificationError
from gateway.ports import Hold
from gateway.store.private import PrivateDatabase

_SCHEMA = """
CREATE TABLE IF NOT EXISTS held (
    seq INTEGER PRIMARY KEY, id TEXT NOT NULL UNIQUE, kind TEXT NOT NULL, project TEXT NOT NULL, state TEXT NOT NULL,
    facts BLOB NOT NULL, sealed BLOB);
CREATE INDEX IF NOT EXISTS held_by_kind ON held (kind, seq);
CREATE TABLE IF NOT EXISTS askers (hold TEXT NOT NULL, principal TEXT NOT NULL, PRIMARY KEY (hold, principal));
CREATE TABLE IF NOT EXISTS votes (
    hold TEXT NOT NULL, reviewer TEXT NOT NULL, statement BLOB NOT NULL, signature BLOB NOT NULL,
    PRIMARY KEY (hold, reviewer));
"""
_VERSION = b"\x01"
_NONCE = 12


@dataclass(frozen=True, slots=True)
class Vote:
    """What one reviewer said: a statement in canonical bytes, and the installation's signature over it."""

    reviewer: str
    statement: bytes
    signature: bytes


@dataclass(frozen=True, slots=True)
class HeldRow:
    """One held object with all that was said about it. `sealed` is None once it was discarded."""

    seq: int
    id: str
    kind: str
    project: str
    state: str  # held | released | refused
    facts: Mapping[str, Any]
    askers: frozenset[str]
    votes: tuple[Vote, ...]
    sealed: bytes | None = field(repr=False)


def _bound(facts: Mapping[str, Any]) -> bytes:
    parts = [str(facts[name]).encode() for name in ("project", "id", "digest", "policy")]
    return b"egress-held:1" + b"".join(len(part).to_bytes(4) + part for part in parts)


def facts_of(hold: Hold) -> dict[str, Any]:
    """All of a held object that may be shown without an act of its own: never its content."""
    return {
        "id": hold.id,
        "kind": hold.kind,
        "project": hold.project,
        "digest": hold.digest,
        "destination": hold.destination,
        "policy": hold.policy,
        "time": hold.time,
        "object_kind": hold.object_kind,
        "pointer": hold.pointer,
        "bytes": hold.size,
        "provenance": hold.provenance,
        "reason_codes": list(hold.reason_codes),
        "findings": [dict(finding) for finding in hold.findings],
    }


def held_row(hold: Hold, sealed: bytes) -> tuple[str, str, str, str, bytes, bytes]:
    """What is stored of a held object: id, kind, project, who asks, its facts, its sealed content."""
    return hold.id, hold.kind, hold.project, hold.principal, orjson.dumps(facts_of(hold)), sealed


def seal(content: bytes, facts: Mapping[str, Any], key: bytes) -> bytes:
    """The sealed content; `key` is the 32 bytes of the project's vault key."""
    nonce = os.urandom(_NONCE)
    return _VERSION + nonce + AESGCM(key).encrypt(nonce, content, _bound(facts))


def unseal(row: HeldRow, key: bytes) -> bytes:
    """The content; VerificationError `vault.sealed` where it is gone, altered, moved or under another key."""
    sealed = row.sealed or b""
    if sealed[:1] != _VERSION or len(sealed) < 1 + _NONCE + 16:
        raise VerificationError("vault.sealed", "there is nothing that can be opened")
    facts = {**row.facts, "id": row.id, "project": row.project}
    try:
        return AESGCM(key).decrypt(sealed[1 : 1 + _NONCE], sealed[1 + _NONCE :], _bound(facts))
    except InvalidTag as error:
        raise VerificationError("vault.sealed", "a held object does not open under this name") from error


class HeldObjects:
    """The file. Every method is one synced transaction; EvidenceError where it cannot be done."""

    def __init__(self, path: Path) -> None:
        """Open or create it; SetupError where the file cannot be used."""
        self._database = PrivateDatabase(path, _SCHEMA, "held.unavailable")

    async def put(self, holds: Sequence[tuple[Hold, bytes]]) -> None:
        """Keep objects with their sealed content; those that are held, released or refused stay as they are."""
        await self.put_rows([held_row(hold, sealed) for hold, sealed in holds])

    async def put_rows(self, rows: Sequence[tuple[str, str, str, str, bytes, bytes]]) -> None:
        """`put` of what `held_row` made."""

        def work(connection: apsw.Connection) -> None:
            for hold, kind, project, principal, facts, sealed in rows:
                connection.execute(
                    "INSERT INTO held (id, kind, project, state, facts, sealed) VALUES (?, ?, ?, 'held', ?, ?)"
                    " ON CONFLICT DO NOTHING",
                    (hold, kind, project, facts, sealed),
                )
                connection.execute(
                    "INSERT INTO askers VALUES (?, ?) ON CONFLICT DO NOTHING", (hold, principal)
                )

        await self._database.run(work)

    async def reopen(self, hold: str) -> None:
        """Let an object wait again: what was decided about it is over."""

        def work(connection: apsw.Connection) -> None:
            connection.execute("UPDATE held SET state = 'held' WHERE id = ? AND sealed IS NOT NULL", (hold,))
            connection.execute("DELETE FROM votes WHERE hold = ?", (hold,))

        await self._database.run(work)

    async def vote(self, hold: str, vote: Vote, state: str) -> None:
        """Add what a reviewer said, and the state that it leads to; refused content is deleted."""

        def work(connection: apsw.Connection) -> None:
            connection.execute(
                "INSERT INTO votes VALUES (?, ?, ?, ?)"
                " ON CONFLICT (hold, reviewer)"
                " DO UPDATE SET statement = excluded.statement, signature = excluded.signature",
                (hold, vote.reviewer, vote.statement, vote.signature),
            )
            sealed = "NULL" if state == "refused" else "sealed"
            connection.execute(
                f"UPDATE held SET state = ?, sealed = {sealed} WHERE id = ?",  # noqa: S608  # one of two words
                (state, hold),
            )

        await self._database.run(work)
        if state == "refused":
            await self._database.scrub()

    async def resign(self, anew: Callable[[bytes, bytes], bytes | None]) -> int:
        """Replace the signature of every statement for which `anew(statement, signature)` gives another; how many."""

        def work(connection: apsw.Connection) -> int:
            count = 0
            for hold, reviewer, statement, signature in connection.execute("SELECT * FROM votes").fetchall():
                if not isinstance(statement, bytes) or not isinstance(signature, bytes):
                    continue  # nobody's statement
                if (made := anew(statement, signature)) is not None:
                    count += 1
                    connection.execute(
                        "UPDATE votes SET signature = ? WHERE hold = ? AND reviewer = ?",
                        (made, hold, reviewer),
                    )
            return count

        return await self._database.run(work)

    async def find(self, holds: Sequence[str]) -> list[HeldRow]:
        """The objects of these ids."""

        def work(connection: apsw.Connection) -> list[HeldRow]:
            sql = f"{_SELECT} WHERE id = ?"
            found = [connection.execute(sql, (hold,)).fetchone() for hold in holds]
            return [_row(connection, row) for row in found if row is not None]

        return await self._database.run(work)

    async def search(self, kind: str, prefix: str, limit: int) -> list[HeldRow]:
        """Objects whose id begins so, newest first; `kind` empty: any."""
        sql = f"{_SELECT} WHERE substr(id, 1, ?) = ? AND (? = '' OR kind = ?) ORDER BY seq DESC LIMIT ?"
        given = (len(prefix), prefix, kind, kind, limit)
        return await self._database.run(
            lambda db: [_row(db, row) for row in db.execute(sql, given).fetchall()]
        )

    async def page(
        self, kind: str, *, before: int | None, project: str, state: str, limit: int
    ) -> list[HeldRow]:
        """A page of one kind, newest first; `project` and `state` empty: any."""
        sql = (
            f"{_SELECT} WHERE kind = ? AND (? = '' OR project = ?) AND (? = '' OR state = ?)"
            " AND (? IS NULL OR seq < ?) ORDER BY seq DESC LIMIT ?"
        )
        given = (kind, project, project, state, state, before, before, limit)
        return await self._database.run(
            lambda db: [_row(db, row) for row in db.execute(sql, given).fetchall()]
        )

    async def close(self) -> None:
        """Close the file."""
        await self._database.close()


_SELECT = "SELECT seq, id, kind, project, state, facts, sealed FROM held"


def _row(connection: apsw.Connection, row: Any) -> HeldRow:
    askers: list[Any] = connection.execute(
        "SELECT principal FROM askers WHERE hold = ?", (row[1],)
    ).fetchall()
    votes: list[Any] = connection.execute(
        "SELECT reviewer, statement, signature FROM votes WHERE hold = ? ORDER BY reviewer", (row[1],)
    ).fetchall()
    return HeldRow(
        seq=row[0],
        id=row[1],
        kind=row[2],
        project=row[3],
        state=row[4],
        facts=orjson.loads(row[5]),
        askers=frozenset(principal for (principal,) in askers),
        votes=tuple(Vote(*vote) for vote in votes),
        sealed=row[6],
    )
