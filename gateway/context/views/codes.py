r"""Characters written one by one as codes, and two encodings with a frame of their own.

`U+0073`, `01110011`, `\73`, `'s', 'k'`; Adobe's ASCII85 and uuencode. Most have a map back for each character.
"""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Callable
from functools import partial

from gateway.context.views.form import MAX_REGION, Pieces, View, ViewRule, around, unescape

_POINT = re.compile(r"U\+([0-9A-Fa-f]{4,6})[ ,;]{0,2}")
_BINARY = re.compile(r"(?:0b)?(0[01]{7})(?![01])[ ,]{0,2}")
_DECIMAL = re.compile(r"(0[3-9]\d|1[01]\d|12[0-6])")
_OCTAL = re.compile(r"([01][0-7]{2})[ ,]{0,2}")
_PREFIXED_OCTAL = re.compile(r"0o([0-7]{2,3})[ ,]{0,2}")
_POWERSHELL = re.compile(r"\[char\](\d{2,3})[ +,]{0,3}")
_QUOTED = re.compile(r"([^\s\"'])(?:[\"'], ?[\"'])?")
_CSS = re.compile(r"\\(0000[0-9A-Fa-f]{2}|0{0,3}[0-9A-Fa-f]{2}(?![0-9A-Fa-f]))[ ]?")
_CSS_STOP = re.compile(r"[\n\"'<>`;]")
_ASCII85 = re.compile(r"<~([!-uz\s]{10,1048576}?)~>")
_UU_LINE = re.compile(r"[!-M][ -`]{2,84}(?=\r?\n|\Z)")
_LINE_END = re.compile(r"\r?\n")
_MOST_LINES = 4096


def _listed(
    text: str, at: int, *, kind: str, opening: str, item: re.Pattern[str], read: Callable[[str], int]
) -> View | None:
    """Items side by side; the second of them ends at `at`."""
    last = text.rfind(opening, max(0, at - 16), at)
    start = text.rfind(opening, max(0, last - 16), last)
    return _items(text, start, kind, item, read) if start >= 0 else None


def _items(
    text: str, start: int, kind: str, item: re.Pattern[str], read: Callable[[str], int]
) -> View | None:
    pieces, at = Pieces(), start
    while at - start < MAX_REGION and (match := item.match(text, at)) is not None:
        code = read(match[1])
        if not 9 <= code < 0x110000 or 0xD800 <= code < 0xE000:
            break
        pieces.add(chr(code), at, match.end(1))
        at = match.end()
    return View(kind, pieces.text(), start, pieces.ends[-1], pieces) if pieces.size >= 8 else None


def binary(text: str, at: int) -> View | None:
    """`01110011 01101011 01011111`: three of them end at `at`."""
    return _items(text, at - 26, "binary", _BINARY, partial(int, base=2)) if at >= 26 else None


_BITS = re.compile(r"(0[01]{7})")


def bits(text: str, at: int) -> View | None:
    """`011100110110101101011111...`: five of them end at `at`."""
    return _items(text, at - 40, "binary", _BITS, partial(int, base=2)) if at >= 40 else None


def quoted(text: str, at: int, *, size: int) -> View | None:
    """`'s', 'k', '_', 'l'`: four of them, `size` characters, end at `at`; the outermost quotes stay."""
    return _items(text, at - size + 1, "quoted_list", _QUOTED, ord) if at >= size else None


def _css_decode(match: re.Match[str]) -> str | None:
    code = int(match[1], 16)
    return chr(code) if 32 <= code < 128 else None


def css(text: str, at: int) -> View | None:
    r"""`\73 \6b`, `\000073` (CSS Syntax 4.3.7): up to six digits, and a space that ends them."""
    return unescape("css", text, around(text, at, _CSS_STOP), _CSS, _css_decode)


def ascii85(text: str, at: int) -> View | None:
    """`<~...~>` (Adobe): the opening and five characters end at `at`."""
    run = _ASCII85.match(text, at - 7) if at >= 7 else None
    if run is None:
        return None
    try:
        raw = base64.a85decode("".join(run[1].split()))
    except ValueError:
        return None
    return View("ascii85", raw.decode("utf-8", "replace"), run.start(), run.end())


def uuencoded(text: str, at: int) -> View | None:
    """The lines after `begin 644 name` (POSIX uuencode), the first of which begins before `at`."""
    start = text.rfind("\n", 0, at) + 1
    parts: list[bytes] = []
    end = start
    while len(parts) < _MOST_LINES and (line := _UU_LINE.match(text, end)) is not None:
        try:
            parts.append(binascii.a2b_uu(line[0]))
        except binascii.Error:
            break
        gap = _LINE_END.match(text, line.end())
        end = gap.end() if gap else line.end()
        if gap is None:
            break
    return View("uuencode", b"".join(parts).decode("utf-8", "replace"), start, end) if parts else None


def three_digits(text: str, at: int) -> View | None:
    """`115107095`: decimal codes of three digits, the first nine of which end at `at`; eight are many an identifier."""
    return _items(text, at - 27, "digits", _DECIMAL, int) if at >= 27 else None


def octal_groups(text: str, at: int) -> View | None:
    """`163 153 137`: octal codes of three digits, the first eight of which end at `at`."""
    return _items(text, at - 31, "digits", _OCTAL, partial(int, base=8)) if at >= 31 else None


_POINTS = partial(_listed, kind="code_points", opening="U+", item=_POINT, read=partial(int, base=16))
_PREFIXED = partial(_listed, kind="binary", opening="0b", item=_BINARY, read=partial(int, base=2))
_CHARACTER = "[\"'][A-Za-z0-9_.-][\"']"

RULES = (
    ViewRule("code_points", ("U\\+00[2-7][0-9A-Fa-f][ ,;]{0,2}U\\+00[2-7][0-9A-Fa-f]",), _POINTS),
    ViewRule("binary", ("0[01]{7}[ ,]0[01]{7}[ ,]0[01]{7}",), binary),
    ViewRule("binary", ("0b0[01]{7}, ?0b0[01]{7}",), _PREFIXED),
    ViewRule("binary", ("[^01]" + "0[01]{7}" * 5,), bits),
    ViewRule("quoted_list", (", ".join([_CHARACTER] * 4),), partial(quoted, size=18)),
    ViewRule("quoted_list", (",".join([_CHARACTER] * 4),), partial(quoted, size=15)),
    ViewRule(
        "css",
        (
            r"\\[2-7][0-9A-Fa-f] ?\\[2-7][0-9A-Fa-f] ?\\[2-7][0-9A-Fa-f]",
            r"\\0000[2-7][0-9A-Fa-f]",
        ),
        css,
    ),
    ViewRule(
        "digits",
        ("\\[char\\][0-9]{2,3} ?[+,] ?\\[char\\][0-9]{2,3}",),
        partial(_listed, kind="digits", opening="[char]", item=_POWERSHELL, read=int),
    ),
    ViewRule(
        "digits",
        ("0o1?[0-7]{2}, ?0o1?[0-7]{2}",),
        partial(_listed, kind="digits", opening="0o", item=_PREFIXED_OCTAL, read=partial(int, base=8)),
    ),
    ViewRule("ascii85", ("<~[!-u]{5}",), ascii85),
    ViewRule("uuencode", ("begin [0-7]{3} [^\\s]{1,40}\r?\n[!-M]",), uuencoded),
)
