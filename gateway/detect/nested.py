"""Views as texts of their own: which are worth a scan, and what one costs."""

from __future__ import annotations

from typing import Final

from gateway.context.views import View
from gateway.context.views.lines import wrapped
from gateway.detect.scope import Scope

MAX_DEPTH: Final = 4
"""Views of views."""
_MIRRORED: Final = frozenset({"reversed", "rot13"})  # turning twice gives the text that was there
_LEAST_VIEW: Final = 6  # characters, as the shortest known value has; in fewer there is nothing to find
# Units of the budget: for what a line end cuts; for the scan of a view, beside what is found in it.
_CUT_COST: Final = 4
_SCAN_COST: Final = 8
_SCANNED_CHARS: Final = 10  # of a view, for one unit more


def worth(scope: Scope, kind: str, at: int) -> bool:
    """Whether a view of this kind at `at` can show anything new."""
    if at <= scope.viewed.get(kind, 0) or scope.depth >= MAX_DEPTH:
        return False
    return scope.view is None or kind not in _MIRRORED or scope.view.kind not in _MIRRORED


def follow_cuts(scope: Scope, children: list[Scope]) -> None:
    """Queue the words that go on behind the line ends at which something seemed cut."""
    for cut in sorted(scope.cuts):
        if cut > scope.viewed.get("wrapped", 0):
            if scope.budget.hits <= 0:
                scope.leave_out(max(0, cut - 64), min(len(scope.text), cut + 256))
                continue
            scope.budget.hits -= _CUT_COST
            for view in wrapped(scope.text, cut):
                queue_view(scope, view, children)


def queue_view(scope: Scope, view: View | None, children: list[Scope]) -> None:
    """Queue a view for a scan, within the budget of its object; it costs by the pieces it was made of."""
    if view is None:
        return
    scope.viewed[view.kind] = max(scope.viewed.get(view.kind, 0), view.end)
    budget = scope.budget
    if view.pieces is not None:
        budget.hits -= len(view.pieces.parts)
    if len(view.text) < _LEAST_VIEW:
        return
    if budget.view_chars < len(view.text):
        scope.leave_out(view.start, view.end)
        return
    budget.hits -= _SCAN_COST + len(view.text) // _SCANNED_CHARS
    budget.view_chars -= len(view.text)
    children.append(Scope(view.text, scope.channel, budget, parent=scope, view=view, depth=scope.depth + 1))
