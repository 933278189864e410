"""Charsets that a content type names: which of them the gateway's reading, as UTF-8, agrees with (RFC 9110 §8.3.2)."""

from __future__ import annotations

import re
from typing import Final

_NAMED: Final = re.compile(r"charset\s*\*?=\s*[\"']?([^\"';,\s]*)", re.IGNORECASE)
# ASCII means the same in all of these; `binary` says that there are no characters
_READ: Final = frozenset(
    {"utf-8", "utf8", "us-ascii", "ascii", "iso-8859-1", "iso8859-1", "latin1", "windows-1252", "binary", ""}
)


def is_readable(content_type: str) -> bool:
    """Whether every charset that a Content-Type value (or the head of a data URI) names can be read as UTF-8.

    UTF-16, UTF-7, EBCDIC and their like spell the same text in other bytes, so that what was scanned would not be what
    is read at the other end.
    """
    return all(name.lower() in _READ for name in _NAMED.findall(content_type))
