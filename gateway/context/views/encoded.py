"""Runs of one alphabet that decode to text: base64 and its variants, base32, hex, gzip or zlib inside.

The triggers know which characters the encoding of *text* can have at each place (the top bit of every byte is
clear), so that identifiers, hashes and images hardly ever hit: about ten times a megabyte of agent traffic. Any part
of the decoded text stands for the whole run; a view has no character map.
"""

from __future__ import annotations

import base64
import binascii
import bz2
import lzma
import re
import zlib

from gateway.context.views.form import View, ViewRule

MAX_DECODED = 1 << 20
"""Bytes that one run may decode to; what a longer run holds beyond them is not seen in this view."""
MAX_RUN = 1 << 21
_LZMA_MEMORY = 1 << 24
_LINE = re.compile(r"[A-Za-z0-9+/_-]{1,2097152}={0,3}")
_BREAK = re.compile(r"(?:\r?\n|\\{1,4}r?\\{0,4}n)(?:[ \t]{0,8}[>#|*][ \t]|[ \t]{0,40})")
_ENDS = re.compile(r"[ \t]{0,8}(?:[\"'`<)\]},;\\]|\r?\n|\Z)")
_NO_KEY = re.compile(r"(?<!=)[^:=]|(?<==)[^\w]|\Z")
_LEAST_LINE = 16
_LEAST_TEXT = 8  # bytes of which it can be told whether they are text
_BACKWARDS = re.compile(r"={1,2}[A-Za-z0-9+/_-]{14,8192}(?![A-Za-z0-9+/=_-])")
_GLANCE = 128  # characters of a run that tell most of what is no text
_HEAD = 4096  # characters of a run that are decoded before the rest is looked at
_COMPRESSED = (b"\x1f\x8b", b"x\x9c", b"x\xda", b"x\x01", b"x^", b"BZh", b"\xfd7zXZ")
_STANDARD = bytes.maketrans(b"-_", b"+/")
_PRINTABLE = bytes([9, 10, 13, *range(32, 127)])
_HEX_RUN = re.compile(r"(?:[0-9a-fA-F]{2}){8,1048576}")
_HEX_LINE = re.compile(r"(?:[0-9a-fA-F]{2}){1,1048576}(?![0-9A-Za-z])")
_BASE32_RUN = re.compile(r"[A-Z2-7]{16,1048576}|[a-z2-7]{16,1048576}")
_GROUP64 = "[I-Za-fC][A-HQS-Xgi-nw-z0-3][ABEFIJMNQRUVYZcdghklopstwx014589][A-Za-z0-9+/_-]"
_GROUP64_BACKWARDS = "[A-Za-z0-9+/_-][ABEFIJMNQRUVYZcdghklopstwx014589][A-HQS-Xgi-nw-z0-3][I-Za-fC]"
_WIDE64 = "[I-Za-f][AQgw][ABEFIJMNQRUVYZcdghklopstwx014589][A-Za-z0-9+/]A[C-HS-Xi-ny-z0-3][AEIMQUYcgkosw048]A"
_GROUP32 = "[E-P][ABEFIJMNQRUVYZ45][A-Z2-7][C-HS-X][ACEGIKMOQSUWY246][A-Z2-7][BCDJKLRSTZ23][A-Z2-7]"


def base64_run(text: str, at: int) -> View | None:
    """Base64 or base64url of text or of compressed text, whose first twelve characters end at `at`."""
    return _base64_from(text, at - 12)


def base64_wide(text: str, at: int) -> View | None:
    """Base64 of UTF-16 text, whose first eight characters end at `at` (PowerShell's -EncodedCommand)."""
    return _base64_from(text, at - 8)


def base64_backwards(text: str, at: int) -> View | None:
    """Base64 of text, last character first, whose padding and next characters, twelve in all, end at `at`."""
    run = _BACKWARDS.match(text, max(0, at - 12))
    if run is None:
        return None
    turned = run[0][::-1].encode()
    if not _promising(_base64(turned[:_HEAD])):
        return None
    plain = _as_text(_base64(turned))
    return View("base64", plain, *run.span()) if plain is not None else None


def _base64_from(text: str, start: int) -> View | None:
    if start < 0:
        return None
    first = _LINE.match(text, start)
    if first is None:
        return None
    for head in (_GLANCE, _HEAD):
        packed, end = _lines(text, start, head)
        if not _promising(_base64(packed[:head])):
            return View("base64", "", start, first.end())
    packed, end = _lines(text, start, MAX_RUN)
    raw = _base64(packed)
    if raw.startswith(_COMPRESSED):
        raw = _inflate(raw)
    plain = _as_text(raw)
    return View("base64", plain or "", start, end)


def _promising(raw: bytes) -> bool:
    """Whether the head of a run can be text or compressed text, so that the rest is worth decoding."""
    return raw.startswith(_COMPRESSED) or _as_text(raw[: len(raw) // 2 * 2]) is not None


def _lines(text: str, start: int, limit: int) -> tuple[bytes, int]:
    """The run from `start`, with lines of equal length joined, and where it ends."""
    line = _LINE.match(text, start)
    if line is None:
        return b"", start
    parts, end, width = [line[0]], line.end(), line.end() - start
    while width >= _LEAST_LINE and not parts[-1].endswith("="):
        gap = _BREAK.match(text, end)
        following = _LINE.match(text, gap.end()) if gap else None
        if following is None or len(following[0]) > width or end - start > limit:
            break
        if (
            len(following[0]) < width
            and (_ENDS if width % 4 else _NO_KEY).match(text, following.end()) is None
        ):
            break  # the next line goes on as none of base64 does
        parts.append(following[0])
        end = following.end()
        if len(following[0]) < width:
            break
    return "".join(parts).encode("ascii", "replace"), end


def hex_run(text: str, at: int) -> View | None:
    """Hex of text, whose first sixteen characters end at `at`."""
    run = _HEX_RUN.match(text, at - 16) if at >= 16 else None
    if run is None:
        return None
    raw = binascii.unhexlify(run[0])
    if raw.startswith(_COMPRESSED):
        raw, end = _inflate(raw), run.end()
    else:
        raw, end = _hex_lines(text, run, raw)
    plain = _as_text(raw)
    return View("hex", plain, run.start(), end) if plain is not None else None


def _hex_lines(text: str, first: re.Match[str], raw: bytes) -> tuple[bytes, int]:
    """What a first line of hex holds, with the lines below that are as long and text too, and where they end."""
    parts, end, width = [raw], first.end(), len(first[0])
    while len(parts[-1]) >= _LEAST_TEXT and _as_text(parts[-1]) is not None and end - first.start() < MAX_RUN:
        gap = _BREAK.match(text, end)
        following = _HEX_LINE.match(text, gap.end()) if gap else None
        if following is None or len(following[0]) > width:
            break
        line = binascii.unhexlify(following[0])
        if line.translate(None, _PRINTABLE) if len(line) < _LEAST_TEXT else _as_text(line) is None:
            break
        parts.append(line)
        end = following.end()
        if len(following[0]) < width:
            break
    return b"".join(parts), end


def base32_run(text: str, at: int) -> View | None:
    """Base32 of text, whose first sixteen characters end at `at`."""
    run = _BASE32_RUN.match(text, at - 16) if at >= 16 else None
    if run is None:
        return None
    try:
        raw = base64.b32decode(run[0].upper() + "=" * (-len(run[0]) % 8))
    except binascii.Error:
        return None
    end = run.end() + len(text[run.end() : run.end() + 6]) - len(text[run.end() : run.end() + 6].lstrip("="))
    plain = _as_text(raw)
    return View("base32", plain, run.start(), end) if plain is not None else None


def _base64(packed: bytes) -> bytes:
    text = packed.rstrip(b"=").translate(_STANDARD)[: MAX_DECODED * 4 // 3]
    text = text[:-1] if len(text) % 4 == 1 else text
    try:
        return binascii.a2b_base64(text + b"=" * (-len(text) % 4))
    except binascii.Error:
        return b""


def _inflate(packed: bytes) -> bytes:
    try:
        if packed.startswith(b"BZh"):
            return bz2.BZ2Decompressor().decompress(packed, MAX_DECODED)
        if packed.startswith(b"\xfd7zXZ"):
            return lzma.LZMADecompressor(memlimit=_LZMA_MEMORY).decompress(packed, MAX_DECODED)
        return zlib.decompressobj(wbits=47).decompress(packed, MAX_DECODED)
    except (zlib.error, lzma.LZMAError, OSError, EOFError, ValueError):
        return b""


def _as_text(raw: bytes) -> str | None:
    if len(raw) < _LEAST_TEXT:
        return None
    if raw[1:64:2].count(0) * 3 >= len(raw[1:64:2]):
        return raw[: len(raw) // 2 * 2].decode("utf-16-le", "replace")
    if raw[:64:2].count(0) * 3 >= len(raw[:64:2]):
        return raw[: len(raw) // 2 * 2].decode("utf-16-be", "replace")
    sample = raw[:4096]
    odd = sum(c < 9 or 13 < c < 32 or c == 127 for c in sample.translate(None, _PRINTABLE))
    text = raw.decode("utf-8", "replace")
    return text if (odd + sample.decode("utf-8", "replace").count("\ufffd")) * 20 <= len(sample) else None


RULES = (
    ViewRule(
        "base64",
        (
            f"[^A-Za-z0-9+/_-]{_GROUP64}{_GROUP64}{_GROUP64}",
            "[^A-Za-z0-9+/_-]H4sIA[A-Za-z0-9+/_-]{7}",
            "[^A-Za-z0-9+/_-]eJ[w-z][A-Za-z0-9+/_-]{9}",
            "[^A-Za-z0-9+/_-]QlpoO[A-Za-z0-9+/_-]{7}",
            "[^A-Za-z0-9+/_-]/Td6WFo[A-Za-z0-9+/_-]{5}",
        ),
        base64_run,
    ),
    ViewRule("base64", (f"[^A-Za-z0-9+/_-]{_WIDE64}",), base64_wide),
    # Without padding nothing tells it from any word at a price that all other text can pay.
    ViewRule(
        "base64",
        (
            f"[^A-Za-z0-9+/=_-]==[A-Za-z0-9+/_-]{{2}}{_GROUP64_BACKWARDS}{_GROUP64_BACKWARDS}",
            f"[\"'`]=[A-Za-z0-9+/_-]{{3}}{_GROUP64_BACKWARDS}{_GROUP64_BACKWARDS}",
        ),
        base64_backwards,
    ),
    ViewRule(
        "hex",
        (
            "[^0-9A-Za-z](?:[2-7][0-9a-fA-F]|0[9aAdD]){8}",
            "[^0-9A-Za-z]0[xX](?:[2-7][0-9a-fA-F]|0[9aAdD]){8}",
            "[^0-9A-Za-z]1f8b08[0-9a-f]{10}",
            "[^0-9A-Za-z](?:00[2-7][0-9a-f]){4}",
        ),
        hex_run,
    ),
    ViewRule("base32", (f"[^A-Za-z0-9]{_GROUP32}{_GROUP32}",), base32_run, caseless=True),
)
