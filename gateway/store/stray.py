"""Whether the tables beside the log say what the log says: nothing is listed, dated or joined that no entry covers.

Listings, exports and proofs read index tables: which records there are, which request they belong to, which entry set
them, when. None of that is signed, so it is held against the entries, which are. What was pruned has no entries any
more: of a request that lies across the cut, the records that its index row names are held against their digests.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from gateway.errors import EvidenceError, VerificationError
from gateway.evidence.checkpoint import read_note
from gateway.evidence.entry import Entry, digest_of, read_entry
from gateway.store.log import PREFIX
from gateway.store.reader import SqliteReader
from gateway.store.retention import KEPT_KINDS

_RECORDS = "SELECT entry, kind, digest, request FROM records WHERE entry >= ? ORDER BY id"
_REQUESTS = "SELECT entry, request_id FROM requests WHERE entry >= ? ORDER BY id"
_LEAST = -(1 << 63)  # of SQLite's integers
_ENTRIES = "SELECT seq, time, body FROM entries WHERE seq >= ? ORDER BY seq"


def first_stray(reader: SqliteReader, pruned: int) -> int | None:
    """The first entry whose index rows are not what it says, or that rows claim and that does not cover them.

    None where there is none. The log itself must have been verified; `pruned` of its entries have left their hashes.
    Raises apsw.Error where the database cannot be read.
    """
    found = _before(reader, pruned)
    if found is None:
        found = _Comparison(reader, pruned).run()
    return _misplaced(reader) if found is None else found


def _misplaced(reader: SqliteReader) -> int | None:
    """The first entry that is shown as logged by a checkpoint that is stored as one over more entries than it is."""
    for size, note in reader.connection.execute("SELECT size, note FROM checkpoints ORDER BY size"):
        said = read_note(bytes(note)).checkpoint.size
        if said != size:
            return said
    return None


class _Rows:
    """Rows by the entry that they claim, which must rise."""

    def __init__(self, rows: Iterator[tuple[Any, ...]]) -> None:
        self._rows = rows
        self.next: tuple[Any, ...] | None = next(rows, None)

    def of(self, seq: int) -> list[tuple[Any, ...]]:
        """The rows that claim this entry."""
        found = []
        while self.next is not None and self.next[0] == seq:
            found.append(self.next)
            self.next = next(self._rows, None)
        return found

    def late(self, seq: int) -> int | None:
        """The entry that the next row claims where that has gone by (0 for what is no entry), else None."""
        claimed = seq if self.next is None else self.next[0]
        if isinstance(claimed, int):
            return max(claimed, 0) if claimed < seq else None
        return 0


class _Comparison:
    """Entries, records and requests, read side by side."""

    def __init__(self, reader: SqliteReader, start: int) -> None:
        execute = reader.connection.execute
        self._reader = reader
        self._start = start
        self._entries: Iterator[tuple[Any, ...]] = execute(_ENTRIES, (start,))
        least = start or _LEAST
        self._records = _Rows(execute(_RECORDS, (least,)))
        self._requests = _Rows(execute(_REQUESTS, (least,)))

    def run(self) -> int | None:
        """See `first_stray`."""
        end = self._start
        for seq, time, body in self._entries:
            late = self._late(seq)
            if late is not None or not self._agrees(read_entry(body), seq, time):
                return int(seq) if late is None else late
            end = seq + 1
        late = self._late(end)
        left = self._records.next is not None or self._requests.next is not None
        return late if late is not None else end if left else None

    def _late(self, seq: int) -> int | None:
        return min(
            (at for at in (self._records.late(seq), self._requests.late(seq)) if at is not None), default=None
        )

    def _agrees(self, entry: Entry, seq: int, time: object) -> bool:
        if entry.time != time:
            return False
        number, opened = self._number(entry.request)
        if opened > seq or [(seq, entry.request)] * (opened == seq) != self._requests.of(seq):
            return False
        covered = {(kind, name) for kind, name in entry.records}
        return all(
            (kind, PREFIX + bytes(name).hex()) in covered and request == number
            for _, kind, name, request in self._records.of(seq)
        )

    def _number(self, request_id: str | None) -> tuple[int | None, int]:
        """(number of a request, the entry that opened it); no number where an entry has no request."""
        if request_id is None:
            return None, -1
        sql = "SELECT id, entry FROM requests WHERE request_id = ?"
        number, opened = self._reader.connection.execute(sql, (request_id,)).fetchone() or (None, -1)
        return number, opened if isinstance(opened, int) else -1


def _before(reader: SqliteReader, pruned: int) -> int | None:
    """The same for rows that claim pruned entries: there are such of requests that went on behind the cut."""
    if not pruned:
        return None
    kept = ", ".join(f"'{kind}'" for kind in KEPT_KINDS)
    sql = (
        f"SELECT min(entry) FROM records WHERE entry < ? AND coalesce(last, entry) < ? AND kind NOT IN ({kept})"  # noqa: S608  # fixed
        " AND (request IS NULL OR request NOT IN (SELECT id FROM requests WHERE entry < ?))"
    )
    stray = reader.connection.execute(sql, (pruned, pruned, pruned)).get
    if stray is not None:
        return int(stray)
    for request_id, latest in reader.connection.execute(
        "SELECT request_id, latest FROM requests WHERE entry < ?", (pruned,)
    ):
        if not _named_are_whole(reader, str(request_id)):
            return int(latest)
    return None


def _named_are_whole(reader: SqliteReader, request_id: str) -> bool:
    try:
        found = reader.request(request_id)
        row = found[0] if found is not None else None
        names = [] if row is None else [row.receipt, row.evaluation, row.admission, row.lineage]
        return all(digest_of(reader.record(name) or b"") == name for name in names if name is not None)
    except (EvidenceError, VerificationError, ValueError):
        return False
