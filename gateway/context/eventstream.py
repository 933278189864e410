"""application/vnd.amazon.eventstream: binary frames with checksums, cut and written again.

    frame    total length u32, headers length u32, CRC-32 of these eight bytes, headers, payload, CRC-32 of all before
    header   name length u8, name, type u8, value (strings and byte strings with a length u16)

As with `gateway.context.sse`, `feed` gives the events that are complete, and the `raw` of all events and what `end`
gives are together exactly the bytes that were fed. A frame whose checksum does not hold ends the reading: after it no
length can be believed.
"""

from __future__ import annotations

import base64
import binascii
import json
import struct
import zlib
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Final, override

from gateway.errors import BodyError

MAX_FRAME_BYTES: Final = 24 << 20  # what AWS allows in a payload, with room for headers
_PRELUDE: Final = struct.Struct(">III")
_CRC: Final = struct.Struct(">I")
_OVERHEAD: Final = 16
_SIZES: Final = {
    0: 0,
    1: 0,
    2: 1,
    3: 2,
    4: 4,
    5: 8,
    8: 8,
    9: 16,
}  # of values by type; 6 and 7 carry their length
_STRING: Final = 7


@dataclass(frozen=True, slots=True)
class Frame:
    """One frame. `name` is its event or exception type, `data` its payload as text.

    A frame of the type `chunk` wraps the model's own event in base64; then `data` is that event (`wrapped`).
    """

    raw: bytes = field(repr=False)
    name: str
    data: str = field(repr=False)
    start: int  # of the payload in `raw`
    wrapped: bool = False

    @override
    def __repr__(self) -> str:
        return f"Frame({self.name}, {len(self.raw)} bytes)"

    def with_data(self, new: str) -> bytes:
        """The frame with another payload, its lengths and checksums made true; headers stay."""
        payload = new.encode("utf-8", "surrogatepass")
        if self.wrapped:
            whole = json.loads(self.raw[self.start : -4])
            whole["bytes"] = base64.b64encode(payload).decode("ascii")
            payload = json.dumps(whole, separators=(",", ":")).encode()
        return _framed(self.raw[12 : self.start], payload)


class Decoder:
    """Frames out of bytes, however these are cut. Raises BodyError encoding.malformed, stream.event_too_large."""

    def __init__(self, max_frame_bytes: int = MAX_FRAME_BYTES) -> None:
        self._held = bytearray()
        self._limit = max_frame_bytes

    def feed(self, data: bytes) -> list[Frame]:
        """The frames that these bytes complete."""
        self._held += data
        frames, at = [], 0
        while len(self._held) - at >= _PRELUDE.size:
            total, headers, crc = _PRELUDE.unpack_from(self._held, at)
            if zlib.crc32(self._held[at : at + 8]) != crc or headers + _OVERHEAD > total:
                raise BodyError("encoding.malformed")
            if total > self._limit:
                raise BodyError("stream.event_too_large")
            if len(self._held) - at < total:
                break
            frames.append(frame(bytes(self._held[at : at + total])))
            at += total
        del self._held[:at]
        return frames

    def end(self) -> bytes:
        """The bytes that are left: a frame that was cut off."""
        rest, self._held = bytes(self._held), bytearray()
        return rest


def frame(raw: bytes) -> Frame:
    """Read one whole frame; raises BodyError encoding.malformed where it does not hold together."""
    total, size, _ = _PRELUDE.unpack_from(raw)
    (crc,) = _CRC.unpack_from(raw, len(raw) - 4)
    if total != len(raw) or zlib.crc32(raw[:-4]) != crc:
        raise BodyError("encoding.malformed")
    start = _PRELUDE.size + size
    found = _headers(raw[_PRELUDE.size : start])
    name = found.get(":event-type") or found.get(":exception-type") or ""
    payload = raw[start:-4]
    inner = _unwrapped(payload) if name == "chunk" else None
    if inner is not None:
        return Frame(raw, name, inner, start, wrapped=True)
    return Frame(raw, name, payload.decode("utf-8", "surrogateescape"), start)


def encode(headers: Iterable[tuple[str, str]], payload: bytes) -> bytes:
    """A frame of our own, with string headers."""
    head = b""
    for name, value in headers:
        key, text = name.encode(), value.encode()
        head += bytes([len(key)]) + key + bytes([_STRING]) + struct.pack(">H", len(text)) + text
    return _framed(head, payload)


def _framed(headers: bytes, payload: bytes) -> bytes:
    total = _OVERHEAD + len(headers) + len(payload)
    lengths = struct.pack(">II", total, len(headers))
    body = lengths + _CRC.pack(zlib.crc32(lengths)) + headers + payload
    return body + _CRC.pack(zlib.crc32(body))


def _headers(data: bytes) -> dict[str, str]:
    """The string headers; raises BodyError where the bytes are no headers."""
    found: dict[str, str] = {}
    at = 0
    try:
        while at < len(data):
            end = at + 1 + data[at]
            name, kind = data[at + 1 : end].decode("utf-8"), data[end]
            at = end + 1
            if kind in _SIZES:
                at += _SIZES[kind]
                continue
            (size,) = struct.unpack_from(">H", data, at)
            at += 2 + size
            if kind == _STRING:
                found[name] = data[at - size : at].decode("utf-8")
    except (IndexError, struct.error, UnicodeDecodeError):
        at = -1
    if at != len(data):
        raise BodyError("encoding.malformed")
    return found


def _unwrapped(payload: bytes) -> str | None:
    """The model's event in a chunk; None where there is none."""
    try:
        inner = json.loads(payload)["bytes"]
        return base64.b64decode(inner, validate=True).decode("utf-8")
    except (ValueError, KeyError, TypeError, binascii.Error):
        return None
