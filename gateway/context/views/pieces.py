"""Short literals side by side that a program, a template or markup puts together.

`["ab", "cd"]`, `"%s%s" % ("ab", "cd")`, `'ab'.concat('cd')`, `.append("ab").append("cd")`, `` `${'ab'}${'cd'}` ``,
`k = "ab"` and `k += "cd"` some lines further down, `ab''cd` in a shell, `**ab****cd**`. Programs are full of
such lists: a view is worth a scan only where the pieces make up what a known token begins with (`ViewRule.guarded`).
"""

from __future__ import annotations

import re

from gateway.context.views.form import MAX_REGION, Pieces, View, ViewRule

_LITERAL = re.compile(r"[\w+/=.~!@#^&*:-]{1,200}")
_GLUE = re.compile(
    r"\\{0,3}[\"'`](?:"
    r"\s{0,4},\s{0,24}|\s{0,2}<<\s{0,2}|\s{0,2}&\s_\s{1,24}|\s{1,2}|"
    r"\)?;?\s{0,24}(?:[\w$]{1,24})?\.(?:concat|append|push|add|write)\(\s{0,4}|\}\$?\{|[ ]?-?\}\}\{\{-?[ ]?|"
    r";?\r?\n(?:[^\n\"'`]{1,60}\n){0,2}[ \t]{0,16}(?:(?:const|let|var|final) )?[\w$.]{1,24} ?(?:\+=|\.=|<<|=) ?"
    r")[fbru@]{0,2}\\{0,3}[\"'`](?:\$\{?\w{1,24}\}?)?"
)
_BACK = 240  # characters before a hit in which the first literal begins
_QUOTES = 18  # before a hit: of as many pieces as what tells a token has characters
_SHELL_WORD = re.compile(r"(?:[\w+/=.~:@-]{1,64}|[\"']{2}){2,400}")
_SHELL_BACK = re.compile(r"[\w+/=.~:@'\"-]{1,240}")
_EMPTY = re.compile(r"[\"']{2}")
_CELL = re.compile(r"[A-Za-z0-9_.~+/=-]{1,200}")
_TAGS = re.compile(r"\*{4}|_{4}|</[A-Za-z]{1,8}>\s{0,8}<[A-Za-z]{1,8}(?: [^<>\n]{0,40})?>")
_MARK = re.compile(r"[\"'`]")
_FIRST = re.compile(
    rf"[\"'`](?={_LITERAL.pattern}{_GLUE.pattern})"
)  # what a literal with one behind it begins with


def literals(text: str, at: int) -> View | None:
    """The literals round `at`, one after the other."""
    read = 0
    marks = [mark.start() for mark in _MARK.finditer(text, max(0, at - _BACK), at)][-_QUOTES:]
    # What glues a literal to the next may lie behind the hit.
    for quote in _FIRST.finditer(text, marks[0], min(len(text), at + _BACK)) if marks else ():
        if quote.start() >= at:
            break
        if quote.end() < read:
            continue  # inside the literals that were read from one before
        view = _chain(text, quote.end())
        if view is not None and view.end >= at - 1:
            return view
        read = view.end if view is not None else 0
    return None


def _chain(text: str, start: int) -> View | None:
    """The pieces from `start`, the first character of a literal, as long as what joins literals stands between them."""
    pieces, at = Pieces(), start
    while at - start < MAX_REGION:
        literal = _LITERAL.match(text, at)
        if literal is None:
            break
        pieces.add(literal[0], at, literal.end())
        glue = _GLUE.match(text, literal.end())
        if glue is None:
            break
        at = glue.end()
    return View("literals", pieces.text(), start, pieces.ends[-1], pieces) if len(pieces.parts) > 1 else None


def _without(
    kind: str, text: str, low: int, at: int, word: re.Pattern[str], joint: re.Pattern[str]
) -> View | None:
    """The word round `at`, which begins behind `low`, without what stands between its parts."""
    for match in word.finditer(text, low, min(len(text), at + MAX_REGION)):
        if match.end() < at - 1:
            continue
        pieces, start = Pieces(), match.start()
        for gap in joint.finditer(text, start, match.end()):
            pieces.add(text[start : gap.start()], start, gap.start())
            start = gap.end()
        pieces.add(text[start : match.end()], start, match.end())
        several = len(pieces.parts) > 1
        return View(kind, pieces.text(), match.start(), match.end(), pieces) if several else None
    return None


def shell_word(text: str, at: int) -> View | None:
    """A word of a shell with empty quotes inside."""
    ahead = _SHELL_BACK.match(text[max(0, at - _BACK) : at][::-1])
    return _without("shell_word", text, at - ahead.end() if ahead else at, at, _SHELL_WORD, _EMPTY)


_CELLS = re.compile(rf"(?:{_CELL.pattern}(?:{_TAGS.pattern})){{1,400}}{_CELL.pattern}")


def elements(text: str, at: int) -> View | None:
    """Elements or emphasis side by side."""
    return _without("elements", text, max(0, at - _BACK), at, _CELLS, _TAGS)


_JOINTS = (
    "\\}\\$?\\{[\"'`]",
    " ?\\}\\}\\{\\{ ?[\"'`]",
    " {0,2}<< {0,2}[\"']",
    " & _\r?\n[ \t]{0,16}[\"']",
    ";?\r?\n[ \t]{0,16}[\\w$.]{1,24} << [\"']",
    ";?\r?\n[ \t]{0,16}\\w{1,12}=[\"']\\$\\{?\\w{1,12}\\}?",
    ";?\r?\n[^\n\"'`]{1,40}\n[ \t]{0,16}[\\w$.]{1,24} ?[+.]= ?[\"']",
    "\\)?(?:;?\r?\n[ \t]{0,16}[\\w$]{0,24})?[.](?:concat|append|push|write)\\( ?[\"'`]",
)
RULES = (
    ViewRule(
        "literals",
        (f"[A-Za-z0-9_-][\"'`](?:{'|'.join(_JOINTS)})[A-Za-z0-9_-]",),
        literals,
        guarded=True,
    ),
    ViewRule("shell_word", ("[A-Za-z0-9_-][\"']{2}[A-Za-z0-9_-]",), shell_word, guarded=True),
    ViewRule(
        "elements",
        (
            ">[A-Za-z0-9_-]</[A-Za-z]{1,6}><[A-Za-z]{1,6}>[A-Za-z0-9_-]</[A-Za-z]{1,6}><[A-Za-z]{1,6}>[A-Za-z0-9_-]<",
            "[A-Za-z0-9_-]{2}(?:[*]{4}|</[A-Za-z]{1,6}>[ \n]{0,4}<[A-Za-z]{1,6}>)[A-Za-z0-9_-]{2}",
        ),
        elements,
        guarded=True,
    ),
)
