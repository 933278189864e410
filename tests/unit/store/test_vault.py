"""The vault on disk: sealing, forgetting, privacy, failures that pass."""

from __future__ import annotations

import asyncio
from contextlib import closing
from pathlib import Path
from typing import Any

import apsw
import pytest

from gateway.errors import EvidenceError, SetupError, VerificationError
from gateway.ports import SealedValue
from gateway.store.conversations import MAX_AGE_S, SqliteConversations
from gateway.store.sealing import open_value, seal_value
from gateway.store.vault import SqliteVault

KEY = bytes(range(32))


def entry(value: str = "a secret", token: str = "<T_1>", project: str = "p", key: bytes = KEY) -> SealedValue:
    return SealedValue(
        project, token, "email", b"mac" + token.encode(), seal_value(value, project, token, key)
    )


@pytest.mark.parametrize("value", ["", "a secret", "ünï\x00cödé", "\ud800 lone", "x" * 100_000])
def test_what_is_sealed_opens(value: str) -> None:
    assert open_value(entry(value), KEY) == value


def test_the_same_value_is_never_sealed_twice_alike() -> None:
    assert entry().sealed != entry().sealed
    assert b"a secret" not in entry().sealed


@pytest.mark.parametrize(
    "moved",
    [
        lambda e: SealedValue("q", e.token, e.label, e.mac, e.sealed),
        lambda e: SealedValue(e.project, "<T_2>", e.label, e.mac, e.sealed),
        lambda e: SealedValue("p<", e.token[1:], e.label, e.mac, e.sealed),
        lambda e: SealedValue(e.project, e.token, e.label, e.mac, e.sealed[:-1]),
        lambda e: SealedValue(e.project, e.token, e.label, e.mac, e.sealed[:-1] + bytes([e.sealed[-1] ^ 1])),
        lambda e: SealedValue(e.project, e.token, e.label, e.mac, b"\x02" + e.sealed[1:]),
        lambda e: SealedValue(e.project, e.token, e.label, e.mac, b""),
    ],
)
def test_an_entry_that_was_moved_or_altered_does_not_open(moved: object) -> None:
    with pytest.raises(VerificationError) as caught:
        open_value(moved(entry()), KEY)  # type: ignore[operator]  # a lambda of the list above
    assert caught.value.code == "vault.sealed"
    assert "a secret" not in str(caught.value)


def test_another_key_does_not_open() -> None:
    with pytest.raises(VerificationError):
        open_value(entry(), bytes(32))


async def test_values_outlive_the_process_and_lie_nowhere_in_the_clear(tmp_path: Path) -> None:
    path = tmp_path / "vault" / "vault.db"
    vault = SqliteVault(path)
    await vault.keep([entry("find me if you can")])
    await vault.close()
    await vault.close()
    assert all(b"find me" not in file.read_bytes() for file in path.parent.iterdir())
    assert path.stat().st_mode & 0o077 == path.parent.stat().st_mode & 0o077 == 0
    again = SqliteVault(path)
    (found,) = (await again.by_token("p", ["<T_1>"])).values()
    assert open_value(found, KEY) == "find me if you can"
    await again.close()


async def test_forgotten_entries_leave_no_bytes(tmp_path: Path) -> None:
    vault = SqliteVault(tmp_path / "vault" / "vault.db")
    kept, gone, other = entry(token="<T_1>"), entry(token="<T_2>"), entry(project="q")
    await vault.keep([kept, gone, other])
    assert await vault.forget_value("p", gone.mac) is True
    assert await vault.forget_value("p", gone.mac) is False
    assert list(await vault.by_token("p", ["<T_1>", "<T_2>"])) == ["<T_1>"]
    assert await vault.forget_project("p") == 1
    assert await vault.stat() == {
        "values": 1,
        "projects": [{"project": "q", "values": 1, "labels": {"email": 1}}],
    }
    data = b"".join(file.read_bytes() for file in (tmp_path / "vault").iterdir())
    assert kept.sealed not in data
    assert gone.sealed not in data
    assert other.sealed in data
    await vault.close()


async def test_entries_nobody_asks_for_expire(tmp_path: Path) -> None:
    now = 1_000_000.0
    vault = SqliteVault(tmp_path / "vault" / "vault.db", lambda: now)
    await vault.keep([entry(token="<T_1>"), entry(token="<T_2>")])
    now += 10 * 86_400
    await vault.by_token("p", ["<T_1>"])
    assert await vault.expire(9 * 86_400) == 1
    assert [e.token for e in (await vault.since("p", "", 9))[1]] == ["<T_1>"]
    await vault.close()


async def test_a_locked_vault_refuses_and_recovers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("gateway.store.private.BUSY_MS", 50)
    path = tmp_path / "vault" / "vault.db"
    vault = SqliteVault(path)
    with closing(apsw.Connection(str(path))) as other:
        other.execute("BEGIN IMMEDIATE")
        with pytest.raises(EvidenceError) as caught:
            await vault.keep([entry()])
        assert caught.value.code == "vault.unavailable"
        other.execute("ROLLBACK")
    await vault.keep([entry()])
    assert len((await vault.since("p", "", 9))[1]) == 1
    await vault.close()
    with pytest.raises(EvidenceError):
        await vault.since("p", "", 9)


def test_a_vault_that_others_can_reach_or_that_is_none_is_refused(tmp_path: Path) -> None:
    folder = tmp_path / "vault"
    folder.mkdir(mode=0o755)
    with pytest.raises(SetupError) as caught:
        SqliteVault(folder / "vault.db")
    assert caught.value.code == "vault.open"
    folder.chmod(0o700)
    (folder / "vault.db").write_bytes(b"no database " * 1000)
    (folder / "vault.db").chmod(0o600)
    with pytest.raises(SetupError) as caught:
        SqliteVault(folder / "vault.db")
    assert caught.value.code == "vault.unavailable"


async def test_a_conversation_that_was_stored_is_found_whenever_the_file_was_opened(tmp_path: Path) -> None:
    path = tmp_path / "vault" / "conversations.db"
    store = SqliteConversations(path)
    await asyncio.gather(
        store.load("p", b"a"), store.save("p", b"a", {"n": 1})
    )  # saved while anchors are read
    assert await store.load("p", b"a") == {"n": 1}
    assert await store.load("q", b"a") is None
    await store.close()
    again = SqliteConversations(path)
    assert await again.find("p", (b"b", b"a")) == (b"a", {"n": 1})
    await again.save("p", b"b", {"n": 2})
    assert await again.find("p", (b"b", b"a")) == (b"b", {"n": 2})
    await again.close()


async def test_conversations_that_end_together_share_a_transaction(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = SqliteConversations(tmp_path / "vault" / "conversations.db")
    run, runs = store._database.run, []

    async def counted(work: Any) -> Any:
        runs.append(work)
        return await run(work)

    monkeypatch.setattr(store._database, "run", counted)
    await asyncio.gather(*(store.save("p", b"%d" % n, {"n": n}) for n in range(64)))
    assert len(runs) <= 2
    assert [await store.load("p", b"%d" % n) for n in range(64)] == [{"n": n} for n in range(64)]

    async def full(work: Any) -> Any:
        raise EvidenceError("conversations.unavailable", "no space left")

    monkeypatch.setattr(store._database, "run", full)
    failed = await asyncio.gather(*(store.save("p", b"x", {}) for _ in range(3)), return_exceptions=True)
    assert [type(each) for each in failed] == [EvidenceError] * 3
    monkeypatch.setattr(store._database, "run", run)
    waiting = asyncio.ensure_future(store.save("p", b"last", {"n": 1}))
    gone = asyncio.ensure_future(store.save("p", b"gone", {"n": 2}))
    await asyncio.sleep(0)
    gone.cancel()  # its caller is gone, what it gave is stored with the rest
    await store.close()
    await waiting
    again = SqliteConversations(tmp_path / "vault" / "conversations.db")
    assert [await again.load("p", name) for name in (b"last", b"gone")] == [{"n": 1}, {"n": 2}]
    await again.close()


async def test_conversations_are_bounded_in_age_and_number(tmp_path: Path) -> None:
    now = 1_000_000.0
    store = SqliteConversations(tmp_path / "vault" / "conversations.db", lambda: now, max_states=3)
    for number in range(4):
        now += 1
        await store.save("p", b"%d" % number, {"n": number})
    assert [await store.load("p", b"%d" % n) for n in range(4)] == [None, {"n": 1}, {"n": 2}, {"n": 3}]
    now += MAX_AGE_S
    assert await store.load("p", b"1") is None
    await store.save("p", b"new", {})
    now -= MAX_AGE_S  # they are gone, not merely hidden
    assert await store.load("p", b"1") is None
    assert await store.load("p", b"3") == {"n": 3}
    await store.close()
