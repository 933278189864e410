"""Base 85 and ASCII85 without the marks that frame them.

Four characters of text make five, so that what a known token begins with is a literal in its encoding too; and where a
program names the encoding, the next long run is decoded whatever it begins with.
"""

from __future__ import annotations

import base64
import re
from collections.abc import Callable

from gateway.context.views.form import View, ViewRule

GROUP = 5
"""Characters that stand for four bytes."""
_CLOSES = "\"'`),;]}"  # what may belong to the text behind a run
_WORD = re.compile(r"\S{20}")
_LONGEST = 65_536
_STRIDE = 128 * GROUP  # read at once, where as much before it was text
_LEAD = re.compile(r"\w{0,12}[\s(:=]{0,6}(?:b?[\"'`])?")  # between the name of the encoding and the run
_LEAST = 12  # characters of decoded text

type Decoder = Callable[[str], bytes]
DECODERS: tuple[Decoder, ...] = (base64.b85decode, base64.a85decode)
"""Of the two alphabets, in the order of `heads`."""


def heads(literal: str) -> tuple[str, ...]:
    """What four characters of text, or more, begin with in the two alphabets."""
    packed = literal[: len(literal) // 4 * 4].encode("ascii")
    return base64.b85encode(packed).decode(), base64.a85encode(packed).decode()


def radix85(text: str, at: int, *, size: int = GROUP, decode: Decoder = base64.b85decode) -> View | None:
    """The run in one of the alphabets whose first `size` characters end at `at`."""
    return _decoded("radix85", text, at - size, decode) if at >= size else None


def named(text: str, at: int) -> View | None:
    """The run behind the name of the encoding, which ends at `at`."""
    lead = _LEAD.match(text, at)
    start = lead.end() if lead else at
    return next(filter(None, (_decoded("radix85_named", text, start, decode) for decode in DECODERS)), None)


def _decoded(kind: str, text: str, start: int, decode: Decoder) -> View | None:
    """The run from `start` as far as it is printable ASCII: no more of it is read than a view then stands for."""
    if _WORD.match(text, start) is None:
        return None
    quote = text[start - 1] if start and text[start - 1] in "\"'`" else ""
    limit = min(len(text), start + _LONGEST)
    closing = text.find(quote, start, limit) if quote else -1
    limit = closing if closing >= 0 else limit
    parts: list[str] = []
    at = start
    step, grows = _LEAST // 4 * GROUP, True
    while True:
        part = _plain(text[at : at + step], decode) if at + step <= limit else ""
        if part:
            parts.append(part)
            at += step
            step = min(2 * step, _STRIDE) if grows else step
        elif not parts:
            return None
        elif step > GROUP:
            step, grows = step // 2 // GROUP * GROUP, False
        else:
            break
    last = text[at : min(limit, at + GROUP + len(_CLOSES))].partition(" ")[0]
    for packed in (last, last.rstrip(_CLOSES)):
        if len(packed) < GROUP and (part := _plain(packed[: len(packed) - (len(packed) == 1)], decode)):
            parts.append(part)
            at += len(packed)
            break
    plain = "".join(parts)
    return View(kind, plain, start, at) if len(plain) >= _LEAST else None


def _plain(packed: str, decode: Decoder) -> str:
    """Decoded text; empty where it is none. ASCII85 passes over blanks, which end a run here."""
    if " " in packed or not packed.isprintable():
        return ""
    try:
        raw = decode(packed)
    except ValueError:
        return ""
    return raw.decode("ascii") if raw.isascii() and raw.decode("ascii").isprintable() else ""


RULES = (
    ViewRule(
        "radix85_named",
        ("(?:[abz]|[Bb]ase|[Bb]ase-|ASCII|[Aa]scii)85[^0-9A-Za-z]", "[abz]85_?[Dd]ecode"),
        named,
    ),
)
