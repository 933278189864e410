"""Realistic agent traffic for measurements: source, numbered tool results, JSON, logs and prose of this interpreter.

Built from the standard library and the installed packages, so nothing is downloaded and nothing is committed; the same
environment gives the same bytes.
"""

from __future__ import annotations

import json
import random
import sysconfig
from pathlib import Path

from gateway.context.findings import ScanItem

_LIMITS = (256, 46_000)


def traffic(size: int = 10_500_000, seed: int = 7) -> list[ScanItem]:
    """Text objects of 256 characters to 46 kB, at least `size` characters in all."""
    rng = random.Random(seed)
    library = Path(sysconfig.get_paths()["stdlib"])
    packages = Path(sysconfig.get_paths()["purelib"])
    sources = (
        sorted(library.glob("*.py")) + sorted(library.glob("[a-z]*/*.py")) + sorted(packages.glob("*/*.py"))
    )
    prose = sorted(packages.glob("*.dist-info/METADATA")) + sorted(packages.glob("*/**/*.md"))
    items: list[ScanItem] = []
    total = 0
    while total < size:
        kind = rng.random()
        path = rng.choice(prose if kind > 0.9 else sources)
        text = path.read_text("utf-8", "replace")
        start = rng.randrange(max(1, len(text) - _LIMITS[0]))
        piece = text[start : start + min(_LIMITS[1], int(rng.lognormvariate(8, 1.1)) + _LIMITS[0])]
        if len(piece) < _LIMITS[0]:
            continue
        items.append(_dress(piece, path.name, kind, rng))
        total += len(items[-1].text)
    return items


def _dress(piece: str, name: str, kind: float, rng: random.Random) -> ScanItem:
    if kind < 0.3:
        lines = piece.splitlines()
        return ScanItem("\n".join(f"{n:6d}\t{line}" for n, line in enumerate(lines, 1)), "content", "tool")
    if kind < 0.45:
        call = {"type": "tool_result", "tool_use_id": f"toolu_{rng.randrange(10**12):024d}", "content": piece}
        return ScanItem(json.dumps(call), "arguments", "assistant")
    if kind < 0.6:
        return ScanItem(_log(piece, rng), "output", "tool")
    return ScanItem(piece, "text", "user" if kind > 0.9 else "tool")


def _log(piece: str, rng: random.Random) -> str:
    words = piece.split()[:4000]
    return "\n".join(f"{_stamp(rng)} {' '.join(words[at : at + 9])}" for at in range(0, len(words), 9))


def _stamp(rng: random.Random) -> str:
    day, hour, minute, second = rng.randrange(1, 29), rng.randrange(24), rng.randrange(60), rng.randrange(60)
    time = f"2026-11-{day:02d}T{hour:02d}:{minute:02d}:{second:02d}.{rng.randrange(1000):03d}Z"
    level = rng.choice(("INFO", "DEBUG", "WARN"))
    return f"{time} {level} [{rng.getrandbits(128):032x}] took={rng.randrange(900)}ms"
