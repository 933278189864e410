"""What tools print of bytes: `xxd`, `hexdump -C`, packet captures. The text is that of the hex column."""

from __future__ import annotations

import re

from gateway.context.views.form import MAX_REGION, Pieces, View, ViewRule

_LINE = re.compile(
    r"[ \t>+|#]{0,8}[0-9A-Fa-f]{4,10}:?[ \t]{1,3}"
    r"((?:[0-9A-Fa-f]{2,8} ){1,16}(?: (?:[0-9A-Fa-f]{2} ){1,8})?(?:[0-9A-Fa-f]{2,8}(?![0-9A-Za-z]))?)"
)
_LAST = re.compile(r"[ \t>+|#]{0,8}[0-9A-Fa-f]{4,10}:?[ \t]{1,3}([0-9A-Fa-f]{2,8})(?![0-9A-Za-z])")
_END = re.compile(r"\r?\n|\\{1,4}n")
_OFFSET = re.compile(r"[0-9A-Fa-f]{0,6}")
_SHOWN = 30  # characters from the last four digits of an offset to the end of a hit
_COLUMN = 64  # characters behind the bytes before the end of the line
_KIND = "hex_pairs"  # as what a list of pairs is, so that lines of a dump are not read as lists too
_SHOW = bytes(c if 32 <= c < 127 else 10 if c in b"\t\n\r" else 46 for c in range(256))


def hex_dump(text: str, at: int) -> View | None:
    """The bytes of the lines from the one that a hit is in, as text; what is no letter or sign is a full stop."""
    start = at - _SHOWN
    ahead = _OFFSET.match(text[max(0, start - 6) : max(0, start)][::-1])
    start -= ahead.end() if ahead else 0
    line = _LINE.match(text, max(0, start))
    pieces, first, read = Pieces(), line.start(1) if line else 0, at
    while line is not None and read - first < MAX_REGION:
        digits = line[1].replace(" ", "")
        raw = bytes.fromhex(digits[: len(digits) // 2 * 2])
        shown = raw.translate(_SHOW).decode("ascii")
        pieces.add(shown, line.start(1), line.end(1))
        end = _END.search(text, line.end(), line.end() + _COLUMN)
        read = end.end() if end else line.end()
        line = (_LINE.match(text, read) or _LAST.match(text, read)) if end else None
    return View(_KIND, pieces.text(), first, read, pieces) if pieces.parts else None


RULES = (
    ViewRule(
        _KIND,
        (
            "[0-9a-f]{4}: (?:[0-9a-f]{4} ){4}[0-9a-f]{4}",
            "[0-9a-f]{4}[: ][ \t](?:[0-7][0-9a-f] ){8}",
            "[0-9a-f]{6} (?:[0-7][0-9a-f] ){8}",
            "[0-9A-F]{4}[: ][ \t](?:[0-7][0-9A-F] ){8}",
        ),
        hex_dump,
    ),
)
