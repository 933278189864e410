"""Orders to a model that data holds, told by the kinds of their words (`gateway.detect.orders`).

The triggers are words that orders to a model have and ordinary text has seldom: a machine that is addressed, its
instructions, its user, what is to be kept from whom. Each hit reads the sentences around it once; ordinary traffic has
some nineteen hits in a megabyte.
"""

from __future__ import annotations

from itertools import islice
from typing import Final

from gateway.context.findings import Category, Severity
from gateway.detect.citations import MARK
from gateway.detect.confirm import foreign_words
from gateway.detect.data import document
from gateway.detect.matcher import Trigger
from gateway.detect.orders import reading
from gateway.detect.scope import Scope, heard_from
from gateway.detect.typelist import TypeRow

LEAST: Final = 6  # points of an order
_STRONG: Final = 10
# Thousandths. Of texts about programs that hold no order, most that are taken for one have the fewest points.
_WEAK, _LIKELY, _SURE = 500, 650, 750
_CONSUMED: Final = "orders"
_COST: Final = 16  # units of the budget for reading the sentence of a hit
_SCORED_COST: Final = 22  # for what it says with its neighbours
_QUOTED_COST: Final = 38  # for quotes in them
_CHARS: Final = 4  # of sentences that were not read before, for one unit more
_BEFORE: Final = 120
_AFTER: Final = 160
_SOURCE: Final = "own: the parts of published attacks, see docs/detection.md"


class Orders:
    """Finds sentences that order a model about."""

    contextual = True

    def __init__(self) -> None:
        data = document("orders.toml")
        self.triggers = tuple(Trigger(expression, 0, caseless=True) for expression in data["anchors"])
        self._beyond: dict[str, list[tuple[str, frozenset[str]]]] = {}  # by a character that they hold
        for word, needed in foreign_words(data["anchors_beyond"]):
            self._beyond.setdefault(max(needed, default=""), []).append((word, needed))
        self.described = tuple(
            TypeRow(
                f"orders-{name}",
                f"injection.{name}",
                Category.PROMPT_INJECTION,
                Severity.MEDIUM,
                text,
                _SOURCE,
            )
            for name, text in data["described"].items()
        )

    def find_beyond(self, scope: Scope, present: frozenset[str]) -> None:
        """Follow the words that the engine cannot see; `present` are the text's characters beyond ASCII."""
        for char in sorted(self._beyond.keys() & {"", *present}):
            for word, needed in self._beyond[char]:
                if needed <= present and not self._follow(scope, word):
                    return

    def _follow(self, scope: Scope, word: str) -> bool:
        """Read around each place of a word; whether the budget lasted."""
        at = scope.text.find(word)
        while at >= 0:
            if scope.budget.hits <= 0:
                scope.leave_out(at, len(scope.text))
                return False
            self.read(scope, at + len(word))
            at = scope.text.find(word, max(at + len(word), scope.consumed.get(_CONSUMED, 0)))
        return True

    def find(self, scope: Scope, end: int) -> None:
        """See Family."""
        if end <= scope.consumed.get(_CONSUMED, 0):
            return
        self.read(scope, end)

    def read(self, scope: Scope, end: int) -> None:
        """Read the sentences around the word that ends at `end`."""
        scope.budget.hits -= _COST
        low, high = max(0, end - _BEFORE), min(len(scope.text), end + _AFTER)
        known = len(scope.sentences)
        read, upto = reading(scope.text, low, high, end, LEAST, scope.sentences)
        new = list(islice(reversed(scope.sentences.values()), len(scope.sentences) - known))
        scope.budget.hits -= sum([each.end - each.start for each in new]) // _CHARS
        holding = [each.end - each.start for each in new if each.found]
        if holding or read is not None:
            quoted = MARK.search(scope.text, low, high) is not None
            scope.budget.hits -= _SCORED_COST + (_QUOTED_COST if quoted else 0) + sum(holding) // _CHARS
        scope.consumed[_CONSUMED] = max(end, upto)
        if read is None:
            return
        strong = read.points >= _STRONG
        severity = heard_from(scope.channel, Severity.HIGH if strong else Severity.MEDIUM)
        what = (read.type, Category.PROMPT_INJECTION, severity)
        name = "orders-" + read.type.removeprefix("injection.")
        confidence = _WEAK if read.points == LEAST else _SURE if strong else _LIKELY
        scope.add((read.start, read.end), what, confidence, name)
