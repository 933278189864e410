"""What tools print of bytes: `xxd`, `hexdump`, `od`, packet captures. The text is that of the bytes themselves."""

from __future__ import annotations

import re

from gateway.context.views.form import MAX_REGION, Pieces, View, ViewRule

_LINE = re.compile(
    r"[ \t>+|#]{0,8}[0-9A-Fa-f]{4,10}:?[ \t]{1,3}"
    r"((?:[0-9A-Fa-f]{2,8} ){1,64}(?: (?:[0-9A-Fa-f]{2} ){1,8})?(?:[0-9A-Fa-f]{2,8}(?![0-9A-Za-z]))?)"
)
_LAST = re.compile(r"[ \t>+|#]{0,8}[0-9A-Fa-f]{4,10}:?[ \t]{1,3}([0-9A-Fa-f]{2,8})(?![0-9A-Za-z])")
_END = re.compile(r"\r?\n|\\{1,4}n")
_OFFSET = re.compile(r"[0-9A-Fa-f]{0,6}")
_SHOWN = 30  # characters from the last four digits of an offset to the end of a hit
_AHEAD = 72  # characters from the start of a line to one of its bytes
_WORDS = re.compile(r"(?:[0-9A-Fa-f]{4} ?){1,8}")
_OFFSETS = re.compile(r"[^0-9A-Fa-f]")
_MORE = re.compile(r" ?[0-9A-Fa-f]{2} [0-9A-Fa-f]{2}\b")  # pairs behind those that a line of a dump has
_ROW = re.compile(
    r"[ \t>|]{0,8}[0-9a-f]{6,7}((?:   [!-~]|  \\[0abfnrtv]| [0-7]{3}|    ){1,16})(?=\r?\n|\\{1,4}n|\Z)"
)
_WIDE = 80
_CELLS = {"": " ", "\\n": "\n", "\\t": "\t", "\\r": "\r"}
_COLUMN = 64  # characters behind the bytes before the end of the line
_KIND = "hex_pairs"  # as what a list of pairs is, so that lines of a dump are not read as lists too
_SHOW = bytes(c if 32 <= c < 127 else 10 if c in b"\t\n\r" else 46 for c in range(256))


def hex_dump(text: str, at: int) -> View | None:
    """The bytes of the lines from the one that a hit is in, as text; what is no letter or sign is a full stop."""
    start = at - _SHOWN
    ahead = _OFFSET.match(text[max(0, start - 6) : max(0, start)][::-1])
    start -= ahead.end() if ahead else 0
    line = _LINE.match(text, max(0, start))
    return _lines(text, line, at) if line else None


def dump_round(text: str, start: int) -> View | None:
    """The same from the line whose bytes the pairs at `start` are; None where they are in no dump of several lines."""
    low = max(0, start - _AHEAD)
    line = _LINE.match(text, max(text.rfind("\n", low, start) + 1, low))
    if line is None or not line.start(1) <= start < line.end(1) or _MORE.match(text, line.end(1)):
        return None
    view = _lines(text, line, start, counted=True)
    return view if view and view.pieces and len(view.pieces.parts) > 1 else None


def _goes_on(line: re.Match[str], following: re.Match[str]) -> bool:
    """Whether the offset of the next line is that of its first byte, in one of the bases of offsets."""
    size = len(line[1].replace(" ", "")) // 2
    first, second = (_OFFSETS.sub("", each[0][: each.start(1) - each.start()]) for each in (line, following))
    for base in (16, 8, 10):
        try:
            if int(second, base) - int(first, base) == size:
                return True
        except ValueError:
            continue  # no number of this base
    return False


def _line_start(text: str, at: int) -> int:
    """Where the line round `at` begins, or as far back as a line of a dump can."""
    return max(text.rfind("\n", max(0, at - _WIDE), at) + 1, at - _WIDE, 0)


def word_dump(text: str, at: int) -> View | None:
    """Words of two bytes, as `hexdump` and `od -x` print them."""
    return dump_round(text, at - 1)


def _lines(text: str, line: re.Match[str] | None, read: int, *, counted: bool = False) -> View | None:
    """The lines from this one on; where they are `counted`, as far as each offset is that of its line's first byte."""
    pieces, first = Pieces(), line.start(1) if line else 0
    while line is not None and read - first < MAX_REGION:
        pieces.add(_shown(text, line), line.start(1), line.end(1))
        end = _END.search(text, line.end(), line.end() + _COLUMN)
        read = end.end() if end else line.end()
        following = (_LINE.match(text, read) or _LAST.match(text, read)) if end else None
        line = following if following and (not counted or _goes_on(line, following)) else None
    return View(_KIND, pieces.text(), first, read, pieces) if pieces.parts else None


def _shown(text: str, line: re.Match[str]) -> str:
    digits = line[1].replace(" ", "")
    raw = bytearray.fromhex(digits[: len(digits) // 2 * 2])
    if _WORDS.fullmatch(line[1]) and ":" not in text[line.start() : line.start(1)]:
        raw[::2], raw[1::2] = raw[1::2], raw[::2]  # words as a processor reads them, the lower byte first
    return raw.translate(_SHOW).decode("ascii")


def characters(text: str, at: int) -> View | None:
    """`od -c`: characters in columns of four, from the line that a hit is in, or the one before."""
    begun = _line_start(text, at)
    before = _line_start(text, max(0, begun - 1))
    row = _ROW.match(text, before) or _ROW.match(text, begun)  # the first line may have few letters
    pieces, first, read = Pieces(), row.start(1) if row else 0, at
    while row is not None and read - first < MAX_REGION:
        for start in range(row.start(1), row.end(1), 4):
            cell = text[start : start + 4].strip()
            pieces.add(_CELLS.get(cell, cell if len(cell) == 1 else "."), start, start + 4)
        end = _END.match(text, row.end())
        read = end.end() if end else row.end()
        row = _ROW.match(text, read) if end else None
    return View("characters", pieces.text(), first, read, pieces) if pieces.parts else None


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
    ViewRule(_KIND, ("[0-9a-f]{7} (?:[0-9a-f]{4} ){4}[0-9a-f]{4}",), word_dump),
    ViewRule("characters", ("[0-9a-f]{6,7}(?:   [!-~]){5}",), characters),
)
