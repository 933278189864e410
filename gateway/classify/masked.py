"""Values that were masked before, found again without the context that gave them away.

`password=...` is found by its name; the bare value on the next turn is not. Every new object is therefore compared
with the values already masked, in the forms in which they most likely come back.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from typing import override
from urllib.parse import quote

from gateway.classify.needles import Index, Needles
from gateway.classify.objects import LeafFinding
from gateway.classify.places import Sought
from gateway.context.findings import Category, Severity
from gateway.context.objects import Leaf

MIN_LENGTH = 8
_MIN_DISTINCT = 5
_PLAIN_WORD_LENGTH = 16
FINDING_TYPE = "masked_before"
_MANY = 16  # values from which on all are looked for at once
_MAX_OPENED = 64  # projects


@dataclass(frozen=True, slots=True)
class MaskedValue:
    """A value that this project has masked, with its placeholder."""

    token: str
    value: str = field(repr=False)
    category: Category = Category.SECRET

    @override
    def __repr__(self) -> str:
        return f"MaskedValue({self.token})"


type Shape = tuple[MaskedValue, str, bool]
"""A masked value, one of its forms, and whether that form is an encoded one."""


def memorable(value: str) -> bool:
    """Whether a value is long and varied enough to be looked for by itself: a short word would mask ordinary text."""
    if len(value) < MIN_LENGTH or len(set(value)) < _MIN_DISTINCT:
        return False
    return len(value) >= _PLAIN_WORD_LENGTH or not (value.isalpha() and (value.islower() or value.istitle()))


@lru_cache(maxsize=4096)
def forms(value: str) -> tuple[tuple[str, bool], ...]:
    """The forms a value is looked for in, each with whether it is an encoded one; the plain form first.

    Remembered, as every request asks for those of every masked value; `forget_forms` when values are forgotten. They
    lie in memory only, beside the keys that open the values.
    """
    found: dict[str, bool] = {value: False}
    for ascii_only in (True, False):
        once = json.dumps(value, ensure_ascii=ascii_only)[1:-1]
        found.setdefault(once, True)
        found.setdefault(json.dumps(once)[1:-1], True)
    for other in (quote(value.encode("utf-8", "surrogatepass"), safe=""), value[::-1]):
        found.setdefault(other, True)
    data = value.encode("utf-8", "surrogatepass")
    found.setdefault(data.hex(), True)
    found.setdefault(data.hex().upper(), True)
    for core in _base64_cores(data):
        found.setdefault(core, True)
        found.setdefault(core.replace("+", "-").replace("/", "_"), True)
    return tuple(found.items())


def _base64_cores(data: bytes) -> Iterator[str]:
    """The characters of base64 that depend on the value alone, for each of the three alignments."""
    for shift in range(3):
        text = base64.b64encode(b"\0" * shift + data).decode("ascii")
        first = (0, 2, 3)[shift]
        last = len(text.rstrip("=")) - (1 if (shift + len(data)) % 3 else 0)
        if last - first >= MIN_LENGTH:
            yield text[first:last]


def forget_forms() -> None:
    """Drop the remembered forms: a value was forgotten."""
    forms.cache_clear()
    _needles.clear()
    _opened.clear()
    _indexed.clear()


_needles = Needles(lambda value: (form for form, _ in forms(value)))
_indexed: list[tuple[Sequence[MaskedValue], Index]] = []  # what was added last, where it can never change
_opened: dict[int, tuple[Sequence[tuple[str, str, str]], tuple[MaskedValue, ...]]] = {}


def masked_values(rows: Sequence[tuple[str, str, str]]) -> Sequence[MaskedValue]:
    """The values that a vault tells of, as (placeholder, value, category); remembered while it tells of the same."""
    known = _opened.get(id(rows))
    if known is None or known[0] is not rows:
        if len(_opened) >= _MAX_OPENED:
            _opened.clear()
        values = tuple(MaskedValue(token, value, Category(kind)) for token, value, kind in rows)
        known = _opened[id(rows)] = rows, values
    return known[1]


def _occurring(text: str, values: Sequence[MaskedValue]) -> Sequence[MaskedValue]:
    """The values that may stand in a text; where they are few, all of them."""
    if len(values) < _MANY:
        return values
    known = next(iter(_indexed), None)  # read once: another thread may put other values there
    if known is not None and known[0] is values:
        index = known[1]
    else:
        index = _needles.add([masked.value for masked in values])
        _indexed[:] = [(values, index)] if isinstance(values, tuple) else []
    found = _needles.sift(text, index)
    return [masked for masked in values if masked.value in found] if found else ()


@dataclass(frozen=True)
class Shapes:
    """Forms of masked values that are looked for."""

    each: tuple[Shape, ...]

    @cached_property
    def sought(self) -> Sought:
        """Their forms, to be looked for at once; made for the first text and kept for the others."""
        return Sought(self.numbers)

    @cached_property
    def numbers(self) -> dict[str, list[int]]:
        """Which shapes have a form: two values may have the same one."""
        found: dict[str, list[int]] = {}
        for number, (_, form, _) in enumerate(self.each):
            found.setdefault(form, []).append(number)
        return found


def shapes_in(texts: Iterable[str], values: Sequence[MaskedValue]) -> Shapes:
    """The forms of values that occur in some of the texts at all: most occur in none, and need no second look."""
    if not values:
        return Shapes(())
    haystack = "\0".join(texts)
    shapes = [
        (masked, form, encoded)
        for masked in _occurring(haystack, values)
        for form, encoded in forms(masked.value)
    ]
    present = {place.sought for place in Sought(form for _, form, _ in shapes).within([haystack])}
    return Shapes(tuple(shape for shape in shapes if shape[1] in present))


def compare(leaves: Sequence[Leaf], scannable: Sequence[int], shapes: Shapes) -> list[LeafFinding]:
    """Findings of type `masked_before` for every place where one of the shapes stands: by shape, leaf, and place."""
    places = sorted(
        (number, scannable[place.text], place.start, place.end)
        for place in shapes.sought.within([leaves[index].text for index in scannable])
        for number in shapes.numbers[place.sought]
    )
    hits: list[LeafFinding] = []
    for number, index, start, end in places:
        masked, _, encoded = shapes.each[number]
        hits.append(_finding(index, leaves[index], (start, end), masked, encoded=encoded))
    return hits


def _finding(
    index: int, leaf: Leaf, span: tuple[int, int], masked: MaskedValue, *, encoded: bool
) -> LeafFinding:
    return LeafFinding(
        leaf=index,
        role=leaf.role,
        start=span[0],
        end=span[1],
        type=FINDING_TYPE,
        category=masked.category,
        severity=Severity.HIGH,
        confidence_milli=950,
        detector=FINDING_TYPE,
        token=masked.token,
        encoded=encoded,
    )


def may_hold(text: str, values: Sequence[MaskedValue]) -> bool:
    """Whether a JSON text may hold one of the values: a fast no spares reading old objects again.

    A text with unusual escapes gets a yes, as its strings differ from its characters.
    """
    if "\\u00" in text or "\\/" in text:
        return True
    if "\\u" in text and not all(masked.value.isascii() for masked in values):
        return True
    sought = Sought(form for masked in _occurring(text, values) for form, _ in forms(masked.value))
    return sought.stands_in([text])
