"""What finds values in texts, and what makes texts of other things. See gateway.ports."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from gateway.context.findings import ScanItem, ScanResult


class Detector(Protocol):
    """A scanner of texts. `revision` changes whenever the same text could give other findings."""

    id: str
    version: str
    revision: str

    def scan(self, items: Sequence[ScanItem]) -> list[ScanResult]:
        """One result an item, in order; raises DetectorError, never returns less."""
        ...


class Scanner(Protocol):
    """Detection as the use case sees it: inline for little text, in a worker that can be killed for much."""

    revision: str

    async def scan(self, items: Sequence[ScanItem], *, deadline_us: int) -> list[ScanResult]:
        """One result an item; raises DetectorError when the worker died or the deadline passed."""
        ...


class TokenReader(Protocol):
    """Text of token ids."""

    def text(self, model: str, ids: Sequence[int]) -> str | None:
        """What these ids stand for in the encoding of a model; None where that is not known."""
        ...


class DocumentReader(Protocol):
    """Text of documents, read where a hostile one can do no harm."""

    async def read(self, data: bytes, *, deadline_us: int) -> tuple[str, bool]:
        """(text of a PDF, whether that is all that it holds); ("", False) where it cannot be read.

        `deadline_us` is on the monotonic clock; whatever reads is killed then.
        """
        ...
