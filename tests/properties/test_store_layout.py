"""Layouts give back what was put in, refuse damage, and grow with what is new."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.errors import VerificationError
from gateway.store.layout import decode, encode

PIECES = st.lists(st.one_of(st.sampled_from([b",", b"", b'","']), st.binary(max_size=70), st.integers(1, 12)))


def part(number: int) -> bytes:
    return b"<%d>" % number


def whole(pieces: list[bytes | int]) -> bytes:
    return b"".join(piece if isinstance(piece, bytes) else part(piece) for piece in pieces)


@given(PIECES)
def test_round_trip(pieces: list[bytes | int]) -> None:
    assert decode(encode(pieces), part) == whole(pieces)


@given(st.binary(max_size=60))
def test_damage_is_refused_and_nothing_else_escapes(layout: bytes) -> None:
    def bounded(number: int) -> bytes:
        if number > 100:
            raise VerificationError("part", "no such part")
        return b"x"

    try:
        decode(layout, bounded)
    except VerificationError:
        return


@given(PIECES, st.data())
def test_a_cut_layout_is_shorter_or_refused(pieces: list[bytes | int], data: st.DataObject) -> None:
    layout = encode(pieces)
    if not layout:
        return
    cut = data.draw(st.integers(0, len(layout) - 1))
    try:
        text = decode(layout[:cut], part)
    except VerificationError:
        return
    assert whole(pieces).startswith(text)


@pytest.mark.parametrize("separator", [b",", b""])
def test_a_long_history_costs_a_few_bytes(separator: bytes) -> None:
    history: list[bytes | int] = [b'{"decisions":[']
    for number in range(1, 2001):
        history += [number, separator]
    layout = encode([*history[:-1], b"]}"])
    assert len(layout) < 32
    assert decode(layout, part) == whole([*history[:-1], b"]}"])


def test_two_runs_with_a_gap() -> None:
    pieces: list[bytes | int] = [1, b",", 2, b",", 3, b",", 7, b",", 8, b";", 9]
    assert decode(encode(pieces), part) == whole(pieces)
    assert len(encode(pieces)) < 40
