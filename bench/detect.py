"""How fast detection reads: traffic, peers, crafted text, both engines, start; and what it finds in benign text."""

from __future__ import annotations

import json
import random
import string
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path

from bench.detect_crafted import worst
from bench.detect_peers import peers, scan_all
from bench.detect_traffic import traffic
from bench.peers import ALL, RULES, SECRETS
from bench.table import Suite, timed_ms
from gateway.context.findings import Category, ScanItem
from gateway.detect.data import bip39_words
from gateway.detect.engine import Engine, build
from gateway.store.known import KnownFile, write_known

_PIECES = 12
_COMMON = bip39_words()


def _engines() -> dict[str, Engine]:
    return {
        SECRETS: build(views=False, categories=(Category.SECRET,)),
        RULES: build(views=False),
        ALL: build(),
        "all rules and views, re2": build(engine="re2"),
    }


def _best_ms(engine: Engine, items: Sequence[ScanItem], rounds: int) -> float:
    """Milliseconds for all of it: the sum of the best of each piece, as other work on the machine comes and goes."""
    step = -(-len(items) // _PIECES)
    pieces = [items[at : at + step] for at in range(0, len(items), step)]
    return sum(min(timed_ms(partial(scan_all, engine, piece)) for _ in range(rounds)) for piece in pieces)


def _each(engine: Engine, items: Sequence[ScanItem]) -> None:
    for item in items:
        engine.scan([item])


def _speed(items: Sequence[ScanItem], rounds: int, engines: dict[str, Engine]) -> Suite:
    suite = Suite("detection on traffic, one thread", ("what", "MB/s", "of MB", "µs for 100 characters"))
    small = [ScanItem(item.text[:100]) for item in items[:200]]
    for what, engine in engines.items():
        slow = engine.engine_name == "re2"
        chosen = items[::6] if slow else items
        size = sum(len(item.text) for item in chosen) / 1e6
        best = _best_ms(engine, chosen, 1 if slow else rounds)
        few = small[:5] if slow else small
        each = min(timed_ms(partial(_each, engine, few)) for _ in range(3)) / len(few)
        suite.add(what, size / best * 1000, size, each * 1000)
    return suite


def _threads(items: Sequence[ScanItem], size: float, rounds: int) -> Suite:
    """By the wall's clock: on a busy machine two threads have no two processors."""
    suite = Suite(
        "detection, two threads (the interpreter lock is free inside the engine)", ("what", "threads", "MB/s")
    )
    kinds: tuple[tuple[str, Sequence[Category], bool], ...] = (
        (SECRETS, (Category.SECRET,), False),
        (ALL, tuple(Category), True),
    )
    for what, categories, views in kinds:
        engines = [build(categories=categories, views=views) for _ in range(2)]
        for count in (1, 2):
            took = min(_wall(engines[:count], items) for _ in range(rounds))
            suite.add(what, count, size * count / took)
    return suite


def _wall(engines: Sequence[Engine], items: Sequence[ScanItem]) -> float:
    """Seconds for each of the engines to scan everything, at once."""
    workers = [threading.Thread(target=scan_all, args=(engine, items)) for engine in engines]
    began = time.perf_counter()
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    return time.perf_counter() - began


def _numbers(rng: random.Random) -> str:
    return f"{rng.randrange(10**12):012d}"


def _of_any_length(rng: random.Random) -> str:
    """One to three words of letters, eight of them or more, as names and passwords are."""
    words = (
        "".join(rng.choices(string.ascii_lowercase, k=rng.randint(4, 12))) for _ in range(rng.randint(1, 3))
    )
    return f"{' '.join(words)}{rng.choice(string.ascii_lowercase) * 4}"


def _phrase(rng: random.Random) -> str:
    """Three common words, with which many words of any text begin alike."""
    return " ".join(rng.choices(_COMMON, k=3))


def _known(items: Sequence[ScanItem], size: float, rounds: int) -> Suite:
    """What looking up an organisation's own values costs beside everything else."""
    suite = Suite(
        "all rules and views, with a list of known values",
        ("values", "of", "MB/s", "the look-up alone, MB/s", "file, MB"),
    )
    without = 0.0
    with tempfile.TemporaryDirectory() as folder:
        for count, what, make in (
            (0, "-", _numbers),
            (1_000_000, "twelve digits", _numbers),
            (1_000_000, "words of every length", _of_any_length),
            (1_000_000, "phrases of common words", _phrase),
        ):
            path, rng = Path(folder) / "known", random.Random(count)
            write_known(path, bytes(32), (make(rng) for _ in range(count)))
            engine = build(known=KnownFile(path, bytes(32)) if count else None)
            took = _best_ms(engine, items, rounds)
            alone = size / (took - without) * 1000 if count else "-"
            without = without or took
            suite.add(count, what, size / took * 1000, alone, path.stat().st_size / 1e6)
    return suite


_STARTED = """
import sys, time
began = time.process_time()
from gateway.detect.engine import build
imported = time.process_time()
compiled = open(sys.argv[2], "rb").read() if sys.argv[2] else b""
engine = build(engine=sys.argv[1], compiled=lambda _: compiled)
built = time.process_time()
[most] = [int(line.split()[1]) for line in open("/proc/self/status") if line.startswith("VmHWM")]
print((imported - began) * 1000, (built - imported) * 1000, most / 1024)
"""


def _start() -> Suite:
    """In processes of their own: what a worker costs that has nothing else to do."""
    suite = Suite(
        "detection, start of a new process", ("what", "import, ms", "build and self-test, ms", "memory, MB")
    )
    engine = build(engine="hyperscan")
    with tempfile.TemporaryDirectory() as folder:
        cache = Path(folder) / "compiled"
        cache.write_bytes(engine.dump())
        for what, kind, path in (
            ("hyperscan, nothing compiled", "auto", ""),
            (f"hyperscan, compiled ({cache.stat().st_size // 1000} kB)", "auto", str(cache)),
            ("re2, no self-test", "re2", ""),
        ):
            command = [sys.executable, "-c", _STARTED, kind, path]
            done = subprocess.run(command, capture_output=True, text=True, check=True)
            suite.add(what, *map(float, done.stdout.split()))
    return suite


def _benign(engine: Engine, items: Sequence[ScanItem], size: float) -> Suite:
    suite = Suite("findings on benign traffic", ("category", "a megabyte", "types"))
    found = Counter(
        (str(finding.category), finding.type)
        for at in range(0, len(items), 64)
        for result in engine.scan(items[at : at + 64])
        for finding in result.findings
    )
    for category in ("secret", "pii", "prompt_injection", "classification"):
        types = {kind: count for (of, kind), count in found.most_common() if of == category}
        suite.add(category, sum(types.values()) / size, json.dumps(types).strip("{}").replace('"', "") or "-")
    return suite


def run(rounds: int) -> Iterator[Suite]:
    """The suites."""
    rounds = max(1, min(rounds, 5))
    items = traffic()
    size = sum(len(item.text) for item in items) / 1e6
    engines = _engines()
    yield _speed(items, rounds, engines)
    yield peers(items, rounds, engines)
    yield _threads(items, size, rounds)
    yield _benign(engines[ALL], items, size)
    yield _known(items, size, rounds)
    yield _start()
    yield from worst(engines[ALL])
