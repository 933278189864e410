"""How often a finding of each stated confidence is right: a folder of `*.pos.jsonl` and `*.neg.jsonl`.

    python -m bench.calibration FOLDER

A line holds `text` and, in files of positives, `spans` (`start`, `end`). A finding is right where it touches a span of
a positive; injection signals are judged on the `inject_*` files alone, data on the others.
"""

from __future__ import annotations

import json
import sys
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

from bench.table import Suite
from gateway.context.findings import Category, Finding, ScanItem
from gateway.detect.engine import build

_PRIOR = 0.5  # Jeffreys: what a band is given of right and of wrong before it is counted
_BANDS = (0, 500, 650, 700, 800, 850, 900, 950, 990, 1001)
_JUDGED = (Category.SECRET, Category.PII, Category.PROMPT_INJECTION)


def judged(folder: Path) -> Iterator[tuple[Finding, bool]]:
    """Every finding in the labelled texts that is judged there, and whether it is right."""
    engine = build()
    for path in sorted(folder.rglob("*.jsonl")):
        injection, positive = "inject" in path.name, "pos" in path.name or "evasion" in path.name
        for line in path.read_text("utf-8").splitlines():
            row = json.loads(line)
            [result] = engine.scan([ScanItem(row["text"])])
            spans = [(s["start"], s["end"]) for s in row.get("spans", ())] if positive else []
            for finding in result.findings:
                signal = finding.category is Category.PROMPT_INJECTION
                if finding.category in _JUDGED and signal == injection:
                    touched = any(finding.start < end and finding.end > start for start, end in spans)
                    yield finding, touched or (injection and positive and not spans)


def run(folder: Path) -> Iterator[Suite]:
    """The tables: by category and band of stated confidence, and by detector where it is most often wrong."""
    bands: dict[tuple[str, int], list[int]] = defaultdict(lambda: [0, 0])
    detectors: dict[str, list[int]] = defaultdict(lambda: [0, 0, 0])
    for finding, right in judged(folder):
        band = max(low for low in _BANDS if low <= finding.confidence_milli)
        bands[str(finding.category), band][right] += 1
        entry = detectors[finding.detector]
        entry[right] += 1
        entry[2] = max(entry[2], finding.confidence_milli)
    suite = Suite("confidence", ("category", "stated, thousandths", "findings", "right, thousandths"))
    for (category, band), (wrong, right) in sorted(bands.items()):
        following = _BANDS[_BANDS.index(band) + 1] - 1
        suite.add(category, f"{band}-{following}", wrong + right, _smoothed(wrong, right))
    yield suite
    suite = Suite("wrong most often", ("detector", "stated at most", "findings", "right, thousandths"))
    for name, (wrong, right, stated) in sorted(detectors.items(), key=lambda each: -each[1][0])[:20]:
        suite.add(name, stated, wrong + right, _smoothed(wrong, right))
    yield suite


def _smoothed(wrong: int, right: int) -> int:
    return round(1000 * (right + _PRIOR) / (wrong + right + 2 * _PRIOR))


if __name__ == "__main__":
    if len(sys.argv) != 2 or not Path(sys.argv[1]).is_dir():
        sys.exit(__doc__)
    for _ in run(Path(sys.argv[1])):
        pass
