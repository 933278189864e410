"""Decoded and folded forms of a text, each with a map back to the original span.

Most kinds are found at a trigger that the pattern engine sees (`VIEW_RULES`), Unicode look-alikes on texts that are not
ASCII (`folded`). To add a kind: a function from (text, end of the hit) to a View, and a row of VIEW_RULES.
"""

from __future__ import annotations

from gateway.context.views import codes, dumps, encoded, escapes, folded, joined, pieces, radix85, terminal
from gateway.context.views.form import View, ViewRule

VIEW_RULES: tuple[ViewRule, ...] = (
    *encoded.RULES,
    *escapes.RULES,
    *joined.RULES,
    *codes.RULES,
    *dumps.RULES,
    *terminal.RULES,
    *pieces.RULES,
    *radix85.RULES,
)

__all__ = ["VIEW_RULES", "View", "ViewRule", "folded"]
