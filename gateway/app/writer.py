"""The process that writes the evidence of a gateway with several workers. It serves no traffic and no port."""

from __future__ import annotations

import asyncio
from contextlib import AsyncExitStack, suppress
from typing import Final

from gateway.app import upkeep
from gateway.app.anchoring import keep_anchoring, told_by
from gateway.app.clock import SystemClock
from gateway.app.processes import Orders, Parent
from gateway.app.signing import keyring
from gateway.app.stores import frame_bound
from gateway.ipc import Message
from gateway.store.conversations import SqliteConversations
from gateway.store.held import HeldObjects
from gateway.store.service import SOCKET, Answer, EvidenceService, Served
from gateway.store.sqlite import SqliteStore
from gateway.store.vault import SqliteVault
from gateway.telemetry.log import Log
from gateway.workers import spawn

ORPHANED_S: Final = 30.0
"""So long a writer without a parent waits for the workers, which finish what is in flight."""


async def work(orders: Orders, parent: Parent) -> None:
    """Serve the stores until told to stop, or until nobody is left who needs them."""
    settings, log = orders.settings, Log()
    log.capture()
    asyncio.get_running_loop().set_exception_handler(log.loop_handler)

    def fault(error: Exception) -> None:
        log.event("fault", level="error", error_type=type(error).__name__, task="evidence writer")

    async with AsyncExitStack() as stack:
        keys = keyring(settings, create=False)
        evidence = SqliteStore(settings.state.database, keys.signing_key(), SystemClock())
        evidence.open(close_open=not orders.expected)
        stack.push_async_callback(evidence.close)
        folder = settings.state.dir / "vault"
        vault, held = SqliteVault(folder / "vault.db"), HeldObjects(folder / "held.db")
        conversations = SqliteConversations(folder / "conversations.db")
        for each in (vault, held, conversations):
            stack.push_async_callback(each.close)
        served = Served(evidence, evidence.settle, vault, conversations, held)
        left, expected = set(evidence.left_open), set(orders.expected)
        service = EvidenceService(served, frame_bound(settings), fault, left, expected)
        await service.open(settings.state.dir / SOCKET)
        stack.push_async_callback(service.close)
        retaining = upkeep.retain(settings, evidence, vault, fault)
        stack.callback(spawn(retaining, name="retention").cancel)
        stack.callback(spawn(keep_anchoring(settings, told_by(log)), name="anchors").cancel)

        async def gone(message: Message) -> Answer:
            service.gone(str(message.args[0]))
            return (), ()

        async def ping(_message: Message) -> Answer:
            return (), ()

        parent.serve({"gone": gone, "ping": ping})
        parent.ready()
        await parent.stopped.wait()
        if parent.gone:
            with suppress(TimeoutError):
                async with asyncio.timeout(ORPHANED_S):
                    await service.unused()
