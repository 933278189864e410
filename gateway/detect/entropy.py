"""How random a value looks: what separates a key from a word, a path or an identifier."""

from __future__ import annotations

import binascii
import math
import re
import string
from collections import Counter
from itertools import pairwise

from gateway.detect.data import words

UUID = re.compile(r"[0-9a-fA-F]{8}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{12}")
_HEX = re.compile(r"[0-9a-f]+|[0-9A-F]+")
_TOKEN = re.compile(r"[A-Za-z0-9_\-.~+/=:!@#$%^&*]+")
_SEQUENCES = ("abcdefg", "bcdefgh", "qwertyu", "a1b2c3", "1a2b3c", "b2c3d4")
_WORDY = re.compile(r"[a-z]{4,}|[A-Z][a-z]{3,}")
_UNSPOKEN = re.compile(r"(?i)[b-df-hj-np-tv-xz]{5}")  # no word has five consonants in a row
DIGIT = re.compile(r"[0-9]")
LOWER = re.compile(r"[a-z]")
UPPER = re.compile(r"[A-Z]")
SYMBOL = re.compile(r"[^A-Za-z0-9]")
_PIECE = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|[0-9]+")
_DIGITS, _LETTERS = string.digits.encode(), string.ascii_letters.encode()
_LETTER_RUN = re.compile(r"[^\W\d_]+")
_SPOKEN_PAIRS = frozenset(
    (first, second)
    for first, _, rest in (row.partition(":") for row in words("letter_pairs"))
    for second in rest
)
# Of the letter pairs of random text, four in ten are pairs that words have: the longer, the surer.
_SPOKEN_SHARE = ((20, 0.7), (12, 0.65), (8, 0.55))
_FEWEST_PAIRS = _SPOKEN_SHARE[-1][0] - 1
_LEAST_LETTERS = 20  # of a key that has letters alone
_SAID = r"[A-Za-z][a-z]{2,11}"
_PHRASE = re.compile(rf"{_SAID}(?:(?:-{_SAID}){{3,8}}|(?: {_SAID}){{3,8}})(?:-?[0-9]{{1,4}})?")
_PHRASE_WORD = re.compile(r"[a-z]+")
_PHRASE_DENIED = words("phrase_denied")
_SAMPLE = 160  # characters that are enough to judge by
_DATE = re.compile(r"\d{4}-\d{2}-\d{2}(?:[T ].*)?|\d{1,2}[hms]|[0-9.]+(?:ms|[smhdkMGT]B?|px|em|%)?")
_VERSION = re.compile(r"[~^>=<v]{0,2}\d+(?:\.\d+){1,3}(?:[-+.].*)?")


def _weighed(count: int) -> float:
    return count * math.log2(count) if count else 0.0


_WEIGHED = tuple(map(_weighed, range(512)))  # most values are short, and the logarithm is what costs


def bits(value: str) -> float:
    """Shannon entropy in bits a character."""
    size = len(value)
    if not size:
        return 0.0
    if size < len(_WEIGHED):
        weighed = sum(map(_WEIGHED.__getitem__, map(value.count, set(value))))
    else:
        weighed = sum(map(_weighed, Counter(value).values()))
    return math.log2(size) - weighed / size


LEAST_RANDOM = 16
"""Characters of a key; what is shorter, and random, is a password."""


def looks_random(value: str, *, least: int = LEAST_RANDOM) -> bool:
    """Whether `least` and more characters are random text rather than words, a path, a version or a number."""
    size, value = len(value), value[:_SAMPLE]
    if size < least or size > 1000 or not _TOKEN.fullmatch(value):
        return False
    if (
        has_sequence(value)
        or _DATE.fullmatch(value)
        or _VERSION.fullmatch(value)
        or value.replace("-", "").replace(".", "").isdigit()
    ):
        return False
    if UUID.fullmatch(value):
        return True
    if _HEX.fullmatch(value):
        return bits(value) >= 2.9
    raw = value.encode("ascii")
    digits, letters = (
        len(value) - len(raw.translate(None, _DIGITS)),
        len(value) - len(raw.translate(None, _LETTERS)),
    )
    if not digits or not letters:
        if letters == size and size >= _LEAST_LETTERS and unspoken(value):
            return True
        mixed_case = value.upper() != value and value.lower() != value
        return mixed_case and len(value) >= 20 and bits(value) >= 3.9 and _word_share(value) < 0.35
    if len(value) >= 40 and digits >= 3 and bits(value) >= 4.0:
        return True
    if _word_share(value) > (0.7 if digits >= 4 else 0.5) and not (size >= 20 and unspoken(value)):
        return False
    return bits(value) >= (3.4 if len(value) >= 20 else 3.1 if len(value) >= 16 else 2.7)


def unspoken(value: str) -> bool:
    """Whether letters follow one another as they do in no words: eight and more letters, drawn by chance."""
    lowered = value.lower()
    pairs = sum([len(run) - 1 for run in _LETTER_RUN.findall(lowered)])
    if pairs < _FEWEST_PAIRS:
        return False
    spoken = sum(map(_SPOKEN_PAIRS.__contains__, pairwise(lowered)))
    return any(pairs >= least - 1 and spoken <= share * pairs for least, share in _SPOKEN_SHARE)


def random_mixed(value: str, random: bool | None = None) -> bool:
    """Whether ten and more characters of both cases, with a digit, were drawn by chance rather than named.

    `random` is what `looks_random` says of the value, where the caller knows it.
    """
    return (
        value.lower() != value != value.upper()
        and (looks_random(value, least=10) if random is None else random)
        and (len(DIGIT.findall(value)) >= 3 or unspoken(value) or _broken(value))
    )


def _broken(value: str) -> bool:
    """Whether cases and digits change as in no identifier: pieces of two characters on average."""
    return 2.2 * len(_PIECE.findall(value)) > len(value)


def random_letters(value: str) -> bool:
    """A key of letters alone."""
    return value.isalpha() and value.isascii() and looks_random(value, least=_LEAST_LETTERS)


def is_passphrase(value: str) -> bool:
    """Four and more words that nobody would put into a label: `onyx-piano-rocket-saddle`."""
    if not 16 <= len(value) <= 80 or not _PHRASE.fullmatch(value):
        return False
    return _PHRASE_DENIED.isdisjoint(_PHRASE_WORD.findall(value.lower()))


def _word_share(value: str) -> float:
    return sum([len(w) for w in _WORDY.findall(value) if not _UNSPOKEN.search(w)]) / len(value)


def looks_chosen(value: str) -> bool:
    """Whether a value could be a password somebody chose: not a bare word, a number, a path or code."""
    if not 6 <= len(value) <= 256 or value.isspace():
        return False
    if LOWER.search(value) is not None:
        return (
            UPPER.search(value) is not None
            or DIGIT.search(value) is not None
            or SYMBOL.search(value) is not None
        )
    if UPPER.search(value) is not None:
        return DIGIT.search(value) is not None or SYMBOL.search(value) is not None
    return DIGIT.search(value) is not None and SYMBOL.search(value) is not None


def is_readable_base64(value: str) -> bool:
    """Whether a value is base64 of plain words: data, not a key."""
    try:
        raw = binascii.a2b_base64(value + "=" * (-len(value) % 4), strict_mode=True)
    except (binascii.Error, ValueError):
        return False
    return len(raw) >= 12 and raw.isascii() and raw.decode("ascii").isprintable() and b" " in raw


def has_sequence(value: str) -> bool:
    """Whether a value runs along the alphabet or the keyboard, as made-up ones do."""
    return any(map(value.lower().__contains__, _SEQUENCES))


def is_date(value: str) -> bool:
    """Whether a value is a date, a time or a duration."""
    return _DATE.fullmatch(value) is not None
