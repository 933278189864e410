"""What tools print of bytes: `xxd`, `hexdump -C`, `od -t x1`, packet captures. The text is that of the hex column."""

from __future__ import annotations

import re

from gateway.context.views.form import MAX_REGION, Pieces, View, ViewRule

_END = r"(?:\r?\n|\\{1,4}n|\Z)"
_LINE = re.compile(
    r"[ \t>+|#]{0,8}(?<![0-9A-Za-z])[0-9A-Fa-f]{4,10}:?[ \t]{1,3}"
    r"((?:(?:[0-9A-Fa-f]{2}){1,4} ){0,15}(?:[0-9A-Fa-f]{2}){1,4}(?:  (?:[0-9A-Fa-f]{2} ){0,7}[0-9A-Fa-f]{2})?)"
    r"(?![0-9A-Fa-f])"
    rf"(?:[^\n]{{0,40}}?{_END})"
)
_START = re.compile(r"\n|\\n")
_LONGEST = 200  # characters of a line
_BACK = 64  # characters before a hit in which its line begins
_VISIBLE = frozenset(range(32, 127))
_SPACES = frozenset(b"\t\n\r ")


def hex_dump(text: str, at: int) -> View | None:
    """The bytes of the lines from the one that a hit is in, as text; what is no letter or sign is a full stop."""
    low = max(0, at - _BACK)
    low = max([low, *(match.end() for match in _START.finditer(text, low, at))])
    line = _LINE.search(text, low, min(len(text), at + _LONGEST))
    if line is None or line.start() >= at:
        return None
    pieces, first = Pieces(), line.start(1)
    while line is not None and line.end() - first < MAX_REGION:
        raw = bytes.fromhex(line[1].replace(" ", ""))
        shown = "".join(chr(c) if c in _VISIBLE else "\n" if c in _SPACES else "." for c in raw)
        pieces.add(shown, line.start(1), line.end(1))
        line = _LINE.match(text, line.end())
    return View("hex_dump", pieces.text(), first, pieces.ends[-1], pieces)


RULES = (
    ViewRule(
        "hex_dump",
        (
            "[0-9a-f]{8}: (?:[0-9a-f]{4} ){4}",
            "[0-9a-f]{4}[: ][ \t]{1,2}(?:[0-7][0-9a-f] ){8}",
            "[0-9A-F]{4}[: ][ \t]{1,2}(?:[0-7][0-9A-F] ){8}",
        ),
        hex_dump,
    ),
)
