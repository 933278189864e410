"""What media must look like before its bytes are let by unread: the right start, nothing after the end.

Bytes hidden behind the end of a picture are the classic way to carry text past a scanner, and a file that
is not what it says cannot be called media. Structure only: nothing is decompressed, so a check costs
microseconds.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Final

from gateway.context import base64text

MALFORMED: Final = "media.malformed"

_TEXTUAL: Final = re.compile(
    r"text/.*|application/(?:[\w.-]+\+)?(?:json|xml|yaml|x-yaml|csv|x-ndjson|jsonl|javascript|x-sh|toml|sql)"
    r"|image/svg\+xml"
)
_SEALED: Final = re.compile(r"[A-Za-z0-9+/]+={0,2}|[A-Za-z0-9_-]+={0,2}")
_TOKEN_HEAD: Final = re.compile(r"[a-z]{2,12}[-_]|AKIA|AIza|eyJ")
_SEALED_LENGTHS: Final = range(48, 4_194_305)
_PRINTABLE: Final = re.compile(rb"[\x09\x0a\x0d\x20-\x7e]+")


def sealed_ok(text: str) -> bool:
    """Whether a value can be a provider's signature or ciphertext: long base64 of bytes that are no text.

    Prose, short values, and tokens with a vendor's prefix (`sk-...`, `ghp_...`) are not sealed: a field
    called `signature` must not be a way past the detectors. What is not sealed is scanned and never
    rewritten.
    """
    if len(text) not in _SEALED_LENGTHS or not _SEALED.fullmatch(text) or _TOKEN_HEAD.match(text):
        return False
    probe = base64text.decode(text[:64])
    return probe is not None and not _PRINTABLE.fullmatch(probe.data)


def textual(mime: str) -> bool:
    """Whether a media type holds text that detectors can read."""
    return _TEXTUAL.fullmatch(mime.partition(";")[0].strip().lower()) is not None


def check(mime: str, data: bytes | str) -> str:
    """Empty when the data is whole media of its declared type, else `media.malformed`.

    `data` is the file, or a base64 string or data URI of it (whose own type counts when `mime` is empty). A type whose
    structure is not known here passes: its reading is a question of coverage, not of shape. Text must be UTF-8.
    """
    if isinstance(data, str):
        encoded = base64text.decode(data)
        if encoded is None:
            return MALFORMED
        mime, data = mime or encoded.mime, encoded.data
    if textual(mime):
        return "" if base64text.printable(data) is not None else MALFORMED
    known = _checked(mime, data)
    return "" if known is None or known(data) else MALFORMED


def verifiable(mime: str, data: bytes) -> bool:
    """Whether `check` knows the structure of this type, declared or else claimed by the first bytes."""
    return _checked(mime, data) is not None


def known_type(mime: str, data: bytes) -> str:
    """The media type under its usual name, as declared or else as the first bytes claim; empty where neither says."""
    mime = mime.partition(";")[0].strip().lower()
    return _ALIASES.get(mime, mime) if "/" in mime else sniff(data)


def _checked(mime: str, data: bytes) -> Callable[[bytes], bool] | None:
    return _CHECKS.get(known_type(mime, data))


def sniff(data: bytes) -> str:
    """The media type that the first bytes claim, empty where they claim none."""
    return next((kind for kind, magic in _MAGIC if magic.match(data)), "")


# -- structures: each walk is over lengths, never over content -----------------------------------------------


def _png(data: bytes) -> bool:
    """PNG: eight fixed bytes, then chunks of length, type, data and CRC; IHDR first and IEND last."""
    at, kind = 8, b""
    if data[:8] != b"\x89PNG\r\n\x1a\n" or data[12:16] != b"IHDR":
        return False
    while at + 12 <= len(data) and kind != b"IEND":
        kind = data[at + 4 : at + 8]
        at += 12 + int.from_bytes(data[at : at + 4])
    return kind == b"IEND" and at == len(data)


def _jpeg(data: bytes) -> bool:
    """JPEG: SOI, segments with lengths up to the scans, and the first EOI after them is the end."""
    at = 2
    if data[:3] != b"\xff\xd8\xff":
        return False
    while at + 4 <= len(data):
        if data[at] != 0xFF:
            return False
        marker = data[at + 1]
        if marker == 0xD9:
            return at + 2 == len(data)
        at += 2 + int.from_bytes(data[at + 2 : at + 4])
        if marker == 0xDA:  # entropy-coded data: 0xFF is followed by a stuffed zero or a restart marker
            at = scan_end(data, at)
    return data[at:] == b"\xff\xd9"


_MARKER: Final = re.compile(rb"\xff[^\x00\xd0-\xd7\xff]")


def scan_end(data: bytes, at: int) -> int:
    """Where the entropy-coded data of a JPEG scan that begins at an offset ends."""
    match = _MARKER.search(data, at)
    return len(data) if match is None else match.start()


def _gif(data: bytes) -> bool:
    """GIF: header and colour table, then blocks of sub-blocks, and the trailer last."""
    if data[:6] not in {b"GIF87a", b"GIF89a"} or len(data) < 14:
        return False
    at = 13 + colours(data[10])
    while at < len(data):
        kind = data[at]
        if kind == 0x3B:
            return at + 1 == len(data)
        if kind == 0x21:
            at += 2
        elif kind == 0x2C and at + 10 < len(data):
            at += 11 + colours(data[at + 9])
        else:
            return False
        while at < len(data) and data[at]:
            at += 1 + data[at]
        at += 1
    return False


def colours(packed: int) -> int:
    """Bytes of a GIF colour table, by the byte of flags that announces it."""
    return 3 << ((packed & 7) + 1) if packed & 0x80 else 0


def _riff(form: bytes) -> Callable[[bytes], bool]:
    def check_form(data: bytes) -> bool:
        size = int.from_bytes(data[4:8], "little")
        # streams write WAV headers before they know the length: all ones or zero stand for "to the end"
        open_ended = form == b"WAVE" and size in {0, 0xFFFFFFFF}
        whole = size + 8 + (size & 1) == len(data) or size + 8 == len(data)
        named = data[:4] == b"RIFF" and data[8:12] == form
        return named and (whole or open_ended) and _chunks(data, open_ended=open_ended)

    return check_form


def _chunks(data: bytes, *, open_ended: bool) -> bool:
    """Whether the chunks of a RIFF file fill it: names in ASCII, lengths that add up, sound or picture among them."""
    at, kinds = 12, set()
    while at + 8 <= len(data):
        kind, size = data[at : at + 4], int.from_bytes(data[at + 4 : at + 8], "little")
        if not re.fullmatch(rb"[A-Za-z0-9 ]{4}", kind):
            return False
        kinds.add(kind)
        if kind == b"data" and (open_ended or size in {0, 0xFFFFFFFF}):
            return True
        at += 8 + size + (size & 1)
    return at - len(data) in {0, 1} and bool(kinds & {b"data", b"VP8 ", b"VP8L", b"VP8X"})


def _pdf(data: bytes) -> bool:
    """PDF: the header at the start, and nothing but line ends after the last end-of-file mark."""
    return (
        data[:5] == b"%PDF-"
        and re.fullmatch(rb"%%EOF[\r\n\x00 ]{0,8}", data[data.rfind(b"%%EOF") :]) is not None
    )


def _boxes(data: bytes) -> bool:
    """MP4 and its relatives: boxes with lengths that add up to the file, `ftyp` first."""
    at = 0
    if data[4:8] != b"ftyp":
        return False
    while at + 8 <= len(data):
        size, head = int.from_bytes(data[at : at + 4]), 8
        if size == 1:
            size, head = int.from_bytes(data[at + 8 : at + 16]), 16
        if size == 0:
            return True
        if size < head:
            return False
        at += size
    return at == len(data)


_BITRATES: Final = {
    (3, 3): (32, 64, 96, 128, 160, 192, 224, 256, 288, 320, 352, 384, 416, 448),
    (3, 2): (32, 48, 56, 64, 80, 96, 112, 128, 160, 192, 224, 256, 320, 384),
    (3, 1): (32, 40, 48, 56, 64, 80, 96, 112, 128, 160, 192, 224, 256, 320),
    (2, 3): (32, 48, 56, 64, 80, 96, 112, 128, 144, 160, 176, 192, 224, 256),
    (2, 2): (8, 16, 24, 32, 40, 48, 56, 64, 80, 96, 112, 128, 144, 160),
    (2, 1): (8, 16, 24, 32, 40, 48, 56, 64, 80, 96, 112, 128, 144, 160),
}
_RATES: Final = {3: (44100, 48000, 32000), 2: (22050, 24000, 16000), 0: (11025, 12000, 8000)}


def _mp3(data: bytes) -> bool:
    """MPEG audio: an ID3v2 tag at most, frames that follow each other, an ID3v1 tag at most."""
    at, end = 0, len(data)
    if data[:3] == b"ID3" and end >= 10:
        at = id3_end(data)
    if end >= 128 and data[-128:-125] == b"TAG":
        end -= 128
    frames, head = 0, bytes((data[at + 1], data[at + 2] & 12)) if at + 4 <= end else b""
    while at + 4 <= end:
        size = _frame(data, at)
        if not size or bytes((data[at + 1] | 1, data[at + 2] & 12)) != bytes((head[0] | 1, head[1])):
            return False  # version, layer and sampling rate stay the same through a file
        at += size
        frames += 1
    # the last frame may be cut short; one frame alone is what two bytes of any text can begin like
    return frames > 1 and (at >= end or not data[at:end].strip(b"\x00"))


def id3_end(data: bytes) -> int:
    """Where an ID3v2 tag that begins a file ends (its length has seven bits a byte)."""
    return 10 + ((data[6] & 127) << 21 | (data[7] & 127) << 14 | (data[8] & 127) << 7 | (data[9] & 127))


def _frame(data: bytes, at: int) -> int:
    """Bytes of the MPEG audio frame at an offset, 0 where none begins."""
    version, layer = data[at + 1] >> 3 & 3, data[at + 1] >> 1 & 3
    rate, frequency = data[at + 2] >> 4, data[at + 2] >> 2 & 3
    if (
        data[at] != 0xFF
        or data[at + 1] < 0xE0
        or version == 1
        or not layer
        or frequency == 3
        or not 0 < rate < 15
    ):
        return 0
    bits = _BITRATES[3 if version == 3 else 2, layer][rate - 1] * 1000
    hertz, padding = _RATES[version][frequency], data[at + 2] >> 1 & 1
    if layer == 3:
        return (12 * bits // hertz + padding) * 4
    return (72 if layer == 1 and version != 3 else 144) * bits // hertz + padding


def _ogg(data: bytes) -> bool:
    """Ogg (RFC 3533 §6): pages that follow each other, each with a table of the lengths of what it holds."""
    at = 0
    while at + 27 <= len(data):
        if data[at : at + 5] != b"OggS\0":
            return False
        table = data[at + 27 : at + 27 + data[at + 26]]
        at += 27 + data[at + 26] + sum(table)
    return at == len(data) > 0


def _flac(data: bytes) -> bool:
    """FLAC (RFC 9639 §8): metadata blocks with lengths, then a frame; frames have none, so the end is not known."""
    at, last = 4, data[:4] != b"fLaC"
    if last:
        return False
    while not last and at + 4 <= len(data):
        last = bool(data[at] & 0x80)
        at += 4 + int.from_bytes(data[at + 1 : at + 4])
    return last and data[at : at + 1] == b"\xff" and data[at + 1 : at + 2] in {b"\xf8", b"\xf9"}


def _aac(data: bytes) -> bool:
    """ADTS (ISO 13818-7 §6.2): frames with lengths that follow each other to the end."""
    at, frames = 0, 0
    while at + 7 <= len(data):
        size = (data[at + 3] & 3) << 11 | data[at + 4] << 3 | data[at + 5] >> 5
        if data[at] != 0xFF or data[at + 1] & 0xF6 != 0xF0 or size < 7:
            return False
        at += size
        frames += 1
    return frames > 1 and at == len(data)


def _webm(data: bytes) -> bool:
    """Matroska and WebM (RFC 8794): an EBML header, and a segment that ends with the file or says no length."""
    head = _element(data, 0)
    segment = _element(data, head[1]) if head is not None and head[0] == b"\x1a\x45\xdf\xa3" else None
    return segment is not None and segment[0] == b"\x18\x53\x80\x67" and segment[1] in {-1, len(data)}


def _element(data: bytes, at: int) -> tuple[bytes, int] | None:
    """Id and end of the EBML element at an offset, -1 where it says no length; None where there is none."""
    if at < 0 or at + 5 > len(data) or data[at] < 0x10:
        return None
    size_at = at + 4 if data[at] < 0x20 else at + 9 - data[at].bit_length()
    first = data[size_at] if size_at < len(data) else 0
    width = 9 - first.bit_length()
    if not first or size_at + width > len(data):
        return None
    size = int.from_bytes(data[size_at : size_at + width]) & ((1 << 7 * width) - 1)
    end = -1 if size == (1 << 7 * width) - 1 else size_at + width + size
    return data[at:size_at], end


_CHECKS: Final[Mapping[str, Callable[[bytes], bool]]] = {
    "image/png": _png,
    "image/jpeg": _jpeg,
    "image/gif": _gif,
    "image/webp": _riff(b"WEBP"),
    "audio/wav": _riff(b"WAVE"),
    "audio/mpeg": _mp3,
    "audio/ogg": _ogg,
    "audio/flac": _flac,
    "audio/aac": _aac,
    "video/webm": _webm,
    "application/pdf": _pdf,
    "video/mp4": _boxes,
}
_ALIASES: Final[Mapping[str, str]] = {
    "image/jpg": "image/jpeg",
    "audio/x-wav": "audio/wav",
    "audio/wave": "audio/wav",
    "audio/mp3": "audio/mpeg",
    "audio/mp4": "video/mp4",
    "audio/m4a": "video/mp4",
    "audio/x-m4a": "video/mp4",
    "audio/opus": "audio/ogg",
    "application/ogg": "audio/ogg",
    "video/ogg": "audio/ogg",
    "audio/x-flac": "audio/flac",
    "audio/webm": "video/webm",
    "audio/x-matroska": "video/webm",
    "video/x-matroska": "video/webm",
    "video/quicktime": "video/mp4",
    "image/heic": "video/mp4",
    "image/avif": "video/mp4",
}
_MAGIC: Final = tuple(
    (kind, re.compile(pattern, re.DOTALL))
    for kind, pattern in (
        ("image/png", rb"\x89PNG\r\n\x1a\n"),
        ("image/jpeg", rb"\xff\xd8\xff"),
        ("image/gif", rb"GIF8[79]a"),
        ("image/webp", rb"RIFF....WEBP"),
        ("audio/wav", rb"RIFF....WAVE"),
        ("audio/ogg", rb"OggS\x00"),
        ("audio/flac", rb"fLaC"),
        ("video/webm", rb"\x1a\x45\xdf\xa3"),
        ("audio/aac", rb"\xff[\xf0\xf1\xf8\xf9]"),
        ("audio/mpeg", rb"ID3[\x02-\x04]|\xff[\xe2-\xe7\xf2-\xf7\xfa-\xff]"),
        ("application/pdf", rb"%PDF-"),
        ("video/mp4", rb"....ftyp"),
    )
)
