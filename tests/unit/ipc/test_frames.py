"""Frames: whatever way the bytes come in, the same messages come out, or none."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.ipc.frames import FrameError, FrameReader, Message, NoJsonError, pack

JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53), 2**53) | st.text(st.characters(codec="utf-8")),
    lambda inner: st.lists(inner, max_size=3),
    max_leaves=8,
)
MESSAGES = st.builds(
    Message, st.integers(0, 2**40), st.text("abc.", min_size=1, max_size=8), st.lists(JSON, max_size=3),
    st.lists(st.binary(max_size=40), max_size=3),
)  # fmt: skip


def plain(message: Message) -> tuple[int, str, list[Any], list[bytes]]:
    return message.number, message.word, list(message.args), list(message.blobs)


@given(st.lists(MESSAGES, max_size=4), st.data())
def test_any_chunking_gives_the_same_messages(messages: list[Message], data: st.DataObject) -> None:
    stream = b"".join(part for message in messages for part in pack(message))
    cuts = sorted(data.draw(st.lists(st.integers(0, len(stream)), max_size=6)))
    reader, found = FrameReader(), []
    for start, end in zip([0, *cuts], [*cuts, len(stream)], strict=True):
        found += [message for message, _ in reader.feed(stream[start:end])]
    assert [plain(message) for message in found] == [plain(message) for message in messages]


@given(st.binary(max_size=200))
def test_no_bytes_do_more_harm_than_a_frame_error(data: bytes) -> None:
    try:
        for message, size in FrameReader(bound=100).feed(data):
            assert size <= 100
            assert sum(map(len, message.blobs)) <= size
    except FrameError:
        pass


def test_what_is_over_the_bound_is_not_waited_for() -> None:
    (head,) = pack(Message(1, "a", [], []))
    with pytest.raises(FrameError):
        list(FrameReader(bound=5).feed(head[:8]))


@pytest.mark.parametrize("value", ["\ud800", b"bytes", object()])
def test_what_is_no_json_is_not_packed(value: object) -> None:
    with pytest.raises(NoJsonError):
        pack(Message(1, "a", [value], []))


def test_nothing_of_a_message_is_shown() -> None:
    assert "secret" not in repr(Message(1, "a", ["secret"], [b"secret"]))
