"""Splices: no edit changes nothing, an edit changes its span, at every depth of strings in strings."""

import base64
import json
from itertools import pairwise
from typing import Any, override

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from gateway.context import jsontext, splice, walk
from gateway.context.findings import Edit
from gateway.context.objects import Block, Channel, Json, Leaf, LeafRole, Limits, ObjectKind, Path, WalkRules
from gateway.errors import BodyError
from tests.properties.test_json_reading import DUMPS, TEXT, VALUES, dump

LIMITS = Limits()
FREE = WalkRules(free_form=frozenset({"doc"}))
LETTERS = st.text(st.characters(codec="utf-8"), max_size=10)


def embed(value: Any, depth: int, ascii_only: bool) -> Any:
    for _ in range(depth):
        value = {"in": dump(value, ensure_ascii=ascii_only), "beside": "kept \u2028 ü"}
    return value


def leaves_of(value: Json) -> list[Leaf]:
    return walk.leaves(Block(("doc",), ObjectKind.TEXT, Channel.USER, value), FREE, LIMITS)


@st.composite
def documents(draw: st.DrawFn) -> tuple[str, list[Leaf]]:
    value = embed(draw(VALUES), draw(st.integers(0, 3)), draw(st.booleans()))
    text = dump({"before": 1.0, "doc": value, "after": "\\/"}, **draw(DUMPS))
    return text, leaves_of(json.loads(text)["doc"])


@given(documents())
def test_no_edits_no_change(document: tuple[str, list[Leaf]]) -> None:
    text, leaves = document
    assert splice.apply(text, [(leaf, ("doc",), ()) for leaf in leaves]) == text
    same = [(leaf, ("doc",), (Edit(0, 0, ""),)) for leaf in leaves if leaf.role is LeafRole.TEXT]
    assert splice.apply(text, same) == text


@given(documents(), st.data())
def test_edits_change_their_spans_and_nothing_else(
    document: tuple[str, list[Leaf]], data: st.DataObject
) -> None:
    text, leaves = document
    assume(leaves)
    chosen = data.draw(st.lists(st.sampled_from(leaves), max_size=4, unique_by=id))
    plan = []
    for n, leaf in enumerate(chosen):
        start = data.draw(st.integers(0, len(leaf.text)))
        end = data.draw(st.integers(start, len(leaf.text)))
        replacement = f"<{n}>" if leaf.role is LeafRole.NAME else data.draw(LETTERS)
        plan.append((leaf, Edit(start, end, replacement)))
    result = splice.apply(text, [(leaf, ("doc",), (edit,)) for leaf, edit in plan])
    expected = {id(leaf): leaf.text[: e.start] + e.replacement + leaf.text[e.end :] for leaf, e in plan}
    before = json.loads(text)
    value = expected_value(before["doc"], (), None, leaves, expected)
    assume(value is not CLASH)
    assert json.loads(result) == {**before, "doc": value}
    if len(plan) == 1 and plan[0][0].role is not LeafRole.NUMBER:
        assert_bytes_around(text, result, ("doc",), *plan[0])


CLASH: Any = object()


def expected_value(
    value: Json, path: Any, outer: Leaf | None, leaves: list[Leaf], new: dict[int, str]
) -> Any:
    """A second, naive way to the result: decode, replace, encode, compared as values."""
    own = {(leaf.path, leaf.role is LeafRole.NAME): leaf for leaf in leaves if leaf.outer is outer}
    if isinstance(value, dict):
        out = {}
        for name, child in value.items():
            leaf = own.get(((*path, name), True))
            renamed = name if leaf is None else new.get(id(leaf), name)
            out[renamed] = expected_value(child, (*path, name), outer, leaves, new)
        return out if len(out) == len(value) else CLASH
    if isinstance(value, list):
        return [expected_value(child, (*path, i), outer, leaves, new) for i, child in enumerate(value)]
    leaf = own.get((path, False))
    if leaf is not None:
        return new.get(id(leaf), value)
    holder = next(
        (x.outer for x in leaves if x.outer is not None and x.outer.outer is outer and x.outer.path == path),
        None,
    )
    if holder is None:
        return value
    return Inner(expected_value(json.loads(holder.text), (), holder, leaves, new))


class Inner:
    """Compares a string that holds JSON by what it holds."""

    def __init__(self, value: Any) -> None:
        self.value = value

    @override
    def __eq__(self, other: object) -> bool:
        return isinstance(other, str) and json.loads(other) == self.value

    __hash__ = None  # type: ignore[assignment]


def assert_bytes_around(text: str, result: str, block: Path, leaf: Leaf, edit: Edit) -> None:
    """Level by level: outside the token that changes all characters are the same, inside only the edited ones go."""
    chain = [leaf]
    while chain[0].outer is not None:
        chain.insert(0, chain[0].outer)
    for level in chain:
        path, block = (*block, *level.path), ()
        locate = jsontext.locate_names if level.role is LeafRole.NAME else jsontext.locate
        start, end = locate(text, [path])[path]
        stop = len(result) - (len(text) - end)
        assert result[:start] == text[:start]
        assert result[stop:] == text[end:]
        if level is leaf:
            first, last = jsontext.raw_span(text[start:end], edit.start, edit.end)
            assert result[start : start + first] == text[start : start + first]
            assert result[stop - (end - start - last) : stop] == text[start + last : end]
        text, result = json.loads(text[start:end]), json.loads(result[start:stop])


@given(
    TEXT,
    st.lists(st.tuples(st.integers(0, 12), st.integers(0, 6), st.sampled_from(["x", "", "yy"])), max_size=4),
)
def test_overlapping_edits_are_one(text: str, raw: list[tuple[int, int, str]]) -> None:
    edits = [Edit(s, min(s + n, len(text)), r) for s, n, r in raw if s <= len(text)]
    merged = splice.merged(edits)
    assert all(a.end <= b.start for a, b in pairwise(merged))
    covered = {i for e in edits for i in range(e.start, e.end)}
    assert {i for e in merged for i in range(e.start, e.end)} == covered
    kept = "".join(c for i, c in enumerate(text) if i not in covered)
    blanked = splice.edited(text, [Edit(e.start, e.end, "") for e in merged])
    assert blanked == kept


@given(
    LETTERS,
    LETTERS,
    st.sampled_from(["std", "url", "bare"]),
    st.sampled_from(["", "data:text/plain;charset=utf-8;base64,"]),
)
def test_encoded_text_is_edited_in_its_coding(old: str, new: str, how: str, head: str) -> None:
    assume(old and not any(ord(c) < 32 or ord(c) == 127 for c in old))
    raw = (base64.urlsafe_b64encode if how == "url" else base64.b64encode)(old.encode()).decode()
    held = head + (raw.rstrip("=") if how == "bare" else raw)
    leaf = Leaf(("d",), old, LeafRole.ENCODED)
    text = json.dumps({"d": held, "e": "/"})
    result = splice.apply(text, [(leaf, (), (Edit(0, len(old), new),))])
    payload = json.loads(result)["d"]
    assert payload.startswith(head)
    coded = payload[len(head) :]
    assert (
        base64.b64decode(coded + "=" * (-len(coded) % 4), altchars=b"-_" if how == "url" else None).decode()
        == new
    )
    assert result.endswith(', "e": "/"}')


def test_numbers_become_strings() -> None:
    leaf = Leaf(("n",), "4000731592846002", LeafRole.NUMBER)
    assert splice.apply('{"n" : 4000731592846002 }', [(leaf, (), (Edit(0, 16, "[x]"),))]) == '{"n" : "[x]" }'


@pytest.mark.parametrize(
    ("leaf", "edit"),
    [
        (Leaf(("b",), "x", LeafRole.TEXT), Edit(0, 1, "")),
        (Leaf(("a",), "other", LeafRole.TEXT), Edit(0, 1, "")),
        (Leaf(("a",), "text", LeafRole.TEXT), Edit(0, 5, "")),
        (Leaf(("a",), "text", LeafRole.TEXT), Edit(3, 2, "")),
        (Leaf(("a",), "text", LeafRole.NUMBER), Edit(0, 1, "")),
        (Leaf(("a",), "text", LeafRole.ENCODED), Edit(0, 1, "")),
        (Leaf(("n",), "1", LeafRole.TEXT), Edit(0, 1, "")),
    ],
)
def test_an_edit_that_does_not_fit_is_refused(leaf: Leaf, edit: Edit) -> None:
    with pytest.raises(BodyError, match=r"edit\.misplaced"):
        splice.apply('{"a":"text","n":1}', [(leaf, (), (edit,))])


@given(st.lists(VALUES, max_size=6), DUMPS, st.data())
def test_dropping_elements(values: list[Json], how: dict[str, object], data: st.DataObject) -> None:
    text = dump({"a": values, "b": [1, 2]}, **how)
    gone = data.draw(st.sets(st.integers(0, len(values) - 1))) if values else set()
    result = splice.drop(text, [("a", index) for index in gone])
    assert json.loads(result) == {"a": [v for i, v in enumerate(values) if i not in gone], "b": [1, 2]}
    if not gone:
        assert result == text


def test_dropping_inside_what_is_dropped() -> None:
    assert splice.drop("[[1, 2], [3, 4]]", [(0,), (0, 1), (1, 0)]) == "[[4]]"
    misplaced: list[Path] = [(), ("a",), (5,)]
    for path in misplaced:
        with pytest.raises(BodyError, match=r"edit\.misplaced"):
            splice.drop("[1]", [path])


def test_locate_stops_where_everything_is_found() -> None:
    assert jsontext.locate('{"a":1,"b":[broken', [("a",)]) == {("a",): (5, 6)}
