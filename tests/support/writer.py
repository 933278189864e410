"""An evidence writer in this process, with links to it: what the adapters of a worker are tested against."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path

from gateway.store.conversations import SqliteConversations
from gateway.store.held import HeldObjects
from gateway.store.remote import RemoteConversations, RemoteEvidence, RemoteHeld, RemoteVault, WriterLink
from gateway.store.service import SOCKET, EvidenceService, Served
from gateway.store.sqlite import SqliteStore
from gateway.store.vault import SqliteVault
from tests.support.evidence import TestClock, signer

BOUND = 16 << 20


@dataclass
class Worker:
    """The stores as one worker has them."""

    link: WriterLink
    evidence: RemoteEvidence
    vault: RemoteVault
    conversations: RemoteConversations
    held: RemoteHeld

    async def close(self) -> None:
        await self.evidence.close()
        await self.link.close()


@dataclass
class Writer:
    """The writer of a folder, and the workers that were linked to it."""

    folder: Path
    service: EvidenceService
    store: SqliteStore
    faults: list[Exception] = field(default_factory=list)
    workers: list[Worker] = field(default_factory=list)

    async def worker(self, life: str = "one", *, stall_s: float = 5.0) -> Worker:
        """One more process that is linked."""
        link = WriterLink(self.folder / SOCKET, life, bound=BOUND, stall_s=stall_s)
        link.open()
        assert await link.ready(5)
        made = Worker(
            link,
            RemoteEvidence(link, self.folder / "egress.db"),
            RemoteVault(link),
            RemoteConversations(link),
            RemoteHeld(link),
        )
        self.workers.append(made)
        return made


@asynccontextmanager
async def writing(folder: Path, *, expected: tuple[str, ...] = ()) -> AsyncIterator[Writer]:
    """Serve the stores of a folder, as the process of the evidence writer does."""
    store = SqliteStore(folder / "egress.db", signer(), TestClock()).open(close_open=False)
    vault = SqliteVault(folder / "vault" / "vault.db")
    conversations = SqliteConversations(folder / "vault" / "conversations.db")
    held = HeldObjects(folder / "vault" / "held.db")
    faults: list[Exception] = []
    served = Served(store, store.settle, vault, conversations, held)
    service = EvidenceService(served, BOUND, faults.append, set(store.left_open), set(expected))
    await service.open(folder / SOCKET)
    writer = Writer(folder, service, store, faults)
    try:
        yield writer
    finally:
        for worker in writer.workers:
            await worker.close()
        await service.close()
        for each in (held, conversations, vault, store):
            await each.close()
