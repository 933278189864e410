"""Time, counting and accounts: what the use case reads of the world around it. See gateway.ports."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from gateway.ports.answers import AnswerFinding
from gateway.ports.exchange import Ending, OutboundRequest, Peer
from gateway.ports.providers import Headers, Refusal


class Clock(Protocol):
    """Time as an argument, so that the core reads none."""

    def now(self) -> str:
        """UTC wall time, RFC 3339 with microseconds and `Z`."""
        ...

    def monotonic_us(self) -> int:
        """Microseconds that never run backwards."""
        ...


class Gate(Protocol):
    """What stops requests whatever they hold: the kill switch, and budgets."""

    async def admits(self, peer: Peer, size: int) -> Refusal | None:
        """Why a request of this peer with a body of `size` bytes may not go, or None; counts it where it may."""
        ...

    def stopped(self, peer: Peer) -> Refusal | None:
        """Why nothing of this peer may go now, or None; asked once more before a request is let go."""
        ...

    async def spent(self, project: str, principal: str, usage: Mapping[str, int]) -> None:
        """What the answer to a request cost by the provider's own count; EvidenceError where it cannot be counted."""
        ...


@dataclass(frozen=True, slots=True)
class Standing:
    """What a request's credentials say of its account at the provider.

    `account_ref` and `organization_managed` are attested: by a listed credential, or by a header that makes the
    provider itself refuse all other organisations. `headers` replace the client's on the way out.
    """

    account_ref: str = ""
    organization_managed: bool = False
    region: str = ""
    headers: Headers = ()
    refusal: Refusal | None = None


class Accounts(Protocol):
    """Which accounts at a provider may be used."""

    def standing(self, request: OutboundRequest, provider: str, *, login: bool) -> Standing:
        """Whose account this request uses; `login`: it asks for a token, and so has none yet."""
        ...


class Meter(Protocol):
    """Counters and timings; none of them can delay or fail a request, none holds content."""

    def evaluated(self, microseconds: int, size: int) -> None:
        """An evaluation of a body of `size` bytes ended."""
        ...

    def appended(self, microseconds: int) -> None:
        """Evidence became durable."""
        ...

    def decided(self, effect: str, provider: str, objects: Sequence[Any]) -> None:
        """A request was judged; `objects` have `decision` and `scanned.findings`."""
        ...

    def failed_closed(self, code: str) -> None:
        """A request was refused, or evidence lost, for a reason that is not the policy's."""
        ...

    def fault(self, error: Exception) -> None:
        """A fault of ours; only its type and place may be kept, never its text."""
        ...

    def concluded(self, ending: Ending) -> None:
        """An exchange ended."""
        ...

    def answered(self, findings: Sequence[AnswerFinding]) -> None:
        """An answer was scanned."""
        ...

    def connection(self, action: str, reason_code: str) -> None:
        """A connection was tunnelled or refused."""
        ...
