"""Two projects on listeners of their own before several workers: what is one's stays there, whichever process saw it."""

from __future__ import annotations

import json
from pathlib import Path

from gateway.store.reader import SqliteReader
from gateway.store.rows import Query
from tests.support.client import Connection, Reply, credentials, post
from tests.support.fleet import Fleet, fleet, started
from tests.support.lives import HOST, free_ports
from tests.support.words import prose

NOTE = prose(3, lines=14)


async def ask(of: Fleet, port: int, text: str, extra: bytes = b"") -> Reply:
    """One request on a connection of its own, so that any worker may get it."""
    document = {"model": "m", "max_tokens": 5, "messages": [{"role": "user", "content": text}]}
    connection = await Connection.open(port)
    try:
        await connection.connect(f"{HOST}:443", extra)
        await connection.tls(of.lives.traffic.ca, HOST)
        return await connection.ask(post(json.dumps(document).encode(), host=HOST))
    finally:
        connection.abort()


async def refused(port: int, extra: bytes = b"") -> int:
    connection = await Connection.open(port)
    try:
        await connection.send(
            f"CONNECT {HOST}:443 HTTP/1.1\r\nHost: {HOST}:443\r\n".encode() + extra + b"\r\n"
        )
        return (await connection.reply()).status
    finally:
        connection.abort()


async def test_what_one_listener_saw_is_known_at_the_other_also_after_a_restart(tmp_path: Path) -> None:
    zoo, kestrel = free_ports(2)
    more = f'[projects.zoo]\nlisten = "127.0.0.1:{zoo}"\n[projects.kestrel]\nlisten = "127.0.0.1:{kestrel}"\n'
    async with fleet(tmp_path, workers=2, more=more) as running:
        assert (await ask(running, kestrel, NOTE)).status == 200
        for _ in range(6):  # whichever worker takes it
            reply = await ask(running, zoo, f"look:\n{NOTE}")
            assert reply.status == 200
            assert reply.header("x-egress-effect") == "rewritten"
        assert await refused(zoo, credentials("kestrel")) == 407
        assert await running.end() == 0
        again = started(running.lives)
        try:
            await again.healthy()
            reply = await ask(again, zoo, f"look again:\n{NOTE}")
            assert reply.header("x-egress-effect") == "rewritten"
            assert (await ask(again, kestrel, f"mine:\n{NOTE}")).header("x-egress-effect") is None
        finally:
            await again.end()
    bodies = [bytes(a.body).decode() for a in running.lives.provider.arrived]
    first = NOTE.splitlines()[3]
    assert [first in body for body in bodies] == [True, *[False] * 7, True]
    reader = SqliteReader(running.lives.database)
    try:
        rows = reader.rows(Query.read({"limit": 100}))[0]
        events = reader.rows(Query.read({"kind": "boundary_event", "limit": 100}))[0]
    finally:
        reader.close()
    assert sorted(row["project"] for row in rows) == ["kestrel"] * 2 + ["zoo"] * 7
    assert len(events) == 7
    assert len({event["source_project_hash"] for event in events}) == 1
