"""Escapes that stand for single characters: percent, backslash, line ends, HTML entities, quoted-printable."""

from __future__ import annotations

import re

from gateway.context.views.form import View, ViewRule, around, unescape

_BREAKS = re.compile(r"[\s\"'<>`]")
_SPACES = re.compile(r"\s")
_LINE = re.compile(r"\n")
_LINE_ESCAPE = re.compile(r"\\{1,8}(?:[nrtf]|x(?:20|0[9aAdD])|u00(?:20|0[9aAdD]))")
_SOFT = re.compile(r"(?<!=)\r?\n|[ \t]")
_PERCENT = re.compile(r"(?:%[0-9A-Fa-f]{2}){1,20000}|%u([0-9A-Fa-f]{4})")
_BACKSLASH = re.compile(
    r"\\{1,8}u(?P<pair>[dD][89abAB][0-9A-Fa-f]{2}\\{1,8}u[dD][c-fC-F][0-9A-Fa-f]{2})"
    r"|\\{1,8}(?:u([0-9A-Fa-f]{4})|u\{([0-9A-Fa-f]{1,6})\}|U([0-9A-Fa-f]{8})|x([0-9A-Fa-f]{2})|([0-3][0-7]{2}|[4-7][0-7])|([/_*-]))"
)
_ENTITY = re.compile(r"&(?:#([0-9]{2,7})|#[xX]([0-9A-Fa-f]{2,6})|([A-Za-z]{2,9}));?")
_NAMES = {
    "amp": "&", "lt": "<", "gt": ">", "quot": '"', "apos": "'", "lowbar": "_", "UnderBar": "_", "hyphen": "-",
    "dash": "-", "commat": "@", "period": ".", "colon": ":", "equals": "=", "sol": "/", "plus": "+",
    "num": "#", "dollar": "$", "percnt": "%", "excl": "!", "ast": "*", "nbsp": " ", "semi": ";", "comma": ",",
    "lpar": "(", "rpar": ")", "bsol": "\\",
}  # fmt: skip
_QUOTED = re.compile(r"=(?:([0-9A-F]{2})|\r?\n)")


_PLUS = re.compile(r"\+")


_BEFORE = 2048  # characters before a hit, in lines that soft breaks end


def _char(code: int) -> str | None:
    return chr(code) if 9 <= code < 0x110000 and not 0xD800 <= code < 0xE000 else None


def _percent_decode(match: re.Match[str]) -> str | None:
    return (
        _char(int(match[1], 16)) if match[1] else bytes.fromhex(match[0].replace("%", "")).decode("latin-1")
    )


def percent(text: str, at: int) -> View | None:
    """`%5F` (RFC 3986 2.1)."""
    return unescape("percent", text, around(text, at, _BREAKS), _PERCENT, _percent_decode)


def _backslash_decode(match: re.Match[str]) -> str | None:
    pair, four, braced, eight, two, octal, slash = match.groups()
    if pair:
        high, low = int(pair[:4], 16), int(pair[-4:], 16)
        return chr(0x10000 + ((high - 0xD800) << 10) + low - 0xDC00)
    if slash:
        return slash
    if octal:
        return _char(int(octal, 8))
    return _char(int(four or braced or eight or two, 16))


def backslash(text: str, at: int) -> View | None:
    r"""`\u005f`, `\x5f`, `\137`, `\/`, with any number of backslashes (JSON in JSON)."""
    return unescape("backslash", text, around(text, at, _BREAKS), _BACKSLASH, _backslash_decode)


def line_escapes(text: str, at: int) -> View | None:
    r"""Line ends and blanks as JSON and source write them (`\n`, `\u0020`), before what needs an edge on its left."""
    return unescape("line_escapes", text, around(text, at, _LINE), _LINE_ESCAPE, lambda _: "\n")


def _entity_decode(match: re.Match[str]) -> str | None:
    if match[3]:
        return _NAMES.get(match[3])
    return _char(int(match[1]) if match[1] else int(match[2], 16))


def entities(text: str, at: int) -> View | None:
    """`&#95;`, `&#x5f;`, `&lowbar;` (HTML)."""
    return unescape("html_entities", text, around(text, at, _SPACES), _ENTITY, _entity_decode)


def _quoted_decode(match: re.Match[str]) -> str | None:
    return _char(int(match[1], 16)) if match[1] else ""


def quoted_printable(text: str, at: int) -> View | None:
    """`=5F` and soft line breaks (RFC 2045 6.7)."""
    low, high = around(text, at, _SPACES, before=512, after=16_384)
    floor = max(2, at - _BEFORE)
    while low > floor and text[low - 2 : low] == "=\n":  # a soft break goes on where the line before ended
        low = around(text, low - 2, _SPACES)[0]
    end = _SOFT.search(text, min(at, high), min(len(text), at + 16_384))
    high = end.start() if end else min(len(text), at + 16_384)
    return unescape("quoted_printable", text, (low, high), _QUOTED, _quoted_decode)


def form_blanks(text: str, at: int) -> View | None:
    """`card=4929+1234+5678+9012`: a plus sign for each blank (application/x-www-form-urlencoded)."""
    return unescape("form_blanks", text, around(text, at, _BREAKS), _PLUS, lambda _: " ")


RULES = (
    ViewRule("percent", ("%[2-7][0-9A-Fa-f]", "%u00[2-7][0-9A-Fa-f]"), percent),
    ViewRule(
        "backslash",
        (
            r"\\u00[2-7][0-9A-Fa-f]",
            r"\\u[dD](?:835|b40)\\{1,4}u[dD][c-fC-F][0-9A-Fa-f]{2}",  # letters of mathematics, tags
            r"\\U000000[2-7][0-9A-Fa-f]",
            r"\\u\{[2-7][0-9A-Fa-f]\}",
            r"\\x[2-7][0-9A-Fa-f]",
            r"\\[01][0-7][0-7]\\[01][0-7][0-7]",
            r":\\/\\/",
            r"[A-Za-z0-9]\\[_-][A-Za-z0-9]{2}",
        ),
        backslash,
    ),
    ViewRule(
        "line_escapes",
        (r"\\(?:[nrtf]|x20|x0[9aAdD]|u0020|u000[9aAdD])[0-9+(]", r"\\[nrtf][A-Z]{2}[0-9]"),
        line_escapes,
    ),
    ViewRule(
        "html_entities",
        (
            "&#[0-9]{2}",
            "&#[xX][2-7]",
            "&lowbar",
            "&UnderB",
            "&hyphen",
            "&commat",
            "&period",
            "&equals",
            "&quot;[:=] {0,1}&quot;",
            "=&quot;[^&]",
        ),
        entities,
    ),
    ViewRule(
        "quoted_printable",
        (
            "=[2-7][0-9A-F]=[2-7][0-9A-F]",
            "=5F[A-Za-z0-9]{3}",
            "=2D[A-Za-z0-9]{3}",
            "[A-Za-z0-9_-]{6}=\r?\n[A-Za-z0-9]{2}",
        ),
        quoted_printable,
    ),
)
