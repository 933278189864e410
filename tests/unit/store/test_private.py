"""Databases beside the log: those of earlier versions are read and brought up to date, later ones left alone."""

from __future__ import annotations

import asyncio
from contextlib import closing
from pathlib import Path
from typing import Any

import apsw
import pytest

from gateway.errors import SetupError
from gateway.store import conversations, held, vault
from gateway.store.private import PrivateDatabase

FIRST = "CREATE TABLE IF NOT EXISTS things (name TEXT)"
LATER = (
    "ALTER TABLE things ADD COLUMN size INTEGER NOT NULL DEFAULT 7",
    "INSERT INTO things VALUES ('made', 1)",
)


def rows(path: Path, *migrations: str) -> list[Any]:
    async def run() -> list[Any]:
        database = PrivateDatabase(path, FIRST, "thing.unavailable", migrations)
        try:
            return await database.run(lambda db: db.execute("SELECT * FROM things").fetchall())
        finally:
            await database.close()

    return asyncio.run(run())


def version(path: Path) -> int:
    with closing(apsw.Connection(str(path))) as connection:
        return int(connection.pragma("user_version"))


def test_each_step_is_done_once(tmp_path: Path) -> None:
    path = tmp_path / "private" / "things.db"
    assert (rows(path), version(path)) == ([], 1)
    with closing(apsw.Connection(str(path))) as connection:
        connection.execute("INSERT INTO things VALUES ('kept')")
    assert rows(path, *LATER[:1]) == [("kept", 7)]
    for _ in range(2):
        assert rows(path, *LATER) == [("kept", 7), ("made", 1)]
    assert version(path) == 3


def test_a_file_without_a_number_is_one_of_the_first(tmp_path: Path) -> None:
    path = tmp_path / "private" / "things.db"
    rows(path)
    with closing(apsw.Connection(str(path))) as connection:
        connection.execute("INSERT INTO things VALUES ('kept'); PRAGMA user_version = 0")
    assert rows(path, *LATER[:1]) == [("kept", 7)]


def test_a_newer_file_is_refused_and_left_as_it_is(tmp_path: Path) -> None:
    path = tmp_path / "private" / "things.db"
    rows(path, *LATER)
    before = path.read_bytes()
    with pytest.raises(SetupError) as caught:
        rows(path)
    assert caught.value.code == "store.newer"
    assert caught.value.hint
    assert path.read_bytes() == before


def test_a_step_that_fails_leaves_the_step_before(tmp_path: Path) -> None:
    path = tmp_path / "private" / "things.db"
    with pytest.raises(SetupError):
        rows(path, LATER[0], "INSERT INTO nowhere VALUES (1)")
    assert version(path) == 2
    assert rows(path, *LATER) == [("made", 1)]


@pytest.mark.parametrize(
    "made",
    [vault.SqliteVault, conversations.SqliteConversations, held.HeldObjects],
)
def test_every_database_says_its_version(tmp_path: Path, made: Any) -> None:
    path = tmp_path / "private" / "made.db"
    asyncio.run(made(path).close())
    assert version(path) == 1
