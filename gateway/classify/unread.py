"""What bytes that nobody here can read count as: media, a document, or opaque; the policy has a switch for each.

A picture is one by its structure, not by its label: bytes called `image/png` that begin like an archive are no media.
"""

from __future__ import annotations

import re
from typing import Final

from gateway.context import base64text, media
from gateway.context.objects import Leaf, ObjectKind

MEDIA: Final = "coverage.unsupported_media"
DOCUMENT: Final = "coverage.unsupported_document"
OPAQUE: Final = "coverage.opaque"

_PICTURED: Final = ("image/", "audio/", "video/")
_SAYS_NOTHING: Final = frozenset(
    {"", "application/octet-stream", "binary/octet-stream", "application/x-www-form-urlencoded"}
)
_DOCUMENTS: Final = re.compile(
    r"application/(?:pdf|rtf|msword|epub\+zip|vnd\.ms-\S+|vnd\.openxmlformats-officedocument\.\S+"
    r"|vnd\.oasis\.opendocument\.\S+)"
)
_PACKED: Final = re.compile(  # archives, packed files and programs, which no picture begins like
    rb"PK[\x03\x05\x07]|\x1f\x8b|\x28\xb5\x2f\xfd|BZh|\xfd7zXZ|7z\xbc\xaf|Rar!|\xd0\xcf\x11\xe0|%PDF-|\x7fELF|MZ|SQLite"
)


def judged(data: bytes, mime: str, kind: ObjectKind) -> tuple[ObjectKind, str, str]:
    """(kind, coverage, reason) of bytes of a declared type that hold no text; `kind` says where they stand.

    In a place for media, what cannot be checked counts as media: sound comes without a head there.
    """
    claimed = "" if mime in _SAYS_NOTHING else mime
    found = claimed or media.sniff(data)
    known = found.startswith(_PICTURED) and media.verifiable(found, data)
    placed = kind is ObjectKind.MEDIA and (not found or found.startswith(_PICTURED))
    if known or (placed and not _PACKED.match(data)):
        problem = media.check(found, data)
        return ObjectKind.MEDIA, ("failed" if problem else "unsupported"), problem or MEDIA
    if media.sniff(data) == "application/pdf" or _DOCUMENTS.fullmatch(found) or kind is ObjectKind.DOCUMENT:
        return ObjectKind.DOCUMENT, "unsupported", DOCUMENT
    return ObjectKind.OPAQUE, "unsupported", OPAQUE


def judged_leaf(leaf: Leaf, kind: ObjectKind) -> tuple[str, str]:
    """Coverage and its reason of a MEDIA leaf that stands in a block of this kind."""
    if problem := media.check(leaf.mime, leaf.text):
        return "failed", problem
    encoded = base64text.decode(leaf.text)
    if encoded is None:
        return "failed", media.MALFORMED
    _, coverage, reason = judged(encoded.data, leaf.mime or encoded.mime, kind)
    return coverage, reason
