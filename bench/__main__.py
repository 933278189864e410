"""`python -m bench [SUITE ...] [--rounds N] [--json FILE]`."""

from __future__ import annotations

import argparse
import importlib
import json
import sys
from pathlib import Path

SUITES = (
    "evaluate",
    "policy",
    "evidence",
    "proxy",
    "streams",
    "websocket",
    "detect",
    "store",
    "workers",
    "lag",
    "boundary",
)


def main() -> int:
    """Run the named suites, all of them without a name."""
    parser = argparse.ArgumentParser(prog="python -m bench", description=__doc__)
    parser.add_argument("suites", nargs="*", metavar="SUITE", help=f"of {', '.join(SUITES)}")
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--json", type=Path)
    arguments = parser.parse_args()
    if unknown := set(arguments.suites) - set(SUITES):
        parser.error(f"no such suite: {', '.join(sorted(unknown))}")
    results = [
        {"suite": name, "table": suite.name, "head": suite.head, "rows": suite.rows}
        for name in arguments.suites or SUITES
        for suite in importlib.import_module(f"bench.{name}").run(arguments.rounds)
    ]
    if arguments.json:
        arguments.json.write_text(json.dumps(results, indent=1) + "\n", encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
