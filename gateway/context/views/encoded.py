"""Runs of one alphabet that decode to text: base64 and its variants, base32, hex, gzip or deflate inside.

Any part of the decoded text stands for the whole run, so a view has no character map. Binary data is refused after a few
bytes: twelve random bytes are all printable once in 150,000 times.
"""

from __future__ import annotations

import base64
import binascii
import re
import zlib
from collections.abc import Iterator

from gateway.context.views.form import View

LEAST_RUN = 20
MAX_DECODED = 1 << 20
"""Bytes that one run may decode to; a longer one is cut, and the engine is told."""
_RUN_TABLE = bytes(
    97
    if chr(c) in "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/_-"
    else 110
    if c == 10
    else 32
    for c in range(256)
)
_STANDARD = bytes.maketrans(b"-_", b"+/")
_PRINTABLE = bytes([9, 10, 13, *range(32, 127)])
_HEX = re.compile(rb"(?:[0-9a-f]{2}){10,}|(?:[0-9A-F]{2}){10,}|(?:[0-9a-fA-F]{2}){10,}")
_BASE32 = re.compile(rb"[A-Z2-7]{16,}|[a-z2-7]{24,}")
_SPACED_NEEDLE = b" a a a a "
_WRAP_NEEDLE = b"aaaaaaaanaaaaaa"


def fold_runs(data: bytes) -> bytes:
    """Every character of an encoding alphabet as `a`, every line feed as `n`, everything else as a space."""
    return data.translate(_RUN_TABLE)


def runs(folded: bytes, least: int = LEAST_RUN) -> Iterator[tuple[int, int]]:
    """Where runs of at least `least` characters lie; lines of equal length that follow each other count as one run."""
    needle = b"a" * least
    at = folded.find(needle)
    while at >= 0:
        stop = _run_end(folded, at)
        if stop - at >= 48:
            width = stop - at
            while folded[stop : stop + 1] == b"n" and folded[stop + 1 : stop + 5] == b"aaaa":
                following = _run_end(folded, stop + 1)
                if following - stop - 1 > width:
                    break
                stop, short = following, following - stop - 1 < width
                if short:
                    break
        yield at, stop
        at = folded.find(needle, stop)


def _run_end(folded: bytes, at: int) -> int:
    space, line = folded.find(b" ", at), folded.find(b"n", at, at + 8192)
    ends = [e for e in (space, line) if e >= 0]
    return min(ends) if ends else len(folded)


def spaced_starts(folded: bytes) -> Iterator[int]:
    """Where single characters with separators between them begin."""
    at = folded.find(_SPACED_NEEDLE)
    while at >= 0:
        yield at + 1
        while folded[at : at + 2] == b" a":
            at += 2
        at = folded.find(_SPACED_NEEDLE, at)


def wrap_ends(folded: bytes) -> Iterator[int]:
    """Where a run goes on after a line end."""
    at = folded.find(_WRAP_NEEDLE)
    while at >= 0:
        yield at + 10
        at = folded.find(_WRAP_NEEDLE, at + 9)


def decode_run(text: str, start: int, end: int) -> View | None:
    """The decoded form of a run, or None when it is no text."""
    raw = text[start:end].encode("ascii", "replace")
    padded = end
    while padded < len(text) and padded < end + 6 and text[padded] == "=":
        padded += 1
    for kind, decoded in _candidates(raw):
        plain = _as_text(decoded)
        if plain is not None:
            return View(kind, plain, start, padded)
    return None


def _candidates(raw: bytes) -> Iterator[tuple[str, bytes]]:
    packed = raw.replace(b"\n", b"") if b"\n" in raw else raw
    if _HEX.fullmatch(packed):
        yield "hex", binascii.unhexlify(packed[: MAX_DECODED * 2])
    head = _base64(packed[:16])
    if head.startswith((b"\x1f\x8b", b"x\x9c", b"x\xda", b"x\x01")):
        yield "gzip", _inflate(_base64(packed[:MAX_DECODED]))
    elif not head.translate(None, _PRINTABLE) or head[1::2].count(0) >= 4:
        yield "base64", _base64(packed[: MAX_DECODED * 4 // 3])
    if _BASE32.fullmatch(packed):
        try:
            yield "base32", base64.b32decode(packed.upper() + b"=" * (-len(packed) % 8))
        except binascii.Error:
            return


def _base64(raw: bytes) -> bytes:
    text = raw.translate(_STANDARD)
    text = text[: len(text) - 1] if len(text) % 4 == 1 else text
    try:
        return binascii.a2b_base64(text + b"=" * (-len(text) % 4))
    except binascii.Error:
        return b"\0"


def _inflate(packed: bytes) -> bytes:
    unpack = zlib.decompressobj(wbits=47)
    try:
        return unpack.decompress(packed, MAX_DECODED)
    except zlib.error:
        return b"\0"


def _as_text(raw: bytes) -> str | None:
    if len(raw) < 8:
        return None
    if raw[1::2].count(0) * 4 >= len(raw):
        try:
            return raw[: len(raw) // 2 * 2].decode("utf-16-le")
        except UnicodeDecodeError:
            return None
    try:
        text = raw.decode("utf-8")
    except UnicodeDecodeError:
        return None
    odd = (
        len(raw[:4096].translate(None, _PRINTABLE))
        if text.isascii()
        else sum(c < " " and c not in "\t\n\r" for c in text[:4096])
    )
    return text if odd * 50 <= min(len(raw), 4096) else None
