"""Packed texts come back as they were; damage is refused; databases from before packing are read and go on."""

from __future__ import annotations

import asyncio
import re
import sqlite3
from contextlib import closing
from hashlib import sha256
from importlib.resources import files
from pathlib import Path

import pytest
import zstandard
from hypothesis import given
from hypothesis import strategies as st

from gateway.errors import VerificationError
from gateway.store import compression, schema
from gateway.store.audit import verify_store
from gateway.store.compression import PLAIN, ZSTD_1, Packer, Unpacker
from gateway.store.reader import SqliteReader
from gateway.store.sqlite import SqliteStore
from tests.support.evidence import TestClock, decisions, sample, signer

PACKER, UNPACKER = Packer(), Unpacker()


@given(st.one_of(st.binary(max_size=400), st.text(max_size=300).map(str.encode)))
def test_what_is_packed_comes_back(text: bytes) -> None:
    codec, stored = PACKER.pack(text)
    assert UNPACKER.unpack(codec, stored) == text
    assert len(stored) <= len(text)


def test_the_first_dictionary_never_changes() -> None:
    """What was written with it is read with it: replace it, and old evidence is gone."""
    data = (files("gateway.store") / "data" / "parts-1.zdict").read_bytes()
    assert sha256(data).hexdigest() == "6117bff01363ff2d7840440b6cd2d2a8e1f8c3adac848457efd5cc4f7017fbfd"


def test_the_dictionary_holds_no_content() -> None:
    data = (files("gateway.store") / "data" / "parts-1.zdict").read_bytes()
    assert not re.search(rb"ghp_|@example|sk-|note \d|socket|argparse", data)


def test_small_lists_of_decisions_shrink_to_little_more_than_their_digests() -> None:
    from gateway.evidence.entry import canonical

    text = b",".join(canonical(item) for item in decisions(9))
    codec, stored = PACKER.pack(text)
    assert codec == ZSTD_1
    assert len(stored) < 9 * 42


@given(st.integers(-1, 3), st.binary(max_size=80))
def test_nothing_but_a_refusal_escapes(codec: int, stored: bytes) -> None:
    try:
        text = UNPACKER.unpack(codec, stored)
    except VerificationError:
        return
    assert codec == ZSTD_1 or text == stored


def test_a_frame_that_claims_to_be_huge_is_not_unpacked(monkeypatch: pytest.MonkeyPatch) -> None:
    bomb = zstandard.ZstdCompressor().compress(bytes(compression.MAX_TEXT + 1))
    with pytest.raises(VerificationError):
        UNPACKER.unpack(ZSTD_1, bomb)


async def fill(path: Path, numbers: range) -> list[tuple[str, bytes]]:
    store = SqliteStore(path, signer(), TestClock()).open()
    made = [sample(number, 12) for number in numbers]
    for one in made:
        await store.append(one.records, one.row)
    await store.close()
    return [(record.digest, b"".join(record.parts)) for one in made for record in one.records]


def make_old(path: Path) -> None:
    """Turn a database into one of schema version 1: texts as they are, no codec anywhere."""
    with closing(sqlite3.connect(path)) as connection, connection:
        for table, column in (("parts", "body"), ("records", "layout")):
            for number, codec, stored in connection.execute(
                f"SELECT id, codec, {column} FROM {table}"
            ).fetchall():
                connection.execute(
                    f"UPDATE {table} SET {column} = ? WHERE id = ?", (UNPACKER.unpack(codec, stored), number)
                )
            connection.execute(f"ALTER TABLE {table} DROP COLUMN codec")
        connection.execute("ALTER TABLE records DROP COLUMN last")
        connection.execute("DELETE FROM migrations WHERE version > 1")


def test_a_database_from_before_is_read_and_then_migrated(tmp_path: Path) -> None:
    path = tmp_path / "egress.db"
    written = asyncio.run(fill(path, range(3)))
    make_old(path)
    assert holds(path, written)
    written += asyncio.run(fill(path, range(3, 6)))
    assert holds(path, written)
    with closing(sqlite3.connect(path)) as connection:
        applied = [row[0] for row in connection.execute("SELECT version FROM migrations ORDER BY version")]
        codecs = {row[0] for row in connection.execute("SELECT DISTINCT codec FROM records")}
    assert applied == list(range(1, len(schema.MIGRATIONS) + 1))
    assert codecs == {PLAIN, ZSTD_1}


def holds(path: Path, written: list[tuple[str, bytes]]) -> bool:
    reader = SqliteReader(path)
    try:
        assert all(reader.record(name) == data for name, data in written)
    finally:
        reader.close()
    return verify_store(path, signer().public_key).ok
