"""Unicode that reads as ASCII: invisible characters, full width, mathematical letters, look-alikes, tag characters.

Only words that hold such a character are folded, for matching alone; the text itself is never changed. A word all in
one other script (a name in Cyrillic) is no look-alike.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator
from functools import lru_cache

from gateway.context.views.form import MAX_REGION, Pieces, View

_IGNORED = (
    "\u00ad\u0300-\u036f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u202a-\u202e\u2060-\u206f\u20d0-\u20ff\u3164"
    "\ufe00-\ufe0f\ufeff\uffa0"
)
_STYLED = (
    "\uff01-\uff5e\u2070-\u209c\u2100-\u214f\u2460-\u24ff\U0001d400-\U0001d7ff\U0001f130-\U0001f189"
    "\U0001fbf0-\U0001fbf9"
)
# Decimal digits of Arabic, Persian, Devanagari, Bengali, Gujarati, Tamil, Telugu, Thai and Khmer.
_DIGITS = (
    "\u0660-\u0669\u06f0-\u06f9\u0966-\u096f\u09e6-\u09ef\u0ae6-\u0aef\u0be6-\u0bef\u0c66-\u0c6f\u0e50-\u0e59"
    "\u17e0-\u17e9"
)
_TAGS = "\U000e0020-\U000e007e"
_LOOKALIKES = dict(
    zip(
        "кмтаеорсухіјѕһԁԛԝԍɡɑʟꜱոυνοιακρτωхүӏıАВЕКМНОРСТХУІЈЅЗԌΑΒΕΖΗΙΚΜΝΟΡΤΥΧϹϳՕՍᎪᏴᏟᎠᎬᏀᎻᏦᏞᎷᏢᎡᏚᎢᏙᏔᏃ",
        "kmtaeopcyxijshdqwggalsnuvoiakptwxylIABEKMHOPCTXYIJS3GABEZHIKMNOPTYXCjOUABCDEGHKLMPRSTVWZ",
        strict=True,
    )
)
_FOREIGN = "".join(_LOOKALIKES)
# One class first, which the engine of `re` skips to: a look-alike counts beside what it could extend, a digit with as
# many others as a telephone number has.
_SUSPECT = re.compile(
    f"[{_IGNORED}{_STYLED}{_TAGS}{_FOREIGN}{_DIGITS}](?:(?<=[{_IGNORED}{_STYLED}{_TAGS}])|(?=[A-Za-z0-9_-])"
    f"|(?<=[{_DIGITS}])(?=(?:[ ().+-]{{0,2}}[{_DIGITS}]){{6}})"
    f"|(?<=[A-Za-z0-9_-][{_FOREIGN}]))"
)
_SUSPECTS = re.compile(f"[{_IGNORED}{_STYLED}{_TAGS}{_FOREIGN}{_DIGITS}]")
_NOT_ASCII = re.compile(r"[^\x00-\x7f]")
_ASCII = bytes(range(128))
# Fewer characters that read as Latin side by side are no part of a datum: a comma in Chinese prose is full width too.
_READABLE = re.compile(rf"[!-~\u00c0-\u024f{_IGNORED}{_STYLED}{_TAGS}{_FOREIGN}{_DIGITS}]{{4}}")
_NEXT_GROUP = re.compile(rf" [A-Z0-9()+.{_IGNORED}{_STYLED}{_FOREIGN}{_DIGITS}-]{{1,24}}(?![a-z])")
_GROUPS_BACK = re.compile(r"(?: [0-9()+.-]{1,8}){1,6}(?=[ \n:=\"']|\Z)")
_BACK = 48  # characters before a hit in which the first group of a number stands
_IGNORED_ONE = re.compile("[" + _IGNORED + "]")
_SELECTORS = "\ufe00-\ufe0f\U000e0100-\U000e01ef"  # each may stand for a byte: 0 to 15, and from 16 on
_SELECTOR = re.compile("[" + _SELECTORS + "]")
_SELECTOR_RUN = re.compile("[" + _SELECTORS + "]{8,20000}")
_PHRASE = 160  # characters of a line around an altered word that are read with it
_WORDS = re.compile(r"[A-Za-z]{2,20}")
_TAG = re.compile("[" + _TAGS + "]")
_TAG_RUN = re.compile("[" + _TAGS + "]{4,20000}")
_SPACE = re.compile(r"[ \t\r\n\"'`<>]")
_LEAST = 8
_GROUPS = 10


def beyond_ascii(text: str) -> str:
    """The characters of a text that are not ASCII, each once: most texts have none that matters, as this soon tells."""
    rest = text.encode("utf-8", "surrogatepass").translate(None, _ASCII)
    return "".join(set(rest.decode("utf-8", "surrogatepass")))


def folded(text: str, foreign: str | None = None) -> Iterator[tuple[int, View | None]]:
    """A view of every word that reads as ASCII but is not, and of every run of tag characters, each with its start.

    None stands for a word that was read and is none, as reading costs too. `foreign` is what `beyond_ascii` says of the
    text, where the caller knows it.
    """
    present = beyond_ascii(text) if foreign is None else foreign
    if _TAG.search(present) is not None:
        for run in _TAG_RUN.finditer(text):
            if text[max(0, run.start() - 1) : run.start()] != "\U0001f3f4":  # a flag is spelled with tags
                yield run.start(), _tag_view(run)
    if _SELECTOR.search(present) is not None:
        for run in _SELECTOR_RUN.finditer(text):
            yield run.start(), _selector_view(run)
    if _SUSPECTS.search(present) is not None:
        yield from _words(text)


def _words(text: str) -> Iterator[tuple[int, View | None]]:
    """A view of each altered word, if it is one, and one of the words around it where they are words too."""
    at = phrased = 0
    while (hit := _SUSPECT.search(text, at)) is not None:
        low = max(at, hit.start() - 512)
        earlier = _SPACE.search(text[low : hit.start()][::-1])
        low = hit.start() - earlier.start() if earlier else low
        number = not fold_char(text[low])[:1].isalpha()
        groups = _GROUPS_BACK.match(text[max(at, low - _BACK) : low][::-1]) if number else None
        low -= groups.end() if groups else 0
        following = _SPACE.search(text, hit.start(), hit.start() + MAX_REGION)
        high = following.start() if following else min(len(text), hit.start() + MAX_REGION)
        for _ in range(_GROUPS):  # numbers are written in groups
            group = _NEXT_GROUP.match(text, high)
            if group is None:
                break
            following = _SPACE.search(text, group.end(), group.end() + _BACK)
            high = following.start() if following else min(len(text), group.end() + _BACK)
        view = _fold(text, low, high) if _READABLE.search(text, low, high) is not None else None
        yield low, view
        if low >= phrased:
            phrase = _phrase(text, hit.start(), high)
            yield low, phrase
            phrased = phrase.end if phrase is not None else phrased
        at = max(high, hit.end())


def _tag_view(run: re.Match[str]) -> View:
    pieces = Pieces()
    pieces.add("".join([chr(ord(char) - 0xE0000) for char in run[0]]), run.start(), run.end())
    return View("tags", pieces.text(), run.start(), run.end(), pieces)


def _selector_view(run: re.Match[str]) -> View:
    """Bytes that variation selectors spell (Unicode 16, 23.4 gives them no such meaning)."""
    pieces = Pieces()
    codes = [ord(char) - (0xFE00 if char <= "\ufe0f" else 0xE0100 - 16) for char in run[0]]
    pieces.add("".join(map(chr, codes)), run.start(), run.end())
    return View("tags", pieces.text(), run.start(), run.end(), pieces)


def _phrase(text: str, hit: int, end: int) -> View | None:
    """The line around an altered word, folded, where other words stand in it: a phrase is told by all of its words."""
    low = max(text.rfind("\n", max(0, hit - _PHRASE), hit) + 1, hit - _PHRASE, 0)
    following = text.find("\n", end, end + _PHRASE)
    high = following if following >= 0 else min(len(text), end + _PHRASE)
    if len(_WORDS.findall(text, low, high)) < 3:
        return None
    return _fold(text, low, high)


def _fold(text: str, low: int, high: int) -> View | None:
    pieces, run, start, at = Pieces(), "", low, low
    for foreign in _NOT_ASCII.finditer(text, low, high):
        offset = foreign.start()
        run += text[at:offset]
        at = offset + 1
        char = fold_char(foreign[0])
        if len(char) == 1:
            run += char
            continue
        pieces.add(run, start, offset)
        pieces.add(char, offset, at)
        run, start = "", at
    pieces.add(run + text[at:high], start, high)
    return View("folded", pieces.text(), low, high, pieces) if pieces.size >= _LEAST else None


@lru_cache(maxsize=8192)
def fold_char(char: str) -> str:
    """What a character reads as in ASCII; itself where it reads as nothing else, empty where it is invisible."""
    if char.isascii():
        return char
    if char in _LOOKALIKES:
        return _LOOKALIKES[char]
    if _IGNORED_ONE.match(char):
        return ""
    if "\U000e0020" <= char <= "\U000e007e":
        return chr(ord(char) - 0xE0000)
    digit = unicodedata.decimal(char, -1)
    return str(digit) if digit >= 0 else unicodedata.normalize("NFKC", char)
