"""`python -m gateway.detect`: lines {"id", "text"} on standard input to lines {"id", "findings"} on standard output."""

from __future__ import annotations

import json
import sys

from gateway.context.findings import ScanItem
from gateway.detect.engine import build


def main() -> None:
    """Scan every line."""
    rows = [json.loads(line) for line in sys.stdin if line.strip()]
    engine = build()
    results = engine.scan([ScanItem(row["text"]) for row in rows])
    for row, result in zip(rows, results, strict=True):
        findings = [
            {
                "type": f.type,
                "category": str(f.category),
                "start": f.start,
                "end": f.end,
                "confidence_milli": f.confidence_milli,
                "detector": f.detector,
            }
            for f in result.findings
        ]
        sys.stdout.write(json.dumps({"id": row["id"], "findings": findings}) + "\n")


if __name__ == "__main__":
    main()
