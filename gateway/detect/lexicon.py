"""Kinds of words of which orders to a model are made, and the constructions they form; read from `data/orders.toml`."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, lru_cache
from typing import Any, Final

from gateway.detect.data import document
from gateway.errors import DetectorError

# Kinds that stand for no word of a list: who is called upon, and what `orders` sees in the characters.
SEEN: Final = ("called", "hailed", "noted", "url", "mail", "path", "tag", "slot")
_PARTS: Final = re.compile(r"['_.-]")
_NAME: Final = re.compile(r"[0-9_.]")
_DIGIT: Final = re.compile(r"\d")
_WORDS_KEPT: Final = 4096
_HEAD: Final = 3  # letters that every stem has at least
# Letters with marks, as texts have them or have not; of those that stand in Latin words.
_PLAIN: Final = str.maketrans(
    "àáâãäåāăąçćčďđèéêëēęěğìíîïīłñńňòóôõöøőřśşšßťţùúûüūůűýÿźżž\u0131",
    "aaaaaaaaacccddeeeeeeegiiiiilnnnooooooorssssttuuuuuuuyyzzzi",
)
_Longer = dict[str, list[tuple[tuple[str, ...], bool, int]]]


@dataclass(frozen=True, slots=True)
class Construction:
    """Kinds of words close behind each other: `kinds[0]`, within `reach[0]` words `kinds[1]`, and so on.

    Of the constructions of one group only the strongest counts: they are ways to see the same thing.
    """

    group: str
    type: str
    points: int
    kinds: tuple[int, ...]  # a bit set of kinds each
    reach: tuple[int, ...]


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
        self._longer: dict[
            str, _Longer
        ] = {}  # expressions by their first word and their second, or a stem of it
        for name, listed in data["words"].items():
            for entry in listed.replace("\n", " ").split(","):
                self._enter(entry.split(), self.bits[name])
        self.greetings, self.roles, self.notes = (
            frozenset(data["called"][name].split()) for name in ("greetings", "roles", "notes")
        )
        self.machine, self.addressed = self.bits["ai"], self._kinds("ai/agent")
        self.about, self._staff = self.bits["about"], self.bits["staff"]
        self._told = frozenset(data["told"]["before"].split())
        self._meant = frozenset(data["told"]["still"].split())
        self._verbs = self._kinds("/".join(data["told"]["verbs"]))
        self._things = self._kinds("danger/secret")
        # The same few thousand words come again and again; what has a digit is not kept, as it may be a secret.
        self._look_up = lru_cache(maxsize=_WORDS_KEPT)(self._read)
        self._constructions: dict[int, list[Construction]] = {}  # by each kind they can begin with
        for row in data["construction"]:
            made = self._construction(row)
            for bit in self.bits.values():
                if bit & made.kinds[0]:
                    self._constructions.setdefault(bit, []).append(made)

    def _enter(self, words: Sequence[str], bit: int) -> None:
        """Take up one entry: a word, a stem (`ignor*`), or an expression of several words whose last may be a stem."""
        if not words:
            return
        stem = words[-1].endswith("*")
        first, *rest = [plain(word.rstrip("*")) for word in words]
        if rest:
            key = rest[0][:_HEAD] + "*" if stem and len(rest) == 1 else rest[0]
            self._longer.setdefault(first, {}).setdefault(key, []).append((tuple(rest), stem, bit))
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
        )

    def possible(self, present: int) -> Iterator[Construction]:
        """The constructions all of whose kinds are present."""
        for bit, made in self._constructions.items():
            if bit & present:
                for each in made:
                    if each.kinds[-1] & present and all(kind & present for kind in each.kinds):
                        yield each

    def kinds_of(self, words: Sequence[str]) -> list[int]:
        """For each word, in small letters, the kinds it is of, as bits; of expressions the first and the last word."""
        kinds: list[int] = []
        ends: dict[int, int] = {}
        for at, word in enumerate(words):
            kept = word.isalpha() or _DIGIT.search(word) is None
            bits, parts, longer = self._look_up(word) if kept else self._read(word)
            if longer is not None:
                bits |= _expressions(longer, words, at, ends)
            bits = bits or parts
            if bits & self._verbs and self._is_told(words, at):
                bits &= ~self._verbs
                ends.clear()
            if bits & self.about and "." in word:
                bits &= ~self.about  # the name of a host speaks about nothing
            if ends:
                bits |= ends.get(at, 0)
            kinds.append(bits & ~self.addressed if bits & self._staff else bits)
        return kinds

    def _is_told(self, words: Sequence[str], at: int) -> bool:
        """Whether a verb is told of, not ordered: "tells the model to ignore", but not "you have to ignore"."""
        return at > 0 and words[at - 1] in self._told and (at < 2 or words[at - 2] not in self._meant)

    def _read(self, word: str) -> tuple[int, int, _Longer | None]:
        """The kinds of a word, those of its parts where it is a compound, and the expressions that it begins.

        Of a name in code only what is dangerous or secret counts.
        """
        parts = 0
        for part in _PARTS.split(word) if len(word) > _HEAD and _PARTS.search(word) else ():
            parts |= self._alone(part)
        parts = parts & self._things if parts and _NAME.search(word) else parts
        return self._alone(word), parts, self._longer.get(word)

    def _alone(self, word: str) -> int:
        bits = self._exact.get(word, 0)
        for begun, bit in self._stems.get(word[:_HEAD], ()):
            if word.startswith(begun):
                bits |= bit
        return bits


def _expressions(longer: _Longer, words: Sequence[str], at: int, ends: dict[int, int]) -> int:
    """The kinds of the expressions that begin with the word `at`, which their last words are of as well."""
    bits, second = 0, words[at + 1] if at + 1 < len(words) else ""
    for rest, stem, bit in (*longer.get(second, ()), *longer.get(second[:_HEAD] + "*", ())):
        if _follows(words, at + 1, rest, stem):
            bits |= bit
            ends[at + len(rest)] = ends.get(at + len(rest), 0) | bit
    return bits


def _follows(words: Sequence[str], at: int, rest: Sequence[str], stem: bool) -> bool:
    last = at + len(rest) - 1
    if last >= len(words) or any(words[at + n] != word for n, word in enumerate(rest[:-1])):
        return False
    return words[last].startswith(rest[-1]) if stem else words[last] == rest[-1]


@cache
def lexicon() -> Lexicon:
    """The built-in one."""
    return Lexicon(document("orders.toml"))
