"""Orders that are shown, not given: quoted where a text speaks about attacks."""

from __future__ import annotations

import re
from typing import Final

_REACH: Final = 240  # characters before and behind a quote in which attacks are spoken of
ATTACK: Final = re.compile(
    r"attack(?!er[.-]\w)|payload|inject|jailbreak|malicious|detect|blocked|reject|e\.g\.|example|such as|phrase|pattern"
    r"|assert|regex|vulnerab|adversar|mitigat|tests?\b|a page saying|incident|researcher|red.team|paper shows|succeed"
    r"|suspicious|treat any|strings? like|claim",
    re.IGNORECASE,
)
_WORKS: Final = re.compile(r"://|~/|\w@\w|/etc/|\.env\b|\.ssh\b")
QUOTED: Final = re.compile(
    r"(?:(?<![\w\\=])|(?<=[^\w][rbf]))([\"'`])(?=\w)(?:(?!\1)[^\n\\]|(?<=\w)'(?=\w)){6,300}\1(?!\w)"
    r'|\\"[^"\\\n]{6,300}\\"|“[^”\n]{6,300}”|«[^»\n]{6,300}»|„[^“”\n]{6,300}[“”]'
)
MARK: Final = re.compile(r"[\"'`\\“«„]")
"""What a quote begins with."""


def is_cited(text: str, start: int, end: int) -> bool:
    """Whether `start..end` begins in quotes in a text that speaks about attacks: a citation, not an order.

    Only what is harmless as it stands is a citation. A quote that holds an address or a path is an order that works,
    whatever is said about it, so that nobody switches a signal off by calling it an example.
    """
    low, high = max(0, start - _REACH), min(len(text), end + _REACH)
    if MARK.search(text, low, start + 1) is None:
        return False
    for quote in QUOTED.finditer(text, low, high):
        if quote.start() > start:
            return False
        if start < quote.end():
            spoken = ATTACK.search(text, low, start) or ATTACK.search(text, end, high)
            return spoken is not None and _WORKS.search(quote[0]) is None
    return False
