"""The way back of an answer: restored, scanned, held. See gateway.ports."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol

from gateway.ports.providers import Headers, NativeAnswer


class AnswerCounts(Protocol):
    """What became of the placeholders of one answer, and what it cost."""

    @property
    def restored(self) -> int:
        """How many placeholders were turned back."""
        ...

    @property
    def withheld(self) -> int:
        """How many texts of the placeholder form were left as they are: this request does not carry them."""
        ...

    @property
    def refused(self) -> int:
        """How many placeholders of this request stay in tool calls that lead to hosts the project does not know."""
        ...

    @property
    def usage(self) -> Mapping[str, int] | None:
        """The provider's own count of tokens, where it gave one, in the words of `gateway.providers.usage`."""
        ...


class BodyRestorer(AnswerCounts, Protocol):
    """Turns placeholders of one answer back into values while it streams. Never raises."""

    def feed(self, data: bytes) -> bytes:
        """Bytes for the client, for bytes of the provider's answer; may hold back at most one possible placeholder."""
        ...

    def end(self) -> bytes:
        """The rest, at the end of the answer."""
        ...

    @property
    def alters(self) -> bool:
        """Whether bytes may change at all; else the answer keeps its length and its content coding."""
        ...

    @property
    def broken(self) -> bool:
        """Whether the answer cannot be read to its end: nothing more will come, and the client must see that."""
        ...


@dataclass(frozen=True, slots=True)
class AnswerFinding:
    """Findings of one type in one answer: how many different values, how sure the surest; never where or what."""

    type: str
    category: str
    severity: str
    confidence_milli: int
    count: int


@dataclass(frozen=True, slots=True)
class Released:
    """What a client gets of an answer that was held back, and what was counted of it."""

    answer: NativeAnswer
    counts: AnswerCounts | None = None


class Restoration(Protocol):
    """What may be restored in the answers of one admitted request."""

    @property
    def holds(self) -> bool:
        """Whether the policy holds the answer back until all of it was scanned (see UseCase.release)."""
        ...

    def open(self, status: int, headers: Headers) -> tuple[Headers, BodyRestorer] | None:
        """Headers and a restorer for an answer with this head; None: pass it on as it is."""
        ...
