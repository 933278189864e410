"""What `egress doctor` finds."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that was looked at; `advice` says what to do where it is not right."""

    name: str
    ok: bool
    says: str
    advice: str = ""
