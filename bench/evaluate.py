"""Evaluation without network and disk: cold, the same turn again, and the next turn with 2 KB new."""

from __future__ import annotations

import asyncio
import hashlib
import statistics
from collections.abc import Iterator
from typing import Any

from bench.payloads import SIZES, Traffic
from bench.table import Suite, timed_ms
from gateway.app.described import outbound
from gateway.app.offline import Inspector
from gateway.classify.objects import ScanCache
from gateway.config import load


class Evaluator:
    """The use case over ports in memory; detection in this process."""

    def __init__(self) -> None:
        self.inspector = Inspector(load(None, {}))
        self.egress = self.inspector._egress  # noqa: SLF001 - the bench looks inside on purpose
        self.loop = asyncio.new_event_loop()

    def forget(self) -> None:
        """As if nothing had been seen."""
        self.egress.cache = ScanCache()
        self.egress.surroundings.fragments.forget()

    def request(self, body: bytes) -> Any:
        """An outbound request with this body."""
        made = outbound({"method": "POST", "url": "https://api.anthropic.com/v1/messages", "headers": {}})
        return type(made)(**{**{f: getattr(made, f) for f in made.__slots__}, "body": body})

    def run(self, body: bytes) -> Any:
        """Evaluate, and make the evidence."""
        return self.loop.run_until_complete(self.egress.handle(self.request(body)))


def run(rounds: int) -> Iterator[Suite]:
    """The suite."""
    evaluator = Evaluator()
    suite = Suite(
        "evaluation, one process, milliseconds (median)",
        ("body", "bytes", "objects", "cold", "next turn, 2 KB new", "x sha256 of the body"),
    )
    for name, size in SIZES.items():
        cold, warm, hashed = [], [], []
        body = b""
        for seed in range(rounds if size < 1_000_000 else max(3, rounds // 3)):
            traffic = Traffic(seed)
            body = traffic.body(size)
            evaluator.forget()
            cold.append(timed_ms(lambda body=body: evaluator.run(body)))
            traffic.turn(2000)
            following = traffic.encoded()
            warm.append(timed_ms(lambda body=following: evaluator.run(body)))
            hashed.append(timed_ms(lambda body=following: hashlib.sha256(body).digest()))
        objects = len(evaluator.inspector._meter.objects)  # noqa: SLF001
        turn = statistics.median(warm)
        suite.add(name, len(body), objects, statistics.median(cold), turn, turn / statistics.median(hashed))
    yield suite
