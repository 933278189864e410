"""Everything that is read back from the evidence database, on a connection that cannot write.

Also for other processes (the command line) while a gateway writes: SQLite's WAL gives each reader a whole
state. Not for use on an event loop: every method may touch the disk.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, override

import apsw

from gateway.errors import EvidenceError
from gateway.ports import RequestRow
from gateway.store.compression import Unpacker
from gateway.store.layout import decode
from gateway.store.log import PREFIX, raw_or_none
from gateway.store.rows import Linked, Query, assemble, document_of

PACKED_SINCE = 2
"""Schema version from which parts and layouts name their codec."""

_KNOWN = "'observation', 'event', 'boundary_event'"
_CACHE_BYTES = 16 * 1024 * 1024
_COLUMNS = (
    "request_id, receipt, time, project, effect, receipt_state, evaluation, admission, lineage, provider,"
    " id, entry, latest"
)


def digest(stored: bytes) -> str:
    """The text form of a stored digest."""
    return PREFIX + stored.hex()


class Parts:
    """Shared parts by number, the most recent ones kept in memory."""

    def __init__(
        self, connection: apsw.Connection, unpacker: Unpacker, codec: str, limit: int = _CACHE_BYTES
    ) -> None:
        """Keep at most `limit` bytes of parts; `codec` is the SQL that gives a row's codec."""
        self._sql = f"SELECT {codec}, body FROM parts WHERE id = ?"  # noqa: S608  # one of two fixed texts
        self._connection = connection
        self._unpacker = unpacker
        self._limit = limit
        self._held = 0
        self._bodies: OrderedDict[int, bytes] = OrderedDict()

    def __call__(self, number: int) -> bytes:
        """One part; EvidenceError where it is gone, VerificationError where it cannot be unpacked."""
        if number in self._bodies:
            self._bodies.move_to_end(number)
            return self._bodies[number]
        found = self._connection.execute(self._sql, (number,)).fetchone()
        if found is None or not isinstance(found[0], int) or not isinstance(found[1], bytes):
            raise EvidenceError("evidence.missing", "a part of a record is not in the store")
        body = self._unpacker.unpack(found[0], found[1])
        self._bodies[number] = body
        self._held += len(body)
        while self._held > self._limit:
            self._held -= len(self._bodies.popitem(last=False)[1])
        return body


class SqliteReader:
    """The reading half of the evidence store."""

    def __init__(self, path: Path, connection: apsw.Connection | None = None) -> None:
        """Open an existing database, or read through a `connection` that somebody else keeps.

        EvidenceError `evidence.none` where there is none yet, `evidence.unreadable` where it cannot be read.
        """
        self._own = connection is None
        if connection is None and not path.exists():
            raise EvidenceError(
                "evidence.none", "there is no evidence here yet", hint="it begins with the first `egress up`"
            )
        try:
            self.connection = connection or apsw.Connection(str(path), flags=apsw.SQLITE_OPEN_READONLY)
            if self._own:
                self.connection.set_busy_timeout(5000)
            version = self.connection.execute("SELECT coalesce(max(version), 0) FROM migrations").get
        except apsw.Error as error:
            raise unreadable(error) from error
        self._codec = "codec" if version >= PACKED_SINCE else "0"  # an older database, not yet migrated
        self._unpacker = Unpacker()
        self._parts = Parts(self.connection, self._unpacker, self._codec)

    def close(self) -> None:
        """Close the connection, if it was opened here."""
        if self._own:
            self.connection.close(True)  # a reader has nothing to lose

    def _decode(self, codec: object, layout: object) -> bytes:
        if not isinstance(codec, int) or not isinstance(layout, bytes):
            raise EvidenceError("evidence.damaged", "a stored record is not in its form")
        return decode(self._unpacker.unpack(codec, layout), self._parts)

    def _fetch(self, sql: str, values: Sequence[str | int | bytes] = ()) -> list[tuple[Any, ...]]:
        return self.connection.execute(sql, values).fetchall()

    def record(self, name: str) -> bytes | None:
        """The canonical bytes of a record, by its digest; None where there is none."""
        found = self.connection.execute(
            f"SELECT {self._codec}, layout FROM records WHERE digest = ?",  # noqa: S608  # fixed texts
            (raw_or_none(name),),
        ).fetchone()
        return None if found is None else self._decode(*found)

    def rows(self, query: Query) -> tuple[list[dict[str, Any]], str | None]:
        """A page of rows or of records, newest first, and the cursor of the next page."""
        try:
            with self.connection:  # one state of the database for the whole page
                found = list(self._requests(query) if query.lists_requests else self._records(query))
        except apsw.Error as error:
            raise unreadable(error) from error
        page = found[: query.limit]
        return [item for _, item in page], str(page[-1][0]) if len(found) > query.limit else None

    def _requests(self, query: Query) -> Iterator[tuple[int, dict[str, Any]]]:
        """(number, row), newest first, one more than the page holds."""
        where = _Where()
        where.columns(query)
        where.add("time >= ?", query.since)
        where.add("time <= ?", query.until)
        where.add("id < ?", query.after)
        if query.digest:
            where.must("id = (SELECT request FROM records WHERE digest = ?)", raw_or_none(query.digest))
        sql = f"SELECT {_COLUMNS} FROM requests{where} ORDER BY id DESC LIMIT ?"  # noqa: S608  # fixed texts
        covered = self.connection.execute("SELECT coalesce(max(size), 0) FROM checkpoints").get
        for columns in self._fetch(sql, (*where.values, query.limit + 1)):
            number, entry = columns[10], columns[11]
            index = entry if entry < covered else None
            yield number, assemble(request_row(columns), index, self.record, self.linked(number))

    def _records(self, query: Query) -> Iterator[tuple[int, dict[str, Any]]]:
        """(number, record), newest first, one more than the page holds."""
        of_requests = _Where()
        of_requests.columns(query)
        where = _Where()
        where.add("kind = ?", query.kind)
        where.add("id < ?", query.after)
        where.add("entry IN (SELECT seq FROM entries WHERE time >= ?)", query.since)
        where.add("entry IN (SELECT seq FROM entries WHERE time <= ?)", query.until)
        if query.digest:
            where.must("digest = ?", raw_or_none(query.digest))
        if of_requests.values:
            where.terms.append(f"request IN (SELECT id FROM requests{of_requests})")  # noqa: S608  # fixed texts
            where.values += of_requests.values
        sql = f"SELECT id, {self._codec}, layout FROM records{where} ORDER BY id DESC LIMIT ?"  # noqa: S608  # fixed texts
        for number, codec, layout in self._fetch(sql, (*where.values, query.limit + 1)):
            yield number, document_of(self._decode(codec, layout))

    def linked(self, request: int, kinds: str = "'observation', 'event'") -> list[Linked]:
        """Observations and events of a request, oldest first."""
        found = self._fetch(
            f"SELECT kind, digest, {self._codec}, layout FROM records WHERE request = ?"  # noqa: S608  # fixed texts
            f" AND kind IN ({kinds}) ORDER BY id",
            (request,),
        )
        return [
            Linked(kind, digest(name), self._decode(codec, layout)) for kind, name, codec, layout in found
        ]

    def request(self, request_id: str) -> tuple[RequestRow, int] | None:
        """The index row of a request and the entry that set it last."""
        sql = f"SELECT {_COLUMNS} FROM requests WHERE request_id = ?"  # noqa: S608  # fixed texts
        columns = self.connection.execute(sql, (request_id,)).fetchone()
        return None if columns is None else (request_row(columns), columns[12])

    def handovers(self) -> list[bytes]:
        """The key hand-overs of the log, oldest first."""
        found = self._fetch(
            f"SELECT {self._codec}, layout FROM records WHERE kind = 'key_handover' ORDER BY id"  # noqa: S608  # fixed texts
        )
        return [self._decode(codec, layout) for codec, layout in found]

    def open_requests(self) -> list[tuple[RequestRow, list[Linked]]]:
        """Requests that were admitted and never concluded, oldest first, with what is known of each."""
        condition = "admission IS NOT NULL AND lineage IS NULL"
        sql = f"SELECT {_COLUMNS} FROM requests WHERE {condition} ORDER BY id"  # noqa: S608  # fixed texts
        found = self._fetch(sql)
        return [(request_row(columns), self.linked(columns[10], _KNOWN)) for columns in found]


class _Where:
    """The conditions of a query; texts are fixed, everything given is bound."""

    def __init__(self) -> None:
        self.terms: list[str] = []
        self.values: list[str | int | bytes] = []

    def add(self, term: str, value: str | int | bytes) -> None:
        """Add a condition, unless the value is empty."""
        if value:
            self.must(term, value)

    def must(self, term: str, value: str | int | bytes) -> None:
        """Add a condition."""
        self.terms.append(term)
        self.values.append(value)

    def columns(self, query: Query) -> None:
        """Conditions on what the index row of a request says."""
        self.add("project = ?", query.project)
        self.add("effect = ?", query.effect)
        self.add("receipt_state = ?", query.state)

    @override
    def __str__(self) -> str:
        return f" WHERE {' AND '.join(self.terms)}" if self.terms else ""


def request_row(columns: Sequence[Any]) -> RequestRow:
    """The index row as the port names it; EvidenceError where a cell is not of its type."""
    texts, digests = (*columns[0:1], *columns[2:6], columns[9]), (columns[1], *columns[6:9])
    if not all(isinstance(cell, str) for cell in texts) or not all(
        isinstance(cell, bytes) or (cell is None and at > 1) for at, cell in enumerate(digests)
    ):
        raise EvidenceError("evidence.damaged", "an index row of the store is not in its form")
    request_id, receipt, time, project, effect, state, evaluation, admission, lineage, provider = columns[:10]
    return RequestRow(
        request_id=request_id,
        receipt=digest(receipt),
        time=time,
        project=project,
        effect=effect,
        receipt_state=state,
        evaluation=digest(evaluation),
        admission=digest(admission) if admission else None,
        lineage=digest(lineage) if lineage else None,
        provider=provider,
    )


def unreadable(error: apsw.Error) -> EvidenceError:
    """What a reader is told; the kind of error only, since SQLite's messages can quote."""
    return EvidenceError(
        "evidence.unreadable", f"the evidence database cannot be read ({type(error).__name__})"
    )
