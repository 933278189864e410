"""What keeps held objects must do, over SQLite and the evidence writer."""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path

import pytest

from gateway.ports import Hold
from gateway.store.held import HeldObjects, Vote
from gateway.store.remote import RemoteHeld
from tests.support.writer import writing

type Held = HeldObjects | RemoteHeld
HOLD = Hold(
    id="q-1.a", kind="quarantine", project="p", digest="sha256:d", destination="anthropic/h", policy="sha256:p",
    principal="alice", time="2026-01-01T00:00:00.000000Z", object_kind="text", pointer="/messages/0", size=3,
    provenance="", reason_codes=("a.b",), findings=({"type": "x", "count": 1},), content=b"abc",
)  # fmt: skip


@pytest.fixture(params=["sqlite", "writer"])
async def held(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Held]:
    if request.param == "writer":
        async with writing(tmp_path) as writer:
            yield (await writer.worker()).held
        return
    made = HeldObjects(tmp_path / "vault" / "held.db")
    yield made
    await made.close()


async def test_an_object_is_found_as_it_was_put_and_stays_as_it_was_first(held: Held) -> None:
    await held.put([(HOLD, b"sealed")])
    await held.put([(replace(HOLD, principal="bob"), b"other")])
    (row,) = await held.find([HOLD.id, "none"])
    assert (row.id, row.kind, row.project, row.state, row.sealed) == (
        HOLD.id,
        "quarantine",
        "p",
        "held",
        b"sealed",
    )
    assert row.askers == {"alice", "bob"}
    assert row.facts["reason_codes"] == ["a.b"]
    assert row.votes == ()
    assert await held.find([]) == []


async def test_votes_are_kept_and_a_refusal_deletes_the_content(held: Held) -> None:
    await held.put([(HOLD, b"sealed"), (replace(HOLD, id="q-2.a"), b"sealed")])
    await held.vote(HOLD.id, Vote("ann", b"statement", b"signature"), "released")
    await held.vote("q-2.a", Vote("ann", b"no", b"signature"), "refused")
    released, refused = await held.find([HOLD.id, "q-2.a"])
    assert (released.state, released.votes) == ("released", (Vote("ann", b"statement", b"signature"),))
    assert (released.sealed, refused.sealed) == (b"sealed", None)
    await held.reopen(HOLD.id)
    await held.reopen("q-2.a")
    again, gone = await held.find([HOLD.id, "q-2.a"])
    assert (again.state, again.votes, gone.state) == ("held", (), "refused")


async def test_search_and_pages_newest_first(held: Held) -> None:
    for number in range(5):
        await held.put([(replace(HOLD, id=f"q-{number}.a", project="p" if number % 2 else "q"), b"s")])
    page = await held.page("quarantine", before=None, project="", state="", limit=2)
    assert [row.id for row in page] == ["q-4.a", "q-3.a"]
    rest = await held.page("quarantine", before=page[-1].seq, project="q", state="held", limit=9)
    assert [row.id for row in rest] == ["q-2.a", "q-0.a"]
    assert [row.id for row in await held.search("", "q-3", 5)] == ["q-3.a"]
    assert await held.search("approval", "q", 5) == []
