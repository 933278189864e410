"""Evidence on disk: how much a turn adds while the conversation grows, and what durability adds to a request."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from pathlib import Path

from bench.evaluate import Evaluator
from bench.payloads import Traffic
from bench.table import Suite
from gateway.app.clock import SystemClock
from gateway.store.keys import Keyring
from gateway.store.sqlite import SqliteStore


def _bytes(folder: Path) -> int:
    return sum(p.stat().st_size for p in folder.glob("egress.db*"))


async def _grow(evaluator: Evaluator, folder: Path, suite: Suite) -> None:
    keys = Keyring(folder / "keys")
    store = SqliteStore(folder / "egress.db", keys.signing_key(), SystemClock()).open()
    evaluator.egress.store = store
    traffic = Traffic(3)
    sizes: list[int] = []
    try:
        for turn in range(1, 81):
            traffic.turn(2000)
            body = traffic.encoded()
            before = await _logical(store, folder)
            await evaluator.egress.handle(evaluator.request(body))
            sizes.append(await _logical(store, folder) - before)
            if turn in (10, 20, 40, 80):
                suite.add(turn, len(body), sum(sizes[-10:]) / 10)
    finally:
        await store.close()


async def _logical(store: SqliteStore, folder: Path) -> int:
    import apsw

    connection = apsw.Connection(str(folder / "egress.db"), flags=apsw.SQLITE_OPEN_READONLY)
    total = 0
    for (table,) in connection.execute("select name from sqlite_master where type = 'table'").fetchall():
        columns = [row[1] for row in connection.execute(f'pragma table_info("{table}")')]
        lengths = "+".join(f'coalesce(length("{c}"),0)' for c in columns)
        found = connection.execute(f'select coalesce(sum({lengths}),0) from "{table}"').fetchall()
        total += int(found[0][0])
    connection.close()
    return total


def run(rounds: int) -> Iterator[Suite]:
    """The suite."""
    suite = Suite(
        "evidence of a growing conversation, 2 KB new a turn",
        ("turn", "bytes of the body", "bytes of evidence a turn (mean of ten)"),
    )
    evaluator = Evaluator()
    with tempfile.TemporaryDirectory() as folder:
        evaluator.loop.run_until_complete(_grow(evaluator, Path(folder), suite))
    yield suite
