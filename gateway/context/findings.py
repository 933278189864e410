"""Findings: what a detector saw, where, and how sure it is. Never the text itself in a `repr`."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import NamedTuple, override


class Category(StrEnum):
    """Detector categories of the contract (§3.1)."""

    SECRET = "secret"  # noqa: S105 - the name of a category
    PII = "pii"
    PROMPT_INJECTION = "prompt_injection"
    CLASSIFICATION = "classification"
    POLICY = "policy"
    CUSTOM = "custom"


class Severity(StrEnum):
    """Severities of the contract (§3.1), least first."""

    INFO = "info"
    LOW = "low"
    MEDIUM = "medium"
    HIGH = "high"
    CRITICAL = "critical"

    @property
    def rank(self) -> int:
        """0 for info to 4 for critical."""
        return list(Severity).index(self)


# There are thousands in a dense list, and a frozen dataclass takes three times as long to make.
class Finding(NamedTuple):
    """Something seen in one text, half-open in characters of that text.

    `value` is the secret or datum itself where it differs from `text[start:end]` (it stood there in an encoded form);
    it is what placeholders are derived from. It never leaves the process.
    """

    type: str
    category: Category
    severity: Severity
    confidence_milli: int
    start: int
    end: int
    detector: str
    value: str | None = None

    @override
    def __repr__(self) -> str:
        return f"Finding({self.type}, {self.start}..{self.end})"


@dataclass(frozen=True, slots=True)
class ScanItem:
    """One text to scan, with the member or key name that holds it and who speaks in it."""

    text: str
    name: str = ""
    channel: str = "other"

    @override
    def __repr__(self) -> str:
        return f"ScanItem({len(self.text)} chars)"


@dataclass(frozen=True, slots=True)
class ScanResult:
    """What the detectors saw in one ScanItem.

    `complete` is false where a budget ran out; then `reason` is a reason code (`coverage.budget_exhausted`) and a
    coarse finding masks every region that was not looked at: never silence.
    """

    findings: tuple[Finding, ...] = ()
    complete: bool = True
    reason: str = ""


@dataclass(frozen=True, slots=True)
class Edit:
    """Replace characters `start..end` of a leaf's text."""

    start: int
    end: int
    replacement: str

    @override
    def __repr__(self) -> str:
        return f"Edit({self.start}..{self.end})"
