"""WebSocket framing with bounds: messages are assembled and inflated up to a limit, never beyond (RFC 6455, RFC 7692).

wsproto parses and writes the frames. Its own permessage-deflate inflates without a limit and loses its place when a
control frame comes between the fragments of a compressed message; `Deflate` does neither.
"""

from __future__ import annotations

import re
import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Final, override

from wsproto import events as ws
from wsproto.connection import Connection, ConnectionState, ConnectionType
from wsproto.extensions import Extension
from wsproto.frame_protocol import CloseReason, FrameDecoder, FrameProtocol, Opcode, RsvBits

DEFLATE: Final = "permessage-deflate"
_WINDOWS: Final = ("client_max_window_bits", "server_max_window_bits")
_RESETS: Final = ("client_no_context_takeover", "server_no_context_takeover")
_PARAMETER: Final = re.compile(r'([a-z_]+)(?:="?([0-9]{1,2})"?)?')
_TAIL: Final = b"\x00\x00\xff\xff"  # RFC 7692 §7.2.2: taken off by the sender
_NONE: Final = RsvBits(False, False, False)

type Parameters = dict[str, int | None]


def offers(header: str) -> list[Parameters]:
    """The permessage-deflate offers of a client's Sec-WebSocket-Extensions.

    Other extensions are left out, and offers with parameters that are not known: nobody here could read the messages.
    """
    found = (_offer(piece) for piece in header.split(","))
    return [each for each in found if each is not None]


def agreed(header: str) -> Parameters | None:
    """What a server's Sec-WebSocket-Extensions agrees to, None for no extension; ValueError for what is not known."""
    if not header.strip():
        return None
    found = _offer(header)
    if found is None:
        raise ValueError("an extension that is not known")
    return found


def _offer(piece: str) -> Parameters | None:
    name, *parameters = (part.strip() for part in piece.lower().split(";"))
    return _parameters(parameters) if name == DEFLATE else None


def _parameters(parts: list[str]) -> Parameters | None:
    found: Parameters = {}
    for part in parts:
        match = _PARAMETER.fullmatch(part)
        if match is None or match[1] in found:
            return None
        value = int(match[2]) if match[2] is not None else None
        known = (match[1] in _RESETS and value is None) or match[1] in _WINDOWS
        if not known or (value is not None and not 9 <= value <= 15):  # zlib writes no window of 8
            return None
        found[match[1]] = value
    return found


def written(made: list[Parameters]) -> str:
    """The header value of these offers; empty for none."""
    return ", ".join(
        "; ".join([DEFLATE, *(name if value is None else f"{name}={value}" for name, value in offer.items())])
        for offer in made
    )


class Deflate(Extension):
    """One side of permessage-deflate as it was agreed on. `room` is how many bytes the message may still grow by."""

    name = DEFLATE

    def __init__(self, agreed: Parameters, room: Callable[[], int]) -> None:
        self._agreed, self._room = agreed, room
        self._inflater: zlib._Decompress | None = None
        self._deflater: zlib._Compress | None = None
        self._inflating = False  # the message under way is compressed
        self._control = False  # the frame under way is a control frame

    @override
    def enabled(self) -> bool:
        return True

    @override
    def offer(self) -> bool | str:
        return False

    def _resets(self, *, client: bool) -> bool:
        """Whether this side starts each message afresh."""
        return _RESETS[0 if client else 1] in self._agreed

    @override
    def frame_inbound_header(
        self, proto: FrameDecoder | FrameProtocol, opcode: Opcode, rsv: RsvBits, payload_length: int
    ) -> CloseReason | RsvBits:
        self._control = opcode.iscontrol()
        if rsv.rsv1 and (self._control or opcode is Opcode.CONTINUATION):
            return CloseReason.PROTOCOL_ERROR
        if not self._control and opcode is not Opcode.CONTINUATION:
            self._inflating = rsv.rsv1
        return RsvBits(True, False, False)

    @override
    def frame_inbound_payload_data(
        self, proto: FrameDecoder | FrameProtocol, data: bytes
    ) -> bytes | CloseReason:
        if self._control or not self._inflating:
            return data
        return self._inflate(data)

    @override
    def frame_inbound_complete(
        self, proto: FrameDecoder | FrameProtocol, fin: bool
    ) -> bytes | CloseReason | None:
        if self._control or not self._inflating or not fin:
            return None
        rest = self._inflate(_TAIL)
        self._inflating = False
        if self._resets(client=not proto.client):  # what the other side agreed to
            self._inflater = None
        return rest

    def _inflate(self, data: bytes) -> bytes | CloseReason:
        """Inflate at most what there is room for; one byte more is too much."""
        out, room = [], max(self._room(), 0) + 1
        try:
            while True:
                inflater = self._inflater = self._inflater or zlib.decompressobj(-15)
                piece = inflater.decompress(data, room)
                out.append(piece)
                room -= len(piece)
                if room <= 0 or inflater.unconsumed_tail:
                    return CloseReason.MESSAGE_TOO_BIG
                if not inflater.eof:
                    return b"".join(out)
                data, self._inflater = (
                    inflater.unused_data,
                    None,
                )  # RFC 7692 §7.2.3.5: a final block, and more
                if not data:
                    return b"".join(out)
        except zlib.error:
            return CloseReason.INVALID_FRAME_PAYLOAD_DATA

    @override
    def frame_outbound(
        self, proto: FrameDecoder | FrameProtocol, opcode: Opcode, rsv: RsvBits, data: bytes, fin: bool
    ) -> tuple[RsvBits, bytes]:
        if opcode.iscontrol():
            return rsv, data
        if opcode is not Opcode.CONTINUATION:
            rsv = RsvBits(True, rsv.rsv2, rsv.rsv3)
        if self._deflater is None:
            bits = self._agreed.get(_WINDOWS[0 if proto.client else 1]) or 15
            self._deflater = zlib.compressobj(zlib.Z_DEFAULT_COMPRESSION, zlib.DEFLATED, -bits)
        data = self._deflater.compress(data)
        if fin:
            data = (data + self._deflater.flush(zlib.Z_SYNC_FLUSH))[: -len(_TAIL)]
            if self._resets(client=proto.client):
                self._deflater = None
        return rsv, data


@dataclass(frozen=True, slots=True)
class Message:
    """A whole data message, inflated."""

    text: bool
    data: bytes = field(repr=False)


@dataclass(frozen=True, slots=True)
class Broken:
    """The peer broke the protocol or a limit; the code to close with."""

    code: int


type Heard = Message | Broken | ws.Ping | ws.Pong | ws.CloseConnection


@dataclass(slots=True)
class Side:
    """One side of a connection: reads what that peer sends, writes what it is sent.

    `grow` is asked for each piece of a message with the size it has now; False: it may not be that large.
    """

    peer_is_client: bool
    agreed: Parameters | None  # None: permessage-deflate is not used
    limit: int
    grow: Callable[[int], bool] = field(default=lambda _size: True)
    failed: bool = False  # nothing more is read
    _protocol: Connection = field(init=False)
    _pieces: list[bytes] = field(default_factory=list, repr=False)
    _size: int = 0

    def __post_init__(self) -> None:
        used: list[Extension] = (
            [] if self.agreed is None else [Deflate(self.agreed, lambda: self.limit - self._size)]
        )
        # As wsproto sees it, the peer of a server is a client.
        kind = ConnectionType.SERVER if self.peer_is_client else ConnectionType.CLIENT
        self._protocol = Connection(kind, used)

    def hear(self, data: bytes) -> Iterator[Heard]:
        """What the peer says; nothing comes after a close or a violation."""
        if self.failed:
            return
        self._protocol.receive_data(data)
        for event in self._protocol.events():
            if isinstance(event, ws.Message):
                piece = event.data.encode("utf-8") if isinstance(event.data, str) else bytes(event.data)
                self._size += len(piece)
                too_big = self._size > self.limit
                if too_big or not self.grow(self._size):
                    self.failed = True
                    self._pieces.clear()
                    yield Broken(CloseReason.MESSAGE_TOO_BIG if too_big else CloseReason.TRY_AGAIN_LATER)
                    return
                self._pieces.append(piece)
                if event.message_finished:
                    whole = Message(isinstance(event.data, str), b"".join(self._pieces))
                    self._pieces, self._size = [], 0
                    yield whole
            elif isinstance(event, ws.CloseConnection):
                self.failed = True
                violated = self._protocol.state is ConnectionState.OPEN
                yield Broken(event.code) if violated else event
                return
            elif isinstance(event, ws.Ping | ws.Pong):
                yield event

    def say(self, message: Message) -> bytes:
        """A message in one frame."""
        data = message.data.decode("utf-8") if message.text else message.data
        return self._protocol.send(
            ws.TextMessage(data) if isinstance(data, str) else ws.BytesMessage(bytearray(data))
        )

    def control(self, event: ws.Ping | ws.Pong) -> bytes:
        """A ping or pong."""
        return self._protocol.send(event)

    def close(self, code: int, reason: str = "") -> bytes:
        """A close frame; empty where one was sent already. Codes that mean `none was sent` become a normal closure."""
        if self._protocol.state not in {ConnectionState.OPEN, ConnectionState.REMOTE_CLOSING}:
            return b""
        known = CloseReason(code) if code in {each.value for each in CloseReason} else code
        return self._protocol.send(ws.CloseConnection(known, reason or None))
