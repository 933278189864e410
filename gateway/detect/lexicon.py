"""Kinds of words of which orders to a model are made, and the constructions they form; read from `data/orders.toml`."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any, Final

from gateway.detect.data import document
from gateway.errors import DetectorError

# Kinds that stand for no word of a list: who is called upon, and what `orders` sees in the characters.
CALLED: Final = ("called", "hailed", "noted", "greeted")
SEEN: Final = (*CALLED, "url", "mail", "path", "tag", "slot", "renewed")
_PARTS: Final = re.compile(r"['_.-]")
_NAME: Final = re.compile(r"[0-9_.]")
_DIGIT: Final = re.compile(r"\d")
_WORDS_KEPT: Final = 4096
_MOST_KEPT: Final = 1024
_HEAD: Final = 3  # letters that every stem has at least
# Letters with marks, as texts have them or have not; of those that stand in Latin words.
_PLAIN: Final = str.maketrans(
    "àáâãäåāăąçćčďđèéêëēęěğìíîïīłñńňòóôõöøőřśşšßťţùúûüūůűýÿźżž\u0131",
    "aaaaaaaaacccddeeeeeeegiiiiilnnnooooooorssssttuuuuuuuyyzzzi",
    "\u0307",  # what a Turkish capital I with a dot leaves behind in small letters
)
_Listed = dict[str, list[tuple[tuple[str, ...], bool, int]]]
_Longer = tuple[_Listed, _Listed]  # by the second word, by the head of the stem that it is
_Entry = tuple[int, int, _Longer | None]  # the kinds of a word, of its parts, the expressions that it begins
_NOTHING: Final[_Entry] = (0, 0, None)


@dataclass(frozen=True, slots=True)
class Construction:
    """Kinds of words close behind each other: `kinds[0]`, within `reach[0]` words `kinds[1]`, and so on.

    Of the constructions of one group only the strongest counts: they are ways to see the same thing. One that tells
    against an order has points below nought, which lessen those of the groups that it tells `against`, and no others;
    what is `firm` it does not lessen.
    """

    group: str
    type: str
    points: int
    kinds: tuple[int, ...]  # a bit set of kinds each
    reach: tuple[int, ...]
    against: tuple[str, ...] = ()
    firm: bool = False


def plain(word: str) -> str:
    """A word in small letters without marks over or under them, as the lexicon holds it."""
    low = word.lower().replace("\u2019", "'")
    return low if low.isascii() else low.translate(_PLAIN)


class Lexicon:
    """The built-in one is `lexicon()`; raises DetectorError where a construction names a kind that there is not."""

    def __init__(self, data: Mapping[str, Any]) -> None:
        self.names = (*data["words"], *SEEN)
        self.bits = {name: 1 << at for at, name in enumerate(self.names)}
        self._exact: dict[str, int] = {}
        self._stems: dict[str, list[tuple[str, int]]] = {}  # by their first three letters
        self._longer: dict[str, _Longer] = {}  # expressions by their first word
        self._pairs: set[str] = set()  # of expressions the first word and the head of the second
        for name, listed in data["words"].items():
            for entry in listed.replace("\n", " ").split(","):
                self._enter(entry.split(), self.bits[name])
        self.greetings, self.roles, self.notes, self.toward = (
            frozenset(data["called"][name].split()) for name in ("greetings", "roles", "notes", "toward")
        )
        self.machine, self.addressed = self.bits["ai"], self._kinds("ai/agent")
        self.called = self._kinds("/".join(CALLED))
        self.about, self._staff = self.bits["about"], self.bits["staff"]
        self._told = frozenset(data["told"]["before"].split())
        self._meant = frozenset(data["told"]["still"].split())
        self._supposed = frozenset(data["told"]["supposed"].split())
        self._verbs = self._kinds("/".join(data["told"]["verbs"]))
        self._things = self._kinds("danger/secret")
        self._known: dict[str, _Entry] = {}
        self._most: dict[int, int] = {}
        self._constructions: dict[
            int, list[tuple[int, Construction]]
        ] = {}  # by each kind they can begin with
        for place, row in enumerate(data["construction"]):
            made = self._construction(row)
            for bit in self.bits.values():
                if bit & made.kinds[0]:
                    self._constructions.setdefault(bit, []).append((place, made))
        self._beginning = sum(self._constructions)

    def _enter(self, words: Sequence[str], bit: int) -> None:
        """Take up one entry: a word, a stem (`ignor*`), or an expression of several words whose last may be a stem."""
        if not words:
            return
        stem = words[-1].endswith("*")
        first, *rest = [plain(word.rstrip("*")) for word in words]
        if rest:
            exact, begun = self._longer.setdefault(first, ({}, {}))
            self._pairs.add(f"{first} {rest[0][:_HEAD]}")
            if stem and len(rest) == 1:
                begun.setdefault(rest[0][:_HEAD], []).append((tuple(rest), stem, bit))
            else:
                exact.setdefault(rest[0], []).append((tuple(rest), stem, bit))
        elif stem:
            self._stems.setdefault(first[:_HEAD], []).append((first, bit))
        else:
            self._exact[first] = self._exact.get(first, 0) | bit

    def _kinds(self, names: str) -> int:
        bits = 0
        for name in names.split("/"):
            if name not in self.bits:
                raise DetectorError("detector.failed", f"no kind of words is called {name}")
            bits |= self.bits[name]
        return bits

    def _construction(self, row: Mapping[str, Any]) -> Construction:
        parts = row["form"].split()
        return Construction(
            group=row["group"],
            type=row["type"],
            points=row["points"],
            kinds=tuple(self._kinds(part) for part in parts[::2]),
            reach=tuple(int(part) for part in parts[1::2]),
            against=tuple(row.get("against", ())),
            firm=row.get("firm", False),
        )

    def possible(self, present: int) -> list[Construction]:
        """The constructions all of whose kinds are present, in the order of the file."""
        made: dict[int, Construction] = {}
        rest = present & self._beginning
        while rest:
            bit = rest & -rest
            rest ^= bit
            for place, construction in self._constructions[bit]:
                for kind in construction.kinds:
                    if not kind & present:
                        break
                else:
                    made[place] = construction
        return [made[place] for place in sorted(made)] if made else []

    def most(self, present: int) -> int:
        """The points that constructions of the kinds that are present can have at most."""
        points = self._most.get(present)
        if points is None:
            groups: dict[str, int] = {}
            for each in self.possible(present):
                groups[each.group] = max(each.points, groups.get(each.group, 0))
            points = sum(groups.values())
            if len(self._most) >= _MOST_KEPT:
                self._most.clear()
            self._most[present] = points
        return points

    def kinds_of(self, words: Sequence[str]) -> list[int]:
        """For each word, in small letters, the kinds it is of, as bits; of expressions the first and the last word."""
        known, present = self._known, 0
        kinds, last = [0] * len(words), len(words) - 1
        for at, word in enumerate(words):
            entry = known.get(word) or self._take_up(word)
            if entry is _NOTHING:
                continue
            bits, parts, longer = entry
            ends: Sequence[tuple[int, int]] = ()
            if longer is not None and at < last and f"{word} {words[at + 1][:_HEAD]}" in self._pairs:
                ends = _expressions(longer, words, at)
                for _, bit in ends:
                    bits |= bit
            bits = bits or parts
            if not bits:
                continue  # a word that begins expressions, of which none is here
            told = self._told_of(words, at) if at and bits & self._verbs else 0
            if bits & self.about and "." in word:
                bits &= ~self.about  # the name of a host speaks about nothing
            kinds[at] |= bits & ~told
            for end, bit in ends:
                kinds[end] |= bit & ~told
            present |= bits
        if present & self._staff:
            kinds = [bits & ~self.addressed if bits & self._staff else bits for bits in kinds]
        return kinds

    def _told_of(self, words: Sequence[str], at: int) -> int:
        """The kinds of verbs told of, not ordered: "tells the model to ignore", but not "you have to ignore"."""
        earlier = words[at - 2] if at > 1 else ""
        if words[at - 1] in self._told and earlier not in self._meant:
            return self._verbs
        return self.bits["over"] if words[at - 1] == "you" and earlier in self._supposed else 0

    def _take_up(self, word: str) -> _Entry:
        """What there is to know of a word.

        The same few thousand come again and again and are kept; what has a digit is not, as it may be a secret.
        """
        if word.isdigit():
            return _NOTHING
        alone, longer = self._alone(word), self._longer.get(word)
        parts = self._of_parts(word) if len(word) > _HEAD and not word.isalpha() else 0
        entry = (alone, parts, longer) if alone or parts or longer is not None else _NOTHING
        if word.isalpha() or _DIGIT.search(word) is None:
            if len(self._known) >= _WORDS_KEPT:
                self._known.clear()
            self._known[word] = entry
        return entry

    def _of_parts(self, word: str) -> int:
        """The kinds of the parts of a compound; of a name in code only what is dangerous or secret counts."""
        bits = 0
        for part in _PARTS.split(word) if _PARTS.search(word) else ():
            bits |= self._alone(part)
        return bits & self._things if bits and _NAME.search(word) else bits

    def _alone(self, word: str) -> int:
        bits = self._exact.get(word, 0)
        for begun, bit in self._stems.get(word[:_HEAD], ()):
            if word.startswith(begun):
                bits |= bit
        return bits


def _expressions(longer: _Longer, words: Sequence[str], at: int) -> Sequence[tuple[int, int]]:
    """The last words of the expressions that begin with the word `at`, which is not the last, and their kinds."""
    second, (exact, begun) = words[at + 1], longer
    listed = exact.get(second, ())
    if begun and (stems := begun.get(second[:_HEAD])):
        listed = (*listed, *stems)
    ends: list[tuple[int, int]] = []
    for rest, stem, bit in listed:
        end = at + len(rest)
        if (
            end < len(words)
            and (words[end].startswith(rest[-1]) if stem else words[end] == rest[-1])
            and (len(rest) == 1 or tuple(words[at + 1 : end]) == rest[:-1])
        ):
            ends.append((end, bit))
    return ends


@cache
def lexicon() -> Lexicon:
    """The built-in one."""
    return Lexicon(document("orders.toml"))
