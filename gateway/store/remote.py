"""The stores of a process that does not own them: everything is asked of the evidence writer, through its socket.

The same ports as over SQLite, and the same contract suites. Whatever goes wrong between the two processes (nobody
listens, the line breaks, no answer, a frame over its bounds) is an EvidenceError, and the request is refused; the link
heals by itself. Evidence is read from the database itself, which any number of readers may do while the writer goes on,
so that listings cost the writer nothing.
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

import orjson

from gateway import __version__
from gateway.errors import EvidenceError
from gateway.ipc import Line, Link, LostError, Message, NoJsonError, RefusedError
from gateway.ports import Hold, Record, RequestRow, SealedValue
from gateway.store import packing
from gateway.store.conversations import pack
from gateway.store.held import HeldRow, Vote, held_row
from gateway.store.reader import SqliteReader
from gateway.store.rows import Query

HEALTH_S: Final = 6.0
_READ_STATES: Final = 2048


class WriterLink:
    """The link of one process to the evidence writer, for all of its stores. `life` names this process."""

    def __init__(self, path: Path, life: str, *, bound: int, stall_s: float = 5.0) -> None:
        """`open` connects."""
        self.life = life
        self.open_requests: dict[str, None] = {}  # admitted here, and not concluded
        self.decided: Callable[[], None] = lambda: None  # called when people decided, or may have
        self._link = Link(path, self._greet, {"held.decided": self._told}, bound=bound, stall_s=stall_s)

    def open(self) -> None:
        """Begin to connect, and keep connected."""
        self._link.open()

    async def ready(self, timeout_s: float) -> bool:
        """Whether the writer can be asked within so many seconds."""
        return await self._link.ready(timeout_s)

    @property
    def up(self) -> bool:
        """Whether the writer can be asked now."""
        return self._link.up

    async def _greet(self, line: Line) -> None:
        await line.call("hello", __version__, self.life, list(self.open_requests))
        self.decided()

    async def _told(self, _message: Message) -> tuple[Sequence[Any], Sequence[bytes]]:
        self.decided()
        return (), ()

    async def ask(self, code: str, word: str, *args: Any, blobs: Sequence[bytes] = ()) -> Message:
        """The writer's answer; EvidenceError with the writer's own code, or with `code` where there is no answer."""
        with _told(code):
            return await self._link.call(word, *args, blobs=blobs)

    def tell(self, code: str, word: str, *args: Any, blobs: Sequence[bytes] = ()) -> None:
        """Tell the writer something that is not answered, and that it knows before the next question."""
        with _told(code):
            self._link.tell(word, *args, blobs=blobs)

    async def close(self) -> None:
        """End the link."""
        await self._link.close()


@contextmanager
def _told(code: str) -> Iterator[None]:
    """Whatever went wrong between two processes, as an error of a port."""
    try:
        yield
    except RefusedError as error:
        raise EvidenceError(error.code, str(error), hint=error.hint) from None
    except LostError as error:
        raise EvidenceError(code, f"the evidence writer does not answer: {error}") from None
    except NoJsonError:
        raise EvidenceError("evidence.row", "something to be stored is not text that can be kept") from None
    except ValueError as error:
        raise EvidenceError(code, f"the evidence writer cannot be asked: {error}") from None


class RemoteEvidence:
    """EvidenceStore: appends go to the writer, reading is done here."""

    def __init__(self, link: WriterLink, database: Path) -> None:
        """`database` is opened for reading when it is first read."""
        self._link = link
        self._database = database
        self._reader: SqliteReader | None = None
        self._readers = ThreadPoolExecutor(1, thread_name_prefix="evidence-reader")
        self._closed = False

    async def append(self, records: Sequence[Record], row: RequestRow | None = None) -> None:
        """See EvidenceStore. What was not answered may be in the log all the same: it is closed there as not sent."""
        if self._closed:
            raise EvidenceError("evidence.unavailable", "the evidence store is closed")
        args, blobs = packing.records_to(records, row)
        if row is not None and row.lineage:
            self._link.open_requests.pop(
                row.request_id, None
            )  # concluded now, whether or not that can be stored
        await self._link.ask("evidence.unavailable", "append", *args, blobs=blobs)
        if row is not None and row.admission and not row.lineage:
            self._link.open_requests[row.request_id] = None

    async def rows(self, query: Mapping[str, Any]) -> tuple[list[dict[str, Any]], str | None]:
        """See EvidenceStore."""
        wanted = Query.read(query)
        return await self._read(lambda reader: reader.rows(wanted))

    async def record(self, digest: str) -> bytes | None:
        """See EvidenceStore."""
        return await self._read(lambda reader: reader.record(digest))

    async def health(self) -> str:
        """See EvidenceStore."""
        if self._closed:
            return "the evidence store is closed"
        if not self._link.up:
            return "the evidence writer does not answer"
        try:
            async with asyncio.timeout(HEALTH_S):
                said = await self._link.ask("evidence.unavailable", "health")
        except TimeoutError:
            return "the evidence writer does not answer"
        except EvidenceError as error:
            return str(error)
        return str(said.args[0])

    async def _read[T](self, look: Callable[[SqliteReader], T]) -> T:
        if self._closed:
            raise EvidenceError("evidence.unavailable", "the evidence store is closed")
        return await asyncio.get_running_loop().run_in_executor(self._readers, self._look, look)

    def _look[T](self, look: Callable[[SqliteReader], T]) -> T:
        if self._reader is None:
            self._reader = SqliteReader(self._database)
        return look(self._reader)

    async def close(self) -> None:
        """Refuse everything from now on."""
        self._closed = True
        self._readers.shutdown(wait=True)
        if self._reader is not None:
            self._reader.close()


class RemoteVault:
    """VaultStore."""

    def __init__(self, link: WriterLink) -> None:
        self._link = link

    async def keep(self, values: Sequence[SealedValue]) -> None:
        """See VaultStore."""
        heads, blobs = packing.values_to(values)
        await self._ask("vault.keep", *heads, blobs=blobs)

    async def by_mac(self, project: str, macs: Sequence[bytes]) -> dict[bytes, SealedValue]:
        """See VaultStore."""
        if not macs:
            return {}
        said = await self._ask("vault.by_mac", project, blobs=macs)
        return {entry.mac: entry for entry in packing.values_from(said.args, said.blobs)}

    async def by_token(self, project: str, tokens: Sequence[str]) -> dict[str, SealedValue]:
        """See VaultStore."""
        said = await self._ask("vault.by_token", project, list(tokens))
        return {entry.token: entry for entry in packing.values_from(said.args, said.blobs)}

    async def since(self, project: str, mark: str, limit: int) -> tuple[str, list[SealedValue]]:
        """See VaultStore."""
        said = await self._ask("vault.since", project, mark, limit)
        now, heads = said.args
        return str(now), packing.values_from(heads, said.blobs)

    async def _ask(self, word: str, *args: Any, blobs: Sequence[bytes] = ()) -> Message:
        return await self._link.ask("vault.unavailable", word, *args, blobs=blobs)


class RemoteConversations:
    """ConversationStore. States that were read are remembered, so that a conversation's is parsed when it changed."""

    def __init__(self, link: WriterLink) -> None:
        self._link = link
        self._read: OrderedDict[tuple[str, bytes], tuple[bytes, Mapping[str, Any]]] = OrderedDict()

    async def load(self, project: str, anchor: bytes) -> Mapping[str, Any] | None:
        """See ConversationStore."""
        found = await self.find(project, (anchor,))
        return None if found is None else found[1]

    async def find(self, project: str, anchors: Sequence[bytes]) -> tuple[bytes, Mapping[str, Any]] | None:
        """See ConversationStore; an unchanged state is the same object as before."""
        if not anchors:
            return None
        said = await self._link.ask("conversations.unavailable", "talk.find", project, blobs=anchors)
        if not said.args:
            return None
        anchor, data = anchors[said.args[0]], said.blobs[0]
        known = self._read.get((project, anchor))
        if known is None or known[0] != data:
            known = self._remember(project, anchor, data, orjson.loads(data))
        return anchor, known[1]

    def _remember(
        self, project: str, anchor: bytes, data: bytes, state: Mapping[str, Any]
    ) -> tuple[bytes, Mapping[str, Any]]:
        known = self._read[project, anchor] = (data, state)
        if len(self._read) > _READ_STATES:
            self._read.popitem(last=False)
        return known

    async def save(self, project: str, anchor: bytes, state: Mapping[str, Any]) -> None:
        """See ConversationStore."""
        data = pack(state)
        await self._link.ask("conversations.unavailable", "talk.save", project, blobs=(anchor, data))
        self._remember(project, anchor, data, state)

    async def note(self, project: str, anchor: bytes, state: Mapping[str, Any]) -> None:
        """See ConversationStore: remembered for as long as the writer runs. Nothing is waited for."""
        data = pack(state)
        self._link.tell("conversations.unavailable", "talk.note", project, blobs=(anchor, data))
        self._remember(project, anchor, data, state)


class RemoteHeld:
    """What `HeldObjects` does, through the writer."""

    def __init__(self, link: WriterLink) -> None:
        self._link = link

    async def put(self, holds: Sequence[tuple[Hold, bytes]]) -> None:
        """See HeldObjects."""
        rows = [held_row(hold, sealed) for hold, sealed in holds]
        await self._ask("held.put", *(row[:4] for row in rows), blobs=[b for row in rows for b in row[4:]])

    async def reopen(self, hold: str) -> None:
        """See HeldObjects."""
        await self._ask("held.reopen", hold)

    async def vote(self, hold: str, vote: Vote, state: str) -> None:
        """See HeldObjects."""
        await self._ask("held.vote", hold, vote.reviewer, state, blobs=(vote.statement, vote.signature))

    async def find(self, holds: Sequence[str]) -> list[HeldRow]:
        """See HeldObjects."""
        return self._rows(await self._ask("held.find", *holds)) if holds else []

    async def search(self, kind: str, prefix: str, limit: int) -> list[HeldRow]:
        """See HeldObjects."""
        return self._rows(await self._ask("held.search", kind, prefix, limit))

    async def page(
        self, kind: str, *, before: int | None, project: str, state: str, limit: int
    ) -> list[HeldRow]:
        """See HeldObjects."""
        return self._rows(await self._ask("held.page", kind, before, project, state, limit))

    @staticmethod
    def _rows(said: Message) -> list[HeldRow]:
        return packing.held_from(said.args, said.blobs)

    async def _ask(self, word: str, *args: Any, blobs: Sequence[bytes] = ()) -> Message:
        return await self._link.ask("held.unavailable", word, *args, blobs=blobs)

    async def close(self) -> None:
        """Nothing of its own is open."""
