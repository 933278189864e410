"""Base 85 and ASCII85 without the marks that frame them.

Four characters of text make five, so that what a known token begins with is a literal in its encoding too; and where a
program names the encoding, the next long run is decoded whatever it begins with.
"""

from __future__ import annotations

import base64
import re
from dataclasses import dataclass

from gateway.context.views.form import View, ViewRule

GROUP = 5
"""Characters that stand for four bytes."""
_CLOSES = "\"'`),;]}"  # what may belong to the text behind a run
_WORD = re.compile(r"\S{20}")
_SPACE = re.compile(r"\s")
_LONGEST = 65_536
_LEAD = re.compile(r"\w{0,12}[\s(:=]{0,6}(?:b?[\"'`])?")  # between the name of the encoding and the run
_LEAST = 12  # characters of decoded text


@dataclass(frozen=True, slots=True)
class Alphabet:
    """The 85 characters of an encoding in the order of what they stand for."""

    codes: str

    @property
    def last(self) -> str:
        """What a group that is cut short is filled up with."""
        return self.codes[-1]


B85 = Alphabet("0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz!#$%&()*+-;<=>?@^_`{|}~")
ALPHABETS = (B85, Alphabet("".join(map(chr, range(33, 118)))))
"""Of base 85 (RFC 1924, as Git and Python write it) and of ASCII85, in the order of `heads`."""


def heads(literal: str) -> tuple[str, ...]:
    """What four characters of text, or more, begin with in the two alphabets."""
    packed = literal[: len(literal) // 4 * 4].encode("ascii")
    return base64.b85encode(packed).decode(), base64.a85encode(packed).decode()


def radix85(text: str, at: int, *, size: int = GROUP, alphabet: Alphabet = B85) -> View | None:
    """The run in one of the alphabets whose first `size` characters end at `at`."""
    return _decoded("radix85", text, at - size, alphabet) if at >= size else None


def named(text: str, at: int) -> View | None:
    """The run behind the name of the encoding, which ends at `at`."""
    lead = _LEAD.match(text, at)
    start = lead.end() if lead else at
    return next(
        filter(None, (_decoded("radix85_named", text, start, alphabet) for alphabet in ALPHABETS)), None
    )


def _decoded(kind: str, text: str, start: int, alphabet: Alphabet) -> View | None:
    """The run from `start` as far as it is printable ASCII: no more of it is read than a view then stands for."""
    if _WORD.match(text, start) is None:
        return None
    quote = text[start - 1] if start and text[start - 1] in "\"'`" else ""
    limit = min(len(text), start + _LONGEST)
    closing = text.find(quote, start, limit) if quote else -1
    limit = closing if closing >= 0 else limit
    parts: list[str] = []
    at = start
    while at + GROUP <= limit and (part := _group(text[at : at + GROUP], alphabet)):
        parts.append(part)
        at += GROUP
    last = _SPACE.split(text[at : min(limit, at + GROUP + len(_CLOSES))], 1)[0]
    for packed in (last, last.rstrip(_CLOSES)):
        rest = packed[: len(packed) - (len(packed) == 1)]
        if len(packed) < GROUP and (
            part := _group(rest.ljust(GROUP, alphabet.last), alphabet, len(rest) - 1)
        ):
            parts.append(part)
            at += len(packed)
            break
    plain = "".join(parts)
    return View(kind, plain, start, at) if len(plain) >= _LEAST else None


def _group(packed: str, alphabet: Alphabet, size: int = 4) -> str:
    """The first characters of what five stand for; empty where they are none that can be printed."""
    first, second, third, fourth, fifth = map(alphabet.codes.find, packed)
    if min(first, second, third, fourth, fifth) < 0:
        return ""
    number = (((first * 85 + second) * 85 + third) * 85 + fourth) * 85 + fifth
    if number >= 1 << 32:
        return ""
    plain = number.to_bytes(4).decode("latin-1")[: max(size, 0)]
    return plain if plain.isascii() and plain.isprintable() else ""


RULES = (
    ViewRule(
        "radix85_named",
        ("(?:[abz]|[Bb]ase|[Bb]ase-|ASCII|[Aa]scii)85[^0-9A-Za-z]", "[abz]85_?[Dd]ecode"),
        named,
    ),
)
