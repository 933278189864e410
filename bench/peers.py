"""Other scanners on the same texts, each in a process of the environment of `peers.txt`.

A peer's figure is the better of two clocks, the wall's and that of the processor over all its threads: a machine that
is busy with other work, or a runtime that collects meanwhile, must not make the gateway look faster than it is.
"""

from __future__ import annotations

import json
import os
import subprocess
import tempfile
from collections.abc import Sequence
from pathlib import Path

from gateway.context.findings import ScanItem

PYTHON = "EGRESS_BENCH_PEERS"
"""Names the interpreter of the peers' environment; the one of `peers.txt` unless set."""

_TIMEOUT_S = 300
_MEASURE = """
import json, sys, time
texts = json.load(open(sys.argv[1]))
rounds = int(sys.argv[2])
size = sum(map(len, texts)) / 1e6
{setup}
best = 0.0
for _ in range(rounds):
    wall, cpu, found = time.perf_counter(), time.process_time(), 0
    for text in texts:
        found += len(list(scan(text)))
    best = max(best, size / (time.perf_counter() - wall), size / (time.process_time() - cpu))
print(json.dumps([best, found / size]))
"""
PEERS = {
    "kingfisher": "from kingfisher_sdk import Scanner\nscanner = Scanner()\nscan = lambda text: scanner.scan(text)",
    "betterleaks": "import betterleaks\nscan = betterleaks.scan_string",
}


def interpreter() -> Path:
    """The interpreter of the peers' environment, which need not exist."""
    return Path(os.environ.get(PYTHON) or Path.home() / ".cache/egress-bench/peers/bin/python")


def measure(name: str, items: Sequence[ScanItem], rounds: int) -> tuple[float, float] | str:
    """MB/s and findings a megabyte of one peer on these texts, or why there is no figure."""
    python = interpreter()
    if not python.exists():
        return "not measured: no environment of peers (bench/peers.txt)"
    with tempfile.TemporaryDirectory() as folder:
        texts = Path(folder) / "texts.json"
        texts.write_text(json.dumps([item.text for item in items]), encoding="utf-8")
        command = [str(python), "-c", _MEASURE.replace("{setup}", PEERS[name]), str(texts), str(rounds)]
        try:
            done = subprocess.run(command, capture_output=True, text=True, timeout=_TIMEOUT_S, check=True)
        except (OSError, subprocess.SubprocessError) as error:
            return f"not measured: {type(error).__name__}"
    speed, found = json.loads(done.stdout.splitlines()[-1])
    return float(speed), float(found)
