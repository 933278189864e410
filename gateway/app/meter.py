"""The Meter port over the process's metrics and its log. Never content: a fault is a type and a place."""

from __future__ import annotations

import traceback
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import PurePath
from typing import Any

from gateway.ports import AnswerFinding, Ending
from gateway.telemetry.metrics import Metrics


@dataclass(frozen=True, slots=True)
class MetricsMeter:
    """ports.Meter; `log` takes an event name and allow-listed fields."""

    metrics: Metrics
    log: Callable[..., None]

    def evaluated(self, microseconds: int, size: int) -> None:
        """See ports.Meter."""
        self.metrics.evaluated(microseconds / 1e6)

    def appended(self, microseconds: int) -> None:
        """See ports.Meter."""
        self.metrics.appended(microseconds / 1e6)

    def decided(self, effect: str, provider: str, objects: Sequence[Any]) -> None:
        """See ports.Meter."""
        self.metrics.request(effect, provider, (item.decision.disposition for item in objects))
        found = Counter(
            (finding.type, str(finding.severity))
            for item in objects
            if item.fresh
            for finding in item.scanned.findings
        )
        for (kind, severity), count in found.items():
            self.metrics.findings(kind, severity, count)
        for code in (c for item in objects for c in item.decision.shadow if c.startswith("shadow.")):
            self.metrics.shadow(code)

    def failed_closed(self, code: str) -> None:
        """See ports.Meter."""
        self.metrics.failed_closed(code)
        self.log("failed_closed", code=code)

    def fault(self, error: Exception) -> None:
        """See ports.Meter."""
        frames = traceback.extract_tb(error.__traceback__)
        last = frames[-1] if frames else None
        module, line = (
            (PurePath(last.filename).name, last.lineno or 0) if last is not None else ("unknown", 0)
        )
        self.metrics.failed_closed("gateway.error")
        self.log("fault", level="error", error_type=type(error).__name__, module=module, line=line)

    def concluded(self, ending: Ending) -> None:
        """See ports.Meter."""
        self.metrics.placeholders(restored=ending.placeholders_restored, withheld=ending.restore_withheld)

    def answered(self, findings: Sequence[AnswerFinding]) -> None:
        """See ports.Meter."""
        for finding in findings:
            self.metrics.answer_findings(finding.type, finding.severity, finding.count)

    def connection(self, action: str, reason_code: str) -> None:
        """See ports.Meter."""
        self.metrics.connection(action)
