"""BIP 39 seed phrases: 12 to 24 words of the English list whose checksum bits hold.

Any twelve words of the list pass the checksum one time in 16, so a word such as `mnemonic` must stand before them.
"""

from __future__ import annotations

import re

from gateway.context.findings import Category, Severity
from gateway.detect.checksums import bip39
from gateway.detect.data import bip39_words
from gateway.detect.matcher import Trigger
from gateway.detect.scope import Scope
from gateway.detect.typelist import TypeRow

_FIRST = re.compile(r"(?<![a-z])[a-z]{3,8}(?![a-z])")
_RUN = re.compile(r"[a-z]{3,8}+(?:(?:\s{1,3}|\s?(?:,|\d{1,2}[.)])\s?)[a-z]{3,8}+){0,23}+")
_WORD = re.compile(r"[a-z]{3,8}")
_SIZES = (24, 21, 18, 15, 12)
_CUES = r"(?:mnemonic|seed.?phrase|recovery.?phrase|seed.?words|secret.?phrase|backup.?phrase|wallet.?seed|bip.?39)"
_EXAMPLE = "MNEMONIC=legal winner thank year wave sausage worth useful legal winner thank yellow"
_REACH = 160  # characters behind a cue in which a phrase begins
_COST = 2  # units of the budget for what stands behind a cue, and for each checksum
_LEAST = 47  # characters of twelve words


class Mnemonics:
    """Finds seed phrases after a word that names one."""

    contextual = True
    triggers = (Trigger(_CUES.replace(".?", "[ _-]?"), 0, caseless=True),)
    described = (
        TypeRow("bip39-mnemonic", "bip39_mnemonic", Category.SECRET, Severity.CRITICAL, _EXAMPLE, "BIP 39"),
    )

    def __init__(self) -> None:
        self._index = {word: number for number, word in enumerate(bip39_words())}

    def find(self, scope: Scope, end: int) -> None:
        """See Family."""
        text, last = scope.text, end + _REACH
        scope.budget.hits -= _COST
        at = max(end, scope.consumed.get("mnemonic", 0))
        while (word := _FIRST.search(text, at, last)) is not None:
            run = _RUN.match(text, word.start())
            at = scope.consumed["mnemonic"] = run.end() if run else word.end()
            found = self._phrase(scope, word.start(), at) if at - word.start() >= _LEAST else None
            if found is not None:
                scope.consumed["mnemonic"] = found[1]
                what = ("bip39_mnemonic", Category.SECRET, Severity.CRITICAL)
                scope.add((found[0], found[1]), what, 990 if found[2] else 700, "bip39-mnemonic")
                return

    def _phrase(self, scope: Scope, start: int, end: int) -> tuple[int, int, bool] | None:
        words = list(_WORD.finditer(scope.text, start, end))
        numbers = [self._index.get(w[0], -1) for w in words]
        longest: tuple[int, int, bool] | None = None
        for size in _SIZES:
            for first in range(len(numbers) - size + 1):
                window = numbers[first : first + size]
                if -1 in window:
                    continue
                scope.budget.hits -= _COST
                span = (words[first].start(), words[first + size - 1].end())
                if bip39(window):
                    return (*span, True)
                longest = longest or (*span, False)
        return longest
