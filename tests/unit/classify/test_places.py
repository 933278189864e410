"""Looking for many texts at once, and many spans, finds what looking for each by itself finds."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.classify.places import Place, Sought
from gateway.classify.spans import Holding, overlapping

SIZES = pytest.mark.parametrize("most", [5, 40], ids=["few", "many"])
# Few letters, so that texts stand in each other and over their own ends; beyond ASCII, a lone surrogate, a zero.
LETTERS = st.sampled_from(["a", "b", "ab", "abababab", "é", "\U0001f600", "\ud800", "\0", "secret-", "\n"])
WORDS = st.lists(LETTERS, min_size=1, max_size=8).map("".join)
SPANS = st.lists(
    st.tuples(st.integers(0, 30), st.integers(0, 12)).map(lambda s: (s[0], s[0] + s[1])), max_size=12
)


def one_by_one(sought: Sequence[str], texts: Sequence[str]) -> set[Place]:
    found = set()
    for each in sought:
        for number, text in enumerate(texts):
            at = text.find(each)
            while at >= 0:
                found.add(Place(number, at, at + len(each), each))
                at = text.find(each, at + len(each))
    return found


@SIZES
@given(data=st.data(), texts=st.lists(st.lists(LETTERS, max_size=30).map("".join), max_size=5))
def test_every_place_is_found_in_ascending_order(most: int, data: st.DataObject, texts: list[str]) -> None:
    least = 0 if most < 20 else 20
    sought = data.draw(st.lists(WORDS, min_size=least, max_size=most, unique=True))
    found = list(Sought(sought).within(texts))

    assert set(found) == one_by_one(sought, texts)
    assert len(found) == len(set(found))
    assert [(each.text, each.start) for each in found] == sorted((each.text, each.start) for each in found)
    assert Sought(sought).stands_in(texts) == bool(found)


@SIZES
def test_no_text_reaches_into_the_next_one(most: int) -> None:
    sought = ["one\0two", *(f"other-{n}" for n in range(most))]

    assert not list(Sought(sought).within(["one", "two"]))
    assert list(Sought(sought).within(["", "one\0two"])) == [Place(1, 0, 7, "one\0two")]


def test_texts_that_begin_alike_are_found_whatever_their_length() -> None:
    sought = [f"AAAAAAAA{'b' * n}{n}" for n in range(40)]
    texts = ["".join(sought), "A" * 500, "x" + sought[30]]

    assert set(Sought(sought).within(texts)) == one_by_one(sought, texts)


def test_nothing_shows_what_is_sought_in_a_repr() -> None:
    assert "swordfish" not in repr(Sought(["swordfish-1"]))


@given(SPANS, st.integers(0, 40), st.integers(0, 12))
def test_a_span_is_held_where_one_of_the_others_holds_it(
    spans: list[tuple[int, int]], start: int, size: int
) -> None:
    holds = any(low <= start and start + size <= high for low, high in spans)

    assert Holding(spans).holds(start, start + size) == holds


@given(
    st.lists(st.tuples(st.integers(0, 3), st.integers(1, 6)), max_size=12),
    st.integers(0, 60),
    st.integers(1, 12),
)
def test_what_overlaps_is_found_among_spans_in_order(
    steps: list[tuple[int, int]], low: int, size: int
) -> None:
    spans, at = [], 0
    for gap, length in steps:
        spans.append((at + gap, at + gap + length))
        at = spans[-1][1]

    assert list(overlapping(spans, low, low + size)) == [
        (a, b) for a, b in spans if a < low + size and b > low
    ]
