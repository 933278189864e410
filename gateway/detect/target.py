"""Where the hit of a trigger goes, and what looking at it costs."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from gateway.context.views import View

VIEW_COST = 3
"""Units of the budget for a hit of a view."""


@dataclass(frozen=True, slots=True)
class Target:
    """Where a hit goes: a rule, a family, or the finder of a view."""

    rule: int = -1
    family: int = -1
    view: str = ""  # "wrapped" alone, without a finder: a line end cuts what may be a token
    find: Callable[[str, int], View | None] | None = None
    cost: int = 1  # of looking at one hit, in units of the budget
