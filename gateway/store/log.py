"""What one transaction writes: parts, records, entries, nodes of the tree, index rows, and maybe a checkpoint.

Nothing here commits. A `Batch` works on copies of what the log knows of itself (`LogState`); the caller
takes the copies over after COMMIT and throws them away otherwise, so a failed commit cannot leave memory
ahead of the disk.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from hashlib import sha256
from typing import override

import apsw

from gateway.errors import EvidenceError, VerificationError
from gateway.evidence.checkpoint import Checkpoint
from gateway.evidence.entry import GENESIS, make_entry, read_entry
from gateway.evidence.merkle import CompactRange, edge, node_hash
from gateway.evidence.sign import Signer, sign_entry
from gateway.ports import Record, RequestRow
from gateway.store.compression import Packer
from gateway.store.layout import SHARED, Piece, encode

NODE_STEP = 8
"""Subtrees are stored at every eighth level only; the levels between are hashed again from at most 255 below."""

PREFIX = "sha256:"
_MAX_PART_DIGESTS = 4096
_part_digests: dict[bytes, bytes] = {}
_DIGEST = re.compile(r"sha256:[0-9a-f]{64}")


def raw(digest: str) -> bytes:
    """The 32 bytes of a digest; EvidenceError `evidence.digest` where it is none."""
    found = raw_or_none(digest)
    if not found:
        raise EvidenceError("evidence.digest", "a record is named by something that is no digest")
    return found


def raw_or_none(digest: str) -> bytes:
    """The 32 bytes of a digest; no bytes, which name nothing, where it is none."""
    return bytes.fromhex(digest[7:]) if _DIGEST.fullmatch(digest) else b""


class Nodes:
    """Hashes of perfect subtrees of the stored log, as gateway.evidence.merkle asks for them."""

    def __init__(self, connection: apsw.Connection) -> None:
        self._connection = connection

    def __call__(self, level: int, index: int) -> bytes:
        """Hash of the subtree (level, index); EvidenceError where the database lacks a node."""
        if level == 0:
            found = self._connection.execute("SELECT leaf FROM entries WHERE seq = ?", (index,)).get
        elif level % NODE_STEP == 0:
            sql = "SELECT hash FROM nodes WHERE level = ? AND idx = ?"
            found = self._connection.execute(sql, (level, index)).get
        else:
            return node_hash(self(level - 1, 2 * index), self(level - 1, 2 * index + 1))
        if not isinstance(found, bytes):
            raise damaged("the log lacks a node of its tree")
        return found


class CachedNodes(Nodes):
    """The same with the latest ones kept: proofs of neighbouring entries share nearly all of their nodes."""

    def __init__(self, connection: apsw.Connection, limit: int = 65_536) -> None:
        super().__init__(connection)
        self._limit = limit
        self._known: dict[tuple[int, int], bytes] = {}

    @override
    def __call__(self, level: int, index: int) -> bytes:
        """As the base class."""
        found = self._known.get((level, index))
        if found is None:
            found = self._known[level, index] = super().__call__(level, index)
            if len(self._known) > self._limit:
                del self._known[next(iter(self._known))]
        return found


def tree_at(connection: apsw.Connection, size: int) -> CompactRange:
    """The tree as it was when it had `size` entries."""
    nodes = Nodes(connection)
    return CompactRange(size, [nodes(level, index) for level, index in edge(size)])


@dataclass(slots=True)
class LogState:
    """What the writer knows of the committed log."""

    tree: CompactRange
    prev: bytes
    covered: int  # entries under the last stored checkpoint
    next_part: int
    next_request: int

    @classmethod
    def empty(cls) -> LogState:
        """The log before its first entry."""
        return cls(CompactRange(), GENESIS, 0, 1, 1)

    @classmethod
    def load(cls, connection: apsw.Connection) -> LogState:
        """Read it from the database; EvidenceError where the right edge of the tree is not all there."""
        count = connection.execute("SELECT coalesce(max(seq), -1) + 1 FROM entries").get
        prev = Nodes(connection)(0, count - 1) if count else GENESIS
        covered = connection.execute("SELECT coalesce(max(size), 0) FROM checkpoints").get
        part = connection.execute("SELECT coalesce(max(id), 0) + 1 FROM parts").get
        request = connection.execute("SELECT coalesce(max(id), 0) + 1 FROM requests").get
        return cls(tree_at(connection, count), prev, covered, part, request)

    def copy(self) -> LogState:
        """An independent copy."""
        return LogState(self.tree.copy(), self.prev, self.covered, self.next_part, self.next_request)


def check_tail(connection: apsw.Connection, state: LogState) -> None:
    """Hold the entries since the last stored checkpoint against each other; EvidenceError where they do not join.

    What a checkpoint covers is held against the checkpoint's root instead, and in full by `receipts
    verify`.
    """
    start = max(min(state.covered, state.tree.size) - 1, 0)
    prev: bytes | None = None if start else GENESIS
    found = connection.execute("SELECT seq, leaf, body FROM entries WHERE seq >= ? ORDER BY seq", (start,))
    for expected, (seq, leaf, body) in enumerate(found, start):
        try:
            entry = read_entry(body)
        except VerificationError as error:
            raise damaged(f"entry {expected} of the log cannot be read") from error
        joined = prev is None or entry.prev == prev
        if not (seq == entry.seq == expected and entry.leaf == leaf and joined):
            raise damaged(f"entry {expected} of the log does not join the one before it")
        prev = entry.leaf


def damaged(message: str) -> EvidenceError:
    """The log is not what it was; nothing is added to it."""
    return EvidenceError(
        "evidence.damaged",
        message,
        hint="run `egress receipts verify`; restore the state folder from a backup, or start a new one",
    )


@dataclass(frozen=True, slots=True)
class Prepared:
    """One append, hashed and checked, so that the transaction itself is short."""

    records: tuple[Record, ...]
    parts: tuple[
        tuple[bytes | tuple[bytes, bytes], ...], ...
    ]  # a record each: text, or (digest, shared part)
    row: RequestRow | None


def prepare(records: Sequence[Record], row: RequestRow | None) -> Prepared:
    """Check an append before it meets others: each record is what its digest says, the row can be written.

    EvidenceError `evidence.digest` or `evidence.row` otherwise. What passes cannot spoil the transaction it shares.
    """
    split = []
    for record in records:
        parts, last = [], len(record.parts) - 1
        for at, part in enumerate(record.parts):
            shared = 0 < at < last and len(part) >= SHARED  # what stands around a list is in no other record
            parts.append((_part_digest(part), part) if shared else part)
        if PREFIX + sha256(b"".join(record.parts)).hexdigest() != record.digest:
            raise EvidenceError("evidence.digest", "a record does not have its digest")
        split.append(tuple(parts))
    if row is not None:
        for name in (row.receipt, row.evaluation, row.admission, row.lineage):
            if name is not None:
                raw(name)
    try:
        make_entry(0, "", GENESIS, records, row).body  # noqa: B018  # whether it is JSON
    except (TypeError, ValueError) as error:
        raise EvidenceError("evidence.row", "an index row or a kind is not text that can be kept") from error
    return Prepared(tuple(records), tuple(split), row)


def _part_digest(part: bytes) -> bytes:
    """The digest of a part; most come again with the next turn, as the very same object."""
    found = _part_digests.get(part)
    if found is None:
        if len(_part_digests) >= _MAX_PART_DIGESTS:
            _part_digests.clear()
        found = _part_digests[part] = sha256(part).digest()
    return found


class PartIndex:
    """Numbers of parts that are known to be committed, by digest; the oldest are forgotten."""

    def __init__(self, limit: int = 65_536) -> None:
        """Keep at most `limit` numbers (about 150 bytes each)."""
        self._limit = limit
        self._known: dict[bytes, int] = {}
        self._watched: set[int] | None = None

    def watch(self) -> None:
        """Remember from now on which parts are used."""
        self._watched = set()

    def unused(self, numbers: Sequence[int]) -> list[int]:
        """Those that no record has named since `watch`."""
        used = self._watched or set()
        return [number for number in numbers if number not in used]

    def drop(self, numbers: Collection[int]) -> None:
        """Forget parts that are gone."""
        gone = set(numbers)
        self._known = {digest: number for digest, number in self._known.items() if number not in gone}

    def get(self, digest: bytes) -> int | None:
        """The number, None where it is not known here (it may still be stored)."""
        return self._known.get(digest)

    def add(self, fresh: dict[bytes, int]) -> None:
        """Take over the numbers of a committed transaction."""
        self._known.update(fresh)
        if self._watched is not None:
            self._watched.update(fresh.values())
        while len(self._known) > self._limit:
            del self._known[next(iter(self._known))]


@dataclass(slots=True)
class Batch:
    """The rows of one transaction that is open on `connection`."""

    connection: apsw.Connection
    state: LogState  # a copy that this batch may change
    known: PartIndex
    packer: Packer
    fresh: dict[bytes, int] = field(default_factory=dict)
    _entries: list[tuple[int, bytes, str, bytes]] = field(default_factory=list)
    _records: list[tuple[bytes, str, int, int | None, int, bytes]] = field(default_factory=list)

    def append(self, job: Prepared, time: str) -> None:
        """Write one append as the next entry of the log."""
        seq = self.state.tree.size
        entry = make_entry(seq, time, self.state.prev, job.records, job.row)
        request = self._row(job.row, seq) if job.row else None
        for record, parts in zip(job.records, job.parts, strict=True):
            packed = self.packer.pack(encode(self._pieces(parts)))
            self._records.append((raw(record.digest), record.kind, seq, request, *packed))
        for level, index, value in self.state.tree.append(entry.leaf):
            if level and level % NODE_STEP == 0:
                self.connection.execute("INSERT INTO nodes VALUES (?, ?, ?)", (level, index, value))
        self.state.prev = entry.leaf
        self._entries.append((seq, entry.leaf, time, entry.body))

    def _pieces(self, parts: tuple[bytes | tuple[bytes, bytes], ...]) -> list[Piece]:
        pieces: list[Piece] = []
        known, fresh = self.known.get, self.fresh
        for part in parts:
            if isinstance(part, bytes):
                pieces.append(part)
                continue
            digest = part[0]
            number = fresh.get(digest) or known(digest)
            if number is None:
                number = self._number(*part)
            fresh[digest] = number
            pieces.append(number)
        return pieces

    def _number(self, digest: bytes, body: bytes) -> int:
        """The number of a shared part that is stored now, or was long ago."""
        number = self.state.next_part
        self.connection.execute(
            "INSERT INTO parts (id, digest, codec, body) VALUES (?, ?, ?, ?) ON CONFLICT (digest) DO NOTHING",
            (number, digest, *self.packer.pack(body)),
        )
        if self.connection.changes():
            self.state.next_part += 1
        else:  # it was stored long ago
            number = self.connection.execute("SELECT id FROM parts WHERE digest = ?", (digest,)).get
        return int(number)

    def _row(self, row: RequestRow, seq: int) -> int:
        """Insert the index row, or replace the one of the same request; returns its number."""
        values = (
            row.request_id,
            raw(row.receipt),
            row.time,
            row.project,
            row.effect,
            row.receipt_state,
            raw(row.evaluation),
            raw(row.admission) if row.admission else None,
            raw(row.lineage) if row.lineage else None,
            row.provider,
        )
        number = self.connection.execute(
            "INSERT INTO requests VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"
            " ON CONFLICT (request_id) DO UPDATE SET receipt = excluded.receipt, time = excluded.time,"
            " project = excluded.project, effect = excluded.effect, receipt_state = excluded.receipt_state,"
            " evaluation = excluded.evaluation, admission = excluded.admission, lineage = excluded.lineage,"
            " provider = excluded.provider, latest = excluded.latest RETURNING id",
            (self.state.next_request, *values, seq, seq),
        ).get
        self.state.next_request += number == self.state.next_request
        return int(number)

    def seal(self, signer: Signer) -> None:
        """Write records and entries; the last entry is signed, and through the chain all before it."""
        self.connection.executemany(
            "INSERT INTO records (digest, kind, entry, request, codec, layout) VALUES (?, ?, ?, ?, ?, ?)"
            " ON CONFLICT (digest) DO UPDATE SET last = excluded.entry",
            self._records,
        )
        self._records.clear()
        last = len(self._entries) - 1
        self.connection.executemany(
            "INSERT INTO entries VALUES (?, ?, ?, ?, ?)",
            [
                (*entry, sign_entry(signer, entry[1]) if at == last else None)
                for at, entry in enumerate(self._entries)
            ],
        )
        self._entries.clear()

    def checkpoint(self, origin: str, signer: Signer) -> bytes:
        """Store a checkpoint over everything so far, after `seal`; returns the signed note."""
        size = self.state.tree.size
        note = Checkpoint(origin, size, self.state.tree.root()).sign(signer)
        self.connection.execute("INSERT OR REPLACE INTO checkpoints VALUES (?, ?)", (size, note))
        self.state.covered = size
        return note
