"""How much a piece of text reads as an order to a model: kinds of words in an order of their own, counted in points.

A rule with fixed phrases knows the sentences of its author. Here a text is read as kinds of words (`data/orders.toml`:
who is addressed, what is to be done, with what, in spite of what), and a *construction* is a few kinds close behind
each other (`neg 4 tell 8 user`: a negation, at most four words on a word for telling, at most eight on the user). Each
has points; what two neighbouring sentences hold together decides. So a sentence that nobody has written down counts
when its parts do. The same words describe attacks: what is quoted as one counts a third.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from functools import reduce
from itertools import pairwise
from operator import or_
from typing import Final, NamedTuple

from gateway.detect.citations import ATTACK, MARK, QUOTED
from gateway.detect.hailed import mark_called
from gateway.detect.lexicon import Construction, lexicon, plain

_SENTENCE: Final = re.compile(  # one class first, which the engine of `re` skips to
    r"[.!?;\u3002\uff01\uff1f\n\\=-](?:(?<=[.!?;\u3002\uff01\uff1f])[\"'`)\]\u201d\u2019]{0,3}(?=\s|\Z)\s{0,8}"
    r"|(?<=\n)\s{0,40}(?=[^a-z\s])|(?<=\\)n(?=[^a-z])|(?<==)={2,59}|(?<=-)-{2,59})"
)
_WORD: Final = re.compile(r"[^\W_]{1,40}(?:['\u2019_.-][^\W_]{1,40}){0,4}")
_ESCAPE: Final = re.compile(r"\\[nrt]")
_SIGNS: Final = frozenset("(){}[]=;<>")
_CODE: Final = re.compile(r"[(){}\[\]=;<>]")
_APART: Final = 3  # words that a sign of code between two words counts as
_SHOWN: Final = 3  # the part of its points that a quoted order counts where attacks are spoken of
_TOLD: Final = 3  # points off where they are spoken of without quotes
# Characters around a sentence that say how it is read: what a name is called behind, and what follows it.
_SEEN_BEFORE: Final = 3
_SEEN_BEHIND: Final = 96
_LEAST: Final = 2  # points of the sentence of a hit for which its neighbours are read
_TO_HOST: Final = re.compile(  # a bare host behind "to"
    r"\bto (?:https?:)?(?://)?(?:(?:[a-z0-9-]{2,30}\.){1,3}(?:com|net|org|io|dev|example|test|xyz|ru|cn|co|app|site|online|top)\b"
    r"|(?:\d{1,3}\.){3}\d{1,3}\b)",
    re.IGNORECASE,
)
_SEEN: Final = (  # what is seen in the characters: the kind, what it cannot be without, the expression
    ("url", "://", re.compile(r"[a-z]{3,8}://", re.IGNORECASE)),
    ("url", " to ", _TO_HOST),
    ("url", " TO ", _TO_HOST),
    ("mail", "@", re.compile(r"(?<=\w)@[\w-]{1,64}\.[a-z]{2}", re.IGNORECASE)),
    ("path", "~/", re.compile(r"~/[.\w]")),
    ("path", ".", re.compile(r"(?<!\w)\.(?:env|ssh|netrc|aws|kube|gnupg|git-credentials|npmrc|pypirc)\b")),
    ("path", "/etc/", re.compile(r"/etc/(?=\w)")),
    (
        "tag",
        "<",
        re.compile(
            r"(?<![a-z`] )<(?:important|instructions?|system(?:[-_][a-z]{2,12})?|user[-_](?:request|message|query)"
            r"|ai[-_][a-z]{2,12}|secret|admin|assistant|hidden|directive|override|information|critical|urgent"
            r"|priority|mandatory|developer|admin[-_](?:message|note|instruction|override)|note[-_]to[-_][a-z]{2,9})"
            r"[ >]",
            re.IGNORECASE,
        ),
    ),
    (
        "renewed",
        ":",
        re.compile(
            r"(?:new|next|real|actual|true|updated|revised|priority) (?:task|job|goal|objective|mission|instructions?"
            r"|directives?|orders?|rules?|policy|command|role|system prompt)s?"
            r"(?: for (?:you|the (?:ai|agent|assistant|model)))?\s?:",
            re.IGNORECASE,
        ),
    ),
    ("slot", "=", re.compile(r"[?&][\w-]{1,16}=(?:\{\{?|\$\{|<|\[|%7B)(?=[A-Za-z_ ])")),
)

Placed = tuple[Construction, int]


class Sentence(NamedTuple):
    """What a sentence holds: constructions and their places, whether it speaks about attacks, its span."""

    found: Sequence[Placed]
    about: bool
    start: int
    end: int


@dataclass(frozen=True, slots=True)
class Reading:
    """What a piece of text reads as: the type of its strongest construction, the points, the span."""

    type: str
    points: int
    start: int
    end: int


def reading(
    text: str, low: int, high: int, at: int, least: int, known: dict[tuple[int, int, str], Sentence]
) -> tuple[Reading | None, int]:
    """What the sentence round `at` and its neighbours, within `low..high`, say, none where it has fewer points.

    The second part of the answer is where that sentence ends: another hit in it reads the same. `known` keeps what the
    sentences of a text hold, as each is the neighbour of two others, and logs repeat theirs.
    """
    piece = text[low:high]
    cuts = _cuts(piece, at - low)
    escaped = _ESCAPE.sub("  ", piece) if "\\" in piece else piece
    heart = _held(escaped, (cuts[-2], cuts[-1]), low, known, _LEAST)
    points = _points(heart.found, (), about=False) if heart else 0
    if heart is None or points < _LEAST:
        return None, low + cuts[-1]
    scored = [heart]
    for span in _beside(piece, cuts):
        sentence = _held(escaped, span, low, known, least - points)
        if sentence:
            scored.insert(0 if span[0] < cuts[-2] else len(scored), sentence)
    best: Reading | None = None
    for n, first in enumerate(scored):
        pair = [first] if n + 1 == len(scored) or not scored[n + 1].found else [first, scored[n + 1]]
        found = [each for sentence in pair for each in sentence.found]
        start, end = first.start, pair[-1].end
        points = _points(found, (), any(each.about for each in pair))
        if points >= max(least, best.points + 1 if best else 0):
            quoted = [(low + a, low + b) for a, b in _quotes(escaped, start - low, end - low)]
            points = _points(found, quoted, any(each.about for each in pair)) if quoted else points
        if points >= least and (best is None or points > best.points):
            strongest = max(found, key=lambda each: each[0].points)[0]
            best = Reading(strongest.type, points, start, end)
    return best, heart.end


def _held(
    piece: str, span: tuple[int, int], low: int, known: dict[tuple[int, int, str], Sentence], least: int
) -> Sentence | None:
    """What a sentence of the piece that begins at `low` of the text holds; None if that cannot have `least` points."""
    start, end = span
    key = min(start, _SEEN_BEFORE), end - start, piece[max(0, start - _SEEN_BEFORE) : end + _SEEN_BEHIND]
    sentence = known.get(key)
    if sentence is None:
        sentence = _sentence(piece, start, end, least)
        if sentence is None:
            return None
        known[key] = sentence
    shift = low + start
    found = [(construction, at + shift) for construction, at in sentence.found]
    return Sentence(found, sentence.about, shift, low + end)


def _quotes(piece: str, start: int, end: int) -> list[tuple[int, int]]:
    """The spans of what is quoted in `start..end` of a piece that speaks about attacks outside of these quotes."""
    if MARK.search(piece, start, end + 1) is None:
        return []
    quoted = [quote.span() for quote in QUOTED.finditer(piece, start, min(len(piece), end + 1))]
    for word in ATTACK.finditer(piece) if quoted else ():
        if not any(low <= word.start() < high for low, high in quoted):
            return quoted
    return []


def _points(found: Sequence[Placed], quoted: Sequence[tuple[int, int]], about: bool) -> int:
    """The strongest of each group, a third of what is quoted; less where attacks are spoken of outside of quotes.

    What tells against an order takes points of its groups alone, and not what is firm in them: a prohibition that is
    added excuses nothing else.
    """
    groups: dict[str, int] = {}
    firm: dict[str, int] = {}
    against: dict[tuple[str, ...], int] = {}
    outside = not quoted and bool(found)
    for construction, at in found:
        points = construction.points
        if quoted:
            if any(low <= at < high for low, high in quoted):
                points //= _SHOWN
            else:
                outside = True
        if construction.against:
            if points < against.get(construction.against, 0):
                against[construction.against] = points
            continue
        group = construction.group
        if points > groups.get(group, 0):
            groups[group] = points
        if construction.firm and points > firm.get(group, 0):
            firm[group] = points
    less = 0
    for names, points in against.items():
        less += max(points, sum([firm.get(name, 0) - groups.get(name, 0) for name in names]))
    return sum(groups.values()) + less - (_TOLD if about and outside else 0)


def _cuts(piece: str, at: int) -> list[int]:
    """Where sentences begin, up to the end of the one round `at`, which is the last that is not blank."""
    cuts = [0]
    for mark in _SENTENCE.finditer(piece):
        cuts.append(mark.end())
        if mark.end() >= at and not piece[cuts[-2] : mark.end()].isspace():
            return cuts
    cuts.append(len(piece))
    while len(cuts) > 2 and not piece[cuts[-2] : cuts[-1]].strip():
        cuts.pop()
    return cuts


def _beside(piece: str, cuts: Sequence[int]) -> list[tuple[int, int]]:
    """The spans of the sentences beside the last one of the cuts, if they are not blank."""
    mark = _SENTENCE.search(piece, cuts[-1])
    before = [(low, high) for low, high in pairwise(cuts[:-1]) if piece[low:high].strip()]
    behind = (cuts[-1], mark.end() if mark else len(piece))
    return [*before[-1:], behind] if piece[behind[0] : behind[1]].strip() else before[-1:]


def _words(piece: str, start: int, end: int) -> list[str]:
    """The words of `start..end` as the lexicon holds them."""
    if piece.isascii():
        return _WORD.findall(piece.lower(), start, end)
    return [plain(word) for word in _WORD.findall(piece, start, end)]


def _sentence(piece: str, start: int, end: int, least: int) -> Sentence | None:
    """Read one sentence, with places and span from its start on.

    None where its constructions cannot have `least` points, which most are left at.
    """
    words = lexicon()
    kinds = words.kinds_of(_words(piece, start, end))
    present = reduce(or_, kinds, 0)
    if not present:
        return Sentence((), False, 0, end - start)
    signs = [
        each for each in _SEEN if piece.find(each[1], start, end) >= 0 and each[2].search(piece, start, end)
    ]
    for name, _, _ in signs:
        present |= words.bits[name]
    if words.most(present | words.called if present & words.addressed else present) < least:
        return None
    found = list(_WORD.finditer(piece, start, end))
    for name, _, pattern in signs:
        for each in pattern.finditer(piece, start, end):
            kinds[bisect_right(found, each.start(), key=re.Match.end) % len(found)] |= words.bits[name]
    if present & words.addressed and mark_called(words, piece, found, kinds):
        present |= words.called
    if words.most(present) < least:
        return None
    possible = words.possible(present)
    told = [at for at, bits in enumerate(kinds) if bits] if possible else []  # the others match nothing
    kinds, steps = [kinds[at] for at in told], _steps(piece, found, told)
    placed = [(each, _match(each, kinds, steps)) for each in possible]
    matches = [(each, found[told[at]].start() - start) for each, at in placed if at >= 0]
    return Sentence(matches, bool(present & words.about), 0, end - start)


def _steps(piece: str, found: Sequence[re.Match[str]], told: Sequence[int]) -> list[int]:
    """The places of these words, counted in words; signs of code between two words put them further apart."""
    if not told:
        return []
    start, end = found[told[0]].end(), found[told[-1]].start()
    if _CODE.search(piece, start, end) is None:
        return [at + 1 for at in told]
    steps, place, behind = [], 0, 0
    for word in found:
        gap = piece[behind : word.start()] if behind else ""
        beside = gap not in _SIGNS if len(gap) < 2 else _CODE.search(gap) is None
        place += 1 if beside else 1 + _APART
        steps.append(place)
        behind = word.end()
    return [steps[at] for at in told]


def _match(construction: Construction, kinds: Sequence[int], steps: Sequence[int]) -> int:
    """The word at which a construction begins; -1 where it is not there. Each step looks at `reach` words."""
    for at, bits in enumerate(kinds):
        if bits & construction.kinds[0]:
            place = at
            for part, reach in zip(construction.kinds[1:], construction.reach, strict=True):
                place = _next(part, kinds, steps, place, reach)
                if place < 0:
                    break
            else:
                return at
    return -1


def _next(part: int, kinds: Sequence[int], steps: Sequence[int], place: int, reach: int) -> int:
    far = steps[place] + reach
    for n in range(place + 1, len(kinds)):
        if steps[n] > far:
            return -1
        if kinds[n] & part:
            return n
    return -1
