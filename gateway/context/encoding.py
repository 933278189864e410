"""Content codings, undone strictly and within bounds (RFC 9110 §8.4), and done again after an edit.

A request is read whole or refused: every member of a gzip file and every frame of zstd, no trailing bytes,
no missing end, nothing that grows beyond the limits. Stacked codings are undone from the last to the first; a body that
is compressed without saying so is known by its first bytes, and is undone as well. Answers are inflated piece by piece
under the same limits.
"""

from __future__ import annotations

import re
import zlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Final, Protocol, override

import brotli
import zstandard

from gateway.context.objects import Limits
from gateway.errors import BodyError

_MAX_CODINGS: Final = 4
_RATIO_FLOOR: Final = 1 << 20  # bytes that a small body may grow to whatever its ratio
_ZSTD_WINDOW: Final = 8 << 20  # RFC 9659: the most that a decoder of the coding must support
_ZSTD_SLICE: Final = 256  # four bytes of zstd can say 128 KiB, so that a slice gives at most 8 MiB
_SKIPPED: Final = re.compile(rb"[\x50-\x5f]\x2a\x4d\x18")  # RFC 8878 §3.1.2: a frame that decoders skip
_MAGIC: Final = (  # RFC 1952 §2.3.1, RFC 8878 §3.1.1, and RFC 1950 §2.2 where the second byte makes it no text
    ("gzip", re.compile(rb"\x1f\x8b\x08")),
    ("zstd", re.compile(rb"\x28\xb5\x2f\xfd|" + _SKIPPED.pattern)),
    ("deflate", re.compile(rb"\x78[\x01\x9c\xda]")),
)


@dataclass(frozen=True, slots=True)
class Decoded:
    """A body without its codings; `codings` are those it came in, in the order in which they were applied.

    `beside` is what the compressed form carries beside the body: names and comments in the heads of gzip members,
    frames of zstd that decoders skip.
    """

    body: bytes = field(repr=False)
    codings: tuple[str, ...] = ()
    beside: tuple[bytes, ...] = field(default=(), repr=False)

    @override
    def __repr__(self) -> str:
        return f"Decoded({len(self.body)} bytes, {','.join(self.codings) or 'identity'})"


def codings(header: str) -> tuple[str, ...]:
    """The codings of a Content-Encoding value, lower case, without identity.

    Raises BodyError encoding.unsupported for a coding that is not known, or more than four.
    """
    names = tuple(
        name for part in header.split(",") if (name := part.strip().lower()) not in {"", "identity"}
    )
    if len(names) > _MAX_CODINGS or any(name not in _STEPS for name in names):
        raise BodyError("encoding.unsupported")
    return names


def decode(data: bytes, content_encoding: str, limits: Limits, *, undeclared: bool = True) -> Decoded:
    """Undo every coding of a body, those that it only begins like as well where `undeclared`.

    What begins like a coding and is none stays as it is. Raises BodyError: encoding.unsupported, encoding.malformed,
    body.too_large (413), encoding.ratio (413).
    """
    names = codings(content_encoding)
    body, beside = _undone(data, names, limits)
    while undeclared and len(names) < _MAX_CODINGS and (guess := guessed(body)):
        try:
            body, more = _undone(body, (guess,), limits, compressed=len(data))
        except BodyError as error:
            if error.code != "encoding.malformed":
                raise
            break
        names, beside = (guess, *names), (*beside, *more)
    return Decoded(body, names, beside)


def guessed(body: bytes) -> str:
    """The coding that a body begins like; empty for none. Brotli has no first bytes of its own."""
    return next((name for name, magic in _MAGIC if magic.match(body)), "")


def _undone(
    data: bytes, names: tuple[str, ...], limits: Limits, compressed: int | None = None
) -> tuple[bytes, tuple[bytes, ...]]:
    """A body without these codings, and what stood beside it; `compressed` is its size on the wire."""
    if names:
        inflater = Inflater(
            ",".join(names), limits, received=0 if compressed is None else compressed - len(data)
        )
        data, beside = inflater.feed(data) + inflater.end(), inflater.beside()
    else:
        beside = ()
    if len(data) > limits.max_body_bytes:
        raise BodyError("body.too_large", status=413)
    return data, beside


def encode(body: bytes, codings: tuple[str, ...]) -> bytes:
    """Apply codings in order; raises BodyError encoding.unsupported for one that is not known."""
    for name in codings:
        if name not in _ENCODERS:
            raise BodyError("encoding.unsupported")
        body = _ENCODERS[name](body)
    return body


class Inflater:
    """Undoes the codings of one body piece by piece; `coding` may name several, as in the header."""

    def __init__(self, coding: str, limits: Limits, received: int = 0) -> None:
        self._steps = [_STEPS[name]() for name in reversed(codings(coding))]
        self._limits = limits
        self._fed = received  # bytes that came over the wire for what is fed, beyond those that are fed
        self._given = 0

    def feed(self, data: bytes) -> bytes:
        """What these bytes give; raises BodyError as `decode` does, before more than the limits is held."""
        self._fed += len(data)
        for step in self._steps:
            data = step.feed(data, self._room())
        self._given += len(data)
        if self._given > self._limits.max_body_bytes:
            raise BodyError("body.too_large", status=413)
        return data

    def end(self) -> bytes:
        """Nothing more is held; raises BodyError encoding.malformed when the data ends in mid-stream."""
        if not all(step.finished for step in self._steps):
            raise BodyError("encoding.malformed")
        return b""

    def beside(self) -> tuple[bytes, ...]:
        """What was read beside the body, where all of it was fed at once (see Decoded)."""
        return tuple(piece for step in self._steps for piece in step.beside if piece)

    def _room(self) -> _Room:
        ratio = max(_RATIO_FLOOR, self._fed * self._limits.max_decoded_ratio) - self._given
        return _Room(self._limits.max_body_bytes - self._given, ratio)


class _Room:
    """How many bytes may still come out of one step."""

    __slots__ = ("ratio", "size")

    def __init__(self, size: int, ratio: int) -> None:
        self.size = size
        self.ratio = ratio

    def take(self, count: int) -> None:
        self.size -= count
        self.ratio -= count
        if self.size < 0:
            raise BodyError("body.too_large", status=413)
        if self.ratio < 0:
            raise BodyError("encoding.ratio", status=413)

    def ask(self) -> int:
        """How many bytes to ask for at once: one more than may come."""
        return max(1, min(self.size, self.ratio, 1 << 20) + 1)


class _Step(Protocol):
    finished: bool  # at an end where the body may stop
    beside: list[bytes]  # what it carries that is no content

    def feed(self, data: bytes, room: _Room) -> bytes: ...


class _Zlib:
    """gzip of any number of members, zlib, or raw deflate, told apart by the first two bytes."""

    def __init__(self, *, gzip: bool) -> None:
        self.finished = False
        self.beside: list[bytes] = []
        self._gzip = gzip
        self._head = b""
        self._begun = False
        self._member = zlib.decompressobj(wbits=31) if gzip else None

    def feed(self, data: bytes, room: _Room) -> bytes:
        if self._member is None:
            self._head += data
            if len(self._head) < 2:
                return b""
            data, self._head = self._head, b""
            self._member = zlib.decompressobj(wbits=15 if _zlib_header(data) else -15)
        out: list[bytes] = []
        if self._gzip and not self._begun:
            self.beside += _named(data)
        self._begun = True
        while data:
            data = self._some(data, room, out)
        return b"".join(out)

    def _some(self, data: bytes, room: _Room, out: list[bytes]) -> bytes:
        if self.finished:
            self.beside += _named(data)
            if not self._gzip:
                raise BodyError("encoding.malformed")  # bytes after the end
            self._member, self.finished = zlib.decompressobj(wbits=31), False
        member = self._member
        malformed = member is None
        try:
            piece = b"" if member is None else member.decompress(data, room.ask())
        except zlib.error:
            malformed, piece = True, b""
        if malformed or member is None:
            raise BodyError("encoding.malformed")
        room.take(len(piece))
        out.append(piece)
        self.finished = member.eof
        return member.unused_data if member.eof else member.unconsumed_tail


def _named(member: bytes) -> list[bytes]:
    """Extra field, name and comment in the head of a gzip member (RFC 1952 §2.3), as one piece."""
    flags = member[3] if member.startswith(b"\x1f\x8b\x08") and len(member) > 10 else 0
    at = 10 + (2 + int.from_bytes(member[10:12], "little") if flags & 4 else 0)
    for flag in (8, 16):
        end = member.find(b"\0", at) if flags & flag else at - 1
        at = len(member) if end < 0 else end + 1
    return [member[10:at]] if flags & 28 else []


def _zlib_header(data: bytes) -> bool:
    return data[0] & 15 == 8 and (data[0] << 8 | data[1]) % 31 == 0


class _Brotli:
    def __init__(self) -> None:
        self.finished = False
        self.beside: list[bytes] = []
        self._stream = brotli.Decompressor()

    def feed(self, data: bytes, room: _Room) -> bytes:
        out: list[bytes] = []
        malformed = self.finished and bool(data)
        try:
            while not malformed:
                piece: bytes = self._stream.process(data, output_buffer_limit=room.ask())
                room.take(len(piece))
                out.append(piece)
                data = b""
                if self._stream.is_finished() or not piece:
                    break
        except brotli.error:
            malformed = True
        if malformed:
            raise BodyError("encoding.malformed")
        self.finished = self._stream.is_finished()
        return b"".join(out)


class _Zstd:
    def __init__(self) -> None:
        self.finished = False
        self.beside: list[bytes] = []
        self._frame = self._new()

    @staticmethod
    def _new() -> zstandard.ZstdDecompressionObj:
        return zstandard.ZstdDecompressor(max_window_size=_ZSTD_WINDOW).decompressobj()

    def feed(self, data: bytes, room: _Room) -> bytes:
        out: list[bytes] = []
        self.beside += _skipped(data)
        view = memoryview(data)
        for start in range(0, len(data), _ZSTD_SLICE):
            rest = bytes(view[start : start + _ZSTD_SLICE])
            while rest:
                rest = self._some(rest, room, out)
        return b"".join(out)

    def _some(self, data: bytes, room: _Room, out: list[bytes]) -> bytes:
        if self.finished:
            self._frame, self.finished = self._new(), False
        malformed = False
        try:
            piece = self._frame.decompress(data)
        except zstandard.ZstdError:
            malformed, piece = True, b""
        if malformed:
            raise BodyError("encoding.malformed")
        room.take(len(piece))
        out.append(piece)
        self.finished = self._frame.eof
        return self._frame.unused_data if self.finished else b""


def _skipped(data: bytes) -> list[bytes]:
    """Whatever may be a frame that decoders skip: a look that errs towards reading too much costs nothing but time."""
    return [
        data[m.end() + 4 : m.end() + 4 + int.from_bytes(data[m.end() : m.end() + 4], "little")]
        for m in _SKIPPED.finditer(data)
    ]


def _gzip(body: bytes) -> bytes:
    member = zlib.compressobj(level=6, wbits=31)  # no time in the head: the same body gives the same bytes
    return member.compress(body) + member.flush()


def _brotli(body: bytes) -> bytes:
    compressed: bytes = brotli.compress(body, quality=5)
    return compressed


_STEPS: Final[Mapping[str, Callable[[], _Step]]] = {
    "gzip": lambda: _Zlib(gzip=True),
    "x-gzip": lambda: _Zlib(gzip=True),
    "deflate": lambda: _Zlib(gzip=False),
    "br": _Brotli,
    "zstd": _Zstd,
}
_ENCODERS: Final[Mapping[str, Callable[[bytes], bytes]]] = {
    "gzip": _gzip,
    "x-gzip": _gzip,
    "deflate": lambda body: zlib.compress(body, 6),
    "br": _brotli,
    "zstd": lambda body: zstandard.ZstdCompressor(level=3).compress(body),
}
