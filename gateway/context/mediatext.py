"""What a picture, a sound or a film says in words: comments, tags and names that stand in its own structure.

A file of true structure can carry any text beside what it shows: PNG text chunks, JPEG comments and EXIF, GIF comments,
RIFF and ID3 tags, metadata boxes, strings of a PDF. Servers and models read some of it, so that it is scanned. Samples
and pixels are never looked at: chance would find something in them.
"""

from __future__ import annotations

import re
import zlib
from collections.abc import Callable, Iterator, Mapping
from typing import Final

from gateway.context import media

_MAX_INFLATED: Final = 1 << 20  # bytes of one packed text
_RUNS: Final = re.compile(rb"[\t\x20-\x7e]{6,}")
_LONG_RUNS: Final = re.compile(rb"[\t\x20-\x7e]{16,}")  # among samples, where chance makes shorter ones
_SHOWN: Final = frozenset(  # chunks of PNG that hold samples and numbers (PNG 3rd edition §11)
    {b"IHDR", b"PLTE", b"IDAT", b"IEND", b"tRNS", b"cHRM", b"gAMA", b"sBIT", b"sRGB", b"bKGD", b"hIST", b"pHYs"}
    | {b"tIME", b"acTL", b"fcTL", b"fdAT", b"cICP", b"mDCV", b"cLLI"}
)  # fmt: skip
_SAMPLES: Final = frozenset({b"fmt ", b"data", b"fact", b"VP8 ", b"VP8L", b"VP8X", b"ALPH", b"ANIM", b"ANMF"})


def texts(mime: str, data: bytes) -> list[str]:
    """The words that a file of this declared (else claimed) type holds, one text a place; empty for unknown types.

    Never raises: what is cut short or packed wrongly gives what it gives until there. Runs of fewer than six printable
    characters are left out.
    """
    read = _READ.get(media.known_type(mime, data))
    found = [] if read is None else [_words(piece) for piece in read(data)]
    return [text for text in found if text]


def _words(data: bytes) -> str:
    """Printable runs of bytes, also of those that stand in UTF-16, one a line."""
    runs = [run.decode("ascii") for run in _RUNS.findall(data)]
    if b"\0" in data:
        runs += [run.decode("ascii") for run in _RUNS.findall(data.replace(b"\0", b""))]
    return "\n".join(dict.fromkeys(runs))


def _png(data: bytes) -> Iterator[bytes]:
    at = 8
    while at + 12 <= len(data):
        size, kind = int.from_bytes(data[at : at + 4]), data[at + 4 : at + 8]
        if kind not in _SHOWN:
            yield from _chunk(kind, data[at + 8 : at + 8 + size])
        at += 12 + size


def _chunk(kind: bytes, data: bytes) -> Iterator[bytes]:
    """A PNG chunk: its bytes, and what is packed in it (zTXt, iCCP: after a name; iTXt: after five fields)."""
    yield data
    fields = data.split(b"\0", 1 if kind in {b"zTXt", b"iCCP"} else 5)
    if kind in {b"zTXt", b"iCCP", b"iTXt"} and len(fields) > 1:
        yield _inflated(fields[-1][1:] if kind != b"iTXt" else fields[-1])


def _inflated(data: bytes) -> bytes:
    try:
        return zlib.decompressobj().decompress(data, _MAX_INFLATED)
    except zlib.error:
        return b""


def _jpeg(data: bytes) -> Iterator[bytes]:
    at = 2
    while at + 4 <= len(data):
        marker = data[at + 1]
        size = int.from_bytes(data[at + 2 : at + 4])
        if data[at] != 0xFF or marker == 0xD9:
            return
        if marker == 0xFE or 0xE0 <= marker <= 0xEF:  # COM, APP0 to APP15
            yield data[at + 4 : at + 2 + size]
        at += 2 + size
        if marker == 0xDA:
            at = media.scan_end(data, at)


def _gif(data: bytes) -> Iterator[bytes]:
    at = 13 + media.colours(data[10]) if len(data) > 13 else len(data)
    while at + 2 < len(data) and data[at] in {0x21, 0x2C}:
        words = data[at] == 0x21 and data[at + 1] != 0xF9  # all extensions but those that only steer
        at += 2 if data[at] == 0x21 else 11 + (media.colours(data[at + 9]) if at + 9 < len(data) else 0)
        piece = bytearray()
        while at < len(data) and data[at]:
            piece += data[at + 1 : at + 1 + data[at]] if words else b""
            at += 1 + data[at]
        at += 1
        yield bytes(piece)


def _riff(data: bytes) -> Iterator[bytes]:
    at = 12
    while at + 8 <= len(data):
        kind, size = data[at : at + 4], int.from_bytes(data[at + 4 : at + 8], "little")
        if kind not in _SAMPLES:
            yield data[at : at + 8 + size]
        at += 8 + size + (size & 1)


def _mp3(data: bytes) -> Iterator[bytes]:
    if data[:3] == b"ID3":
        yield data[10 : media.id3_end(data)]
    if data[-128:-125] == b"TAG":
        yield data[-125:]


def _boxes(data: bytes) -> Iterator[bytes]:
    at = 0
    while at + 8 <= len(data):
        size, kind = int.from_bytes(data[at : at + 4]), data[at + 4 : at + 8]
        if size == 1:
            size = int.from_bytes(data[at + 8 : at + 16])
        if size < 8:
            size = len(data) - at
        if kind != b"mdat":
            yield data[at + 8 : at + size]
        at += size


def _long(data: bytes) -> Iterator[bytes]:
    """Formats whose words stand among samples: what is too long to be chance, wherever it stands."""
    yield from _LONG_RUNS.findall(data)


_READ: Final[Mapping[str, Callable[[bytes], Iterator[bytes]]]] = {
    "image/png": _png,
    "image/jpeg": _jpeg,
    "image/gif": _gif,
    "image/webp": _riff,
    "audio/wav": _riff,
    "audio/mpeg": _mp3,
    "audio/ogg": _long,
    "audio/flac": _long,
    "audio/aac": _long,
    "video/webm": _long,
    "video/mp4": _boxes,
    "application/pdf": lambda data: iter((data,)),
}
