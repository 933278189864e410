"""What is old is let go of, and the log stays verifiable: entries leave their hashes.

Entries are pruned from the front. Of a pruned entry its leaf hash remains, of which the tree is made, so every
checkpoint and every proof of what is left still holds; its text and its records go. A request is let go of as a whole,
once the last of its entries is pruned. An entry of kind `retention` says in the log itself how far was pruned: hashes
without such an entry are what somebody deleted, and `receipts verify` says so.

Parts that no record names any more are swept afterwards: marked on a reading connection while the writer goes on,
deleted by the writer, but for those that it has used since.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import apsw

from gateway.evidence.entry import canonical, digest_of
from gateway.ports import Record
from gateway.store.compression import Unpacker
from gateway.store.layout import runs

SLICE = 5_000
"""Entries, or parts, that one transaction lets go of: appends wait for no more than that."""

KEPT_KINDS = ("key_handover", "retention")


@dataclass(frozen=True, slots=True)
class Pruned:
    """What a run let go of."""

    entries: int
    parts: int


def retention_record(upto: int, time: str) -> Record:
    """The record that says in the log: the entries before number `upto` leave their hashes only."""
    body = canonical({"event": "retention", "time": time, "upto": upto, "v": 1})
    return Record("retention", digest_of(body), (body,))


def pruned(connection: apsw.Connection) -> int:
    """How many entries at the front have left their hashes only."""
    found = connection.execute("SELECT value FROM meta WHERE name = 'pruned'").get
    return found if isinstance(found, int) else 0


def before(connection: apsw.Connection, time: str) -> int:
    """The number of the first entry that is not older than `time`; order is by number, clocks may jump."""
    low, high = pruned(connection), connection.execute("SELECT coalesce(max(seq), -1) + 1 FROM entries").get
    while low < high:
        middle = (low + high) // 2
        if str(connection.execute("SELECT time FROM entries WHERE seq = ?", (middle,)).get) < time:
            low = middle + 1
        else:
            high = middle
    return low


def used_bytes(connection: apsw.Connection) -> int:
    """Bytes of the database that hold something; what is let go of is used again before the file grows."""
    pages = connection.pragma("page_count") - connection.pragma("freelist_count")
    return int(pages) * int(connection.pragma("page_size"))


def above(connection: apsw.Connection, limit: int) -> int:
    """The number of entries to prune so that about `limit` bytes stay, as if all were of one size."""
    used, start = used_bytes(connection), pruned(connection)
    if used <= limit:
        return 0
    count = connection.execute("SELECT coalesce(max(seq), -1) + 1 FROM entries").get - start
    return start + int(count * (1 - limit / used)) + 1


def remove(connection: apsw.Connection, upto: int) -> None:
    """Let go of everything before entry `upto`, inside the transaction that is open."""
    last = _last(connection, "requests", upto)
    connection.execute("DELETE FROM requests WHERE id <= ? AND latest < ?", (last, upto))
    kept = ", ".join(f"'{kind}'" for kind in KEPT_KINDS)
    connection.execute(
        f"DELETE FROM records WHERE id <= ? AND coalesce(last, entry) < ? AND kind NOT IN ({kept})"  # noqa: S608  # fixed
        " AND (request IS NULL OR request NOT IN (SELECT id FROM requests WHERE id <= ?))",
        (_last(connection, "records", upto), upto, last),
    )
    connection.execute(
        "UPDATE entries SET body = x'', signature = NULL WHERE seq >= ? AND seq < ?",
        (pruned(connection), upto),
    )
    connection.execute("DELETE FROM checkpoints WHERE size < ?", (upto,))
    connection.execute("INSERT OR REPLACE INTO meta VALUES ('pruned', ?)", (upto,))


def _last(connection: apsw.Connection, table: str, upto: int) -> int:
    """The last row that was opened by an entry before `upto`: numbers rise with entries, so it is found by halving."""
    low, high = 0, connection.execute(f"SELECT coalesce(max(id), 0) FROM {table}").get  # noqa: S608  # fixed texts
    sql = f"SELECT id, entry FROM {table} WHERE id > ? ORDER BY id LIMIT 1"  # noqa: S608  # fixed texts
    while low < high:
        middle = (low + high) // 2
        found = connection.execute(sql, (middle,)).fetchone()
        if found is not None and found[1] < upto:
            low = found[0]
        else:
            high = middle
    return int(low)


def dead_parts(connection: apsw.Connection) -> Iterator[int]:
    """The numbers of parts that no record of this state of the database names."""
    bound = connection.execute("SELECT coalesce(max(id), 0) FROM parts").get
    named, unpacker = bytearray(bound + 1), Unpacker()
    for codec, layout in connection.execute("SELECT codec, layout FROM records"):
        for first, count in runs(unpacker.unpack(codec, layout)):
            named[first : first + count] = b"\x01" * count
    for (number,) in connection.execute("SELECT id FROM parts"):
        if not named[number]:
            yield number
