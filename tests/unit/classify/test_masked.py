"""Values that were masked before are found in the forms in which they come back."""

from __future__ import annotations

import base64
import json
from urllib.parse import quote

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.classify.masked import MaskedValue, compare, forget_forms, forms, may_hold, memorable, shapes_in
from gateway.context.objects import Leaf, LeafRole

VALUES = st.text(st.characters(codec="utf-8"), min_size=8, max_size=60).filter(memorable)


def found(text: str, value: str) -> list[tuple[int, int]]:
    hits = compare([Leaf((), text, LeafRole.TEXT)], [0], shapes_in([text], [MaskedValue("T", value)]))
    return [(hit.start, hit.end) for hit in hits]


@given(st.text(max_size=30), VALUES, st.text(max_size=30))
def test_the_plain_value_is_found_wherever_it_stands(before: str, value: str, after: str) -> None:
    assert (len(before), len(before) + len(value)) in found(before + value + after, value)


WILD = st.text(st.characters(), max_size=40)  # lone surrogates included


@given(st.lists(st.text(st.characters(), min_size=1, max_size=24), min_size=16, max_size=40), st.data())
def test_looking_for_all_values_at_once_finds_what_looking_for_each_finds(
    values: list[str], data: st.DataObject
) -> None:
    shown = st.sampled_from([form for value in values for form, _ in forms(value)])
    text = "".join(data.draw(st.lists(st.one_of(shown, WILD), max_size=8)))
    masked = tuple(MaskedValue(f"T{n}", value) for n, value in enumerate(values))
    each = [shape for one in masked for shape in shapes_in([text], [one]).each]
    assert list(shapes_in([text], masked).each) == each
    assert may_hold(text, masked) == any(may_hold(text, [one]) for one in masked)


def test_values_that_were_forgotten_are_looked_for_no_more_and_new_ones_are() -> None:
    def of(start: int, count: int) -> tuple[MaskedValue, ...]:
        return tuple(MaskedValue(f"T{n}", f"value-{n:05}-of-many") for n in range(start, start + count))

    text = "value-00003-of-many and dmFsdWUtMDAwMDQtb2YtbWFueQ== and value-09000-of-many"
    tokens = ["T3", "T4", "T9000"]
    assert [m.token for m, _, _ in shapes_in([text], of(0, 20)).each] == tokens[:2]
    assert [m.token for m, _, _ in shapes_in([text], of(0, 9001)).each] == tokens  # more than the index keeps
    assert shapes_in([text], of(100, 50)).each == ()
    assert [m.token for m, _, _ in shapes_in([text], list(of(0, 20))).each] == tokens[:2]
    forget_forms()
    assert [m.token for m, _, _ in shapes_in([text], of(0, 20)).each] == tokens[:2]


@given(st.binary(max_size=9), VALUES, st.binary(max_size=9))
def test_base64_is_found_at_every_alignment(before: bytes, value: str, after: bytes) -> None:
    data = before + value.encode() + after
    text = base64.b64encode(data).decode()
    spans = found(text, value)
    cut = text
    for start, end in sorted(spans, reverse=True):
        cut = cut[:start] + "!" * (end - start) + cut[end:]

    assert spans
    assert text.rstrip("=") != cut.rstrip("=")


@pytest.mark.parametrize(
    "form",
    [
        lambda v: v.encode().hex(),
        lambda v: v.encode().hex().upper(),
        lambda v: quote(v, safe=""),
        lambda v: v[::-1],
        lambda v: json.dumps(v)[1:-1],
        lambda v: base64.urlsafe_b64encode(v.encode()).decode(),
    ],
)
@given(value=VALUES)
def test_other_forms_are_found(form: object, value: str) -> None:
    assert found(f"x {form(value)} y", value)  # type: ignore[operator]


@pytest.mark.parametrize(
    "word", ["password", "hunter2", "aaaaaaaaaaaa", "Tuesday", "configuration", "12121212"]
)
def test_short_or_plain_words_are_not_looked_for(word: str) -> None:
    assert not memorable(word)


@pytest.mark.parametrize(
    "value", ["tr0ub4dor&3", "correcthorsebattery", "4111111111111111"[:8] + "x9Zq", "a@b.example.org"]
)
def test_long_or_varied_values_are_looked_for(value: str) -> None:
    assert memorable(value)


@given(VALUES, st.text(max_size=20))
def test_the_fast_no_is_never_wrong(value: str, around: str) -> None:
    body = json.dumps({"text": around + value}, ensure_ascii=False)

    assert may_hold(body, [MaskedValue("T", value)])
