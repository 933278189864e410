"""How fast detection reads: realistic traffic, crafted text, both engines, start-up, false findings on benign text."""

from __future__ import annotations

import base64
import random
import resource
import tempfile
import threading
from collections import Counter
from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path

from bench.detect_traffic import traffic
from bench.peers import measure
from bench.table import Suite, timed_ms
from gateway.context.findings import Category, ScanItem
from gateway.detect.engine import Engine, build
from gateway.store.known import KnownFile, write_known

_BATCH = 64
_CRAFTED = 1_000_000
_TRIED = 100_000  # characters by which the slowest are found


def _scan(engine: Engine, items: Sequence[ScanItem]) -> None:
    for at in range(0, len(items), _BATCH):
        engine.scan(items[at : at + _BATCH])


def _each(engine: Engine, items: Sequence[ScanItem]) -> None:
    for item in items:
        engine.scan([item])


def _speed(items: Sequence[ScanItem], size: float, rounds: int, ours: dict[str, float]) -> Iterator[Suite]:
    suite = Suite("detection on traffic, one thread", ("what", "MB/s", "µs for 100 characters"))
    small = [ScanItem(item.text[:100]) for item in items[:200]]
    for what, engine in (
        ("secrets only", build(views=False, categories=(Category.SECRET,))),
        ("all rules, no views", build(views=False)),
        ("all rules and views", build()),
        ("all rules and views, re2", build(engine="re2")),
    ):
        best = min(timed_ms(partial(_scan, engine, items)) for _ in range(max(1, min(rounds, 3))))
        each = min(timed_ms(partial(_each, engine, small)) for _ in range(3)) / len(small)
        suite.add(what, size / best * 1000, each * 1000)
        ours[what] = size / best * 1000
    yield suite


_WANTED = (  # the peer, what of ours is held against it, how many times as fast we mean to be
    ("kingfisher", "secrets only", 1.2),
    ("betterleaks", "all rules and views", 1.15),
)


def _peers(items: Sequence[ScanItem], rounds: int, ours: dict[str, float]) -> Suite:
    suite = Suite("peers on the same traffic", ("peer", "MB/s", "ours", "MB/s", "ratio", "wanted"))
    for name, what, wanted in _WANTED:
        measured = measure(name, items, max(1, min(rounds, 3)))
        speed = measured if isinstance(measured, str) else measured[0]
        ratio = "-" if isinstance(speed, str) else ours[what] / speed
        suite.add(name, speed, what, ours[what], ratio, wanted)
    return suite


def _threads(items: Sequence[ScanItem], size: float) -> Suite:
    suite = Suite(
        "detection, two threads (the interpreter lock is free inside the engine)", ("threads", "MB/s")
    )
    for count in (1, 2):
        engines = [build() for _ in range(count)]
        workers = [threading.Thread(target=_scan, args=(engine, items)) for engine in engines]
        took = _wall(workers)
        suite.add(count, size * count / took)
    return suite


def _wall(workers: Sequence[threading.Thread]) -> float:
    import time

    began = time.perf_counter()
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    return time.perf_counter() - began


def crafted(engine: Engine) -> dict[str, str]:
    """What texts made to cost repeat: every example and every trigger, encodings inside encodings, near misses."""
    texts = {f"example {row.id}": row.example + " " for row in engine.types()}
    for plan, _ in engine.databases:
        for number, trigger in enumerate(plan.triggers[::17]):
            if trigger.length:
                texts[f"trigger {number}"] = "".join(c for c in trigger.expression if c.isalnum())[:24] + " "
    nested = "password=Tr0ub4dor&3x9 "
    for _ in range(6):
        nested = base64.b64encode(nested.encode()).decode()
    texts |= {
        "nested base64": nested + " ",
        "base64 without end": nested,
        "urls": "://a:b@",
        "passwords": "password=",
        "keys without end": "-----BEGIN PRIVATE KEY-----\n",
        "kubernetes": '"kind":"Secret",',
        "percent": "%41",
        "escapes": "\\u0041 ",
        "concatenation": '"a" + "b" + ',
        "spaced": "s k _ l i v e _ ",
        "zero width": "gh\u200bp_",
        "tags": "\U000e0061",
        "tokens of JWT": "eyJhbGciOiJIUzI1NiJ9.eyJ",
        "JWK": '"kty":"EC","d": "aaaaaaaaaaaaaaaaaaaaaaaa",',
        "numbers": "4111 1111 1111 1112 ",
        "quotes": '"',
    }
    return texts


def _of_size(unit: str, size: int) -> list[ScanItem]:
    return [ScanItem((unit * (size // len(unit) + 1))[:size])]


def _worst(engine: Engine) -> Suite:
    """All of them in short; the slowest of these at full length."""
    suite = Suite(
        f"detection on crafted text of {_CRAFTED // 1000} kB, the slowest",
        ("text", "MB/s", "complete", "findings"),
    )
    units = crafted(engine)
    slowness = {name: timed_ms(partial(engine.scan, _of_size(unit, _TRIED))) for name, unit in units.items()}
    for name in sorted(slowness, key=slowness.__getitem__, reverse=True)[:12]:
        item = _of_size(units[name], _CRAFTED)
        took = min(timed_ms(partial(engine.scan, item)) for _ in range(2))
        [result] = engine.scan(item)
        suite.add(name, _CRAFTED / 1e3 / took, result.complete, len(result.findings))
    return suite


def _known(items: Sequence[ScanItem], size: float) -> Suite:
    """What looking up an organisation's own values costs beside everything else."""
    suite = Suite("all rules and views, with a list of known values", ("values", "MB/s", "file, MB"))
    with tempfile.TemporaryDirectory() as folder:
        for count in (0, 200_000, 2_000_000):
            path, rng = Path(folder) / "known", random.Random(count)
            write_known(path, bytes(32), (f"{rng.randrange(10**12):012d}" for _ in range(count)))
            engine = build(known=KnownFile(path, bytes(32)) if count else None)
            took = min(timed_ms(partial(_scan, engine, items)) for _ in range(2))
            suite.add(count, size / took * 1000, path.stat().st_size / 1e6)
    return suite


def _start() -> Suite:
    suite = Suite("detection, start", ("what", "ms"))
    suite.add("build with self-test", timed_ms(build))
    engine = build(engine="hyperscan")
    suite.add("self-test", timed_ms(engine.self_test))
    dumped = engine.dump()
    suite.add(
        "build from compiled databases, with self-test", timed_ms(lambda: build(compiled=lambda _: dumped))
    )
    suite.add("compiled databases, kB", len(dumped) / 1000)
    suite.add("resident memory, MB", resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024)
    return suite


def _benign(engine: Engine, items: Sequence[ScanItem], size: float) -> Suite:
    suite = Suite("findings on benign traffic", ("category", "a megabyte"))
    found = Counter(
        str(finding.category)
        for at in range(0, len(items), _BATCH)
        for result in engine.scan(items[at : at + _BATCH])
        for finding in result.findings
    )
    for category in ("secret", "pii", "prompt_injection", "classification"):
        suite.add(category, found[category] / size)
    return suite


def run(rounds: int) -> Iterator[Suite]:
    """The suites."""
    items = traffic()
    size = sum(len(item.text) for item in items) / 1e6
    ours: dict[str, float] = {}
    yield from _speed(items, size, rounds, ours)
    yield _peers(items, rounds, ours)
    yield _threads(items, size)
    engine = build()
    yield _benign(engine, items, size)
    yield _known(items, size)
    yield _start()
    yield _worst(engine)
