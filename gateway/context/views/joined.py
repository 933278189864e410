"""Text cut into pieces: spaced letters, string concatenation, line continuation and wraps, lists of byte values."""

from __future__ import annotations

import re

from gateway.context.views.dumps import dump_round
from gateway.context.views.form import MAX_REGION, Pieces, View, ViewRule

_JOINT = re.compile(
    r"\\{0,3}[\"'`](?:"
    r";?\r?\n[ \t]{0,24}[\w$.]{1,40} ?[+.]= ?[\"'`]|"  # k = "ab", k += "cd" on the next line
    r"[ \t]{0,8}(?:\+{1,2}|\.{1,2}|&|\|\||~|<>)?[ \t]{0,8}\\{0,2}(?:\r?\n|\\{1,3}n)?[ \t]{0,40}"
    r"(?:\+{1,2}|\.{1,2}|&|\|\|)?[ \t]{0,8}[fbru]{0,2}\\{0,3}[\"'`])"
)
_QUOTE = re.compile(r"[\"'`\\]")
_LITERAL = re.compile(r"[^\"'`\n\\]{0,400}")
_SHELL = re.compile(r"[\\`]\r?\n[ \t]{0,16}")
_WORD = re.compile(r"[^\s\"'`<>()\[\]{},;\\]{1,512}")
_BACK_WORD = re.compile(r"[^\s\"'`<>()\[\]{},;=]{1,512}")
_NUMBER = re.compile(r"0[xX]([0-9A-Fa-f]{1,2})|([0-9]{1,3})")
_LISTED = re.compile(r"[0-9a-fA-FxX, \t\n()hr+.&HW\-yt]{0,64}")
_COMMA = re.compile(r"\)?\s{0,4}[,;+.&-]?\s{0,12}(?:[Cc]hr[Ww]?\(|\(byte\) ?)?")
_CODES = re.compile(r"(?<![0-9])(?:(?:[3-9][0-9]|1[0-2][0-9])(?:, ?| )){5}\Z")
_PAIR = re.compile(r"([0-9A-Fa-f]{2})([:, -]?)")
_NEXT_LINE = re.compile(r"(?:\r?\n|\\{1,4}n)[ \t]{0,16}(?=[0-9A-Fa-f]{2}[:, -])")
_DUMPED = 16  # bytes of a line, as tools print them
_MAX_LINES = 60
_LONGEST_LITERAL = 5  # characters, as in `" + "`
_OPENS = frozenset("(,=[{\n\t ")  # what stands before a literal, with or without a space between
MAX_LIST = 4096
"""Characters of a list of literals that is read for the word they make."""
_ITEM = re.compile(r"\s{0,24},?\s{0,24}(\\{0,3}[\"'`])([^\"'`\n\\]{0,400})\1")
_GAP = re.compile(r"(?:, |  |[^A-Za-z0-9])")
_SHORT_SPACED = 7
_SPACED_BACK = 8


def concatenation(text: str, at: int) -> View | None:
    """`"ab" + "cd"`, `"ab"` with a continued line, adjacent literals."""
    joint = _first_joint(text, at)
    if joint is None or _is_a_literal(text, joint):
        return None
    low = max((text.rfind(q, max(0, joint.start() - 400), joint.start()) for q in "\"'`"), default=-1) + 1
    line = text.rfind("\n", low, joint.start()) + 1
    low = max(low, line) if low else max(line, joint.start() - 400)
    pieces, start = Pieces(), low
    while True:
        pieces.add(text[start : joint.start()], start, joint.start())
        start = joint.end()
        literal = _LITERAL.match(text, start)
        stop = literal.end() if literal else start
        following = _JOINT.match(text, stop)
        if following is None or stop - low > MAX_REGION:
            pieces.add(text[start:stop], start, stop)
            return View("concatenation", pieces.text(), low, max(stop, start), pieces)
        joint = following


def joined_list(text: str, at: int) -> View | None:
    """`"".join(["ab", "cd"])` and `["ab", "cd"].join("")`."""
    if text[max(0, at - 1) : at] == ")":
        low = text.rfind("[", max(0, at - MAX_LIST), at)
        high = text.rfind("]", max(0, at - 16), at)
    else:
        low, high = at - 1, at + MAX_LIST
    if low < 0:
        return None
    pieces = Pieces()
    item = _ITEM.match(text, low + 1, min(high, len(text)))
    while item is not None:
        pieces.add(item[2], item.start(2), item.end(2))
        item = _ITEM.match(text, item.end(), min(high, len(text)))
    return View("list", pieces.text(), low + 1, pieces.ends[-1], pieces) if len(pieces.parts) > 1 else None


def _is_a_literal(text: str, joint: re.Match[str]) -> bool:
    """Whether it is the literal `"."` that is an argument, an item or assigned, rather than what joins two."""
    if len(joint[0]) > _LONGEST_LITERAL or "\n" in joint[0] or "\\" in joint[0]:
        return False
    at = joint.start()
    if text[joint.end() : joint.end() + 1].isalnum():
        return False
    before = text[max(0, at - 2) : at]
    return before[-1:] in _OPENS or (before[-1:] == " " and before[:1] in _OPENS)


def _first_joint(text: str, at: int) -> re.Match[str] | None:
    for quote in _QUOTE.finditer(text, max(0, at - 48), at):
        joint = _JOINT.match(text, quote.start())
        if joint is not None and joint.end() >= at - 2:
            return joint
    return None


def continuation(text: str, at: int) -> View | None:
    """A backslash at the end of a line, inside a word (shells, C)."""
    cut = text.rfind("\n", max(0, at - 40), at)
    first = _SHELL.search(text, max(0, cut - 2), cut + 20) if cut >= 0 else None
    if first is None:
        return None
    head = _BACK_WORD.match(text[max(0, first.start() - 512) : first.start()][::-1])
    if head is None:
        return None
    low = first.start() - len(head[0])
    pieces, start, gap = Pieces(), low, first
    for _ in range(_MAX_LINES):
        pieces.add(text[start : gap.start()], start, gap.start())
        start = gap.end()
        word = _WORD.match(text, start)
        if word is None:
            break
        following = _SHELL.match(text, word.end())
        if following is None:
            pieces.add(word[0], start, word.end())
            start = word.end()
            break
        gap = following
    return View("continuation", pieces.text(), low, max(start, low + 1), pieces)


def spaced(text: str, at: int, *, size: int = 8) -> View | None:
    """`s k _ l i v e` or `s.k._.l`: single characters with one separator; `size` characters of it end at `at`."""
    start = max(0, at - size)
    gap = _GAP.match(text, start + 1)
    if gap is None:
        return None
    separator, step = gap[0], len(gap[0]) + 1
    if text[start - 1 : start].isalnum() and text[start - 2 : start - 1] != "\\":
        start += step  # what the hit began with ends a word
    for _ in range(_SPACED_BACK):  # identifiers begin with capitals or digits before what was seen of them
        before = text[start - step : start] if start >= step else ""
        alone = start <= step or not text[start - step - 1].isalnum()
        if before[1:] != separator or not (before[0].isupper() or before[0].isdigit()) or not alone:
            break
        start -= step
    at, end = start, len(text)
    pieces = Pieces()
    while at < end and at - start < MAX_REGION:
        if not text.startswith(separator, at + 1):
            if not text[at + 1 : at + 2].isalnum():
                pieces.add(text[at], at, at + 1)
                at += 1
            break
        pieces.add(text[at], at, at + 1)
        at += step
    if len(pieces.parts) <= _SHORT_SPACED:
        return None
    return View("spaced", pieces.text(), start, min(at, end), pieces)


def decimal_list(text: str, at: int) -> View | None:
    """`[115, 107, 95]`: six numbers of two or three digits end at `at`, and are codes of ASCII."""
    return byte_list(text, at) if _CODES.search(text, max(0, at - 30), at) is not None else None


def byte_list(text: str, at: int) -> View | None:
    """`[115, 107, 95]` or `0x73, 0x6b`: character codes."""
    at = min(at, len(text))  # what triggered may have gone on behind the last number
    before = _LISTED.match(text[max(0, at - 64) : at][::-1])
    low = at - before.end() if before else at
    number = _NUMBER.search(text, low, at)
    if number is None:
        return None
    pieces, first = Pieces(), number.start()
    while number is not None and number.end() - first < MAX_REGION:
        code = int(number[1], 16) if number[1] else int(number[2])
        if not 9 <= code < 127:
            break
        pieces.add(chr(code), number.start(), number.end())
        gap = _COMMA.match(text, number.end())
        number = _NUMBER.match(text, gap.end()) if gap and gap.end() > number.end() else None
    if len(pieces.parts) < 8:
        return None
    return View("byte_list", pieces.text(), first, pieces.ends[-1], pieces)


def hex_pairs(text: str, at: int) -> View | None:
    """`67:68:70` or `67 68 70`: pairs of hex digits with one separator; the first six of them end at `at`.

    Where lines of sixteen follow each other they are one text, and where offsets stand before them, those of a dump.
    Other lines end what they hold: a list of tokens has one in each.
    """
    start = at - 18
    dump = dump_round(text, start) if start > 0 else None
    if dump is not None:
        return dump
    pair = _PAIR.match(text, start) if start >= 0 else None
    pieces, separator, lines = Pieces(), pair[2] if pair else "", 1
    while pair is not None and pair.end() - start < MAX_REGION:
        code = int(pair[1], 16)
        if not 9 <= code < 127:
            break
        pieces.add(chr(code), pair.start(1), pair.end(1))
        full = len(pieces.parts) == lines * _DUMPED
        behind = _NEXT_LINE.match(text, pair.end()) if full else None
        if pair[2] != separator and behind is None:
            break
        lines += behind is not None
        pair = _PAIR.match(text, behind.end() if behind else pair.end())
    if len(pieces.parts) < 8:
        return None
    return View("hex_pairs", pieces.text(), start, pieces.ends[-1], pieces)


_MARKUP = re.compile(
    r"\*\*|</?[A-Za-z]{1,6}(?: [^<>\n]{0,40})?>|<!--[^<>\n]{0,40}-->|/\*[^*/\n]{0,40}\*/|\x1b\[[0-9;]{0,8}m"
)
_MARKED = re.compile(rf"(?:(?:[A-Za-z0-9_.~+=-]|/(?!\*)){{1,200}}|{_MARKUP.pattern}){{1,200}}")


_MARKED_BACK = 300  # characters before a hit in which the word begins


def marked_up(text: str, at: int) -> View | None:
    """A word with emphasis, tags or colours inside."""
    words = _MARKED.finditer(text, max(0, at - _MARKED_BACK), min(len(text), at + 2000))
    word = next((each for each in words if each.end() >= at), None)
    if word is None or word.start() >= at:
        return None
    pieces, start = Pieces(), word.start()
    for mark in _MARKUP.finditer(text, start, word.end()):
        pieces.add(text[start : mark.start()], start, mark.start())
        start = mark.end()
    pieces.add(text[start : word.end()], start, word.end())
    return View("marked_up", pieces.text(), word.start(), word.end(), pieces) if pieces.parts else None


_INSIDE = "[A-Za-z0-9_+/=.:&@#$%!*^~-]"  # what may stand on either side of a cut
_PAIRS = "[^0-9A-Za-z](?:[2-7][0-9a-fA-F][:, -]){6}"
RULES = (
    ViewRule(
        "concatenation",
        (
            "[^(,=[{\n\t ][\"'`] ?[+&~] ?[\"'`][^\n\r\t),;}]",  # `split(".")` is none, see _is_a_literal
            "[^(,=[{\n\t ][\"'`](?:[.]| [.] )[\"'`][^\\s),;}]",
            "[\"'`] ?[+.&~] ?[\"'`][A-Za-z0-9]",
            "[A-Za-z0-9_-][\"'`] ?(?: |[+][+]|[.][.]|[|][|]|<>) ?[\"'`][A-Za-z0-9_-]",
            "[A-Za-z0-9_-][\"'`];?\r?\n[ \t]{0,16}[A-Za-z_$][\\w$.]{0,24} ?[+.]= ?[\"'`]",
            "[\"'][ ]{0,2}[+]?[ ]{0,2}\\\\\r?\n[ \t]{0,24}[\"']",
            "[\"'] \\+ ?\r?\n[ \t]{0,24}[\"']",
            f"{_INSIDE}[\"']\r?\n[ \t]{{1,24}}[\"']{_INSIDE}",  # sentences are cut at a blank, tokens are not
            "[:=] [\"']\r?\n[ \t]{1,24}[\"'][^ ]",
            "[0-9] [\"']\r?\n[ \t]{1,24}[\"'][0-9]",  # but numbers in groups
            "[0-9][\"']\r?\n[ \t]{1,24}[\"'] [0-9]",
            "[0-9] ?[\"'](?: | [.] )[\"'] ?[0-9]",
            "[\"']\r?\n[ \t]{0,24}\\+ [\"']",
            '\\\\" \\+ \\\\"',
            '\\\\" \\\\\\\\\\\\n[ ]{0,12}\\\\"',
        ),
        concatenation,
    ),
    ViewRule(
        "list",
        (
            "(?:\"\"|'')[.]join\\([\\[(]",
            '\\\\"\\\\"[.]join\\([\\[(]',
            '\\][.]join\\((?:""|\'\'|``|\\\\"\\\\")\\)',
        ),
        joined_list,
    ),
    ViewRule("continuation", ("[A-Za-z0-9_-]{3}[\\\\`]\r?\n[ \t]{0,8}[A-Za-z0-9]",), continuation),
    ViewRule("hex_pairs", (_PAIRS,), hex_pairs),
    ViewRule(
        "marked_up",
        (
            "[A-Za-z0-9_-]{4}(?:[*][*]|</?(?:b|i|em|strong|span|wbr|code|u|mark)>|<!-- ?-->|/[*] ?[*]/"
            "|\x1b\\[[0-9;]{1,6}m)"
            "[A-Za-z0-9_-]{4}",
        ),
        marked_up,
    ),
    ViewRule(
        "byte_list",
        (
            "0x[2-7][0-9A-Fa-f], ?0x[2-7][0-9A-Fa-f], ?0x[2-7][0-9A-Fa-f]",
            "[(]byte[)] ?[0-9]{2,3}, ?[(]byte[)] ?[0-9]{2,3}, ?[(]byte[)]",
            "[Cc]hr[Ww]?\\([0-9]{2,3}\\) ?[+.&] ?[Cc]hr[Ww]?\\([0-9]{2,3}\\)",
        ),
        byte_list,
    ),
)
