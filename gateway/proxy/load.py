"""How much this process carries: connections, body bytes in flight, requests, and whether it is leaving."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field

from gateway.ports import Refusal

OVERLOADED = Refusal(503, ("gateway.overloaded",), "The gateway carries too much right now.", retry_after_s=1)
DRAINING = Refusal(503, ("gateway.draining",), "The gateway is shutting down.", retry_after_s=2)


@dataclass(slots=True)
class Load:
    """Counters of one event loop; `refusal` says whether one more request is taken."""

    max_connections: int
    max_inflight_bytes: int
    connections: int = 0
    inflight_bytes: int = 0
    requests: int = 0
    draining: bool = False
    _idle: asyncio.Event = field(default_factory=asyncio.Event)

    def __post_init__(self) -> None:
        self._idle.set()

    def refusal(self) -> Refusal | None:
        """Why a new request is refused now, or None."""
        if self.draining:
            return DRAINING
        if self.connections > self.max_connections:
            return OVERLOADED
        return None

    def reserve(self, size: int) -> bool:
        """Take `size` bytes of the bodies' budget; False, and nothing taken, when they are not there."""
        if self.inflight_bytes + size > self.max_inflight_bytes:
            return False
        self.inflight_bytes += size
        return True

    def release(self, size: int) -> None:
        """Give bytes back."""
        self.inflight_bytes -= size

    def begin(self) -> None:
        """One more request is under way."""
        self.requests += 1
        self._idle.clear()

    def finish(self) -> None:
        """One request is over."""
        self.requests -= 1
        if not self.requests:
            self._idle.set()

    async def idle(self) -> None:
        """Return once no request is under way."""
        await self._idle.wait()
