"""A second engine for secrets, with rules that others keep up: kingfisher, the extra `kingfisher`.

Loaded in a process of its own (`[plugins] detectors = ["builtin", "kingfisher"]`). It only scans: nothing that it finds
is tried against a service.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from importlib import import_module
from importlib.metadata import version
from typing import Any, Final

from gateway.context.findings import Category, Finding, ScanItem, ScanResult, Severity
from gateway.errors import DetectorError

_CONFIDENCE: Final = {"high": 800, "medium": 600, "low": 400}
_NAME: Final = re.compile(r"[^a-z0-9]+")


class Kingfisher:
    """ports.Detector."""

    id = "kingfisher"

    def __init__(self) -> None:
        """Compile its rules; ImportError where it is not installed."""
        self._scanner: Any = import_module("kingfisher_sdk").Scanner()
        self.version = version("kingfisher-secret-scanner")
        self.revision = f"kingfisher {self.version}"

    def scan(self, items: Sequence[ScanItem]) -> list[ScanResult]:
        """See ports.Detector; raises DetectorError, which holds nothing of the text."""
        try:
            return [ScanResult(tuple(self._one(item.text))) for item in items]
        except Exception as error:  # noqa: BLE001 - a library's own errors may quote the text
            raise DetectorError("detector.failed", type(error).__name__) from None

    def _one(self, text: str) -> list[Finding]:
        data = text.encode("utf-8", "replace")  # a lone surrogate becomes one byte, as it is one character
        found = []
        for each in self._scanner.scan(data.decode("utf-8")):
            place = each.location
            start, end = (
                len(data[: place[key]].decode("utf-8", "ignore")) for key in ("start_offset", "end_offset")
            )
            if 0 <= start < end <= len(text):
                kind = "other." + _NAME.sub("_", str(each.rule_id).lower().rpartition(".")[2]).strip("_")[:40]
                milli = _CONFIDENCE.get(str(each.confidence), 400)
                found.append(
                    Finding(kind, Category.SECRET, Severity.HIGH, milli, start, end, "extra.kingfisher")
                )
        return sorted(found, key=lambda f: (f.start, f.end))
