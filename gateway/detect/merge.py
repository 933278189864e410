"""One list of findings out of what all detectors saw: no overlaps within a kind, the surest name wins."""

from __future__ import annotations

from collections.abc import Iterable
from operator import attrgetter

from gateway.context.findings import Category, Finding, Severity

_PLACE = attrgetter("start", "end")
_RANKS = {severity: rank for rank, severity in enumerate(Severity)}
_GENERIC = ("assignment", "uri-", "http-", "curl-", "kubernetes", "netrc", "docker-config", "prose-")


def merge(findings: Iterable[Finding]) -> tuple[Finding, ...]:
    """Merge overlaps; injection signals are kept apart from data, as they may cover what holds a secret."""
    signals: list[Finding] = []
    data: list[Finding] = []
    for finding in findings:
        (signals if finding.category is Category.PROMPT_INJECTION else data).append(finding)
    merged = _fold(data)
    return tuple(sorted(merged + _fold(signals), key=_PLACE) if signals else merged)


def _fold(findings: list[Finding]) -> list[Finding]:
    findings.sort(key=lambda f: (f.start, -f.end))
    merged: list[Finding] = []
    for finding in findings:
        if merged and finding.start < merged[-1].end:
            merged[-1] = _join(merged[-1], finding)
        else:
            merged.append(finding)
    return merged


def _rank(finding: Finding) -> tuple[int, int, int, int, str]:
    """How much a finding's name is trusted: secrets before others, specific before generic, then confidence."""
    specific = not finding.detector.startswith(_GENERIC)
    secret = finding.category is Category.SECRET
    return (secret, specific, finding.confidence_milli, _RANKS[finding.severity], finding.type)


def _join(a: Finding, b: Finding) -> Finding:
    if {a.category, b.category} == {Category.SECRET, Category.PII}:
        return (
            a if a.category is Category.SECRET else b
        )  # `pw@host` looks like an address; the host stays readable
    best, other = (a, b) if _rank(a) >= _rank(b) else (b, a)
    start, end = min(a.start, b.start), max(a.end, b.end)
    if best.category is Category.CLASSIFICATION and other.category is not Category.CLASSIFICATION:
        best, other = other, best
    if (best.end - best.start) * 2 < end - start and other.category is best.category:
        best, other = other, best  # a small part does not name the whole
    whole = (best.start, best.end) == (start, end)
    same = (other.start, other.end) == (start, end)
    value = (
        best.value
        if whole and not (same and other.value != best.value and other.category is best.category)
        else None
    )
    severity = max(a.severity, b.severity, key=_RANKS.__getitem__)
    if (
        whole
        and value is best.value
        and severity is best.severity
        and best.confidence_milli >= other.confidence_milli
    ):
        return best
    return Finding(
        best.type,
        best.category,
        severity,
        max(a.confidence_milli, b.confidence_milli),
        start,
        end,
        best.detector,
        value,
    )
