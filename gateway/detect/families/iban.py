"""International bank account numbers: the country says how long they are, ISO 7064 mod 97 whether they are right.

Groups of four, line ends inside, and letters moved by thirteen (digits stay, so the shape survives) are read too.
"""

from __future__ import annotations

import codecs
import re

from gateway.context.findings import Category, Severity
from gateway.detect.identity import IBAN_LENGTHS, iban
from gateway.detect.matcher import Trigger
from gateway.detect.samples import PUBLISHED
from gateway.detect.scope import Scope
from gateway.detect.typelist import TypeRow

_HEAD = re.compile(r"[A-Z]{2}[0-9]{2}")
_GAP = frozenset(" -\r\n\t")
_MARGIN = re.compile(
    r"(?:\r?\n|\\{1,4}n)[ \t]{0,8}(?:(?:[>#*|+]|//|[0-9]{1,5}(?:\t|: ?|→))[ \t]{0,4})?(?=[A-Z0-9])"
)
_WHAT = ("iban", Category.PII, Severity.MEDIUM)
_LONGEST = 60
_COST = 5  # units of the budget for a number of the right length


class Ibans:
    """Finds IBANs wherever their shape stands."""

    contextual = False
    triggers = (
        Trigger("[^0Aa_]AA00[0A ]{2}", 0, shape=True),
        Trigger("[^0Aa_]AA00[-\n]", 0, shape=True),
    )
    described = (
        TypeRow("iban", _WHAT[0], _WHAT[1], _WHAT[2], "GB29 NWBK 6016 1331 9268 19", "ISO 13616, ISO 7064"),
    )

    def find(self, scope: Scope, end: int) -> None:
        """See Family."""
        head = _HEAD.search(scope.text, max(0, end - 8), end)
        if head is None or head.start() < scope.consumed.get("iban", 0):
            return
        at = head.start()
        country = head[0][:2]
        rotated = codecs.encode(country, "rot13")
        for name, turned in ((country, False), (rotated, True)):
            value, stop = self._read(scope.text, at, int(IBAN_LENGTHS.get(name, "0")))
            if not value:
                continue
            scope.budget.hits -= _COST
            plain = codecs.encode(value, "rot13") if turned else value
            if iban(plain):
                scope.consumed["iban"] = stop
                if plain in PUBLISHED:
                    return
                scope.add((at, stop), _WHAT, 970, "iban")
                return

    @staticmethod
    def _read(text: str, at: int, length: int) -> tuple[str, int]:
        """The `length` letters and digits from `at` without what parts them, and their end; empty if fewer."""
        stop, value = at, ""
        while len(value) < length and stop < len(text) and stop - at < _LONGEST:
            char = text[stop]
            if char in "\r\n\\" and (margin := _MARGIN.match(text, stop)) is not None:
                stop = margin.end()
                continue
            if char.isascii() and char.isalnum():
                value += char
            elif char not in _GAP:
                return "", stop
            stop += 1
        if not length or len(value) < length or text[stop : stop + 1].isalnum():
            return "", stop
        return value, stop
