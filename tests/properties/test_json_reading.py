"""Strict reading: what the standard allows is read as the standard library reads it, and nothing else is."""

import json
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from gateway.context import jsontext
from gateway.context.objects import Json, Limits, Path
from gateway.errors import BodyError

LIMITS = Limits()
TEXT = st.text(st.characters(), max_size=12)  # lone surrogates too
SCALARS = st.one_of(
    st.none(), st.booleans(), st.integers(), st.floats(allow_nan=False, allow_infinity=False), TEXT
)
VALUES = st.recursive(
    SCALARS,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(TEXT, inner, max_size=4),
    max_leaves=20,
)
DUMPS: st.SearchStrategy[dict[str, Any]] = st.sampled_from(
    [{}, {"indent": 2}, {"separators": (",", ":")}, {"ensure_ascii": False}, {"separators": (" ,\n", " :\t")}]
)


def dump(value: object, **how: object) -> str:
    text = json.dumps(value, **how)  # type: ignore[arg-type]
    try:
        text.encode()
    except UnicodeEncodeError:
        text = json.dumps(value, **{**how, "ensure_ascii": True})  # type: ignore[arg-type]
    return text


def refused(data: bytes, limits: Limits = LIMITS) -> str:
    with pytest.raises(BodyError) as caught:
        jsontext.parse(data, limits)
    assert caught.value.__context__ is None, "the error would hold on to the body"
    return caught.value.code


@given(VALUES, DUMPS)
def test_what_json_writes_is_read_back(value: Json, how: dict[str, object]) -> None:
    assert jsontext.parse(dump(value, **how).encode(), LIMITS) == value


@given(st.binary(max_size=40))
@example(b'{"a":1')
@example(b"\xef\xbb\xbf{}")
def test_no_bytes_raise_anything_but_body_errors(data: bytes) -> None:
    try:
        jsontext.parse(data, LIMITS)
    except BodyError as error:
        code = error.code
    else:
        code = "body.malformed"
    assert code in {"body.malformed", "body.not_utf8", "body.duplicate_member"}


@pytest.mark.parametrize(
    ("data", "code"),
    [
        (b'{"a":1,"a":1}', "body.duplicate_member"),
        (b'{"x":[{"k":1,"\\u006b":2}]}', "body.duplicate_member"),
        (b"[NaN]", "body.malformed"),
        (b"[-Infinity]", "body.malformed"),
        (b"[1,]", "body.malformed"),
        (b"[01]", "body.malformed"),
        (b'["\x01"]', "body.malformed"),
        (b"{'a':1}", "body.malformed"),
        (b"[] []", "body.malformed"),
        (b"", "body.malformed"),
        (b"[" + b"9" * 5000 + b"]", "body.malformed"),
        (b'["\xed\xa0\x80"]', "body.not_utf8"),
        (b'"\xc0\xaf"', "body.not_utf8"),
        (b"\x1f\x8b\x08\x00", "body.not_utf8"),
        (b"[" * 200_000, "body.too_deep"),
        (b"[" * 129 + b"]" * 129, "body.too_deep"),
        (b'{"a":' * 129 + b"1" + b"}" * 129, "body.too_deep"),
    ],
)
def test_what_must_not_be_read(data: bytes, code: str) -> None:
    assert refused(data) == code


def test_depth_and_nodes_at_their_limits() -> None:
    deep = b"[" * 128 + b"]" * 128
    jsontext.parse(deep, LIMITS)
    jsontext.parse(b'[",,,,[[[["]', Limits(max_nodes=2))
    jsontext.parse(b"[1,[],{}]", Limits(max_nodes=4))
    assert refused(b"[1,[],{}]", Limits(max_nodes=3)) == "body.too_many_nodes"
    assert refused(b"[1,2,3,4]", Limits(max_nodes=4)) == "body.too_many_nodes"


@given(VALUES)
def test_the_node_bound_counts_values(value: Json) -> None:
    def count(v: Json) -> int:
        children = v.values() if isinstance(v, dict) else v if isinstance(v, list) else ()
        return 1 + sum(map(count, children))

    nodes = count(value)
    text = dump(value)
    assert jsontext.parse_text(text, Limits(max_nodes=nodes)) == value
    if nodes > 1:
        with pytest.raises(BodyError, match=r"body\.too_many_nodes"):
            jsontext.parse_text(text, Limits(max_nodes=nodes - 1))


@given(VALUES, st.integers(1, 24))
def test_the_node_bound_counts_piece_by_piece_what_it_counts_at_once(value: Json, size: int) -> None:
    text = json.dumps(value, indent=1)  # blanks within empty lists as well
    whole = jsontext._nodes(text)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(jsontext, "_COUNTED", size)
        assert jsontext._nodes(text) == whole


@pytest.mark.parametrize("text", ['{"a":"' + '\\"' * 2_500_000, '"' * 5_000_001, '{"a":"' + "\\" * 5_000_001])
def test_a_string_without_end_is_read_once(text: str) -> None:
    """Looked for again behind every quote, it would take days: this test would not end."""
    assert refused(text.encode(), Limits(max_nodes=2)) in {"body.malformed", "body.too_many_nodes"}


@given(VALUES, VALUES)
def test_canonical_bytes_are_equal_for_equal_values_only(a: Json, b: Json) -> None:
    again = json.loads(json.dumps(a, sort_keys=True), object_pairs_hook=lambda pairs: dict(reversed(pairs)))
    assert jsontext.canonical(a) == jsontext.canonical(again)
    if jsontext.canonical(a) == jsontext.canonical(b):
        assert json.dumps(a, sort_keys=True) == json.dumps(b, sort_keys=True)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("0.12345678901234567890", "0.12345678901234567899"),
        ("1e999", "null"),
        ("1e999", "1e998"),
        ('["\\ud83d",1e999]', '["\\ud83d",1e998]'),
        ("18446744073709551615", "18446744073709551616"),
        ("123456789012345678901", "123456789012345678902"),
    ],
)
def test_numbers_that_a_double_cannot_tell_apart_have_other_digests(one: str, other: str) -> None:
    a, b = (jsontext.canonical(jsontext.parse_text(text, LIMITS)) for text in (one, other))
    assert a != b


# -- where values stand -------------------------------------------------------------------------------------------


def all_paths(value: Json, at: Path = ()) -> list[Path]:
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    return [at, *(p for token, child in items for p in all_paths(child, (*at, token)))]


def resolve(value: Json, path: Path) -> Json:
    for token in path:
        value = value[token]  # type: ignore[index]
    return value


@given(VALUES, DUMPS, st.data())
def test_located_spans_hold_the_values_at_their_paths(
    value: Json, how: dict[str, object], data: st.DataObject
) -> None:
    text = dump(value, **how)
    paths = all_paths(value)
    wanted = data.draw(st.sets(st.sampled_from(paths)))
    missing: Path = ("no such member", 99)
    spans = jsontext.locate(text, [*wanted, missing])
    assert spans.keys() == wanted
    for path, (start, end) in spans.items():
        assert json.loads(text[start:end]) == resolve(value, path)
        assert text[start:end] == text[start:end].strip()
    names = jsontext.locate_names(text, wanted)
    assert names.keys() == {path for path in wanted if path and isinstance(path[-1], str)}
    for path, (start, end) in names.items():
        assert json.loads(text[start:end]) == path[-1]


@given(TEXT, st.booleans(), st.data())
def test_raw_spans_cut_a_token_where_the_text_is_cut(
    text: str, ascii_only: bool, data: st.DataObject
) -> None:
    raw = json.dumps(text, ensure_ascii=ascii_only).replace("/", "\\/")
    held = json.loads(raw)
    start = data.draw(st.integers(0, len(held)))
    end = data.draw(st.integers(start, len(held)))
    first, last = jsontext.raw_span(raw, start, end)
    assert json.loads(f'"{raw[1:first]}"') == held[:start]
    assert json.loads(f'"{raw[first:last]}"') == held[start:end]
    assert json.loads(f'"{raw[last:-1]}"') == held[end:]


@pytest.mark.parametrize("raw", ['"abc"', '"a\\nc"'])
@pytest.mark.parametrize("offsets", [(0, 4), (-1, 1)])
def test_offsets_outside_a_string_are_refused(raw: str, offsets: tuple[int, int]) -> None:
    with pytest.raises(ValueError, match="offset"):
        jsontext.raw_span(raw, *offsets)


@given(TEXT)
def test_quoting_gives_one_token_that_utf8_can_carry(text: str) -> None:
    token = jsontext.quote(text)
    assert jsontext.parse(token.encode(), LIMITS) == text
