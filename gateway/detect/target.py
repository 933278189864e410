"""Where the hit of a trigger goes, and what looking at it costs."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from gateway.context.views import View

_VIEW_COST = 3
_VIEW_COSTS = {
    "literals": 26,
    "spaced": 8,
    "elements": 9,
    "shell_word": 5,
    "base64": 4,
    "percent": 5,
    "radix85_named": 5,
}


def view_cost(kind: str) -> int:
    """Units of the budget (`scope.Budget`) for a hit of a view; what it is made of costs beside that."""
    return _VIEW_COSTS.get(kind, _VIEW_COST)


@dataclass(frozen=True, slots=True)
class Target:
    """Where a hit goes: a rule, a family, or the finder of a view."""

    rule: int = -1
    family: int = -1
    view: str = ""  # "wrapped" alone, without a finder: a line end cuts what may be a token
    find: Callable[[str, int], View | None] | None = None
    cost: int = 1  # of looking at one hit, in units of the budget
