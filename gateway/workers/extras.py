"""More detectors beside the built-in one: each in a process of its own, with a deadline.

They are plug-ins that the configuration names; none is active by itself. What they find is added where the built-in
detector found nothing. One that fails, dies or is late does not stop the scan: `deny` makes the content count as not
fully inspected, which governed and sovereign mode refuse; `flag` lets the built-in result stand, and says in the
evidence that a detector did not answer.
"""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final

from gateway.context.findings import Category, Finding, ScanItem, ScanResult, Severity
from gateway.errors import DetectorError
from gateway.workers.pool import ScanPool

SKIPPED_TYPE: Final = "detector_skipped"


@dataclass(slots=True)
class Extra:
    """One of them, by its name in the configuration."""

    name: str
    pool: ScanPool


class ExtraScans:
    """ports.Scanner: the built-in detector and the extras at the same time.

    Args:
        first: the built-in one; what it raises is raised.
        extras: the others.
        deadline_us: the longest an extra is waited for.
        is_closed: whether content that an extra did not answer for counts as not fully inspected.
    """

    def __init__(
        self,
        first: ScanPool,
        extras: Sequence[Extra],
        *,
        deadline_us: int,
        is_closed: bool,
    ) -> None:
        self._first = first
        self._extras = tuple(extras)
        self._deadline_us = deadline_us
        self._is_closed = is_closed
        self.revision = first.revision

    @property
    def queued(self) -> int:
        """Scans that wait for a process of the built-in detector."""
        return self._first.queued

    async def start(self) -> None:
        """Start every process; SetupError where one cannot build its detector."""
        await self._first.start()
        for extra in self._extras:
            await extra.pool.start()
        parts = [self._first.revision, *(f"{e.name} {e.pool.revision}" for e in self._extras)]
        self.revision = hashlib.sha256("\0".join(parts).encode()).hexdigest()[:32]

    async def close(self) -> None:
        """Kill the processes."""
        for pool in (self._first, *(extra.pool for extra in self._extras)):
            await pool.close()

    async def scan(self, items: Sequence[ScanItem], *, deadline_us: int) -> list[ScanResult]:
        """See ports.Scanner; only what the built-in detector raises is raised."""
        until = min(deadline_us, self._first.now_us() + self._deadline_us)
        asked = [asyncio.ensure_future(self._ask(extra, items, until)) for extra in self._extras]
        try:
            results = await self._first.scan(items, deadline_us=deadline_us)
            answers = await asyncio.gather(*asked)
        finally:
            for task in asked:
                task.cancel()
        for extra, answer in zip(self._extras, answers, strict=True):
            if isinstance(answer, str):
                results = [
                    self._without(result, extra.name, item, answer)
                    for result, item in zip(results, items, strict=True)
                ]
            else:
                results = [_joined(ours, theirs) for ours, theirs in zip(results, answer, strict=True)]
        return results

    async def _ask(self, extra: Extra, items: Sequence[ScanItem], until: int) -> list[ScanResult] | str:
        """The results of an extra, or the reason code of why there are none."""
        try:
            return await extra.pool.scan(items, deadline_us=until)
        except DetectorError as error:
            return error.code

    def _without(self, result: ScanResult, name: str, item: ScanItem, code: str) -> ScanResult:
        if self._is_closed:
            return replace(result, complete=False, reason=result.reason or code)
        said = Finding(
            SKIPPED_TYPE,
            Category.CLASSIFICATION,
            Severity.INFO,
            0,
            0,
            min(1, len(item.text)),
            f"extra.{name}",
        )
        return replace(result, findings=(*result.findings, said))


def _joined(ours: ScanResult, theirs: ScanResult) -> ScanResult:
    """Both results as one: where the built-in detector found something, its finding stands."""
    new = [
        f
        for f in theirs.findings
        if f.start < f.end and not any(f.start < o.end and o.start < f.end for o in ours.findings)
    ]
    if not new and theirs.complete:
        return ours
    findings = tuple(sorted((*ours.findings, *new), key=lambda f: (f.start, f.end)))
    return ScanResult(findings, ours.complete and theirs.complete, ours.reason or theirs.reason)
