"""A small detector with the full contract, for tests of what surrounds detection."""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Iterator, Sequence

from gateway.context.findings import Category, Finding, ScanItem, ScanResult, Severity

_RULES = (
    ("github_token", Category.SECRET, Severity.CRITICAL, 990, re.compile(r"ghp_[0-9A-Za-z]{36}")),
    ("email", Category.PII, Severity.MEDIUM, 900, re.compile(r"[a-z]{2,20}@[a-z]{2,20}\.org")),
    ("password", Category.SECRET, Severity.HIGH, 800, re.compile(r"(?<=password=)[^\s\"'&]{8,40}")),
)
_RUN = re.compile(r"[A-Za-z0-9+/]{24,}={0,2}")


class TinyDetector:
    """Tokens, mail addresses, `password=...`, and all of them inside base64."""

    id = "tiny"
    version = "1.0.0"
    revision = "tiny-1"

    def scan(self, items: Sequence[ScanItem]) -> list[ScanResult]:
        """See gateway.ports.Detector."""
        return [ScanResult(tuple(self._text(item.text))) for item in items]

    def _text(self, text: str) -> Iterator[Finding]:
        for kind, category, severity, confidence, pattern in _RULES:
            for match in pattern.finditer(text):
                yield Finding(
                    kind, category, severity, confidence, match.start(), match.end(), f"tiny.{kind}"
                )
        for run in _RUN.finditer(text):
            yield from self._decoded(run)

    @staticmethod
    def _decoded(run: re.Match[str]) -> Iterator[Finding]:
        try:
            plain = base64.b64decode(run[0] + "=" * (-len(run[0]) % 4), validate=True).decode("ascii")
        except (binascii.Error, ValueError):
            return
        for kind, category, severity, confidence, pattern in _RULES:
            if match := pattern.search(plain):
                yield Finding(
                    kind, category, severity, confidence, run.start(), run.end(), f"tiny.{kind}", match[0]
                )
