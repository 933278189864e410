"""The database behind the writer thread: its transactions, its checkpoints, and how it finds its feet again.

After any failure the connection is dropped and the next transaction starts from what the database itself
says, held against the last state that was known to be committed: a database that was cut short, put back
or replaced while the gateway runs is not written to.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Callable, Collection, Sequence
from pathlib import Path

import apsw
import orjson

from gateway.errors import EvidenceError, GatewayError, SetupError, VerificationError
from gateway.evidence.checkpoint import open_note
from gateway.evidence.entry import digest_of
from gateway.evidence.lineage import close_after_crash
from gateway.evidence.sign import Signer, handover
from gateway.evidence.verify import trusted_keys
from gateway.files import sync_folder
from gateway.ports import Clock, Record
from gateway.store.compression import Packer
from gateway.store.log import Batch, LogState, PartIndex, Prepared, check_tail, damaged, prepare, tree_at
from gateway.store.published import publish, published
from gateway.store.reader import SqliteReader
from gateway.store.retention import remove, retention_record
from gateway.store.schema import migrate

CHECKPOINT_ENTRIES = 1000
CHECKPOINT_SECONDS = 1.0
BUSY_MS = 2000
"""For so long another process may hold the database before appends are refused."""

FRESH_SECONDS = 2.0
"""For so long a successful commit answers for the health of the disk."""

ROOM_BYTES = 256 << 10
"""What must fit after a failure before the disk is called well again: a small probe goes where no append does."""

_NEVER = float("-inf")
_PROBE = b"egress-probe:1\0"
"""Signed and thrown away; no purpose of the log begins so."""

_IDLE_SECONDS = 3600.0
_PRAGMAS = (
    "PRAGMA journal_mode = WAL",
    "PRAGMA synchronous = FULL",
    "PRAGMA fullfsync = ON",
    "PRAGMA checkpoint_fullfsync = ON",
    "PRAGMA trusted_schema = OFF",
)


class EvidenceDisk:
    """One database file, driven by one thread."""

    def __init__(self, path: Path, signer: Signer, clock: Clock) -> None:
        """Nothing is touched before `begin`."""
        self.published_path = path.with_name("checkpoint")
        self._path = path
        self._signer = signer
        self._clock = clock
        self._origin = signer.name
        self._connection: apsw.Connection | None = None
        self._state: LogState | None = None
        self._trusted = (0, LogState.empty().tree.root())  # the last committed (size, root)
        self._file: tuple[int, int] = (0, 0)
        self._parts = PartIndex()
        self._packer = Packer()
        self._unpublished: bytes | None = None
        self._checkpointed = _NEVER
        self._succeeded = _NEVER
        self.failure = ""
        self.warning = ""

    @property
    def fresh(self) -> bool:
        """Whether a commit succeeded moments ago and none has failed since."""
        return not self.failure and self._now() - self._succeeded < FRESH_SECONDS

    def _now(self) -> float:
        return self._clock.monotonic_us() / 1e6

    # -- start and end ------------------------------------------------------------------------------------------

    def begin(self, *, close_open: bool = True) -> frozenset[str]:
        """Open or create the database, hold it against the published checkpoint, close what a crash left open.

        Without `close_open` open requests are left alone, and their ids returned: `settle` closes them.

        SetupError where it cannot be used, EvidenceError where it is damaged.
        """
        try:
            if not self._path.exists():
                os.close(os.open(self._path, os.O_CREAT | os.O_RDWR | os.O_CLOEXEC, 0o600))
                sync_folder(self._path.parent)
            connection = self._connect()
            migrate(connection, self._clock.now())
            state = self._load(connection)
            reader = SqliteReader(self._path, connection)
            self._check_published(connection, state, reader.handovers())
            check_tail(connection, state)
            left = frozenset[str]()
            if close_open:
                self._close_open_requests(reader)
            else:
                left = frozenset(row.request_id for row, _ in reader.open_requests())
            self._transact([], checkpoint=True)
            self._publish()
        except (apsw.Error, OSError) as error:
            self.drop()
            raise SetupError(
                "store.unusable",
                f"the evidence database cannot be used: {reason(error)}",
                hint="look at the state folder: free space, permissions, another program on the file",
            ) from error
        except GatewayError:
            self.drop()
            raise
        return left

    def _check_published(
        self, connection: apsw.Connection, state: LogState, handovers: Sequence[bytes]
    ) -> None:
        """Refuse a log that is shorter than, or differs from, what was published of it."""
        note = published(self.published_path)
        if note is None:
            if state.tree.size:
                raise damaged("the log has entries, and the file of its last checkpoint is gone")
            return
        keys = trusted_keys(self._signer.public_key, handovers)
        if keys[-1] != self._signer.public_key:
            raise SetupError(
                "keys.handed_over",
                "the log was handed over to a newer signing key than this one",
                hint="finish the change of keys: put signing.next.pem in the place of signing.pem",
            )
        try:
            seen = open_note(note, keys)
        except VerificationError as error:
            raise damaged(f"the last checkpoint does not hold: {error}") from error
        if seen.origin != self._origin:
            raise damaged("the last checkpoint is of another log")
        if seen.size > state.tree.size:
            raise damaged(
                f"the log is cut short: {state.tree.size} entries, and {seen.size} were checkpointed"
            )
        if tree_at(connection, seen.size).root() != seen.root:
            raise damaged("the log was altered: its entries are not those that were checkpointed")

    def _close_open_requests(self, reader: SqliteReader) -> None:
        """Write the lineage of every request that was admitted and never concluded."""
        jobs = self._closing(reader)
        for start in range(0, len(jobs), 256):
            self._transact(jobs[start : start + 256])

    def _closing(self, reader: SqliteReader, only: Collection[str] | None = None) -> list[Prepared]:
        """What closes the requests that are open now, all of them or `only` those of these ids."""
        jobs = []
        for row, linked in reader.open_requests():
            if only is not None and row.request_id not in only:
                continue
            receipt, admission = reader.record(row.receipt), reader.record(row.admission or "")
            if receipt is None or admission is None:
                raise damaged("the records of an admitted request are gone")
            events = [orjson.loads(item.data) for item in linked]
            lineage, closed = close_after_crash(row, receipt, admission, events)
            jobs.append(prepare([lineage], closed))
        return jobs

    def shut(self) -> None:
        """Checkpoint the log and close it. What cannot be written now was not acknowledged as logged either."""
        if self._state is not None and self._state.covered < self._state.tree.size:
            self._attempt([], checkpoint=True)
        self._publish()
        self.drop()

    # -- what the writer calls ----------------------------------------------------------------------------------

    def commit(self, batch: Sequence[Prepared]) -> None:
        """All appends in one synced transaction; an empty batch tries the disk. EvidenceError, and nothing kept."""
        error = self._attempt(batch, checkpoint=self._due())
        if error is not None:
            raise error

    def hand_over(self, new: Signer) -> None:
        """Log that the present key hands over to `new`, and sign with that from here on; EvidenceError."""
        if new.name != self._origin:
            raise EvidenceError("evidence.key", "a key takes over under the name of the one before it")
        signed = handover(self._signer, new, self._clock.now())
        made = Record("key_handover", digest_of(signed), (signed,))
        error = self._attempt([prepare([made], None)], checkpoint=False)
        if error is None:
            self._signer = new
            error = self._attempt([], checkpoint=True)
        if error is not None:
            raise error

    def prune(self, upto: int) -> None:
        """Let go of the entries before `upto`, of which a checkpoint must cover one more; EvidenceError."""
        made = retention_record(upto, self._clock.now())
        error = self._attempt([prepare([made], None)], checkpoint=True, also=lambda db: remove(db, upto))
        if error is not None:
            raise error

    def settle(self, requests: Collection[str]) -> None:
        """Close those of these requests that are still open: whoever sent them is gone. EvidenceError."""
        try:
            jobs = self._closing(SqliteReader(self._path, self._connection or self._connect()), requests)
        except (apsw.Error, OSError) as error:
            self.drop()
            self.failure = f"evidence cannot be written: {reason(error)}"
            raise EvidenceError("evidence.unavailable", self.failure) from error
        for start in range(0, len(jobs), 256):
            failed = self._attempt(jobs[start : start + 256], checkpoint=False)
            if failed is not None:
                raise failed

    def watch_parts(self) -> None:
        """From now on remember which parts are used: the others may be swept."""
        self._parts.watch()

    def sweep(self, numbers: Sequence[int]) -> None:
        """Delete parts that nothing named when they were marked, but for those that were used since; EvidenceError."""
        dead = self._parts.unused(numbers)
        delete = "DELETE FROM parts WHERE id = ?"
        error = self._attempt(
            [], checkpoint=False, also=lambda db: db.executemany(delete, ((number,) for number in dead))
        )
        if error is not None:
            raise error
        self._parts.drop(dead)

    def idle(self) -> float:
        """Checkpoint when it is time, publish what could not be published; seconds until it should be asked again."""
        if self._due():
            self._attempt([], checkpoint=True)
        self._publish()
        waiting = self._state is None or self._state.covered < self._state.tree.size or self._unpublished
        return CHECKPOINT_SECONDS if waiting else _IDLE_SECONDS

    def _due(self) -> bool:
        if self._state is None:
            return False
        open_entries = self._state.tree.size - self._state.covered
        late = self._now() - self._checkpointed >= CHECKPOINT_SECONDS
        return open_entries >= CHECKPOINT_ENTRIES or (open_entries > 0 and late)

    def _attempt(
        self,
        batch: Sequence[Prepared],
        *,
        checkpoint: bool,
        also: Callable[[apsw.Connection], object] | None = None,
    ) -> EvidenceError | None:
        """A transaction, or the reason why there was none."""
        try:
            self._transact(batch, checkpoint=checkpoint, also=also)
        except (apsw.Error, OSError) as error:
            self.failure = f"evidence cannot be written: {reason(error, self._connection)}"
            self.drop()
        except GatewayError as error:
            self.drop()
            self.failure = str(error)
        else:
            return None
        return EvidenceError("evidence.unavailable", self.failure)

    def _transact(
        self,
        batch: Sequence[Prepared],
        *,
        checkpoint: bool = False,
        also: Callable[[apsw.Connection], object] | None = None,
    ) -> None:
        connection = self._connection or self._connect()
        state = self._state or self._load(connection)
        work = Batch(connection, state.copy(), self._parts, self._packer)
        connection.execute("BEGIN IMMEDIATE")
        self._check_unchanged(connection, state)
        for job in batch:
            work.append(job, self._clock.now())
        work.seal(self._signer)
        note = work.checkpoint(self._origin, self._signer) if checkpoint else None
        if also is not None:
            also(connection)
        if not batch and note is None:
            self._probe(connection)
        connection.execute("COMMIT")
        self._state = work.state
        self._trusted = (work.state.tree.size, work.state.tree.root())
        self._parts.add(work.fresh)
        self._succeeded, self.failure = self._now(), ""
        if note is not None:
            self._unpublished, self._checkpointed = note, self._succeeded

    def _probe(self, connection: apsw.Connection) -> None:
        probe = apsw.zeroblob(ROOM_BYTES) if self.failure else self._clock.now()
        connection.execute("INSERT OR REPLACE INTO meta VALUES ('probe', ?)", (probe,))
        self._signer.sign(_PROBE)  # a key that lies elsewhere may be out of reach

    def _check_unchanged(self, connection: apsw.Connection, state: LogState) -> None:
        """Refuse to write after another hand: the file was replaced, or the log is not as it was left."""
        if self._file != file_identity(self._path):
            raise damaged("the evidence database was replaced while the gateway ran")
        last = connection.execute("SELECT coalesce(max(seq), -1) FROM entries").get
        if last + 1 != state.tree.size:
            raise damaged("the log was altered while the gateway ran")

    # -- connection ---------------------------------------------------------------------------------------------

    def _connect(self) -> apsw.Connection:
        connection = apsw.Connection(str(self._path), flags=apsw.SQLITE_OPEN_READWRITE)
        try:
            connection.set_busy_timeout(BUSY_MS)
            for pragma in _PRAGMAS:
                connection.execute(pragma)
        except apsw.Error:
            connection.close(True)
            raise
        self._file = file_identity(self._path)
        self._connection = connection
        return connection

    def _load(self, connection: apsw.Connection) -> LogState:
        """The state on disk, which must contain all that was known to be committed."""
        state = LogState.load(connection)
        size, root = self._trusted
        if state.tree.size < size or tree_at(connection, size).root() != root:
            raise damaged("the log on disk is not the one that was written")
        self._state = state
        return state

    def drop(self) -> None:
        """Forget the connection and everything known through it; an open transaction is rolled back by that."""
        connection, self._connection, self._state = self._connection, None, None
        if connection is not None:
            connection.close(True)

    def _publish(self) -> None:
        if self._unpublished is None:
            return
        try:
            publish(self.published_path, self._unpublished)
        except OSError as error:
            self.warning = f"the checkpoint file cannot be written: {reason(error)}"
        else:
            self._unpublished, self.warning = None, ""


def file_identity(path: Path) -> tuple[int, int]:
    """Device and inode of a file; raises OSError."""
    found = path.stat()
    return found.st_dev, found.st_ino


_REASONS: dict[type[Exception], str] = {
    apsw.FullError: "the disk is full",
    apsw.IOError: "input/output error",
    apsw.BusyError: "the database is locked",
    apsw.LockedError: "the database is locked",
    apsw.ReadOnlyError: "the database is read-only",
    apsw.CorruptError: "the database is damaged",
    apsw.NotADBError: "the file is not a database",
    apsw.CantOpenError: "the database cannot be opened",
}


def reason(error: Exception, connection: apsw.Connection | None = None) -> str:
    """The kind of a failure in words without content, with what the system said of it where that is known."""
    if isinstance(error, OSError):
        return os.strerror(error.errno or 0)
    words = _REASONS.get(type(error), type(error).__name__)
    number = connection.system_errno if isinstance(error, apsw.IOError) and connection is not None else 0
    return f"{words} ({os.strerror(number)})" if number not in {0, errno.EIO} else words
