"""Frames: cut and compressed in any way they are the same messages, and none grows beyond its bound."""

from __future__ import annotations

import zlib
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from wsproto import events as ws
from wsproto.connection import Connection, ConnectionType
from wsproto.extensions import PerMessageDeflate

from gateway.proxy import frames
from gateway.proxy.frames import Broken, Message, Side

AGREED = [
    None,
    "permessage-deflate",
    "permessage-deflate; client_no_context_takeover",
    "permessage-deflate; server_no_context_takeover; client_max_window_bits=9",
    "permessage-deflate; server_max_window_bits=10; client_max_window_bits=12; client_no_context_takeover",
]


def peer(agreed: str | None, *, client: bool) -> Connection:
    """An implementation that is not ours."""
    used: list[Any] = []
    if agreed is not None:
        used.append(PerMessageDeflate())
        used[0].finalize(agreed)
    return Connection(ConnectionType.CLIENT if client else ConnectionType.SERVER, used)


def side(agreed: str | None, *, client: bool = True, limit: int = 1 << 20) -> Side:
    return Side(peer_is_client=client, agreed=frames.agreed(agreed or ""), limit=limit)


@settings(max_examples=60, deadline=None)
@given(
    agreed=st.sampled_from(AGREED),
    texts=st.lists(st.lists(st.text(max_size=40), min_size=1, max_size=4), max_size=4),
    cut=st.integers(1, 64),
    client=st.booleans(),
)
def test_what_a_peer_says_is_heard_however_it_is_cut(
    agreed: str | None, texts: list[list[str]], cut: int, client: bool
) -> None:
    speaker, hearer = peer(agreed, client=client), side(agreed, client=client)
    wire = b"".join(
        bytes(speaker.send(ws.TextMessage(piece, message_finished=n == len(pieces) - 1)))
        for pieces in texts
        for n, piece in enumerate(pieces)
    )
    heard = [each for at in range(0, len(wire), cut) for each in hearer.hear(wire[at : at + cut])]
    assert heard == [Message(text=True, data="".join(pieces).encode()) for pieces in texts]


@settings(max_examples=40, deadline=None)
@given(
    agreed=st.sampled_from(AGREED),
    payloads=st.lists(st.binary(max_size=300), max_size=5),
    client=st.booleans(),
)
def test_what_is_said_is_heard_by_a_peer(agreed: str | None, payloads: list[bytes], client: bool) -> None:
    speaker, hearer = side(agreed, client=client), peer(agreed, client=client)
    heard = []
    for payload in payloads:
        hearer.receive_data(speaker.say(Message(text=False, data=payload)))
        heard += [bytes(e.data) for e in hearer.events() if isinstance(e, ws.BytesMessage)]
    assert heard == payloads


def test_a_control_frame_between_compressed_fragments_changes_nothing() -> None:
    speaker, hearer = peer("permessage-deflate", client=True), side("permessage-deflate")
    wire = bytes(speaker.send(ws.TextMessage("abc" * 50, message_finished=False)))
    wire += bytes(speaker.send(ws.Ping(b"x"))) + bytes(speaker.send(ws.TextMessage("def")))
    ping, message = hearer.hear(wire)
    assert isinstance(ping, ws.Ping)
    assert message == Message(text=True, data=b"abc" * 50 + b"def")


def masked(payload: bytes, first: int = 0xC1) -> bytes:
    size = bytes([0x80 | len(payload)]) if len(payload) < 126 else b"\xfe" + len(payload).to_bytes(2)
    return bytes([first]) + size + bytes(4) + payload


def test_final_blocks_and_stored_blocks_are_inflated() -> None:
    hearer = side("permessage-deflate")
    for _ in range(2):
        final = zlib.compressobj(9, zlib.DEFLATED, -15)
        payload = final.compress(b"final") + final.flush() + b"\x00"
        assert list(hearer.hear(masked(payload))) == [Message(text=True, data=b"final")]
    stored = zlib.compressobj(0, zlib.DEFLATED, -15)
    payload = (stored.compress(b"stored") + stored.flush(zlib.Z_SYNC_FLUSH))[:-4]
    assert list(hearer.hear(masked(payload))) == [Message(text=True, data=b"stored")]


@pytest.mark.parametrize("extra", [0, 1])
def test_the_bound_is_exact(extra: int) -> None:
    for agreed in (None, "permessage-deflate"):
        speaker, hearer = peer(agreed, client=True), side(agreed, limit=1000)
        (heard,) = hearer.hear(bytes(speaker.send(ws.TextMessage("x" * (1000 + extra)))))
        assert heard == (Broken(1009) if extra else Message(text=True, data=b"x" * 1000))


def test_nothing_is_heard_after_a_violation() -> None:
    hearer = side("permessage-deflate")
    assert list(hearer.hear(masked(b"\xff\xff\xff"))) == [Broken(1007)]
    assert list(hearer.hear(masked(b"{}", 0x81))) == []
    assert hearer.failed


def test_room_that_is_not_there_breaks_the_message_off() -> None:
    speaker = peer(None, client=True)
    hearer = Side(peer_is_client=True, agreed=None, limit=1000, grow=lambda size: size < 10)
    assert list(hearer.hear(bytes(speaker.send(ws.TextMessage("x" * 10))))) == [Broken(1013)]


@pytest.mark.parametrize(
    ("header", "kept"),
    [
        ("permessage-deflate", "permessage-deflate"),
        ("permessage-deflate; client_max_window_bits", "permessage-deflate; client_max_window_bits"),
        ("permessage-deflate; server_max_window_bits=8", ""),
        ('permessage-deflate; server_max_window_bits="10"', "permessage-deflate; server_max_window_bits=10"),
        ("permessage-deflate; a-secret=1, permessage-deflate", "permessage-deflate"),
        ("permessage-deflate; client_no_context_takeover=1", ""),
        ("permessage-deflate; client_max_window_bits; client_max_window_bits", ""),
        ("x-webkit-deflate-frame, foo", ""),
        ("", ""),
    ],
)
def test_offers_are_written_anew_from_what_is_known(header: str, kept: str) -> None:
    assert frames.written(frames.offers(header)) == kept


def test_an_agreement_is_one_extension_that_is_known() -> None:
    assert frames.agreed("") is None
    assert frames.agreed("permessage-deflate; server_max_window_bits=10") == {"server_max_window_bits": 10}
    for header in (
        "x",
        "permessage-deflate, permessage-deflate",
        "permessage-deflate; server_max_window_bits=16",
    ):
        with pytest.raises(ValueError, match="not known"):
            frames.agreed(header)
