"""Restoring in text and in tool arguments: escape depth, holding back, cuts."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.classify.marking import Marks
from gateway.classify.nesting import escape_depth, escaped
from gateway.classify.placeholders import Placeholders
from gateway.classify.restore import replaced
from gateway.classify.values import Values

KEYS = Placeholders(b"k" * 32, b"m" * 32)
SECRET = 'line one\n"quoted" \\ back'
TOKEN = KEYS.issue(SECRET, "PRIVATE_KEY")


def values() -> Values:
    return Values({TOKEN: lambda: SECRET})


@pytest.mark.parametrize(
    ("prefix", "depth"),
    [
        ("", 0),
        ('{"a": ', 0),
        ('{"a": "', 1),
        ('{"a": "x\\"', 1),
        ('{"a": "x\\\\"', 0),
        ('{"content": "{\\"key\\": \\"', 2),
        ('{"content": "not json \\"', 1),
        ('{"content": "[\\"a\\", \\"', 2),
        ('{"c": "{\\"d\\": \\"{\\\\\\"e\\\\\\": \\\\\\"', 3),
        ('{"a": "b", "c": "', 1),
    ],
)
def test_the_escape_depth_of_a_place(prefix: str, depth: int) -> None:
    assert escape_depth(prefix) == depth


@given(st.integers(0, 3), st.text(max_size=40))
def test_a_value_comes_back_out_of_as_many_strings_as_it_was_put_in(depth: int, value: str) -> None:
    document = value
    for _ in range(depth):
        document = json.dumps({"k": document}, ensure_ascii=False)
    token = KEYS.issue("x", "T2")
    template = token
    for _ in range(depth):
        template = json.dumps({"k": template}, ensure_ascii=False)
    put = Values({token: lambda: value}).substitute(template, "" if depth else None)

    assert json.loads(put) == json.loads(document) if depth else put == document


@given(st.text(max_size=20), st.text(max_size=20), st.data())
def test_any_cut_of_a_text_gives_the_same_restored_text(before: str, after: str, data: st.DataObject) -> None:
    text = before + TOKEN + after + TOKEN
    cuts = sorted(data.draw(st.sets(st.integers(0, len(text)), max_size=6)))
    pieces = [text[a:b] for a, b in zip([0, *cuts], [*cuts, len(text)], strict=True)]
    restorer, out, held = values(), "", ""
    for piece in pieces:
        joined = held + piece
        keep = restorer.held_length(joined)
        held = joined[len(joined) - keep :]
        out += restorer.substitute(joined[: len(joined) - keep])

    assert out + held == before + SECRET + after + SECRET
    assert len(held) < len(TOKEN)


@pytest.mark.parametrize("found", [Values, Marks])
@pytest.mark.parametrize("end", ["E", "EG", "EGR", "EGRE", "EGRES", "EGRESS"])
def test_a_placeholder_that_ends_as_one_begins_is_whole_at_every_cut(end: str, found: type[Values]) -> None:
    token = f"EGRESS_TOKEN_{'A' * (22 - len(end))}{end}"
    text = f"{token}{token} E {token}"
    for at in range(len(text) + 1):
        made = Marks({token: SECRET}) if found is Marks else Values({token: lambda: SECRET})
        out = held = ""
        for piece in (text[:at], text[at:]):
            joined = held + piece
            keep = made.held_length(joined)
            held = joined[len(joined) - keep :]
            out += made.substitute(joined[: len(joined) - keep])
        assert out + held == f"{SECRET}{SECRET} E {SECRET}", at


def test_what_is_marked_and_begins_as_it_ends_is_whole_at_every_cut() -> None:
    text = "abcab abcabcab abcabX"
    want = Marks({"abcab": "[1]", "abcabX": "[2]"}).substitute(text)
    for at in range(len(text) + 1):
        made, out, held = Marks({"abcab": "[1]", "abcabX": "[2]"}), "", ""
        for piece in (text[:at], text[at:]):
            joined = held + piece
            keep = made.held_length(joined)
            held = joined[len(joined) - keep :]
            out += made.substitute(joined[: len(joined) - keep])
        assert out + held == want, at


def test_a_placeholder_whose_value_is_gone_stays() -> None:
    gone = Values({TOKEN: lambda: None})

    assert gone.substitute(f"a {TOKEN} b") == f"a {TOKEN} b"
    assert gone.restored == 0


def test_only_the_replaced_strings_of_a_json_text_change() -> None:
    text = '{ "a" : 1.50, "b":"x\\u0041",\n "c": ["y", "z"] }'

    assert replaced(text, {("c", 1): 'n"w'}) == '{ "a" : 1.50, "b":"x\\u0041",\n "c": ["y", "n\\"w"] }'


@given(st.text(max_size=30), st.integers(0, 3))
def test_escaping_is_undone_by_decoding(value: str, depth: int) -> None:
    text = escaped(value, depth)
    for _ in range(depth):
        text = json.loads(f'"{text}"')

    assert text == value
