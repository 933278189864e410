"""Commands that look after a store and a vault that were really written."""

import asyncio
import io
import json
import os
import shutil
from pathlib import Path

import pytest

from gateway.app import upkeep
from gateway.app.values import SealedVault
from gateway.config import load
from gateway.evidence.sign import read_public_key
from gateway.ports import Kept
from gateway.store.audit import verify_store
from gateway.store.forgotten import stamp
from gateway.store.keys import Keyring
from gateway.store.sqlite import SqliteStore
from gateway.store.vault import SqliteVault
from tests.support.evidence import TestClock, sample
from tests.unit.cli.conftest import Run

VALUES = ("first value of many", "second value of many")


async def write(state: Path, numbers: range) -> None:
    store = SqliteStore(state / "egress.db", Keyring(state / "keys").signing_key(), TestClock()).open()
    for number in numbers:
        made = sample(number, 40)
        await store.append(made.records, made.row)
    await store.close()


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    state = tmp_path / "state"
    state.mkdir(mode=0o700)
    asyncio.run(write(state, range(6)))
    (tmp_path / "gateway.toml").write_text('[state]\ndir = "state"\n')
    return tmp_path


def test_a_store_is_checked(egress: Run, folder: Path) -> None:
    report = json.loads(egress("store", "check", "--json").out)
    assert (report["ok"], report["integrity"], report["log"]["entries"]) == (True, "ok", 6)
    assert report["rows"]["requests"] == 6
    assert "The log holds; the file is in order." in egress("store", "check").out
    database = folder / "state" / "egress.db"
    data = bytearray(database.read_bytes())
    data[-4000:] = os.urandom(4000)
    database.write_bytes(data)
    assert egress("store", "check", "--json").status == 1


def test_compacting_gives_pages_back(egress: Run, folder: Path) -> None:
    async def grow_and_prune() -> None:
        state = folder / "state"
        store = SqliteStore(state / "egress.db", Keyring(state / "keys").signing_key(), TestClock()).open()
        for number in range(100, 400):
            made = sample(number, 3)
            await store.append(made.records, made.row)
        await store.close()
        store = SqliteStore(state / "egress.db", Keyring(state / "keys").signing_key(), TestClock()).open()
        await store.prune(older_than="2999-01-01T00:00:00.000000Z")
        await store.close()

    asyncio.run(grow_and_prune())
    done = json.loads(egress("store", "compact", "--json").out)
    assert done["after"] < done["before"] / 2
    assert json.loads(egress("store", "check", "--json").out)["ok"]


def test_compacting_beside_a_gateway_is_refused(egress: Run, folder: Path) -> None:
    async def run() -> None:
        state = folder / "state"
        store = SqliteStore(state / "egress.db", Keyring(state / "keys").signing_key(), TestClock()).open()
        try:
            done = await asyncio.to_thread(egress, "store", "compact")
        finally:
            await store.close()
        assert done.status == 3
        assert "another gateway is running" in done.err

    asyncio.run(run())


def test_a_copy_is_a_whole_log(egress: Run, folder: Path) -> None:
    made = egress("store", "backup", str(folder / "copy"), "--json")
    assert json.loads(made.out)["files"] == ["checkpoint", "egress.db"]
    key = read_public_key((folder / "state" / "keys" / "signing.pub").read_text())
    report = verify_store(folder / "copy" / "egress.db", key)
    assert (report.ok, report.entries) == (True, 6)
    assert not (folder / "copy" / "keys").exists()
    assert egress("store", "backup", str(folder / "copy")).status == 3


def test_the_signing_key_is_replaced(egress: Run, folder: Path) -> None:
    public = folder / "state" / "keys" / "signing.pub"
    old = read_public_key(public.read_text())
    done = json.loads(egress("store", "rotate", "--json").out)
    assert public.read_text().strip() == done["new"] != done["old"]
    asyncio.run(write(folder / "state", range(10, 12)))
    for key in (old, read_public_key(public.read_text())):
        report = verify_store(folder / "state" / "egress.db", key)
        assert (report.ok, report.entries) == (
            True,
            6 + 6 + 1 + 2,
        )  # opened; closed by the next start; handed over; new ones


def test_nothing_there_yet(egress: Run, tmp_path: Path) -> None:
    other = tmp_path / "other.toml"
    other.write_text('[state]\ndir = "nothing"\n')
    for command in (
        ("store", "compact"),
        ("store", "backup", "copy"),
        ("vault", "stat"),
        ("receipts", "list"),
    ):
        done = egress(*command, "--config", str(other))
        assert done.status == 3
        assert "yet" in done.err


async def keep(vault: SealedVault, project: str) -> list[str]:
    placeholders = vault.placeholders(project)
    tokens = []
    for value in VALUES:
        token = placeholders.issue(value, "KEY")
        tokens.append(token)
        await vault.keep(project, [Kept(token, "secret", placeholders.mac(value), value)])
    return tokens


@pytest.mark.parametrize("one", [True, False])
async def test_what_is_forgotten_is_forgotten_by_a_gateway_that_runs(
    egress: Run, folder: Path, monkeypatch: pytest.MonkeyPatch, one: bool
) -> None:
    state = folder / "state"
    database = SqliteVault(state / "vault" / "vault.db")
    marker = state / "vault" / "forgotten"
    vault = SealedVault(database, Keyring(state / "keys"), lambda: stamp(marker))
    tokens = await keep(vault, "acme")
    others = await keep(vault, "other")
    openers = await vault.openers("acme", tokens)
    assert [openers[token]() for token in tokens] == list(VALUES)

    arguments = ("--project", "acme", *(["--value"] if one else []))
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(VALUES[0].encode() + b"\n")))
    done = await asyncio.to_thread(egress, "vault", "forget", *arguments)
    assert done.out.strip() == ("1 forgotten" if one else "2 forgotten")

    assert openers[tokens[0]]() is None  # an answer that is under way
    left = await vault.openers("acme", tokens)
    assert [left[token]() for token in tokens if token in left] == ([VALUES[1]] if one else [])
    assert [o() for o in (await vault.openers("other", others)).values()] == list(VALUES)
    assert not vault.kept("acme")(tokens[0])
    again = await keep(vault, "acme")  # sent again, it is kept again
    assert [o() for o in (await vault.openers("acme", again)).values()] == list(VALUES)
    await database.close()


def test_a_vault_is_counted_and_nothing_to_forget_is_said(egress: Run, folder: Path) -> None:
    async def fill() -> None:
        database = SqliteVault(folder / "state" / "vault" / "vault.db")
        await keep(SealedVault(database, Keyring(folder / "state" / "keys")), "acme")
        await database.close()

    asyncio.run(fill())
    found = json.loads(egress("vault", "stat", "--json").out)
    assert found["projects"] == [{"project": "acme", "values": 2, "labels": {"secret": 2}}]
    assert "acme" in egress("vault", "stat").out
    assert egress("vault", "forget", "--project", "nobody").status == 1


def test_the_tail_shows_the_last_ones_oldest_first(egress: Run, folder: Path) -> None:
    rows = [
        json.loads(line)
        for line in egress("receipts", "tail", "--json", "-n", "3", "--once").out.splitlines()
    ]
    assert [row["request_id"] for row in rows] == ["req-3", "req-4", "req-5"]
    assert len(egress("receipts", "tail", "--once").out.splitlines()) == 6


def test_a_checkpoint_is_anchored_and_receipts_are_stated(egress: Run, folder: Path) -> None:
    assert egress("receipts", "anchor").status == 2
    done = egress("receipts", "anchor", "--file", str(folder / "anchors.txt"), "--json")
    assert json.loads(done.out)["checkpoint"] == (folder / "state" / "checkpoint").read_text()
    assert (folder / "anchors.txt").read_text().startswith((folder / "state" / "checkpoint").read_text())
    assert egress("receipts", "anchor", "--url", "http://127.0.0.1:1/").status == 3
    stated = [json.loads(line) for line in egress("receipts", "statements").out.splitlines()]
    assert len(stated) == 6
    assert {line["payloadType"] for line in stated} == {"application/vnd.in-toto+json"}


async def test_a_value_in_use_is_not_old(folder: Path) -> None:
    now = 1e9
    database = SqliteVault(folder / "state" / "vault" / "vault.db", lambda: now)
    marker = folder / "state" / "vault" / "forgotten"
    vault = SealedVault(database, Keyring(folder / "state" / "keys"), lambda: stamp(marker, lambda: now))
    tokens = await keep(vault, "acme")
    for _ in range(6):
        now += 1.5 * 86_400
        opened = await vault.openers("acme", tokens[:1])
        assert opened[tokens[0]]() == VALUES[0]
        await database.expire(3 * 86_400)
    assert list(await vault.openers("acme", tokens)) == tokens[:1]
    await database.close()


async def test_old_evidence_and_unused_values_go_by_themselves(folder: Path) -> None:
    state, now = folder / "state", 1e9
    (folder / "gateway.toml").write_text('[state]\ndir = "state"\nkeep_days = 1\nvault_days = 2\n')
    config = load(folder / "gateway.toml", {})
    store = SqliteStore(state / "egress.db", Keyring(state / "keys").signing_key(), TestClock()).open()
    database = SqliteVault(state / "vault" / "vault.db", lambda: now)
    marker = state / "vault" / "forgotten"
    vault = SealedVault(database, Keyring(state / "keys"), lambda: stamp(marker))
    tokens = await keep(vault, "acme")
    await upkeep.retain_once(config, store, database)
    assert not marker.exists()
    now += 3.5 * 86_400
    await upkeep.retain_once(config, store, database)
    assert await vault.openers("acme", tokens) == {}
    await store.close()
    await database.close()
    report = verify_store(state / "egress.db", Keyring(state / "keys").signing_key().public_key)
    assert report.ok
    assert report.pruned >= 11  # written in January 2026: all but the last one


def test_a_folder_that_was_put_back_whole_is_found_by_a_checkpoint_kept_elsewhere(
    egress: Run, folder: Path
) -> None:
    kept, state, copy = folder / "kept", folder / "state", folder / "before"
    shutil.copytree(state, copy)
    asyncio.run(write(state, range(20, 23)))
    for _ in range(2):
        assert egress("receipts", "anchor", "--file", str(kept)).status == 0
        asyncio.run(write(state, range(23, 24)))
    assert egress("receipts", "verify", "--older", str(kept)).status == 0
    bundle = folder / "bundle"
    assert egress("receipts", "export", "--older", str(kept), "-o", str(bundle)).status == 0
    public = str(state / "keys" / "signing.pub")
    for arguments in ((str(bundle),), (str(bundle), "--older", str(kept))):
        assert egress("receipts", "verify", "--key", public, *arguments).status == 0
    for name in ("egress.db", "checkpoint"):
        shutil.copy(copy / name, state / name)
    assert egress("receipts", "verify").status == 0  # nothing in the folder tells
    found = egress("receipts", "verify", "--older", str(kept), "--json")
    assert found.status == 1
    assert json.loads(found.out)["first_bad"]["kind"] == "truncated"
    kept.write_text("no checkpoint\n")
    wrong = egress("receipts", "verify", "--older", str(kept))
    assert (wrong.status, "checkpoints in the form of signed notes" in wrong.err) == (2, True)
