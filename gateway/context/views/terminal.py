r"""What a terminal shows: text without its control sequences, which tools leave in what they print.

Colours (`\x1b[32m`) stand right before a value, and where `grep` marks its hits in the middle of one; hyperlinks and
titles (OSC) carry text of their own, and `man` prints bold letters by striking them twice (`g\x08g`). Sequences are
known as bytes (ECMA-48 5.4, 8.3), as programs write them in source and JSON (`\x1b[`, `\033[`, `\e[`, `\u001b[`), and
as `cat -v` shows them (`^[[`).
"""

from __future__ import annotations

import re

from gateway.context.views.form import MAX_REGION, Pieces, View, ViewRule, around

_LINE = re.compile(r"\n")
_ESCAPE = r"(?:\x1b|\\{1,4}(?:x1[bB]|u001[bB]|u\{1[bB]\}|0?33|e)|\^\[)"
_SEQUENCE = re.compile(
    rf"{_ESCAPE}\[[0-?]{{0,32}}[ -/]{{0,4}}[@-~]"  # CSI: colours, cursor, erasing
    rf"|{_ESCAPE}\][^\x07\x1b\n]{{0,2048}}(?:\x07|\x1b\\)"  # OSC: hyperlinks, titles
    r"|\x1b[()][0-9A-Za-z]"  # character sets, which `tput sgr0` sets too
    r"|[^\n\x08]\x08"
)
_LINK = "\x1b]8;"  # the one trigger that need not be a whole sequence
_APART = 1024  # characters without a sequence after which a view ends with its line
_LONGEST = 2056  # characters of a sequence


def terminal(text: str, at: int) -> View | None:
    """The lines round `at` as a terminal shows them."""
    if text.startswith(_LINK, at - len(_LINK)) and _SEQUENCE.match(text, at - len(_LINK)) is None:
        return None  # what a line has no end of is shown
    low = start = around(text, at, _LINE)[0]
    pieces, end = Pieces(), min(len(text), low + MAX_REGION)
    while (sequence := _SEQUENCE.search(text, start, min(end, start + _APART + _LONGEST))) is not None:
        if start > low and sequence.start() - start > _APART:
            break
        pieces.add(text[start : sequence.start()], start, sequence.start())
        start = sequence.end()
    if start == low:
        return None
    rest = text.find("\n", start, min(end, start + _APART))
    high = rest if rest >= 0 else min(end, start + _APART)
    pieces.add(text[start:high], start, high)
    return View("terminal", pieces.text(), low, high, pieces)


RULES = (
    ViewRule(
        "terminal",
        (
            "\x1b\\[[0-9;:]{0,8}[A-Za-z]",
            "\x1b\\]8;",
            "[!-~]\x08[!-~]",
            r"(?:\\x1[bB]|\\u001[bB]|\\033|\\e|\^\[)\[[0-9;]{0,8}[mK]",
        ),
        terminal,
    ),
)
