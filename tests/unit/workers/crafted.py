"""Detectors that a scanning process builds in tests: one that obeys the text it is given, and broken ones."""

import os
import time
from collections.abc import Sequence
from typing import TYPE_CHECKING

from gateway.context.findings import Category, Finding, ScanItem, ScanResult, Severity

if TYPE_CHECKING:
    from gateway.ports import Detector


class Obedient:
    """`hang`, `die`, `raise`, `short`, `outside` do so; every other text gets one finding over its last character."""

    id = "obedient"
    version = "1.0.0"
    revision = "obedient-1"

    def scan(self, items: Sequence[ScanItem]) -> list[ScanResult]:
        word = items[0].text.split(" ", 1)[0] if items else ""
        if word == "hang":
            time.sleep(3600)
        if word == "die":
            os._exit(3)
        if word == "raise":
            raise RuntimeError("canary-in-an-exception")
        if word == "short":
            return []
        if word == "outside":
            return [ScanResult((self._finding(0, len(items[0].text) + 1, None),))]
        return [
            ScanResult(
                (self._finding(max(len(i.text) - 1, 0), len(i.text), i.text[-1:]),),
                i.name != "partial",
                i.name,
            )
            for i in items
        ]

    def _finding(self, start: int, end: int, value: str | None) -> Finding:
        return Finding("test.last", Category.SECRET, Severity.HIGH, 900, start, end, self.id, value)


def build() -> "Detector":
    return Obedient()


def build_other() -> "Detector":
    detector = Obedient()
    detector.revision = "obedient-2"
    return detector


def build_nothing() -> "Detector":
    raise RuntimeError("no detector today")


def build_and_die() -> "Detector":
    os._exit(9)
