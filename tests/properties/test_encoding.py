"""Content codings: any stack of them round trips in any pieces; what is cut, padded or bombed is refused early."""

import zlib
from itertools import pairwise

import brotli
import pytest
import zstandard
from hypothesis import given, settings
from hypothesis import strategies as st

from gateway.context import encoding
from gateway.context.encoding import Inflater, decode, encode
from gateway.context.objects import Limits
from gateway.errors import BodyError

LIMITS = Limits()
CODINGS = st.lists(st.sampled_from(["gzip", "x-gzip", "deflate", "br", "zstd"]), max_size=3).map(tuple)
BODIES = st.one_of(st.binary(max_size=300), st.binary(min_size=1, max_size=3).map(lambda unit: unit * 5000))


def refused(data: bytes, header: str, limits: Limits = LIMITS) -> tuple[str, int]:
    with pytest.raises(BodyError) as caught:
        decode(data, header, limits, undeclared=False)
    assert caught.value.__context__ is None
    return caught.value.code, caught.value.status


@given(BODIES, CODINGS, st.lists(st.integers(0, 2000), max_size=6))
def test_any_stack_round_trips_in_any_pieces(body: bytes, codings: tuple[str, ...], cuts: list[int]) -> None:
    wire = encode(body, codings)
    header = ", ".join(codings)
    decoded = decode(wire, header, LIMITS, undeclared=False)
    assert (decoded.body, decoded.codings) == (body, codings)
    if codings:
        inflater = Inflater(header, LIMITS)
        at = sorted({min(cut, len(wire)) for cut in cuts} | {0, len(wire)})
        pieces = [wire[a:b] for a, b in pairwise(at)] or [b""]
        assert b"".join([inflater.feed(piece) for piece in pieces]) + inflater.end() == body


@given(BODIES, st.sampled_from(["gzip", "deflate", "br", "zstd"]), st.data())
def test_a_body_that_ends_early_or_goes_on_is_malformed(
    body: bytes, coding: str, data: st.DataObject
) -> None:
    wire = encode(body, (coding,))
    cut = data.draw(st.integers(0, len(wire) - 1))
    assert refused(wire[:cut], coding)[0] == "encoding.malformed"
    assert (
        refused(wire + data.draw(st.sampled_from([b"\0", b"{}", b"garbage"])), coding)[0]
        == "encoding.malformed"
    )


@given(
    st.binary(max_size=60), st.sampled_from(["gzip", "deflate", "br", "zstd", "gzip, br", "zstd, deflate"])
)
@settings(max_examples=200)
def test_arbitrary_bytes_raise_nothing_else(data: bytes, header: str) -> None:
    try:
        decode(data, header, LIMITS, undeclared=False)
    except BodyError as error:
        code = error.code
    else:
        code = "encoding.malformed"
    assert code == "encoding.malformed"


def test_every_member_and_every_frame_is_read() -> None:
    gzip = encode(b"one,", ("gzip",)) + encode(b"two", ("gzip",))
    assert decode(gzip, "gzip", LIMITS).body == b"one,two"
    frames = encode(b"one,", ("zstd",)) + b"\x50\x2a\x4d\x18\x03\0\0\0abc" + encode(b"two", ("zstd",))
    assert decode(frames, "zstd", LIMITS).body == b"one,two"


def test_raw_deflate_is_told_from_zlib() -> None:
    raw = zlib.compressobj(wbits=-15)
    assert decode(raw.compress(b"text") + raw.flush(), "deflate", LIMITS).body == b"text"
    assert decode(zlib.compress(b"text"), "Deflate ", LIMITS).body == b"text"


@pytest.mark.parametrize(
    "header",
    ["hex", "rot13", "utf-8", "snappy", "compress", "gzip;q=1", "gzip, gzip, gzip, gzip, gzip", "gzip br"],
)
def test_codings_that_are_not_known(header: str) -> None:
    assert refused(b"{}", header) == ("encoding.unsupported", 400)


@pytest.mark.parametrize("header", ["", "identity", " , identity,", "IDENTITY"])
def test_identity_is_no_coding(header: str) -> None:
    assert decode(b"{}", header, LIMITS) == encoding.Decoded(b"{}", ())


@pytest.mark.parametrize("coding", ["gzip", "deflate", "zstd"])
def test_compression_that_is_not_declared_is_undone_and_known(coding: str) -> None:
    wire = encode(b'{"a": 1}', (coding,))
    assert decode(wire, "", LIMITS) == encoding.Decoded(b'{"a": 1}', (coding,))
    assert encode(b"{}", decode(wire, "", LIMITS).codings) == encode(b"{}", (coding,))
    twice = encode(wire, ("br", coding))
    decoded = decode(twice, f"br, {coding}", LIMITS)
    assert (decoded.body, decoded.codings) == (b'{"a": 1}', (coding, "br", coding))
    assert encode(decoded.body, decoded.codings) == twice
    assert decode(wire, "", LIMITS, undeclared=False).body == wire


def test_what_only_begins_like_a_coding_stays_as_it_is() -> None:
    for data in (b"\x1f\x8b\x08 no gzip", b"\x28\xb5\x2f\xfd", b"x\x9c and more text", b"x^2 is text"):
        assert decode(data, "", LIMITS).body == data
    assert decode(encode(b"a", ("gzip",) * 4), "", LIMITS).codings == ("gzip",) * 4
    assert decode(encode(b"a", ("gzip",) * 6), "", LIMITS).codings == ("gzip",) * 4


@pytest.mark.parametrize("coding", ["gzip", "deflate", "zstd"])
def test_bombs_are_stopped_where_nothing_is_declared_as_well(coding: str) -> None:
    bomb = encode(bytes(30_000_000), (coding,))
    for wire in (bomb, encode(bomb, (coding,))):
        with pytest.raises(BodyError) as caught:
            decode(wire, "", LIMITS)
        assert caught.value.status == 413


def test_what_stands_beside_the_content_is_given_too() -> None:
    head = b"\x1f\x8b\x08\x1c\0\0\0\0\0\x03" + b"\x05\0extra" + b"name.txt\0" + b"a comment\0"
    member = head + encode(b"two", ("gzip",))[10:]
    decoded = decode(encode(b"one,", ("gzip",)) + member, "gzip", LIMITS)
    assert decoded.body == b"one,two"
    assert b"".join(decoded.beside) == head[10:]
    assert decode(encode(member, ("br",)), "gzip, br", LIMITS).beside == (head[10:],)
    frames = b"\x5f\x2a\x4d\x18\x06\0\0\0secret" + encode(b"two", ("zstd",))
    assert decode(frames, "zstd", LIMITS) == encoding.Decoded(b"two", ("zstd",), (b"secret",))
    assert decode(frames, "", LIMITS).beside == (b"secret",)


@pytest.mark.parametrize("coding", ["gzip", "deflate", "br", "zstd"])
def test_bombs_are_stopped_at_the_limits(coding: str) -> None:
    bomb = encode(bytes(30_000_000), (coding,))
    assert refused(bomb, coding) == ("encoding.ratio", 413)
    assert refused(bomb, coding, Limits(max_body_bytes=2_000_000, max_decoded_ratio=10**6)) == (
        "body.too_large",
        413,
    )
    stacked = encode(bomb, (coding,))
    assert refused(stacked, f"{coding}, {coding}")[1] == 413
    exact = encode(bytes(100_000), (coding,))
    assert len(decode(exact, coding, Limits(max_body_bytes=100_000)).body) == 100_000
    assert refused(exact, coding, Limits(max_body_bytes=99_999)) == ("body.too_large", 413)
    assert refused(b"x" * 11, "", Limits(max_body_bytes=10)) == ("body.too_large", 413)


def test_a_frame_that_grows_is_never_held_whole() -> None:
    # 20,000 RLE blocks of 128 KiB in 80 KB: 2.6 GB
    block = ((1 << 17) << 3 | 1 << 1).to_bytes(3, "little") + b"x"
    frame = b"\x28\xb5\x2f\xfd\x00\x58" + block * 20_000
    assert refused(frame, "zstd") == ("encoding.ratio", 413)


def test_windows_beyond_the_standard_are_refused() -> None:
    parameters = zstandard.ZstdCompressionParameters.from_level(3, window_log=27)
    writer = zstandard.ZstdCompressor(compression_params=parameters).compressobj()
    wire = writer.compress(bytes(1000)) + writer.flush()
    assert refused(wire, "zstd")[0] == "encoding.malformed"


def test_streams_give_what_they_have() -> None:
    packer = zlib.compressobj(wbits=31)
    inflater = Inflater("gzip", LIMITS)
    assert inflater.feed(packer.compress(b"data: 1\n\n") + packer.flush(zlib.Z_SYNC_FLUSH)) == b"data: 1\n\n"
    with pytest.raises(BodyError, match=r"encoding\.malformed"):
        inflater.end()
    stream = brotli.Compressor()
    inflater = Inflater("br", LIMITS)
    assert inflater.feed(stream.process(b"data: 2\n\n") + stream.flush()) == b"data: 2\n\n"
