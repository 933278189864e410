"""Values that an organisation knows as its own: passwords in use, customer and contract numbers, account names.

A value is compared by its letters and digits alone, case folded, so that `KD-4821 3377`, `kd48213377` and
`KD.4821.3377` are one. What is known is asked of a look-up object (`gateway.store.known`), which holds keyed
fingerprints and no values. Each line of a text is cut into words; every window of neighbouring words whose length and
number of digits some known value has is looked up once. A window has at most MAX_WORDS words: time is linear. Lines of
ASCII in longer texts are read by `windows`, which leaves few windows to look up; others word by word.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Container, Sequence
from typing import Final, Protocol

from gateway.context.findings import Category, Severity
from gateway.detect.batch import Batch
from gateway.detect.scope import Scope
from gateway.detect.typelist import TypeRow
from gateway.detect.windows import MAX_GAP, MAX_LENGTH, Sieve, windows

KNOWN_TYPE: Final = "known_value"
MAX_WORDS: Final = 8
LEAST_LENGTH: Final = 6  # with a digit; shorter ones are found in every text
LEAST_LETTERS: Final = 8  # without one
PROBE: Final = "egress-known-value-probe-7Q2X"
"""Is in every list, so that the test of the detector shows that lists are looked up, with the right key."""

_WORD = re.compile(r"[^\W_]+")
_DIGIT = re.compile(r"\d")
_LONG = 1024  # bytes of a batch from which reading it as a whole pays
_WHAT = (KNOWN_TYPE, Category.CUSTOM, Severity.HIGH)
_DETECTOR = "known-value"
DESCRIBED: Final = TypeRow(_DETECTOR, *_WHAT, PROBE, "own: the lists of `egress project index --values`")


class KnownValues(Sieve, Protocol):
    """What is known."""

    @property
    def revision(self) -> str:
        """Changes with the lists."""
        ...

    @property
    def shapes(self) -> Container[int]:
        """`shape_of` of every value."""
        ...

    @property
    def least_digits(self) -> int:
        """The fewest digits of a value; the probe does not count."""
        ...

    def holds(self, normal: str) -> bool:
        """Whether a normalised value is known."""
        ...


def shape_of(length: int, digits: int) -> int:
    """Length and number of digits of a value as one number."""
    return length << 8 | digits


def normalised(value: str) -> str:
    """The letters and digits of a value, case folded, compatibility forms (full width) as plain ones."""
    folded = value if value.isascii() else unicodedata.normalize("NFKC", value)
    return "".join(_WORD.findall(folded)).casefold()


def indexable(value: str) -> str:
    """A value as it is indexed; empty where it is too short to be found only where it is meant, or too long."""
    normal = normalised(value)
    least = LEAST_LENGTH if _DIGIT.search(normal) else LEAST_LETTERS
    return normal if least <= len(normal) <= MAX_LENGTH and word_count(value) <= MAX_WORDS else ""


def read_value(value: str) -> tuple[str, set[int], int]:
    """`indexable`, `shapes_of` and `word_count` of a value; quickly where it is ASCII, as most are."""
    if not value.isascii():
        return indexable(value), shapes_of(value), word_count(value)
    words = _WORD.findall(value)
    normal = "".join(words).lower()
    digits = len(_DIGIT.findall(normal))
    least = LEAST_LENGTH if digits else LEAST_LETTERS
    kept = least <= len(normal) <= MAX_LENGTH and len(words) <= MAX_WORDS
    return (normal, {shape_of(len(normal), digits)}, len(words)) if kept else ("", set(), 0)


def word_count(value: str) -> int:
    """How many words a value is written in."""
    return len(_WORD.findall(value))


def shapes_of(value: str) -> set[int]:
    """The shapes that a value has in a text, as it is written and as it is normalised (which can change its length)."""
    forms = {"".join(_WORD.findall(value)), normalised(value)}
    return {shape_of(len(form), len(_DIGIT.findall(form))) for form in forms if len(form) <= MAX_LENGTH}


def find_known(batch: Batch, scopes: Sequence[Scope], known: KnownValues) -> None:
    """Add every known value that stands in the scopes, whose texts are those of the batch."""
    if len(batch.data) < _LONG:
        for scope in scopes:
            _find_word_by_word(scope, known, everything=True)
        return
    seen: dict[int, int] = {}
    for start, end in windows(batch.data, known):
        number = batch.locate(start + 1)
        scope, at = scopes[number], batch.starts[number]
        span = start - at, end - at
        if (
            span[0] >= seen.get(number, 0)
            and known.holds(normalised(scope.text[slice(*span)]))
            and _is_plain(scope, *span)
        ):
            scope.add(span, _WHAT, 990, _DETECTOR)
            seen[number] = span[1]
    for scope in scopes:
        if not scope.text.isascii():
            _find_word_by_word(scope, known, everything=False)


def _is_plain(scope: Scope, low: int, high: int) -> bool:
    """Whether the line of a window is ASCII; others are read word by word."""
    if scope.text.isascii():
        return True
    stop = scope.text.find("\n", high)
    return scope.text[scope.text.rfind("\n", 0, low) + 1 : stop if stop >= 0 else None].isascii()


def _find_word_by_word(scope: Scope, known: KnownValues, *, everything: bool) -> None:
    """Look at every line, or only at those that are not ASCII."""
    text, at = scope.text, 0
    least = 0 if PROBE in text else known.least_digits
    while at < len(text):
        stop = text.find("\n", at)
        stop = len(text) if stop < 0 else stop
        wanted = stop - at >= LEAST_LENGTH and (everything or not text[at:stop].isascii())
        if wanted and _has_digits(text, at, stop, least):
            _find_in_line(scope, known, at, stop)
        at = stop + 1


def _has_digits(text: str, low: int, high: int, least: int) -> bool:
    """Whether a line has so many digits; most lines have none or few, and are not read word by word."""
    if not least:
        return True
    return _DIGIT.search(text, low, high) is not None and len(_DIGIT.findall(text, low, high)) >= least


def _find_in_line(scope: Scope, known: KnownValues, low: int, high: int) -> None:
    text, shapes, most = scope.text, known.shapes, known.words
    spans = [match.span() for match in _WORD.finditer(text, low, high)]
    digits = [len(_DIGIT.findall(text, start, end)) for start, end in spans]
    seen = low
    for first, (start, end_of_first) in enumerate(spans):
        if start < seen:
            continue
        length = count = 0
        end = end_of_first
        for index in range(first, min(first + most, len(spans))):
            begin, stop = spans[index]
            length += stop - begin
            if begin - end > MAX_GAP or length > MAX_LENGTH:
                break
            count += digits[index]
            end = stop
            if shape_of(length, count) in shapes and known.holds(normalised(text[start:end])):
                scope.add((start, end), _WHAT, 990, _DETECTOR)
                seen = end
