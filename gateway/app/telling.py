"""What is told of an attempt to load the policy anew: counted, and logged with the places of what is wrong.

A problem's text may quote a rule; the log gets the file and the place in it, `egress policy check` tells the rest.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Final

from gateway.app.policies import Reloaded
from gateway.telemetry.log import Log
from gateway.telemetry.metrics import Metrics

MAX_PLACES: Final = 20  # logged for one attempt; the count says how many there are
_PLACE: Final = re.compile(
    r"(?:bundle (?P<bundle>\d+): )?(?P<file>[\w./-]+\.toml)"
    r"(?:: (?:rule '(?P<rule>[\w.-]+)'|(?P<place>[\w.\[\]-]+)))?: ",
    re.ASCII,
)


def places(problems: tuple[str, ...]) -> list[dict[str, str | int]]:
    """Number of the bundle, file, and rule or place in it, of each problem that names a file; each once."""
    found = [each.groupdict() for each in map(_PLACE.match, problems) if each is not None]
    rows = [
        {name: int(text) if name == "bundle" else text for name, text in row.items() if text} for row in found
    ]
    return [row for number, row in enumerate(rows) if row not in rows[:number]]


def telling(metrics: Metrics, log: Log) -> Callable[[Reloaded], None]:
    """What LivePolicy calls after each attempt."""

    def told(result: Reloaded) -> None:
        metrics.reloaded(ok=result.ok)
        if result.ok:
            if result.changed:
                log.event("policy_reloaded", digest=result.digest)
            return
        log.event("policy_reload_failed", level="error", count=len(result.problems), digest=result.digest)
        for row in places(result.problems)[:MAX_PLACES]:
            log.event("policy_problem", level="error", **row)

    return told
