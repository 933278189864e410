"""Base64 and data URIs: what a string holds, and how to put other bytes in its place (RFC 4648, RFC 2397)."""

from __future__ import annotations

import binascii
import re
from dataclasses import dataclass, field
from typing import Final, override

from gateway.errors import BodyError

_DATA_URI: Final = re.compile(r"data:([^,;]*)((?:;[^,;]*)*?);base64,", re.IGNORECASE)
_HEAD: Final = 512  # characters in which the head of a data URI must end
_SPACES: Final = str.maketrans("", "", "\r\n\t ")
_TO_STANDARD: Final = str.maketrans("-_", "+/")
_TO_URL: Final = str.maketrans("+/", "-_")
_UNPRINTABLE: Final = re.compile(r"[\x00-\x08\x0e-\x1a\x1c-\x1f\x7f]")


@dataclass(frozen=True, slots=True)
class Encoded:
    """One base64 string taken apart: `head` is the start of a data URI (or empty), `mime` its media type."""

    head: str
    mime: str
    data: bytes = field(repr=False)
    url_safe: bool
    padded: bool

    @override
    def __repr__(self) -> str:
        return f"Encoded({len(self.data)} bytes)"

    def text(self) -> str | None:
        """The bytes as text, or None where they are not printable UTF-8."""
        return printable(self.data)


def printable(data: bytes) -> str | None:
    """Bytes as text, or None where they are not UTF-8 or hold control characters that text has not."""
    try:
        text = str(data, "utf-8")
    except UnicodeDecodeError:
        return None
    return None if _UNPRINTABLE.search(text) else text


def data_uri(text: str) -> tuple[str, str] | None:
    """(head, media type) of a base64 data URI, the head with its comma; None for anything else."""
    match = _DATA_URI.match(text, 0, _HEAD)
    return None if match is None else (match[0], match[1].strip().lower())


def decode(text: str) -> Encoded | None:
    """Take a base64 string or data URI apart; None where it is neither.

    Both alphabets are read (not mixed), padding may be left out but must be right, line breaks and blanks
    are skipped as mail and most decoders do. An empty payload is no base64.
    """
    uri = data_uri(text)
    head, mime = uri or ("", "")
    payload = text[len(head) :].translate(_SPACES) if uri or any(c in text for c in "\r\n\t ") else text
    bare = payload.rstrip("=")
    pads = len(payload) - len(bare)
    if not bare or not payload.isascii() or len(bare) % 4 == 1 or pads not in {0, -len(bare) % 4}:
        return None
    url_safe = "-" in bare or "_" in bare
    if url_safe and ("+" in bare or "/" in bare):
        return None
    standard = bare.translate(_TO_STANDARD) if url_safe else bare
    try:
        data = binascii.a2b_base64(standard + "=" * (-len(bare) % 4), strict_mode=True)
    except binascii.Error:
        return None
    return Encoded(head, mime, data, url_safe, padded=pads > 0 or len(bare) % 4 == 0)


def replace(held: str, before: str, after: str) -> str:
    """The string `held`, whose base64 holds the text `before`, with `after` in its place.

    Raises BodyError edit.misplaced when it does not hold `before`.
    """
    encoded = decode(held)
    if encoded is None or encoded.text() != before:
        raise BodyError("edit.misplaced")
    payload = binascii.b2a_base64(after.encode("utf-8", "surrogatepass"), newline=False).decode("ascii")
    if encoded.url_safe:
        payload = payload.translate(_TO_URL)
    return encoded.head + (payload if encoded.padded else payload.rstrip("="))
