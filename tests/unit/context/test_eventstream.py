"""AWS event streams: frames are cut at their lengths, checksums hold, and what is not edited keeps its bytes."""

import json
import struct
import zlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.context import eventstream
from gateway.errors import BodyError

HEADERS = ((":event-type", "contentBlockDelta"), (":message-type", "event"))
FRAME = eventstream.encode(HEADERS, b'{"delta":{"text":"hi"}}')


def test_the_layout_of_a_frame() -> None:
    total, headers, crc = struct.unpack_from(">III", FRAME)
    assert total == len(FRAME)
    assert crc == zlib.crc32(FRAME[:8])
    assert FRAME[12 : 12 + headers].startswith(b"\x0b:event-type\x07\x00\x11contentBlockDelta")
    assert struct.unpack(">I", FRAME[-4:])[0] == zlib.crc32(FRAME[:-4])


def test_a_frame_of_the_specification() -> None:
    """An empty message, as the published test vectors of the format have it."""
    empty = bytes.fromhex("000000100000000005c248eb7d98c8ff")
    (found,) = eventstream.Decoder().feed(empty)
    assert (found.name, found.data, found.raw) == ("", "", empty)
    assert eventstream.encode((), b"") == empty


@given(st.lists(st.binary(max_size=30), max_size=5), st.data())
def test_any_cut_gives_the_same_frames(payloads: list[bytes], data: st.DataObject) -> None:
    stream = b"".join(eventstream.encode(HEADERS, payload) for payload in payloads)
    at = data.draw(st.integers(0, len(stream)))
    decoder = eventstream.Decoder()
    frames = decoder.feed(stream[:at]) + decoder.feed(stream[at:])
    assert b"".join(frame.raw for frame in frames) == stream
    assert len(frames) == len(payloads)
    assert decoder.end() == b""


def test_other_data_makes_a_true_frame_with_the_same_headers() -> None:
    (before,) = eventstream.Decoder().feed(FRAME)
    (after,) = eventstream.Decoder().feed(before.with_data('{"delta":{"text":"longer, ä"}}'))
    assert before.with_data(before.data) == FRAME
    assert json.loads(after.data)["delta"]["text"] == "longer, ä"
    assert after.name == before.name


def test_a_chunk_is_the_event_it_wraps() -> None:
    raw = eventstream.encode(((":event-type", "chunk"),), b'{"bytes":"eyJhIjoxfQ==","p":"abc"}')
    (found,) = eventstream.Decoder().feed(raw)
    assert (found.data, found.wrapped) == ('{"a":1}', True)
    (after,) = eventstream.Decoder().feed(found.with_data('{"a":2}'))
    assert after.data == '{"a":2}'
    assert json.loads(after.raw[after.start : -4])["p"] == "abc"


def test_headers_of_every_type() -> None:
    head = b"".join(
        bytes([1]) + name + bytes([kind]) + value
        for name, kind, value in (
            (b"a", 0, b""), (b"b", 1, b""), (b"c", 2, b"x"), (b"d", 3, b"xx"), (b"e", 4, b"x" * 4), (b"f", 5, b"x" * 8),
            (b"g", 6, b"\x00\x03abc"), (b"h", 7, b"\x00\x01z"), (b"i", 8, b"x" * 8), (b"j", 9, b"x" * 16),
        )
    )  # fmt: skip
    lengths = struct.pack(">II", 16 + len(head), len(head))
    body = lengths + struct.pack(">I", zlib.crc32(lengths)) + head
    (found,) = eventstream.Decoder().feed(body + struct.pack(">I", zlib.crc32(body)))
    assert found.data == ""


@pytest.mark.parametrize("at", [0, 5, 9, 14, 40, len(FRAME) - 1])
def test_a_changed_byte_is_seen(at: int) -> None:
    broken = bytearray(FRAME)
    broken[at] ^= 1
    with pytest.raises(BodyError, match=r"encoding\.malformed"):
        eventstream.Decoder().feed(bytes(broken))


def test_a_frame_may_not_be_too_large() -> None:
    lengths = struct.pack(">II", 1 << 30, 0)
    with pytest.raises(BodyError, match=r"stream\.event_too_large"):
        eventstream.Decoder().feed(lengths + struct.pack(">I", zlib.crc32(lengths)))


def test_what_a_broken_stream_leaves() -> None:
    decoder = eventstream.Decoder()
    assert decoder.feed(FRAME + FRAME[:20]) == eventstream.Decoder().feed(FRAME)
    assert decoder.end() == FRAME[:20]
