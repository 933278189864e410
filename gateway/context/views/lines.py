"""Words that a line end cuts: a token over two or more lines of a hard-wrapped text.

Where the word ends cannot be told from the lines, as the next line may be prose: there is one view for each number of
lines, and the pattern of a token decides which of them it is.
"""

from __future__ import annotations

import re

from gateway.context.views.form import Pieces, View

MAX_LINES = 40
"""Lines that one word may be cut into."""
_BRIEF = 6  # lines after which there is no view for each further one
_SHORT = 256  # characters of a region that has two more: it was cut into small pieces
_ALIKE = 3  # characters with which the tokens of a list begin
_LEAST = 16  # characters of a joined word that can be a token
_END = r"(?:\r?\n|\\{1,4}(?:r\\{1,4})?n)"
_NUMBERED = r"[ \t]{0,8}[0-9]{1,6}(?:\t|→|: ?| \| ?)(?![A-Za-z_][\w.-]{0,60}[=:(](?![\s=]))"
_REST_ALONE = r"(?=[A-Za-z0-9+/_=.~@-]{2,200}(?:[\"'`,;]|[ \t]{0,2}(?:" + _END + r"|\Z)))"
SEAM = (
    _END + "(?:" + _NUMBERED + _REST_ALONE + r"|[\w./-]{1,60}:[0-9]{1,6}[:-]"
    r"|[ \t]{0,8}//[ \t]{0,4}|[ \t|>#*+]{0,8}(?:- )?[ \t]{0,4})"
)
"""A line end, as such or as JSON writes it, and what may stand before the rest of a word: a mark of quotation or
removal, a place in a file, or the number that a tool puts there where nothing but the rest of the word follows it."""
_SEAM = re.compile(SEAM)
_KEY_LIKE = re.compile(r"[0-9_@]")
_WORD = re.compile(r"[^\s\"'`<>()\[\]{},;\\]{1,512}")
_BACK_WORD = re.compile(r"[^\s\"'`<>()\[\]{},;=\\]{1,512}")
_DASHED = re.compile(r"[0-9]{3}-[0-9]{2,4}-[0-9]{4}")


_NAME = r"[A-Za-z_][\w.-]{0,60}"
_OF_ITS_OWN = re.compile(
    rf"(?:[A-Za-z][a-z]{{1,24}}|[A-Z][A-Z_]{{1,24}}|[0-9]{{1,6}})|{_NAME}(?::|=[^=]).{{0,200}}|({_NAME})",
    re.DOTALL,
)
_LINE_END = re.compile(_END)
_MARGIN = re.compile(rf"(?:{_END})+(?:[ \t]{{0,8}}[0-9]{{1,6}}(?:\t|→|: ?| \| ?))?[ \t|>#*+/-]{{0,16}}")
_SET = frozenset("=:(")  # what follows a name that something is set to or done with


def behind_line_end(text: str, start: int, end: int) -> str | None:
    """What stands in `start..end` behind the one line end that it begins with, without marks and numbers of lines."""
    margin = _MARGIN.match(text, start, end)
    rest = text[margin.end() : end] if margin else None
    return rest if rest is not None and _LINE_END.search(rest) is None else None


def is_of_its_own(rest: str, following: str) -> bool:
    """Whether what stands behind a line end is a line's own first word, where what stands before it is whole already.

    A word of one case, a short number, or a name that `following`, the character behind it, sets or calls.
    """
    own = _OF_ITS_OWN.fullmatch(rest)
    return own is not None and (own[1] is None or following in _SET)


def begins_alike(text: str, begin: int, following: int) -> bool:
    """Whether what follows a line end begins as the word before it: the next of a list, not the rest of that word."""
    return text.startswith(text[begin : begin + _ALIKE], following)


def wrapped(text: str, at: int) -> tuple[View, ...]:
    """The words that begin before the line end next before `at` and go on behind it, shortest first.

    One view without text where these lines hold no word that can be a token, from whichever of them it is read.
    """
    cut = max(text.rfind("\n", max(0, at - 40), at), text.rfind("\\n", max(0, at - 40), at))
    seam = _SEAM.search(text, max(0, cut - 4), cut + 20) if cut >= 0 else None
    head = _BACK_WORD.match(text[max(0, seam.start() - 512) : seam.start()][::-1]) if seam else None
    if seam is None or head is None:
        return ()
    low = start = seam.start() - len(head[0])
    if begins_alike(text, low, seam.end()):
        return ()
    runs: list[tuple[int, int]] = []
    views: list[View] = []
    gap: re.Match[str] | None = seam
    while gap is not None and len(runs) < MAX_LINES:
        runs.append((start, gap.start()))
        start = gap.end()
        word = _WORD.match(text, start)
        if word is None:
            break
        gap = _SEAM.match(text, word.end())
        last = gap is None or len(runs) + 1 == MAX_LINES
        small = len(runs) < _BRIEF + 2 and word.end() - low <= _SHORT
        if len(runs) < _BRIEF or last or small:
            views += _joined(text, low, [*runs, word.span()])
    read = runs[-1 if len(runs) < MAX_LINES else -_BRIEF][1]  # a word may begin in the last lines and go on
    return tuple(views) or (View("wrapped", "", low, read),)


def _joined(text: str, low: int, runs: list[tuple[int, int]]) -> list[View]:
    pieces = Pieces()
    for start, end in runs:
        pieces.add(text[start:end], start, end)
    joined = pieces.text()
    key_like = _KEY_LIKE.search(joined) is not None or joined.swapcase() != joined.upper()
    long = len(joined) >= _LEAST or _DASHED.fullmatch(joined.lstrip("+")) is not None
    return [View("wrapped", joined, low, runs[-1][1], pieces)] if long and key_like else []
