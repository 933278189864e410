"""`receipts verify` on a state folder: the stored log, as gateway.evidence.verify reads it.

Opens the database for reading only, also while a gateway writes: the published checkpoint is read first,
then one state of the database, so that the log can only have grown in between.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path

import apsw

from gateway.errors import EvidenceError, VerificationError
from gateway.evidence.verify import FirstBad, Report, StoredEntry, verify_log
from gateway.ports import RequestRow
from gateway.store.log import NODE_STEP
from gateway.store.published import published
from gateway.store.reader import SqliteReader, unreadable
from gateway.store.stray import first_stray


class SqliteView:
    """A LogView over a reader."""

    def __init__(self, reader: SqliteReader) -> None:
        self._reader = reader

    def entries(self) -> Iterator[StoredEntry]:
        """See LogView."""
        cursor = self._reader.connection.execute(
            "SELECT seq, leaf, body, signature FROM entries ORDER BY seq"
        )
        for seq, leaf, body, signature in cursor:
            yield StoredEntry(
                _whole(seq), _bytes(leaf), _bytes(body), None if signature is None else _bytes(signature)
            )

    def record(self, digest: str) -> bytes | None:
        """See LogView."""
        try:
            return self._reader.record(digest)
        except (EvidenceError, VerificationError, ValueError):
            return None  # a record with a part missing, or cut short, is not there

    def request(self, request_id: str) -> tuple[RequestRow, int] | None:
        """See LogView."""
        try:
            return self._reader.request(request_id)
        except EvidenceError:
            return None

    def checkpoints(self) -> Iterable[bytes]:
        """See LogView."""
        found = self._reader.connection.execute("SELECT note FROM checkpoints ORDER BY size")
        return [_bytes(note) for (note,) in found]

    def handovers(self) -> Sequence[bytes]:
        """See LogView."""
        try:
            return self._reader.handovers()
        except (EvidenceError, VerificationError):
            return []  # whatever they vouched for is then not vouched for

    def node(self, level: int, index: int) -> bytes | None:
        """See LogView."""
        if level % NODE_STEP:
            return None
        sql = "SELECT hash FROM nodes WHERE level = ? AND idx = ?"
        return _bytes(self._reader.connection.execute(sql, (level, index)).get or b"")


def _bytes(value: object) -> bytes:
    """A cell as bytes; another type is a change that the hashes will show."""
    return value if isinstance(value, bytes) else str(value).encode()


def _whole(value: object) -> int:
    return value if isinstance(value, int) else -1


def verify_store(path: Path, key: bytes, older: Sequence[bytes] = ()) -> Report:
    """Verify the log in database `path` with one public key that it is known by, and against checkpoints from before.

    A database that is empty or cannot be read as one, beside a checkpoint, is a log that was cut short.
    EvidenceError where there is no log at all, or it cannot be read for another reason (locked, no
    permission).
    """
    try:
        note = published(path.with_name("checkpoint"))
    except OSError as error:
        raise EvidenceError("evidence.unreadable", "the checkpoint file cannot be read") from error
    if not path.exists() and note is None:
        raise EvidenceError("evidence.none", "there is no evidence database here yet")
    try:
        reader = SqliteReader(path)
    except EvidenceError as error:
        if _is_destroyed(path, error):
            return Report(0, first_bad=FirstBad(0, "truncated"))
        raise
    try:
        with reader.connection:
            report = verify_log(SqliteView(reader), key, note, older)
            stray = first_stray(reader, report.pruned) if report.ok else None
    except (apsw.CorruptError, UnicodeDecodeError):  # the latter: text in a cell that is none any more
        return Report(0, first_bad=FirstBad(0, "modified"))
    except apsw.Error as error:
        raise unreadable(error) from error
    finally:
        reader.close()
    return report if stray is None else replace(report, first_bad=FirstBad(stray, "modified"))


def _is_destroyed(path: Path, error: EvidenceError) -> bool:
    """Whether a database cannot be read because it is gone, empty or no database any more."""
    return not path.exists() or isinstance(
        error.__cause__, apsw.NotADBError | apsw.CorruptError | apsw.SQLError
    )
