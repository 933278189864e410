"""Where a process keeps what it must not forget: in stores of its own, or with the evidence writer of the machine."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from typing import Final

from gateway.app.clock import SystemClock
from gateway.config import Config
from gateway.errors import SetupError
from gateway.ports import EvidenceStore
from gateway.store.conversations import SqliteConversations
from gateway.store.held import HeldObjects
from gateway.store.keys import Keyring
from gateway.store.remote import RemoteConversations, RemoteEvidence, RemoteHeld, RemoteVault, WriterLink
from gateway.store.service import SOCKET
from gateway.store.sqlite import SqliteStore
from gateway.store.vault import SqliteVault

READY_S: Final = 10.0


@dataclass(frozen=True, slots=True)
class Own:
    """Stores that this process alone writes to."""

    evidence: SqliteStore
    vault: SqliteVault


@dataclass(frozen=True, slots=True)
class Stores:
    """What the use case is joined with. `own` is None where another process owns them and `link` leads there."""

    evidence: EvidenceStore
    vault: SqliteVault | RemoteVault
    conversations: SqliteConversations | RemoteConversations
    held: HeldObjects | RemoteHeld
    own: Own | None = None
    link: WriterLink | None = None

    @property
    def shared(self) -> bool:
        """Whether other processes carry traffic of the same projects and conversations."""
        return self.link is not None


type Opening = Callable[[Config, Keyring], AbstractAsyncContextManager[Stores]]


@asynccontextmanager
async def own_stores(settings: Config, keys: Keyring) -> AsyncIterator[Stores]:
    """The stores of a gateway that is one process."""
    folder = settings.state.dir
    async with AsyncExitStack() as stack:
        evidence = SqliteStore(settings.state.database, keys.signing_key(), SystemClock()).open()
        stack.push_async_callback(evidence.close)
        vault = SqliteVault(folder / "vault" / "vault.db")
        stack.push_async_callback(vault.close)
        conversations = SqliteConversations(folder / "vault" / "conversations.db")
        stack.push_async_callback(conversations.close)
        held = HeldObjects(folder / "vault" / "held.db")
        stack.push_async_callback(held.close)
        yield Stores(evidence, vault, conversations, held, Own(evidence, vault))


def shared_stores(life: str) -> Opening:
    """The stores as a process has them that is one of several; `life` names it to the evidence writer."""

    @asynccontextmanager
    async def opening(settings: Config, _keys: Keyring) -> AsyncIterator[Stores]:
        link = WriterLink(settings.state.dir / SOCKET, life, bound=frame_bound(settings))
        async with AsyncExitStack() as stack:
            link.open()
            stack.push_async_callback(link.close)
            if not await link.ready(READY_S):
                raise SetupError("evidence.unavailable", "the evidence writer does not answer")
            evidence = RemoteEvidence(link, settings.state.database)
            stack.push_async_callback(evidence.close)
            yield Stores(evidence, RemoteVault(link), RemoteConversations(link), RemoteHeld(link), link=link)

    return opening


def frame_bound(settings: Config) -> int:
    """The largest frame between a worker and the writer: a held object of the largest body, and evidence around it."""
    return (16 << 20) + 2 * settings.limits.max_body_bytes
