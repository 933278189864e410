"""The Clock port over the machine's clocks."""

from __future__ import annotations

import time
from datetime import UTC, datetime


class SystemClock:
    """Wall time in UTC and a clock that never runs backwards."""

    def now(self) -> str:
        """See ports.Clock."""
        stamp = datetime.fromtimestamp(time.time(), UTC)
        return stamp.strftime("%Y-%m-%dT%H:%M:%S.%f") + "Z"

    def monotonic_us(self) -> int:
        """See ports.Clock."""
        return time.monotonic_ns() // 1000
