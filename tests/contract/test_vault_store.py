"""What every VaultStore must do, over memory, SQLite and the evidence writer."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from gateway.ports import SealedValue, VaultStore
from gateway.store.memory import MemoryVault
from gateway.store.vault import SqliteVault
from tests.support.writer import writing


@pytest.fixture(params=["memory", "sqlite", "writer"])
async def vault(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[VaultStore]:
    if request.param == "memory":
        yield MemoryVault()
        return
    if request.param == "writer":
        async with writing(tmp_path) as writer:
            yield (await writer.worker()).vault
        return
    made = SqliteVault(tmp_path / "vault" / "vault.db")
    yield made
    await made.close()


def entry(number: int, project: str = "p", **changes: str) -> SealedValue:
    token = changes.get("token", f"<EMAIL_{number}>")
    return SealedValue(project, token, "email", b"mac-%d" % number, b"sealed-%d" % number)


async def test_entries_are_found_by_mac_and_by_token_in_their_project_only(vault: VaultStore) -> None:
    await vault.keep([entry(1), entry(2), entry(3, "other")])
    assert await vault.by_mac("p", [b"mac-1", b"mac-3", b"none"]) == {b"mac-1": entry(1)}
    assert await vault.by_token("p", ["<EMAIL_2>", "<EMAIL_3>"]) == {"<EMAIL_2>": entry(2)}
    assert await vault.by_token("other", ["<EMAIL_3>"]) == {"<EMAIL_3>": entry(3, "other")}
    assert await vault.by_mac("p", []) == {}


async def test_what_was_issued_first_stays(vault: VaultStore) -> None:
    await vault.keep([entry(1)])
    await vault.keep([SealedValue("p", "<OTHER_1>", "email", b"mac-1", b"later")])
    await vault.keep([SealedValue("p", "<EMAIL_1>", "email", b"mac-9", b"later")])
    assert await vault.by_mac("p", [b"mac-1", b"mac-9"]) == {b"mac-1": entry(1)}
    assert await vault.by_token("p", ["<EMAIL_1>", "<OTHER_1>"]) == {"<EMAIL_1>": entry(1)}


async def test_the_last_entries_oldest_first(vault: VaultStore) -> None:
    await vault.keep([entry(n) for n in range(5)])
    assert (await vault.since("p", "", 3))[1] == [entry(2), entry(3), entry(4)]
    assert (await vault.since("p", "", 9))[1] == [entry(n) for n in range(5)]
    assert (await vault.since("nobody", "", 3))[1] == []


async def test_what_was_issued_since_a_mark(vault: VaultStore) -> None:
    await vault.keep([entry(n) for n in range(3)])
    mark, _ = await vault.since("p", "", 9)
    assert await vault.since("p", mark, 9) == (mark, [])
    await vault.keep([entry(3), entry(0), entry(4, "other")])
    await vault.keep([entry(5)])
    later, found = await vault.since("p", mark, 9)
    assert found == [entry(3), entry(5)]
    assert (await vault.since("p", later, 9))[1] == []
    assert (await vault.since("other", "", 9))[1] == [entry(4, "other")]


async def test_a_mark_of_another_life_gets_the_last_entries(vault: VaultStore) -> None:
    await vault.keep([entry(n) for n in range(3)])
    for mark in ("nonsense", "0123456789abcdef.1", "."):
        assert (await vault.since("p", mark, 9))[1] == [entry(n) for n in range(3)]
