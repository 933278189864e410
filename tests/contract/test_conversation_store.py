"""What every ConversationStore must do, over memory, SQLite and the evidence writer."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from gateway.errors import EvidenceError
from gateway.ports import ConversationStore
from gateway.store.conversations import MAX_STATE_BYTES, SqliteConversations
from gateway.store.memory import MemoryConversations
from tests.support.writer import writing


@pytest.fixture(params=["memory", "sqlite", "writer"])
async def store(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[ConversationStore]:
    if request.param == "memory":
        yield MemoryConversations()
        return
    if request.param == "writer":
        async with writing(tmp_path) as writer:
            yield (await writer.worker()).conversations
        return
    made = SqliteConversations(tmp_path / "vault" / "conversations.db")
    yield made
    await made.close()


async def test_a_state_is_kept_by_project_and_anchor(store: ConversationStore) -> None:
    await store.save("p", b"anchor", {"edits": {"a": [[1, "x", None]]}})
    assert await store.load("p", b"anchor") == {"edits": {"a": [[1, "x", None]]}}
    assert await store.load("q", b"anchor") is None
    assert await store.load("p", b"other") is None


async def test_the_first_anchor_that_is_known_is_found(store: ConversationStore) -> None:
    await store.save("p", b"short", {"n": 1})
    await store.note("p", b"middle", {"n": 2})
    await store.save("p", b"long", {"n": 3})
    assert await store.find("p", [b"none", b"long", b"middle", b"short"]) == (b"long", {"n": 3})
    assert await store.find("p", [b"none", b"middle", b"short"]) == (b"middle", {"n": 2})
    assert await store.find("p", [b"short", b"middle"]) == (b"short", {"n": 1})
    assert await store.find("q", [b"short"]) is None
    assert await store.find("p", []) is None


async def test_notes_and_kept_states_replace_each_other(store: ConversationStore) -> None:
    await store.save("p", b"anchor", {"n": 1})
    await store.note("p", b"anchor", {"n": 2})
    assert await store.load("p", b"anchor") == {"n": 2}
    await store.save("p", b"anchor", {"n": 3})
    assert await store.load("p", b"anchor") == {"n": 3}


async def test_the_last_state_stands(store: ConversationStore) -> None:
    await store.save("p", b"anchor", {"n": 1})
    await store.save("p", b"anchor", {"n": 2})
    assert await store.load("p", b"anchor") == {"n": 2}


@pytest.mark.parametrize("state", [{"x": object()}, {"x": "a" * (MAX_STATE_BYTES + 1)}])
async def test_what_cannot_be_kept_is_refused(store: ConversationStore, state: dict[str, object]) -> None:
    with pytest.raises(EvidenceError) as caught:
        await store.save("p", b"anchor", state)
    assert caught.value.code == "conversations.state"
    assert await store.load("p", b"anchor") is None
