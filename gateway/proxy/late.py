"""A use case that is not there yet: requests wait for it as long as their deadline lets them."""

from __future__ import annotations

import asyncio
import json

from gateway.ports import (
    Admitted,
    Attempt,
    ConnectionEvent,
    Conversing,
    Ending,
    NativeAnswer,
    OutboundRequest,
    Refusal,
    Refused,
    Released,
    UseCase,
)


class LateUseCase:
    """Passes everything to the use case it is opened with. Closed again, it refuses."""

    def __init__(self) -> None:
        self._ready = asyncio.Event()
        self._inner: UseCase | None = None

    def open(self, inner: UseCase) -> None:
        """From now on `inner` decides."""
        self._inner = inner
        self._ready.set()

    def close(self) -> None:
        """From now on everything is refused."""
        self._inner = None
        self._ready.set()

    async def handle(self, request: OutboundRequest) -> Admitted | Refused:
        """See ports.UseCase."""
        await self._ready.wait()
        if self._inner is None:
            return Refused(self.refuse(request.host, request.target, Refusal(503, ("gateway.disabled",), "")))
        return await self._inner.handle(request)

    async def reject(self, request: OutboundRequest, refusal: Refusal) -> Refused:
        """See ports.UseCase."""
        if self._inner is None:
            return Refused(self.refuse(request.host, request.target, refusal))
        return await self._inner.reject(request, refusal)

    async def observe(self, request_id: str, attempt: Attempt) -> None:
        """See ports.UseCase."""
        if self._inner is not None:
            await self._inner.observe(request_id, attempt)

    async def release(self, request_id: str, answer: NativeAnswer | None) -> Released:
        """See ports.UseCase."""
        if self._inner is None:
            return Released(self.refuse("", "/", Refusal(502, ("answer.unscanned",), "")))
        return await self._inner.release(request_id, answer)

    async def conclude(self, request_id: str, ending: Ending) -> None:
        """See ports.UseCase."""
        if self._inner is not None:
            await self._inner.conclude(request_id, ending)

    async def note(self, event: ConnectionEvent) -> None:
        """See ports.UseCase."""
        if self._inner is not None:
            await self._inner.note(event)

    def refuse(self, host: str, path: str, refusal: Refusal) -> NativeAnswer:
        """See ports.UseCase."""
        if self._inner is not None:
            return self._inner.refuse(host, path, refusal)
        document = {
            "error": {
                "message": "Refused by the egress gateway: " + ", ".join(refusal.reason_codes),
                "type": "invalid_request_error",
                "code": "gateway_blocked",
            }
        }
        headers = ((b"content-type", b"application/json"), (b"x-should-retry", b"false"))
        return NativeAnswer(refusal.status, headers, json.dumps(document).encode())

    def converse(self, host: str, path: str, project: str) -> Conversing | None:
        """See ports.UseCase."""
        return self._inner.converse(host, path, project) if self._inner is not None else None
