"""Names of machines that a sentence calls upon: `@assistant`, `AI agents: ...`, `Dear model, ...`, `Note to bots:`."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import reduce
from operator import or_
from typing import Final

from gateway.detect.lexicon import Lexicon

_OPENS: Final = frozenset("\n\"'`([{<>*#/-=!|,;:.\u2014\u2013?\u201c\u00ab")
_BEGINS: Final = _OPENS - {",", "="}  # for a word that has other meanings
_DESCRIBES: Final = re.compile(  # what documents a parameter or annotates one, as in `llm: LLM instance` and `llm: str`
    r": (?:[Tt]he|[Aa]n?|[Pp]er|Optional|Whether|Name|[A-Z][a-z]+[A-Z]\w*"
    r"|[A-Z]\w{0,20} (?:instance|object|name|string|class|type|that|which|used|being|executing|to use|of|for)"
    r"|str|int|bool|dict|list|any|none)\b"
)
_CALLED: Final = re.compile(
    r"\s?(?:[,:!]|\)\s?:|\]\(|\\,|[-\u2013\u2014](?= ))\s{0,3}"
    r"[\"'`(]?[^\W_][\w'\u2019.-]{0,30}(?:[,:]? [\w\"'`~<(]|[^\x00-\x7f])"
)
_CLAUSE: Final = re.compile(  # what a greeting says of the machine: "Note to the model that reads this:"
    r" (?:that|which|who|whoever|reading|processing|handling|summari[sz]ing|reviewing|working|in charge|che|qui|que|die"
    r"|der|das|van|de la|del|della)\b[^\n:.!?]{1,60}:\s"
)
_KIND_OF: Final = re.compile(  # "for the release agent"
    r"(?:for|to|note|notice) (?:the|any|all|our|your) [a-z]{3,14}[ -]", re.IGNORECASE
)
_ADDRESSED: Final = re.compile(r":|, [a-z]{2,12} [\w@~/<]")
_MENTIONED: Final = re.compile(r"(?:^|[^\w@])@$")
_LONG_NAME: Final = 3  # words of the name of a machine behind its first
_LONG_GREETING: Final = 5


def mark_called(words: Lexicon, piece: str, found: Sequence[re.Match[str]], kinds: list[int]) -> bool:
    """Mark names of machines that are called upon: by `@`, or at the start or behind a greeting, before comma or colon.

    What has other meanings as well (`agent`) is only hailed, but behind a greeting; a note to a machine is noted, and
    who is spoken to by name before a colon ("for the release agent:") is greeted. The answer is whether there are such.
    """
    marked = 0
    for at, bits in enumerate(kinds):
        if bits & words.addressed:
            last = _end_of_name(words, found, kinds, at)
            called = _called_as(words, piece, found, kinds, at, last)
            kinds[last] |= called
            marked |= called
    return marked != 0


def _called_as(
    words: Lexicon, piece: str, found: Sequence[re.Match[str]], kinds: Sequence[int], at: int, last: int
) -> int:
    """The kinds that say how the machine named by the words `at..last` is called upon; none if it is only named."""
    start, end = found[at].start(), found[last].end()
    if piece[start - 1 : start] == "@" and _MENTIONED.search(piece, max(0, start - 2), start):
        return words.bits["called"]
    opening = _greeted(words, piece, found, at, kind=":" in piece[end : end + 2])
    greeting, clause = opening < at, opening < at and _CLAUSE.match(piece, end) is not None
    if not clause and _CALLED.match(piece, end) is None:
        return 0
    if not greeting and (_DESCRIBES.match(piece, end) or _is_listed(words, piece, found, kinds, at, last)):
        return 0
    machine = bool(reduce(or_, kinds[at : last + 1]) & words.machine)
    if not _is_called(piece, found[opening].start(), end, sure=machine or greeting):
        return 0
    how, first = words.bits["called" if machine or greeting else "hailed"], found[opening][0].lower()
    if greeting and first in words.toward and (clause or ":" in piece[end : end + 3]):
        how |= words.bits["greeted"]
    if greeting and machine and first in words.notes:
        how |= words.bits["noted"]
    return how


def _is_called(piece: str, start: int, end: int, *, sure: bool) -> bool:
    """Whether the name at `start..end` is called upon; one that may be no machine's only plainly."""
    before = piece[max(0, start - 3) : start].rstrip(" \t@")
    if before and before[-1] not in (_OPENS if sure else _BEGINS):
        return False
    if before[-1:] == "(" and before[-2:-1].isalnum() and piece[end : end + 2] != "):":
        return False  # the first argument of a call
    return sure or _ADDRESSED.match(piece, end) is not None


def _is_listed(
    words: Lexicon, piece: str, found: Sequence[re.Match[str]], kinds: Sequence[int], at: int, last: int
) -> bool:
    """Whether the name stands in a list of names: a comma on either side, or another machine behind its comma."""
    end = found[last].end()
    if piece[end : end + 1] != ",":
        return False
    listed = last + 1 < len(kinds) and bool(kinds[last + 1] & words.machine)
    return listed or piece[max(0, found[at].start() - 2) : found[at].start()] == ", "


def _end_of_name(words: Lexicon, found: Sequence[re.Match[str]], kinds: Sequence[int], at: int) -> int:
    """The last word of the name of a machine that begins at the word `at`."""
    last = at
    for n in range(at + 1, min(len(kinds), at + 1 + _LONG_NAME)):
        beside = found[n].start() - found[last].end() == 1
        if not beside or not (kinds[n] & words.addressed or found[n][0].lower() in words.roles):
            break
        last = n
    return last


def _greeted(
    words: Lexicon, piece: str, found: Sequence[re.Match[str]], at: int, *, kind: bool = False
) -> int:
    """Where the greeting before the word `at` begins; one word that says which `kind` it is of may stand between."""
    opening = at
    if kind and at > 2 and _KIND_OF.fullmatch(piece, found[at - 3].start(), found[at].start()):
        opening = at - 3
    while opening > max(0, at - _LONG_GREETING) and found[opening - 1][0].lower() in words.greetings:
        if piece[found[opening - 1].end() : found[opening].start()] not in {" ", ", "}:
            break
        opening -= 1
    return opening
