"""Orders that are shown, not given: quoted where a text speaks about attacks."""

from __future__ import annotations

import re
from typing import Final

from gateway.detect.dialect import compile_pattern

_REACH: Final = 240  # characters before and behind a quote in which attacks are spoken of
_SPOKEN: Final = (
    r"(?:attack(?!er[.-]\w)|payload|inject|jailbreak|malicious|detect|blocked|reject|e\.g\.|example|such as|phrase"
    r"|pattern|assert|regex|vulnerab|adversar|mitigat|tests?\b|a page saying|incident|researcher|red[^\n]team"
    r"|paper shows|succeed|suspicious|treat any|strings? like|claim)"
)
# What they begin with first is twice as fast as trying each at every place; small letters alone are four times as fast.
ATTACK: Final = compile_pattern(r"(?=[abcdeijmprstv])" + _SPOKEN, flags=re.IGNORECASE)
_ATTACK: Final = compile_pattern(_SPOKEN)
_WORKS: Final = re.compile(r"://|~/|\w@\w|/etc/|\.env\b|\.ssh\b")
QUOTED: Final = re.compile(
    r"(?:(?<![\w\\=])|(?<=[^\w][rbf]))([\"'`])(?=\w)(?:(?!\1)[^\n\\]|(?<=\w)'(?=\w)){6,300}\1(?!\w)"
    r'|\\"[^"\\\n]{6,300}\\"|“[^”\n]{6,300}”|«[^»\n]{6,300}»|„[^“”\n]{6,300}[“”]'
)
MARK: Final = re.compile(r"[\"'`\\“«„]")
"""What a quote begins with."""


def may_be_cited(text: str, start: int) -> bool:
    """Whether anything that opens a quote stands before `start`: most orders need not be looked round."""
    return MARK.search(text, max(0, start - _REACH), start + 1) is not None


def is_cited(text: str, start: int, end: int) -> bool:
    """Whether `start..end` begins in quotes in a text that speaks about attacks: a citation, not an order.

    Only what is harmless as it stands is a citation. A quote that holds an address or a path is an order that works,
    whatever is said about it, so that nobody switches a signal off by calling it an example.
    """
    low, high = max(0, start - _REACH), min(len(text), end + _REACH)
    at = low
    while (mark := MARK.search(text, at, start + 1)) is not None:
        quote = QUOTED.match(text, mark.start(), high)
        if quote is not None and start < quote.end():
            spoken = _ATTACK.search(text[low:start].lower()) or _ATTACK.search(text[end:high].lower())
            return spoken is not None and _WORKS.search(quote[0]) is None
        at = quote.end() if quote is not None else mark.end()
    return False
