"""Placeholders: deterministic, typed, recognised only where they were issued."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.classify.placeholders import MAX_LENGTH, PREFIX, Placeholders, label_for

A = Placeholders(b"a" * 32, b"m" * 32)
B = Placeholders(b"b" * 32, b"n" * 32)
VALUES = st.text(min_size=1, max_size=200)
LABELS = st.sampled_from(["GITHUB_TOKEN", "EMAIL", "AB", "PASSWORD", "X9_Y_Z", "A" * 32])


@given(VALUES, LABELS)
def test_the_same_value_gives_the_same_placeholder_and_it_needs_no_escaping(value: str, label: str) -> None:
    token = A.issue(value, label)

    assert token == A.issue(value, label)
    assert re.fullmatch(r"[A-Z0-9_]+", token)
    assert len(token) <= MAX_LENGTH


@given(VALUES, VALUES, LABELS)
def test_two_values_never_share_a_placeholder(one: str, other: str, label: str) -> None:
    assert (A.issue(one, label) == A.issue(other, label)) == (one == other)


@given(st.text(), VALUES, LABELS, st.text())
def test_it_is_found_again_in_any_text(before: str, value: str, label: str, after: str) -> None:
    token = A.issue(value, label)

    assert (len(before), len(before) + len(token)) in list(A.find(before + token + after))


@given(VALUES, LABELS)
def test_another_project_does_not_recognise_it(value: str, label: str) -> None:
    token = A.issue(value, label)

    assert list(B.find(token)) == []
    assert B.look(token)[1] == 1
    assert A.look(token)[1] == 0


@given(VALUES, LABELS, st.data())
def test_a_changed_placeholder_is_plain_text(value: str, label: str, data: st.DataObject) -> None:
    token = A.issue(value, label)
    at = data.draw(st.integers(len(PREFIX), len(token) - 1))
    other = data.draw(st.sampled_from([c for c in "ABCDEFGHIJKLMNOPQRSTUVWXYZ234567" if c != token[at]]))

    assert list(A.find(token[:at] + other + token[at + 1 :])) == []


@given(st.lists(st.tuples(VALUES, LABELS), min_size=1, max_size=5))
def test_neighbours_are_told_apart(values: list[tuple[str, str]]) -> None:
    tokens = [A.issue(value, label) for value, label in values]
    text = "".join(tokens)

    assert [text[a:b] for a, b in A.find(text)] == tokens


@pytest.mark.parametrize(
    ("kind", "label"),
    [
        ("github_token", "GITHUB_TOKEN"),
        ("pii.email", "PII_EMAIL"),
        ("", "VALUE"),
        ("9x", "VALUE"),
        ("x" * 80, "X" * 32),
    ],
)
def test_labels_come_from_finding_types(kind: str, label: str) -> None:
    assert label_for(kind) == label


def test_the_value_is_not_in_a_repr() -> None:
    assert "aaaa" not in repr(A)
