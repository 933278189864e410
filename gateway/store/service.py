"""The evidence writer: the stores of a machine, served to the processes that carry its traffic.

One of these runs on a state folder. Appends of all its clients meet in the same queue and share transactions and syncs
(group commit); each is answered after the sync. A client is known by the name of its life (`hello`), says which of its
requests are open whenever it connects, and is reported when it is gone: what it left open is then closed as what was
provable, and never before.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Awaitable, Callable, Collection, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, Final, override

from gateway import __version__
from gateway.errors import EvidenceError, GatewayError
from gateway.ipc import Handler, Line, LostError, Message, listen, peer_uid
from gateway.ports import EvidenceStore, VaultStore
from gateway.store import packing
from gateway.store.conversations import SqliteConversations
from gateway.store.held import HeldObjects, Vote

SOCKET: Final = "writer.sock"

type Answer = tuple[Sequence[Any], Sequence[bytes]]
_NOTHING: Final[Answer] = ((), ())


@dataclass(slots=True)
class Served:
    """The stores behind the socket. `settle` closes those of these requests that are open."""

    evidence: EvidenceStore
    settle: Callable[[Collection[str]], Awaitable[None]]
    vault: VaultStore
    conversations: SqliteConversations
    held: HeldObjects


@dataclass(slots=True, eq=False)
class _Client:
    """One connection; `life` is empty before its hello."""

    line: Line
    life: str = ""


@dataclass(slots=True)
class EvidenceService:
    """Serves until `close`. `left_open` are requests that nobody may conclude any more, once `expected` said hello.

    `fault` is told when open requests could not be closed; that is tried again with the next event.
    """

    stores: Served
    bound: int
    fault: Callable[[Exception], None]
    left_open: set[str] = field(default_factory=set)
    expected: set[str] = field(default_factory=set)
    _clients: set[_Client] = field(default_factory=set)
    _open: dict[str, str] = field(default_factory=dict)  # request to the life that will conclude it
    _settling: set[asyncio.Future[None]] = field(default_factory=set)
    _unused: asyncio.Event = field(default_factory=asyncio.Event)
    _server: asyncio.Server | None = None
    _path: Path | None = None

    # -- life --------------------------------------------------------------------------------------------------------

    async def open(self, path: Path) -> None:
        """Listen at `path`; SetupError where that is not possible."""
        self._settle_rest()
        self._path = path
        loop = asyncio.get_running_loop()
        self._server = await loop.create_unix_server(self._accepted, sock=listen(path))

    def _accepted(self) -> Line:
        line = _GuardedLine(bound=self.bound)
        client = _Client(line)
        for word, handler in self._words(client).items():
            line.handle(word, handler)
        line.admitted, line.ended = partial(self._came, client), partial(self._went, client)
        return line

    def _came(self, client: _Client) -> None:
        self._clients.add(client)
        self._unused.clear()

    def _went(self, client: _Client) -> None:
        self._clients.discard(client)
        if not self._clients:
            self._unused.set()

    async def unused(self) -> None:
        """Return once nobody is connected."""
        if self._clients:
            await self._unused.wait()

    @property
    def clients(self) -> int:
        """How many connections there are."""
        return len(self._clients)

    async def close(self) -> None:
        """Take no new connections, answer what was asked, and end; the stores stay open."""
        if self._server is not None:
            self._server.close()
        if self._path is not None:
            self._path.unlink(missing_ok=True)
        for client in list(self._clients):
            await client.line.settled()
            client.line.close()
        if self._settling:
            await asyncio.wait(self._settling)

    # -- who is there -------------------------------------------------------------------------------------------------

    async def _hello(self, client: _Client, message: Message) -> Answer:
        version, life, claimed = message.args
        if version != __version__:
            raise EvidenceError("evidence.version", "the evidence writer is of another version")
        claims = {str(request) for request in claimed}
        client.life = str(life)
        dropped = {request for request, owner in self._open.items() if owner == life} - claims
        self._open.update(dict.fromkeys(claims, client.life))
        self.left_open -= claims
        self.expected.discard(client.life)
        self._settle(dropped)
        self._settle_rest()
        return (os.getpid(),), ()

    def gone(self, life: str) -> None:
        """A process has ended: nobody concludes what it had open."""
        self.expected.discard(life)
        self._settle({request for request, owner in self._open.items() if owner == life})
        self._settle_rest()

    def _settle_rest(self) -> None:
        """Close what was open when this process began, once everybody who could claim it has spoken."""
        if not self.expected and self.left_open:
            rest, self.left_open = self.left_open, set()
            self._settle(rest)

    def _settle(self, requests: set[str]) -> None:
        if not requests:
            return
        for request in requests:
            self._open.pop(request, None)
        work = asyncio.ensure_future(self._settled(requests))
        self._settling.add(work)
        work.add_done_callback(self._settling.discard)

    async def _settled(self, requests: set[str]) -> None:
        try:
            await self.stores.settle(requests)
        except GatewayError as error:
            self.fault(error)
            self.left_open |= requests

    # -- what is asked ------------------------------------------------------------------------------------------------

    def _words(self, client: _Client) -> dict[str, Handler]:
        stores = self.stores
        words: dict[str, Handler] = {
            "append": partial(self._append, client),
            "health": self._health,
            "vault.keep": partial(_vault_keep, stores.vault),
            "vault.by_mac": partial(_vault_by_mac, stores.vault),
            "vault.by_token": partial(_vault_by_token, stores.vault),
            "vault.since": partial(_vault_since, stores.vault),
            "talk.find": partial(_talk_find, stores.conversations),
            "talk.save": partial(_talk_save, stores.conversations),
            "talk.note": partial(_talk_note, stores.conversations),
            "held.put": partial(_held_put, stores.held),
            "held.reopen": partial(_held_reopen, stores.held),
            "held.vote": self._held_vote,
            "held.find": partial(_held_find, stores.held),
            "held.search": partial(_held_search, stores.held),
            "held.page": partial(_held_page, stores.held),
        }
        return {
            "hello": partial(self._hello, client),
            **{word: partial(_after_hello, client, handler) for word, handler in words.items()},
        }

    async def _append(self, client: _Client, message: Message) -> Answer:
        records, row = packing.records_from(message.args, message.blobs)
        await self.stores.evidence.append(records, row)
        if row is not None and (row.lineage or not row.admission):
            self._open.pop(row.request_id, None)
        elif row is not None and client in self._clients:
            self._open[row.request_id] = client.life
        elif row is not None and row.request_id not in self._open:
            self._settle({row.request_id})  # who admitted it gave up waiting, so it is not sent either
        return _NOTHING

    async def _health(self, _message: Message) -> Answer:
        self._settle_rest()
        return (await self.stores.evidence.health(),), ()

    async def _held_vote(self, message: Message) -> Answer:
        hold, reviewer, state = message.args
        await self.stores.held.vote(hold, Vote(reviewer, *message.blobs), state)
        for client in list(self._clients):
            with suppress(LostError):
                client.line.tell("held.decided")
        return _NOTHING


class _GuardedLine(Line):
    """A line that only a process of the same user may have."""

    admitted: Callable[[], None]
    ended: Callable[[], None]

    @override
    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Cut it where the kernel names another user."""
        super().connection_made(transport)
        if peer_uid(transport.get_extra_info("socket")) not in {None, os.geteuid()}:
            self.abort()
            return
        self.admitted()

    @override
    def connection_lost(self, exc: Exception | None) -> None:
        """Count it out before anything else learns of it."""
        self.ended()
        super().connection_lost(exc)


async def _after_hello(client: _Client, handler: Handler, message: Message) -> Answer:
    if not client.life:
        raise EvidenceError("evidence.hello", "say who you are first")
    return await handler(message)


async def _vault_keep(vault: VaultStore, message: Message) -> Answer:
    await vault.keep(packing.values_from(message.args, message.blobs))
    return _NOTHING


async def _vault_by_mac(vault: VaultStore, message: Message) -> Answer:
    (project,) = message.args
    return packing.values_to(list((await vault.by_mac(project, message.blobs)).values()))


async def _vault_by_token(vault: VaultStore, message: Message) -> Answer:
    project, tokens = message.args
    return packing.values_to(list((await vault.by_token(project, tokens)).values()))


async def _vault_since(vault: VaultStore, message: Message) -> Answer:
    project, mark, limit = message.args
    now, values = await vault.since(project, mark, limit)
    heads, blobs = packing.values_to(values)
    return (now, heads), blobs


async def _talk_find(conversations: SqliteConversations, message: Message) -> Answer:
    (project,) = message.args
    found = await conversations.find_packed(project, message.blobs)
    return ((), ()) if found is None else ((found[0],), (found[1],))


async def _talk_save(conversations: SqliteConversations, message: Message) -> Answer:
    (project,) = message.args
    await conversations.save_packed(project, *message.blobs)
    return _NOTHING


async def _talk_note(conversations: SqliteConversations, message: Message) -> Answer:
    """Known before anything that the same client asks later: handlers begin in the order of their messages."""
    (project,) = message.args
    conversations.note_packed(project, *message.blobs)
    return _NOTHING


async def _held_put(held: HeldObjects, message: Message) -> Answer:
    pairs = zip(message.blobs[::2], message.blobs[1::2], strict=True)
    await held.put_rows(
        [(*head, facts, sealed) for head, (facts, sealed) in zip(message.args, pairs, strict=True)]
    )
    return _NOTHING


async def _held_reopen(held: HeldObjects, message: Message) -> Answer:
    await held.reopen(*message.args)
    return _NOTHING


async def _held_find(held: HeldObjects, message: Message) -> Answer:
    return packing.held_to(await held.find([str(name) for name in message.args]))


async def _held_search(held: HeldObjects, message: Message) -> Answer:
    kind, prefix, limit = message.args
    return packing.held_to(await held.search(kind, prefix, limit))


async def _held_page(held: HeldObjects, message: Message) -> Answer:
    kind, before, project, state, limit = message.args
    return packing.held_to(await held.page(kind, before=before, project=project, state=state, limit=limit))
