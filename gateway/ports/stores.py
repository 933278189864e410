"""Where evidence, sealed values and conversations lie. See gateway.ports."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol, override


@dataclass(frozen=True, slots=True)
class Record:
    """One evidence record in canonical bytes. `parts` joined are the record; parts are stored once by digest."""

    # receipt | evaluation | decisions | admission | observation | lineage | boundary_event | event | key_handover |
    # retention
    kind: str
    digest: str  # sha256:... of the joined parts
    parts: tuple[bytes, ...]

    @override
    def __repr__(self) -> str:
        return f"Record({self.kind}, {self.digest})"


@dataclass(frozen=True, slots=True)
class RequestRow:
    """The index row of one request, by which evidence is listed; holds no content."""

    request_id: str
    receipt: str
    time: str
    project: str
    effect: str  # forwarded | rewritten | refused | held
    receipt_state: str
    evaluation: str
    admission: str | None = None
    lineage: str | None = None
    provider: str = ""


@dataclass(frozen=True, slots=True)
class SealedValue:
    """One vault entry: a value encrypted under its project's key; `token` is its placeholder."""

    project: str
    token: str
    label: str  # the category of the finding
    mac: bytes  # HMAC of the value under a project key: finds the entry again without the value
    sealed: bytes


class EvidenceStore(Protocol):
    """Durable evidence. One writer a machine; an append has happened on disk when it returns."""

    async def append(self, records: Sequence[Record], row: RequestRow | None = None) -> None:
        """All records in one transaction, or EvidenceError and none. `row` is inserted or replaced by request_id."""
        ...

    async def rows(self, query: Mapping[str, Any]) -> tuple[list[dict[str, Any]], str | None]:
        """Index rows newest first with their records read back, and the cursor of the next page.

        Keys: limit, after, since, until, project, effect, state, digest, kind.
        """
        ...

    async def record(self, digest: str) -> bytes | None:
        """The canonical bytes of one record."""
        ...

    async def health(self) -> str:
        """Empty when evidence can be written now, else the reason."""
        ...


class VaultStore(Protocol):
    """Sealed values, found by token or by keyed digest; values themselves exist in memory only."""

    async def keep(self, values: Sequence[SealedValue]) -> None:
        """Durable when it returns; an entry that exists is kept as it was issued first."""
        ...

    async def by_mac(self, project: str, macs: Sequence[bytes]) -> dict[bytes, SealedValue]:
        """The entries of known values."""
        ...

    async def by_token(self, project: str, tokens: Sequence[str]) -> dict[str, SealedValue]:
        """The entries of known placeholders."""
        ...

    async def since(self, project: str, mark: str, limit: int) -> tuple[str, list[SealedValue]]:
        """A new mark, and the entries of a project that were issued since `mark`, oldest first.

        Without a mark, or with one that says nothing any more, the last `limit` entries: some may be known already.
        """
        ...


class ConversationStore(Protocol):
    """What a conversation has already sent: which objects, with which edits, and which values it has masked."""

    async def load(self, project: str, anchor: bytes) -> Mapping[str, Any] | None:
        """The state kept under a conversation's anchor (the digest of its first blocks), or None."""
        ...

    async def find(self, project: str, anchors: Sequence[bytes]) -> tuple[bytes, Mapping[str, Any]] | None:
        """The first of these anchors under which a state is kept or noted, and that state."""
        ...

    async def save(self, project: str, anchor: bytes, state: Mapping[str, Any]) -> None:
        """Keep the state; durable when it returns."""
        ...

    async def note(self, project: str, anchor: bytes, state: Mapping[str, Any]) -> None:
        """Remember the state for as long as the store is open, within bounds; what was kept there is gone."""
        ...


@dataclass(frozen=True, slots=True)
class Kept:
    """One value to keep behind its placeholder; the value is sealed before it is written anywhere."""

    token: str
    category: str  # of its finding: secret | pii | custom
    mac: bytes = field(repr=False)
    value: str = field(repr=False)


class ValueVault(Protocol):
    """The values of one installation's projects, by placeholder. Values are in the clear only in memory and briefly."""

    async def keep(self, project: str, values: Sequence[Kept]) -> None:
        """Sealed and durable when it returns; EvidenceError where that is not possible."""
        ...

    async def issued(self, project: str, macs: Sequence[bytes]) -> Mapping[bytes, str]:
        """The placeholders of values that have one."""
        ...

    async def masked(self, project: str) -> tuple[int, Sequence[tuple[str, str, str]]]:
        """How many values the project has masked; the latest, oldest first: (placeholder, value, category)."""
        ...

    def kept(self, project: str) -> Callable[[str], bool]:
        """Whether a placeholder's value is known to be durable."""
        ...

    async def openers(self, project: str, tokens: Sequence[str]) -> Mapping[str, Callable[[], str | None]]:
        """For each placeholder that is kept, a function that opens its value when it is needed."""
        ...
