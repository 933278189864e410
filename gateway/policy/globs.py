"""Patterns in rules: literal text with wildcards, bounded in number so that matching stays cheap.

`**` stands for anything; `*` for anything without the separator (`/` in pointers, nothing in names, so that
there `*` and `**` mean the same).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

MAX_WILDCARDS = 6
"""Matching may cost text^wildcards; pointers are short, and six are more than a rule needs."""


def wildcards(pattern: str) -> int:
    """How many wildcards a pattern holds."""
    return len(re.findall(r"\*+", pattern))


def matcher(patterns: Sequence[str], *, separator: str = "") -> Callable[[str], bool]:
    """A predicate that is true of texts that any of the patterns describes wholly."""
    literal = frozenset(p for p in patterns if "*" not in p)
    expressions = [_expression(p, separator) for p in patterns if "*" in p]
    if not expressions:
        return literal.__contains__
    compiled = re.compile("|".join(f"(?:{e})" for e in expressions), re.DOTALL)

    def matches(text: str) -> bool:
        return text in literal or compiled.fullmatch(text) is not None

    return matches


def _expression(pattern: str, separator: str) -> str:
    one = f"[^{re.escape(separator)}]*" if separator else ".*"
    parts = re.split(r"(\*+)", pattern)
    return "".join((".*" if len(p) > 1 else one) if p.startswith("*") else re.escape(p) for p in parts if p)
