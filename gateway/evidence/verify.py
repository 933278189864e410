"""Whether a log holds: every entry, its chain, its signatures, its records, its index rows, its checkpoints.

Pure: stored rows and look-ups come in through `LogView`. The first bad entry is named, and truncation
(entries that a checkpoint covered are gone) is told from modification (something that is there is not
what it was).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import chain, pairwise
from typing import Any, Protocol

import orjson

from gateway.errors import VerificationError
from gateway.evidence.checkpoint import SignedCheckpoint, read_note
from gateway.evidence.entry import GENESIS, Entry, digest_of, read_entry, row_digest
from gateway.evidence.merkle import CompactRange, leaf_hash
from gateway.evidence.sign import entry_verifies, read_handover
from gateway.ports import RequestRow


@dataclass(frozen=True, slots=True)
class FirstBad:
    """The first entry that does not hold. `kind`: modified, truncated, torn or signature."""

    index: int
    kind: str


@dataclass(frozen=True, slots=True)
class Report:
    """What `receipts verify --json` says.

    `not_yet_logged` entries stand behind the last checkpoint; `torn` ones were cut short while being
    written.
    """

    entries: int
    not_yet_logged: int = 0
    torn: int = 0
    first_bad: FirstBad | None = None
    pruned: int = 0  # entries at the front that left their hashes only
    logged: int | None = None  # of a piece of a log: how many entries its checkpoint covers in all

    @property
    def ok(self) -> bool:
        """Whether everything holds."""
        return self.first_bad is None

    def document(self) -> dict[str, Any]:
        """The JSON shape of interfaces.md."""
        bad = self.first_bad
        return {
            "ok": self.ok,
            "entries": self.entries,
            "not_yet_logged": self.not_yet_logged,
            "torn": self.torn,
            "first_bad": None if bad is None else {"index": bad.index, "kind": bad.kind},
            **({"pruned": self.pruned} if self.pruned else {}),
            **({} if self.logged is None else {"logged": self.logged}),
        }


@dataclass(frozen=True, slots=True)
class StoredEntry:
    """A row of the log as it lies in the store; `leaf` and `seq` are what the store says, not what is true.

    Of a pruned entry the leaf is left: its body is empty and its signature gone.
    """

    seq: int
    leaf: bytes
    body: bytes
    signature: bytes | None


class LogView(Protocol):
    """What verification reads. Look-ups answer None for what is not there, and for what is too damaged to read."""

    def entries(self) -> Iterator[StoredEntry]:
        """Every stored entry by rising number."""
        ...

    def record(self, digest: str) -> bytes | None:
        """The bytes stored as the record of this digest."""
        ...

    def request(self, request_id: str) -> tuple[RequestRow, int] | None:
        """The index row of a request, and the number of the entry that set it last."""
        ...

    def checkpoints(self) -> Iterable[bytes]:
        """Every stored checkpoint."""
        ...

    def handovers(self) -> Sequence[bytes]:
        """Every key hand-over, oldest first."""
        ...

    def node(self, level: int, index: int) -> bytes | None:
        """The stored hash of a subtree, no bytes where it is gone; None where such a one is not stored."""
        ...


def trusted_keys(key: bytes, handovers: Iterable[bytes]) -> list[bytes]:
    """The keys that the log's own hand-overs join to `key`, oldest first; `key` may be any of them.

    A hand-over is signed by both its keys, so that trust in one is trust in the other. Hand-overs that do
    not hold, or join other keys, are passed over: they add nothing.
    """
    line = [key]
    pairs = [pair for pair in map(_handover_keys, handovers) if pair is not None]
    for old, new in pairs:
        if line[-1] == old:
            line.append(new)
    for old, new in reversed(pairs):
        if line[0] == new:
            line.insert(0, old)
    return line


def _handover_keys(data: bytes | None) -> tuple[bytes, bytes] | None:
    try:
        return None if data is None else read_handover(data)
    except VerificationError:
        return None


def verify_log(log: LogView, key: bytes, published: bytes | None, older: Sequence[bytes] = ()) -> Report:
    """Verify a whole log with one public key that it is known by.

    `published` is the last checkpoint as it lies outside the log (None: there is none); without it nobody
    could tell a log that was cut short. `older` are checkpoints that the reader kept elsewhere.
    """
    walk = _Walk(log, trusted_keys(key, log.handovers()))
    walk.expect(published, older)
    total, entries = 0, iter(log.entries())
    for current, following in pairwise(chain(entries, (None,))):
        total += 1
        if current is not None and walk.bad is None:
            walk.step(current, following)
    return walk.report(total)


@dataclass(slots=True)
class _Walk:
    """The state of a verification that goes from entry to entry."""

    log: LogView
    keys: Sequence[bytes]
    tree: CompactRange = field(default_factory=CompactRange)
    prev: bytes = GENESIS
    bad: FirstBad | None = None
    covered: int = 0  # entries under the last checkpoint that held
    claimed: int = 0  # entries that some checkpoint says there are
    signed: bool = True  # whether the last entry seen is signed
    reign: int = 0  # which of the keys signs entries now
    pruned: int = 0  # entries at the front of which the hash is left
    enthroned: bool = False  # whether the key that signs what is left is known
    allowed: int = 0  # how many of them the log itself says were let go of
    _parsed: dict[bytes, Entry] = field(default_factory=dict)
    _notes: dict[int, list[SignedCheckpoint]] = field(default_factory=dict)
    _pending: dict[str, tuple[int, int]] = field(
        default_factory=dict
    )  # request: (entry that sets it last, since)

    def expect(self, published: bytes | None, older: Sequence[bytes]) -> None:
        """Note which checkpoints will be met; a bad one condemns the entries that only it vouches for."""
        stored = list(self.log.checkpoints())
        if not published and stored:
            self.claimed = -1  # the file that would show a cut is gone: that is one
        for note in [*stored, *older, *([published] if published else [])]:
            try:
                signed = read_note(note)
            except VerificationError:
                self.bad = self.bad or FirstBad(0, "signature")
                continue
            size = signed.checkpoint.size
            self._notes.setdefault(size, []).append(signed)
            self.claimed = max(self.claimed, size) if self.claimed >= 0 else -1

    def step(self, current: StoredEntry, following: StoredEntry | None) -> None:
        """Judge one entry with the one behind it at hand, then the checkpoints over all up to it."""
        index = self.tree.size
        if index == self.pruned and current.seq == index and not current.body and current.signature is None:
            self._skip(current)
            return
        if self.pruned and not self.enthroned:
            self._enthrone(current, following)
        kind = self._judge(current, following, index)
        if kind:
            self.bad = FirstBad(index, kind)
            return
        leaf = leaf_hash(current.body)
        self._grow(leaf)
        self.prev, self.signed = leaf, current.signature is not None
        self._follow(self._parse(current.body))
        self._meet(self.tree.size)

    def _grow(self, leaf: bytes) -> None:
        """Add a leaf; subtrees that the store keeps, for its proofs, must be those of this tree."""
        for level, index, value in self.tree.append(leaf):
            if level and self.log.node(level, index) not in (None, value):
                self.bad = FirstBad(self.tree.size - 1, "modified")

    def _skip(self, entry: StoredEntry) -> None:
        """Take the hash of a pruned entry as it is; the next checkpoint shows whether it was that one."""
        self._grow(entry.leaf)
        self.prev = entry.leaf
        self.pruned += 1
        self._meet(self.tree.size)

    def _enthrone(self, *entries: StoredEntry | None) -> None:
        """Begin with the key that signed the first entry that is left: hand-overs before it are pruned."""
        for entry in entries:
            if entry is not None and entry.signature is not None and not self.enthroned:
                holds = [entry_verifies(key, entry.signature, entry.leaf) for key in self.keys]
                self.reign = holds.index(True) if True in holds else self.reign
                self.enthroned = True

    def _judge(self, current: StoredEntry, following: StoredEntry | None, index: int) -> str:
        leaf = leaf_hash(current.body)
        if current.seq != index or current.leaf != leaf:
            return "modified"
        try:
            entry = self._parse(current.body)
        except VerificationError:
            return "modified"
        if entry.seq != index or entry.prev != self.prev:
            return "modified"
        return (
            self._judge_signature(current, following, leaf)
            or self._judge_records(entry, last=following is None)
            or self._judge_row(entry, index)
        )

    def _parse(self, body: bytes) -> Entry:
        """An entry is asked for three times, by itself and by its neighbours, and read once."""
        found = self._parsed.get(body)
        if found is None:
            while len(self._parsed) > 1:
                del self._parsed[next(iter(self._parsed))]
            found = self._parsed[body] = read_entry(body)
        return found

    def _prev_of(self, entry: StoredEntry) -> bytes | None:
        try:
            return self._parse(entry.body).prev
        except VerificationError:
            return None

    def _judge_signature(self, current: StoredEntry, following: StoredEntry | None, leaf: bytes) -> str:
        """An entry must be what its signature covers, and what the next entry names as the one before it."""
        signature = current.signature
        holds = signature is None or self._entry_signed(signature, leaf)
        named = following is None or self._prev_of(following) == leaf
        if holds and (named or signature is not None or not self._sound(following)):
            return ""  # where the next entry names another one, it is the next that changed
        return "signature" if named and not holds else "modified"

    def _sound(self, entry: StoredEntry | None) -> bool:
        """Whether an entry agrees with its own hash and signature."""
        if entry is None or leaf_hash(entry.body) != entry.leaf:
            return False
        return entry.signature is None or self._entry_signed(entry.signature, entry.leaf)

    def _entry_signed(self, signature: bytes, leaf: bytes) -> bool:
        return entry_verifies(self.keys[self.reign], signature, leaf)

    def _follow(self, entry: Entry) -> None:
        """Pass on to the next key behind the entry in which the present one hands over."""
        for kind, name in entry.records:
            if kind == "retention":
                self.allowed = max(self.allowed, _upto(self.log.record(name)))
            if kind == "key_handover" and self.reign + 1 < len(self.keys):
                pair = _handover_keys(self.log.record(name))
                self.reign += pair == (self.keys[self.reign], self.keys[self.reign + 1])

    def _judge_records(self, entry: Entry, *, last: bool) -> str:
        for _, name in entry.records:
            data = self.log.record(name)
            if data is None:
                return "torn" if last and entry.seq >= self.claimed >= 0 else "modified"
            if digest_of(data) != name:
                return "modified"
        return ""

    def _judge_row(self, entry: Entry, index: int) -> str:
        """The index row of a request must be what the last entry of that request bound."""
        if entry.request is None:
            return ""
        found = self.log.request(entry.request)
        if found is None or found[1] < index:
            return "modified"
        row, latest = found
        if latest > index:
            since = self._pending.get(entry.request, (latest, index))[1]
            self._pending[entry.request] = (latest, since)
            return ""
        self._pending.pop(entry.request, None)
        return "" if row_digest(row) == entry.row else "modified"

    def _meet(self, size: int) -> None:
        """Check every checkpoint over exactly the entries seen so far."""
        if self.bad is not None:
            return
        for note in self._notes.get(size, ()):
            if note.signed_by(self.keys) is None:
                self.bad = FirstBad(size - 1, "signature")
            elif note.checkpoint.root != self.tree.root():
                self.bad = FirstBad(self.covered, "modified")
            if self.bad is not None:
                return
            self.covered = size

    def report(self, total: int) -> Report:
        """The verdict after the last entry."""
        bad = self.bad
        if bad is None and (self.claimed > total or self.claimed < 0 or not self.signed):
            bad = FirstBad(total, "truncated")
        if bad is None and self.pruned > min(self.allowed, self.covered):
            bad = FirstBad(min(self.allowed, self.covered), "modified")
        if bad is None and self._pending:
            bad = FirstBad(min(since for _, since in self._pending.values()), "modified")
        torn = total - bad.index if bad is not None and bad.kind == "torn" else 0
        return Report(total, max(total - self.covered, 0), torn, bad, self.pruned)


def _upto(data: bytes | None) -> int:
    """What a record of kind `retention` says was pruned."""
    try:
        document = orjson.loads(data or b"")
    except ValueError:
        return 0
    upto = document.get("upto") if isinstance(document, dict) else None
    return upto if isinstance(upto, int) else 0
