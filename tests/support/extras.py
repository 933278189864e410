"""Detectors for the tests of extras, built in a process of their own."""

from __future__ import annotations

import os
import re
import time
from collections.abc import Sequence

from gateway.context.findings import Category, Finding, ScanItem, ScanResult, Severity

_TICKET = re.compile(r"TICKET-\d{4,8}")


class Tickets:
    """Finds ticket numbers; a text can ask it to be late, to die or to fail."""

    id = "tickets"
    version = "1"
    revision = "tickets 1"

    def scan(self, items: Sequence[ScanItem]) -> list[ScanResult]:
        """See ports.Detector."""
        return [self._one(item.text) for item in items]

    def _one(self, text: str) -> ScanResult:
        if "be late" in text:
            time.sleep(30)
        if "die" in text:
            os._exit(3)
        if "fail" in text:
            raise ValueError(text)
        return ScanResult(
            tuple(
                Finding("ticket", Category.CUSTOM, Severity.HIGH, 900, m.start(), m.end(), "extra.tickets")
                for m in _TICKET.finditer(text)
            )
        )
