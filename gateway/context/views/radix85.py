"""Base 85 and ASCII85 without the marks that frame them.

Four characters of text make five, so that what a known token begins with is a literal in its encoding too; and where a
program names the encoding, the next long run is decoded whatever it begins with.
"""

from __future__ import annotations

import base64
import re

from gateway.context.views.form import View, ViewRule

GROUP = 5
"""Characters that stand for four bytes."""
_CLOSES = "\"'`),;]}"  # what may belong to the text behind a run
_WORD = re.compile(r"\S{20,65536}")
_LEAD = re.compile(r"\w{0,12}[\s(:=]{0,6}(?:b?[\"'`])?")  # between the name of the encoding and the run
_LEAST = 12  # bytes of decoded text


def heads(literal: str) -> tuple[str, ...]:
    """What four characters of text, or more, begin with in the two alphabets."""
    packed = literal[: len(literal) // 4 * 4].encode("ascii")
    return base64.b85encode(packed).decode(), base64.a85encode(packed).decode()


def radix85(text: str, at: int, *, size: int = GROUP) -> View | None:
    """The run in either alphabet whose first `size` characters end at `at`."""
    return _decoded("radix85", text, at - size) if at >= size else None


def named(text: str, at: int) -> View | None:
    """The run behind the name of the encoding, which ends at `at`."""
    lead = _LEAD.match(text, at)
    return _decoded("radix85_named", text, lead.end() if lead else at)


def _decoded(kind: str, text: str, start: int) -> View | None:
    run = _WORD.match(text, start)
    if run is None:
        return None
    quote = text[start - 1] if start and text[start - 1] in "\"'`" else ""
    whole = run[0].split(quote)[0] if quote else run[0]
    for packed in dict.fromkeys((whole, whole.rstrip(_CLOSES))):
        for decode in (base64.b85decode, base64.a85decode):
            try:
                raw = decode(packed[: len(packed) - (len(packed) % GROUP == 1)])
            except ValueError:
                continue
            if len(raw) >= _LEAST and raw.isascii() and raw.decode("ascii").isprintable():
                return View(kind, raw.decode("ascii"), start, start + len(packed))
    return None


RULES = (
    ViewRule(
        "radix85_named",
        ("(?:[abz]|[Bb]ase|[Bb]ase-|ASCII|[Aa]scii)85[^0-9A-Za-z]", "[abz]85_?[Dd]ecode"),
        named,
    ),
)
