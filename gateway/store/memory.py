"""Twins of the stores without a disk: for tests, for `egress inspect`, and for trying the gateway out.

They keep the same promises but durability: one append is all or nothing, the log is chained, signed and
checkpointed.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Self

import orjson

from gateway.errors import EvidenceError
from gateway.evidence.checkpoint import Checkpoint
from gateway.evidence.entry import GENESIS, make_entry
from gateway.evidence.merkle import CompactRange
from gateway.evidence.sign import Signer, sign_entry
from gateway.evidence.verify import StoredEntry
from gateway.ports import Clock, Record, RequestRow, SealedValue
from gateway.store.conversations import pack
from gateway.store.log import prepare
from gateway.store.rows import Linked, Query, assemble


class MemoryStore:
    """EvidenceStore in memory; also a `gateway.evidence.verify.LogView` of itself."""

    def __init__(self, path: Path | None, signer: Signer, clock: Clock) -> None:
        """An empty log. Every store is made from the same three; this one needs no path."""
        del path
        self._signer = signer
        self._clock = clock
        self._tree = CompactRange()
        self._prev = GENESIS
        self._log: list[StoredEntry] = []
        self._times: list[str] = []
        self._records: dict[str, bytes] = {}
        self._listed: list[tuple[str, str, int, str]] = []  # kind, digest, entry, request
        self._rows: dict[str, tuple[RequestRow, int, int, int]] = {}  # row, number, first entry, last entry
        self._note = Checkpoint(signer.name, 0, self._tree.root()).sign(signer)
        self._open = True

    def open(self) -> Self:
        """Nothing to do; for symmetry with the store on disk."""
        return self

    async def close(self) -> None:
        """Refuse appends from now on."""
        self._open = False

    async def append(self, records: Sequence[Record], row: RequestRow | None = None) -> None:
        """All records as one entry, or EvidenceError and none."""
        prepare(records, row)
        if not self._open:
            raise EvidenceError("evidence.unavailable", "the evidence store is closed")
        seq, time = self._tree.size, self._clock.now()
        entry = make_entry(seq, time, self._prev, records, row)
        for record in records:
            if record.digest not in self._records:
                self._records[record.digest] = b"".join(record.parts)
                self._listed.append((record.kind, record.digest, seq, row.request_id if row else ""))
        if row is not None:
            _, number, first, _ = self._rows.get(row.request_id, (row, len(self._rows) + 1, seq, seq))
            self._rows[row.request_id] = (row, number, first, seq)
        self._tree.append(entry.leaf)
        self._prev = entry.leaf
        self._log.append(StoredEntry(seq, entry.leaf, entry.body, sign_entry(self._signer, entry.leaf)))
        self._times.append(time)
        self._note = Checkpoint(self._signer.name, seq + 1, self._tree.root()).sign(self._signer)

    async def rows(self, query: Mapping[str, Any]) -> tuple[list[dict[str, Any]], str | None]:
        """A page of rows or of records, newest first, and the cursor of the next page."""
        wanted = Query.read(query)
        found = list(self._requests(wanted) if wanted.lists_requests else self._of_kind(wanted))
        page = found[: wanted.limit]
        return [item for _, item in page], str(page[-1][0]) if len(found) > wanted.limit else None

    def _requests(self, query: Query) -> Iterator[tuple[int, dict[str, Any]]]:
        owner = {digest: request for _, digest, _, request in self._listed}
        for row, number, first, _ in reversed(self._rows.values()):
            if _matches(row, query) and _within(row.time, number, query):
                if query.digest and owner.get(query.digest) != row.request_id:
                    continue
                yield number, assemble(row, first, self._records.get, self._linked(row.request_id))

    def _of_kind(self, query: Query) -> Iterator[tuple[int, dict[str, Any]]]:
        for number in range(len(self._listed), 0, -1):
            kind, digest, entry, request = self._listed[number - 1]
            if kind != query.kind or not _within(self._times[entry], number, query):
                continue
            if (query.project or query.effect or query.state) and not (
                request and _matches(self._rows[request][0], query)
            ):
                continue
            if not query.digest or digest == query.digest:
                yield number, orjson.loads(self._records[digest])

    def _linked(self, request_id: str) -> Iterator[Linked]:
        for kind, digest, _, request in self._listed:
            if request == request_id and kind in {"observation", "event"}:
                yield Linked(kind, digest, self._records[digest])

    async def record(self, digest: str) -> bytes | None:
        """The canonical bytes of one record."""
        return self._records.get(digest)

    async def health(self) -> str:
        """Empty while the store is open."""
        return "" if self._open else "the evidence store is closed"

    def view(self) -> MemoryView:
        """The log as `gateway.evidence.verify.verify_log` reads it."""
        return MemoryView(
            list(self._log),
            dict(self._records),
            {name: (row, latest) for name, (row, _, _, latest) in self._rows.items()},
            [self._note],
        )

    @property
    def published(self) -> bytes:
        """The last checkpoint."""
        return self._note


def _matches(row: RequestRow, query: Query) -> bool:
    wanted = (query.project, query.effect, query.state)
    have = (row.project, row.effect, row.receipt_state)
    return all(not want or want == has for want, has in zip(wanted, have, strict=True))


def _within(time: str, number: int, query: Query) -> bool:
    """Whether an instant and a number lie in what is asked for."""
    late_enough = not query.since or time >= query.since
    early_enough = not query.until or time <= query.until
    return late_enough and early_enough and (not query.after or number < query.after)


class MemoryView:
    """A LogView over plain containers; tests damage it."""

    def __init__(
        self,
        log: list[StoredEntry],
        records: dict[str, bytes],
        rows: dict[str, tuple[RequestRow, int]],
        notes: list[bytes],
    ) -> None:
        self.log, self.records, self.rows, self.notes = log, records, rows, notes

    def entries(self) -> Iterator[StoredEntry]:
        """See LogView."""
        return iter(self.log)

    def record(self, digest: str) -> bytes | None:
        """See LogView."""
        return self.records.get(digest)

    def request(self, request_id: str) -> tuple[RequestRow, int] | None:
        """See LogView."""
        return self.rows.get(request_id)

    def checkpoints(self) -> Iterable[bytes]:
        """See LogView."""
        return self.notes

    def handovers(self) -> Sequence[bytes]:
        """See LogView."""
        return [data for data in self.records.values() if b"key-handover+json" in data]

    def node(self, level: int, index: int) -> bytes | None:
        """See LogView; none is stored."""
        return None


class MemoryVault:
    """VaultStore in memory."""

    def __init__(self) -> None:
        self._entries: list[SealedValue] = []

    async def keep(self, values: Sequence[SealedValue]) -> None:
        """Keep entries; what was issued first stays."""
        for value in values:
            known = (e for e in self._entries if e.project == value.project)
            if not any(e.mac == value.mac or e.token == value.token for e in known):
                self._entries.append(value)

    async def by_mac(self, project: str, macs: Sequence[bytes]) -> dict[bytes, SealedValue]:
        """The entries of known values."""
        return {e.mac: e for e in self._entries if e.project == project and e.mac in macs}

    async def by_token(self, project: str, tokens: Sequence[str]) -> dict[str, SealedValue]:
        """The entries of known placeholders."""
        return {e.token: e for e in self._entries if e.project == project and e.token in tokens}

    async def since(self, project: str, mark: str, limit: int) -> tuple[str, list[SealedValue]]:
        """The entries issued since a mark; without one the last."""
        own = [e for e in self._entries if e.project == project]
        start = int(mark) if mark.isdigit() else max(len(own) - limit, 0)
        return str(len(own)), own[start:]


class MemoryConversations:
    """ConversationStore in memory."""

    def __init__(self) -> None:
        self._states: dict[tuple[str, bytes], bytes] = {}

    async def load(self, project: str, anchor: bytes) -> Mapping[str, Any] | None:
        """The state kept under an anchor."""
        found = self._states.get((project, anchor))
        if found is None:
            return None
        state: Mapping[str, Any] = orjson.loads(found)
        return state

    async def find(self, project: str, anchors: Sequence[bytes]) -> tuple[bytes, Mapping[str, Any]] | None:
        """The first anchor with a state."""
        for anchor in anchors:
            state = await self.load(project, anchor)
            if state is not None:
                return anchor, state
        return None

    async def save(self, project: str, anchor: bytes, state: Mapping[str, Any]) -> None:
        """Keep the state."""
        self._states[project, anchor] = pack(state)

    async def note(self, project: str, anchor: bytes, state: Mapping[str, Any]) -> None:
        """Keep the state."""
        await self.save(project, anchor, state)
