"""Placeholders: what stands in a body for a value that was masked.

`EGRESS_<LABEL>_<22 characters of base32>`. The first sixteen are a keyed function of the value (the same value gives
the same placeholder on every turn, after a restart and in every process), the last six a keyed check of the whole, so
that only placeholders which this installation issued for this project are recognised; anything else of the same form
is plain text. Capital letters, digits and underscores only: no JSON, shell or URL needs to escape it.
"""

from __future__ import annotations

import base64
import hmac
import re
from collections.abc import Iterator
from dataclasses import dataclass, field

PREFIX = "EGRESS_"
_TAG, _CHECK = 16, 6
_LABEL_CHARS = 32
_PATTERN = re.compile(rf"{PREFIX}([A-Z][A-Z0-9_]{{1,{_LABEL_CHARS - 1}}}?)_([A-Z2-7]{{{_TAG + _CHECK}}})")
MAX_LENGTH = len(PREFIX) + _LABEL_CHARS + 1 + _TAG + _CHECK


def label_for(finding_type: str) -> str:
    """The label of a finding type: `github_token` gives `GITHUB_TOKEN`."""
    label = re.sub(r"[^A-Z0-9]+", "_", finding_type.upper()).strip("_")[:_LABEL_CHARS].strip("_")
    return label if len(label) >= 2 and label[0].isalpha() else "VALUE"


def form_at(text: str, at: int) -> str:
    """The text of the placeholder form that begins here, whoever issued it; empty where none does."""
    match = _PATTERN.match(text, at)
    return match[0] if match else ""


@dataclass(frozen=True, slots=True)
class Placeholders:
    """Issues and recognises the placeholders of one project.

    `key` is the project's placeholder key (32 bytes, derived from the installation's), `mac_key` the key of the digests
    by which the vault finds a value again.
    """

    key: bytes = field(repr=False)
    mac_key: bytes = field(repr=False)

    def mac(self, value: str) -> bytes:
        """The keyed digest of a value (32 bytes)."""
        return hmac.digest(self.mac_key, _utf8(value), "sha256")

    def issue(self, value: str, label: str) -> str:
        """The placeholder of a value under a label; the label is fixed by whoever issues it first."""
        tag = _base32(hmac.digest(self.key, b"value\0" + _utf8(value), "sha256"))[:_TAG]
        return f"{PREFIX}{label}_{tag}{self._check(label, tag)}"

    def find(self, text: str) -> Iterator[tuple[int, int]]:
        """Spans of the placeholders in a text that this project's key confirms."""
        at = text.find(PREFIX)
        while at >= 0:
            match = _PATTERN.match(text, at)
            if match and self._is_own(match):
                yield match.span()
                at = match.end()
            else:
                at += 1
            at = text.find(PREFIX, at)

    def look(self, text: str) -> tuple[list[tuple[int, int]], int]:
        """What `find` finds, and how many texts of the placeholder form the key does not confirm."""
        own: list[tuple[int, int]] = []
        others = behind = 0
        at = text.find(PREFIX)
        while at >= 0:
            match = _PATTERN.match(text, at)
            if match and at >= behind and self._is_own(match):
                own.append(match.span())
                behind = match.end()
            elif match:
                others += 1
            at = text.find(PREFIX, at + 1)
        return own, others

    def _is_own(self, match: re.Match[str]) -> bool:
        return hmac.compare_digest(self._check(match[1], match[2][:_TAG]), match[2][_TAG:])

    def _check(self, label: str, tag: str) -> str:
        return _base32(hmac.digest(self.key, f"check\0{label}\0{tag}".encode(), "sha256"))[:_CHECK]


def _base32(data: bytes) -> str:
    return base64.b32encode(data).decode("ascii")


def _utf8(value: str) -> bytes:
    return value.encode("utf-8", "surrogatepass")
