"""The law of streams over more dialects, more line ends, and WebSocket frames: the same text, input and events, however cut."""

from __future__ import annotations

import json
import random
from collections.abc import Sequence
from itertools import pairwise

import pytest
from wsproto import events as ws
from wsproto.connection import Connection, ConnectionType
from wsproto.extensions import PerMessageDeflate

from gateway.proxy.frames import Message, Side, agreed
from tests.properties.test_stream_law import (
    ARGUMENTS,
    SHORT,
    SHORT_ARGUMENTS,
    TEXT,
    cut,
    restored,
    same,
    through,
    whole,
)
from tests.support.streams import DIALECTS, SSE, Dialect
from tests.support.streams_more import MORE

more = pytest.mark.parametrize("dialect", MORE, ids=lambda d: d.name)


def check(dialect: Dialect, text: Sequence[str], arguments: Sequence[str]) -> None:
    answer = dialect.write(text, arguments)
    before, after = dialect.read(answer), dialect.read(through(dialect, [answer]))
    assert after.text == whole("".join(text))
    if before.arguments:  # JSON, also as the free input of a custom tool: a value in it is escaped
        assert same(json.loads(after.arguments), restored(json.loads("".join(arguments))))
    assert after.types == before.types
    assert after.numbers == before.numbers
    for snapshot in after.snapshots:
        assert snapshot == after.text or same(json.loads(snapshot), json.loads(after.arguments))


@more
def test_any_pieces_say_the_same(dialect: Dialect) -> None:
    check(dialect, [TEXT], [ARGUMENTS])
    check(dialect, list(TEXT), list(ARGUMENTS))
    chance = random.Random(11)
    for _ in range(15):
        cuts = [sorted(chance.sample(range(len(t)), 6)) for t in (TEXT, ARGUMENTS)]
        check(dialect, cut(TEXT, cuts[0]), cut(ARGUMENTS, cuts[1]))


@more
def test_every_cut_of_the_bytes(dialect: Dialect) -> None:
    answer = dialect.write(cut(SHORT, [8, 20]), cut(SHORT_ARGUMENTS, [12]))
    expected = through(dialect, [answer])
    assert expected != answer
    for at in range(len(answer) + 1):
        assert through(dialect, [answer[:at], answer[at:]]) == expected, at
    assert through(dialect, [answer[i : i + 1] for i in range(len(answer))]) == expected
    chance = random.Random(7)
    for _ in range(10):
        edges = [0, *sorted(chance.choices(range(len(answer)), k=9)), len(answer)]
        assert through(dialect, [answer[a:b] for a, b in pairwise(edges)]) == expected


@pytest.mark.parametrize("end", [b"\r\n", b"\r"], ids=["CRLF", "CR"])
@pytest.mark.parametrize("dialect", [d for d in DIALECTS if d.content_type == SSE], ids=lambda d: d.name)
def test_other_line_ends_and_no_types(dialect: Dialect, end: bytes) -> None:
    """Server-sent events end their lines in three ways; the type of an event need not stand in a line of its own."""
    plain = dialect.write(cut(SHORT, [8, 20]), cut(SHORT_ARGUMENTS, [12]))
    for answer in (plain, b"\n".join(ln for ln in plain.split(b"\n") if not ln.startswith(b"event:"))):
        ended = answer.replace(b"\n", end)
        expected = through(dialect, [answer]).replace(b"\n", end)
        assert through(dialect, [ended]) == expected
        for at in range(0, len(ended), 23):
            assert through(dialect, [ended[:at], ended[at:]]) == expected, at


MESSAGES = ("E", "EGRESS_", "Größe 🚀 完了" * 40, "", "x" * 70_000)


@pytest.mark.parametrize("deflate", ["", "permessage-deflate"])
def test_frames_are_the_same_messages_however_they_are_cut(deflate: str) -> None:
    """Whole, in fragments, and with a ping between the fragments; UTF-8 is never torn."""
    extension = [PerMessageDeflate()] if deflate else []
    for each in extension:
        each.finalize(deflate)
    peer = Connection(ConnectionType.SERVER, extension)
    wire = bytearray()
    for text in MESSAGES[:4]:
        wire += peer.send(ws.TextMessage(text))
        halves = cut(text, [len(text) // 2])
        for n, piece in enumerate(halves):
            wire += peer.send(ws.TextMessage(piece, message_finished=n == len(halves) - 1))
            wire += peer.send(ws.Ping(b"p"))

    def heard(pieces: Sequence[bytes]) -> list[Message]:
        side = Side(peer_is_client=False, agreed=agreed(deflate), limit=1 << 20)
        found = [each for piece in pieces for each in side.hear(piece)]
        return [each for each in found if isinstance(each, Message)]

    data = bytes(wire)
    expected = [Message(text=True, data=text.encode()) for text in MESSAGES[:4] for _ in range(2)]
    assert heard([data]) == expected
    for at in range(len(data) + 1):
        assert heard([data[:at], data[at:]]) == expected, at
    assert heard([data[i : i + 1] for i in range(len(data))]) == expected
