"""The walk: every string, name and long number of a block stands in exactly one leaf."""

import json
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from gateway.context import walk
from gateway.context.objects import Block, Channel, Json, Leaf, LeafRole, Limits, ObjectKind, Path, WalkRules
from tests.properties.test_json_reading import VALUES

LIMITS = Limits()
RULES = WalkRules(
    structural=frozenset({"id"}), sealed=frozenset({"signature"}), thinking=frozenset({"thinking"}),
    references=frozenset({"url"}), media=frozenset({"data"}), free_form=frozenset({"input"}), known_names=frozenset({"text"}),
)  # fmt: skip
NAMES = st.sampled_from(["id", "signature", "thinking", "url", "data", "input", "text", "unknown", ""])
NAMED = st.recursive(
    st.one_of(st.text(max_size=8), st.integers(), st.none(), VALUES.map(json.dumps)),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(NAMES, inner, max_size=4),
    max_leaves=12,
)


def strings(value: Json, at: Path = ()) -> list[tuple[Path, str]]:
    if isinstance(value, str):
        return [(at, value)] if value else []
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    return [found for token, child in items for found in strings(child, (*at, token))]


def names(value: Json, at: Path = ()) -> list[Path]:
    if isinstance(value, dict):
        return [p for n, v in value.items() for p in [*([(*at, n)] if n else []), *names(v, (*at, n))]]
    return [p for i, v in enumerate(value) for p in names(v, (*at, i))] if isinstance(value, list) else []


def outermost(leaf: Leaf) -> Leaf:
    return leaf if leaf.outer is None else outermost(leaf.outer)


def walked(value: Json, holes: tuple[Path, ...] = ()) -> list[Leaf]:
    found = walk.leaves(Block((), ObjectKind.TEXT, Channel.USER, value, holes), RULES, LIMITS)
    media = {(x.path, id(x.outer)) for x in found if x.role is LeafRole.MEDIA}
    return [
        x for x in found if x.role is not LeafRole.STRUCTURAL or (x.path, id(x.outer)) not in media
    ]  # not their words


NAME_ROLES = {LeafRole.NAME, LeafRole.STRUCTURAL_NAME}


@given(NAMED)
def test_every_string_is_read_once(value: Json) -> None:
    leaves = walked(value)
    own = [
        x for x in leaves if x.outer is None and x.role not in NAME_ROLES and x.role is not LeafRole.NUMBER
    ]
    holders = {outermost(x).path: outermost(x) for x in leaves if x.outer is not None}
    assert not {x.path for x in own} & holders.keys()
    found = {x.path: x.text for x in own if x.role is not LeafRole.ENCODED}
    found |= {path: holder.text for path, holder in holders.items() if holder.role is LeafRole.TEXT}
    empty_documents = {path for path, text in strings(value) if path not in found and is_empty(text)}
    encoded = {x.path for x in own if x.role is LeafRole.ENCODED}
    encoded |= {path for path, holder in holders.items() if holder.role is LeafRole.ENCODED}
    for path, text in strings(value):
        assert path in encoded or path in empty_documents or found[path] == text
    assert len({x.path for x in own}) == len(own)


def is_empty(text: str) -> bool:
    """Whether a JSON document holds nothing to scan."""
    value = json.loads(text)
    return (not strings(value) and not names(value)) or not walked({"input": value})[1:]


@given(NAMED)
def test_names_that_nobody_knows_are_read(value: Json) -> None:
    leaves = walked(value)
    found = {x.path for x in leaves if x.role in NAME_ROLES and x.outer is None}
    known = walk.known_names(RULES)
    below_input = {p for p in names(value) if "input" in p[:-1]}
    assert found == {p for p in names(value) if p in below_input or p[-1] not in known}
    assert {x.path for x in leaves if x.role is LeafRole.NAME and x.outer is None} == below_input


@given(NAMED, st.data())
def test_holes_are_left_out_and_the_rest_stays(value: Json, data: st.DataObject) -> None:
    places = [path for path, _ in strings(value) if path]
    holes = tuple(data.draw(st.sets(st.sampled_from(places)))) if places else ()
    kept = [
        leaf
        for leaf in walked(value)
        if outermost(leaf).path not in holes or (leaf.outer is None and leaf.role in NAME_ROLES)
    ]
    assert walked(value, holes) == kept
    residue: Any = walk.residue(Block((), ObjectKind.TEXT, Channel.USER, value, holes))
    assert [path for path, _ in strings(residue) if path] == [path for path in places if path not in holes]


@given(VALUES, st.integers(0, 12))
def test_documents_in_strings_are_read_to_the_bottom(value: Json, depth: int) -> None:
    held: Any = {"k": "needle"}
    for _ in range(depth):
        held = {"k": json.dumps(held)}
        if len(held["k"]) > 100_000:
            break
    texts = [leaf.text for leaf in walked({"input": held, "beside": value})]
    assert any("needle" in text for text in texts)
    if depth <= 7:
        assert "needle" in texts
