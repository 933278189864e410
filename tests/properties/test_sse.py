"""Streams: however the bytes are cut, the events are the same, and together they are the bytes."""

import json
import re
from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from gateway.context import sse

LINES = st.sampled_from(
    [
        "data: {}", "data:x", "data", "event: message_start", "event:ping", ": comment", "id: 7", "retry: 10", "data:  two",
        "data: ü😀", "unknown: y", "data: a\\nb", "",
    ]
)  # fmt: skip
ENDS = st.sampled_from(["\n", "\r\n", "\r"])


@st.composite
def streams(draw: st.DrawFn) -> bytes:
    end = draw(st.one_of(ENDS, st.none()))
    lines = draw(st.lists(LINES, max_size=20))
    return "".join(line + (end or draw(ENDS)) for line in lines).encode()


def chunks(data: bytes, cuts: list[int]) -> list[bytes]:
    at = sorted({cut % (len(data) + 1) for cut in cuts} | {0, len(data)})
    return [data[a:b] for a, b in pairwise(at)]


def read(
    decoder: sse.Decoder | sse.JsonLines | sse.JsonArray, pieces: list[bytes]
) -> tuple[list[sse.Event], bytes]:
    events = [event for piece in pieces for event in decoder.feed(piece)]
    return events, decoder.end()


@given(streams(), st.lists(st.integers(0, 500), max_size=12))
def test_any_cut_of_server_sent_events_gives_the_same_events(data: bytes, cuts: list[int]) -> None:
    whole, rest = read(sse.Decoder(), [data])
    assert b"".join(e.raw for e in whole) + rest == data
    assert read(sse.Decoder(), chunks(data, cuts)) == (whole, rest)
    assert read(sse.Decoder(), [data[i : i + 1] for i in range(len(data))]) == (whole, rest)


@given(streams())
def test_events_are_what_a_plain_reader_of_the_standard_sees(data: bytes) -> None:
    events, rest = read(sse.Decoder(), [data])
    if rest and rest == b"\r":  # a lone CR at the very end may be half a line end
        events.append(sse.event(rest))
    blocks, current = [], []
    for line in re.split(r"\r\n|\r|\n", b"".join(e.raw for e in events).decode())[:-1]:
        if line:
            current.append(line)
        else:
            blocks.append(current)
            current = []
    expected = []
    for block in blocks:
        pairs = [(line.partition(":")[0], line.partition(":")[2].removeprefix(" ")) for line in block]
        expected.append(
            (
                next((v for k, v in reversed(pairs) if k == "event"), ""),
                "\n".join(v for k, v in pairs if k == "data"),
            )
        )
    assert [(e.name, e.data) for e in events] == expected


@given(streams(), st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\r"), max_size=20))
def test_replacing_data_changes_nothing_else(data: bytes, new: str) -> None:
    for event in read(sse.Decoder(), [data])[0]:
        if not event.data_spans:
            continue
        assert event.with_data(event.data) == event.raw
        changed = sse.event(event.with_data(new))
        assert (changed.data, changed.name) == (new, event.name)
        kept = [line for line in re.split(rb"\r\n|\r|\n", event.raw) if not line.startswith(b"data")]
        assert [
            line for line in re.split(rb"\r\n|\r|\n", changed.raw) if not line.startswith(b"data")
        ] == kept


VALUES = st.recursive(
    st.one_of(st.none(), st.integers(), st.text(max_size=8), st.booleans()),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=8,
)


@given(st.lists(VALUES, max_size=5), st.sampled_from([None, 1]), st.lists(st.integers(0, 500), max_size=12))
def test_a_json_array_is_cut_into_its_elements(
    values: list[object], indent: int | None, cuts: list[int]
) -> None:
    data = json.dumps(values, indent=indent, ensure_ascii=False).encode() + b"\n"
    events, rest = read(sse.JsonArray(), chunks(data, cuts))
    assert b"".join(e.raw for e in events) + rest == data
    assert [json.loads(e.data) for e in events] == values
    assert read(sse.JsonArray(), [data]) == (events, rest)
    for e in events:
        ((start, end),) = e.data_spans
        assert e.with_data("7") == e.raw[:start] + b"7" + e.raw[end:]


@given(
    st.lists(VALUES, max_size=5), st.sampled_from(["\n", "\r\n"]), st.lists(st.integers(0, 500), max_size=12)
)
def test_json_lines(values: list[object], end: str, cuts: list[int]) -> None:
    data = "".join(json.dumps(v) + end for v in values).encode() + b'{"cut'
    events, rest = read(sse.JsonLines(), chunks(data, cuts))
    assert [json.loads(e.data) for e in events] == values
    assert rest == b'{"cut'
    assert b"".join(e.raw for e in events) + rest == data


def test_a_lone_object_is_one_element() -> None:
    (event,), rest = read(sse.JsonArray(), [b'{"error": {"code": ', b"400}}", b"\n"])
    assert json.loads(event.data) == {"error": {"code": 400}}
    assert rest == b"\n"
