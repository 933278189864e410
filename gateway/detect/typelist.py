"""What `egress scan --types` shows: one row for each type of finding."""

from __future__ import annotations

from dataclasses import dataclass, field

from gateway.context.findings import Category, Severity


@dataclass(frozen=True, slots=True)
class TypeRow:
    """A type of finding, the detector that gives it, an example, and the fact it rests on."""

    id: str
    type: str
    category: Category
    severity: Severity
    example: str = field(repr=False)
    source: str
