"""A process that appends without end and prints the digest of every receipt that was acknowledged."""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path

from gateway.store.sqlite import SqliteStore
from tests.support.evidence import TestClock, sample, signer


async def main(path: Path) -> None:
    store = SqliteStore(path, signer(), TestClock()).open()

    async def stream(start: int) -> None:
        for number in range(start, 10**9, 8):
            made = sample(number, 3)
            await store.append(made.records, made.row)
            sys.stdout.write(made.row.receipt + "\n")
            sys.stdout.flush()

    await asyncio.gather(*(stream(start) for start in range(8)))


if __name__ == "__main__":
    asyncio.run(main(Path(sys.argv[1])))
