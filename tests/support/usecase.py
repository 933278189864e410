"""A use case that does what a test says and remembers every call."""

from __future__ import annotations

import asyncio
import hashlib
import json
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field

from gateway.classify.conversing import Chains, Conversation
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
    Restoration,
)
from gateway.providers.openai_responses import OpenAIResponses
from gateway.providers.websocket import spoken
from tests.support.waiting import PATIENCE_S

type Verdict = Admitted | Refused
type Behaviour = Callable[[OutboundRequest], Awaitable[Verdict]]

RECEIPT = "sha256:" + "ab" * 32


def admitted(
    request: OutboundRequest, body: bytes | None = None, *, restoration: Restoration | None = None
) -> Admitted:
    """Admit a request as it is, or with another body."""
    out = request.body if body is None else body
    return Admitted(
        body=out,
        headers=request.headers,
        request_digest="sha256:" + hashlib.sha256(out).hexdigest(),
        receipt=RECEIPT,
        admission="sha256:" + "cd" * 32,
        effect="forwarded" if body is None else "rewritten",
        restoration=restoration,
    )


@dataclass
class ScriptedUseCase:
    """`behaviour` answers `handle`; without one everything is admitted unchanged."""

    behaviour: Behaviour | None = None
    handled: list[OutboundRequest] = field(default_factory=list)
    rejected: list[tuple[OutboundRequest, Refusal]] = field(default_factory=list)
    attempts: list[tuple[str, Attempt]] = field(default_factory=list)
    endings: list[tuple[str, Ending]] = field(default_factory=list)
    events: list[ConnectionEvent] = field(default_factory=list)
    order: list[str] = field(default_factory=list)
    observe_fails: bool = False
    _changed: asyncio.Condition = field(default_factory=asyncio.Condition)

    async def handle(self, request: OutboundRequest) -> Verdict:
        self.handled.append(request)
        await self._tell("handle")
        if self.behaviour is None:
            return admitted(request)
        return await self.behaviour(request)

    async def reject(self, request: OutboundRequest, refusal: Refusal) -> Refused:
        self.rejected.append((request, refusal))
        await self._tell("reject")
        return Refused(self.refuse(request.host, request.target, refusal), RECEIPT)

    async def observe(self, request_id: str, attempt: Attempt) -> None:
        if self.observe_fails:
            raise RuntimeError("observe")
        self.attempts.append((request_id, attempt))
        await self._tell("observe")

    async def release(self, request_id: str, answer: NativeAnswer | None) -> Released:
        await self._tell("release")
        return Released(answer or NativeAnswer(502, (), b"{}"))

    async def conclude(self, request_id: str, ending: Ending) -> None:
        self.endings.append((request_id, ending))
        await self._tell("conclude")

    async def note(self, event: ConnectionEvent) -> None:
        self.events.append(event)
        await self._tell("note")

    def refuse(self, host: str, path: str, refusal: Refusal) -> NativeAnswer:
        document = {
            "error": {"host": host, "path": path, "codes": refusal.reason_codes, "code": "gateway_blocked"}
        }
        headers = [(b"content-type", b"application/json"), (b"x-should-retry", b"false")]
        if refusal.retry_after_s is not None:
            headers = [
                (b"content-type", b"application/json"),
                (b"retry-after", b"%d" % refusal.retry_after_s),
            ]
        return NativeAnswer(refusal.status, tuple(headers), json.dumps(document).encode())

    def converse(self, host: str, path: str, project: str) -> Conversing | None:
        """As the real one does it for the dialects that are known."""
        adapter = OpenAIResponses()
        known = spoken(adapter.id, path)
        return Conversation(adapter, known, project, Chains()) if known is not None else None

    async def _tell(self, what: str) -> None:
        self.order.append(what)
        async with self._changed:
            self._changed.notify_all()

    async def until(self, condition: Callable[[], bool], timeout: float = PATIENCE_S) -> None:
        """Wait until a condition on what was recorded holds."""
        async with asyncio.timeout(timeout), self._changed:
            await self._changed.wait_for(condition)


def refusing(*codes: str, status: int = 400) -> Behaviour:
    """Refuse every request."""

    async def behaviour(request: OutboundRequest) -> Verdict:
        document = {"error": {"codes": codes, "code": "gateway_blocked"}}
        return Refused(
            NativeAnswer(status, ((b"content-type", b"application/json"),), json.dumps(document).encode()),
            RECEIPT,
        )

    return behaviour


def raising(error: BaseException) -> Behaviour:
    """Raise instead of deciding, which a use case must never do."""

    async def behaviour(request: OutboundRequest) -> Verdict:
        raise error

    return behaviour


def hanging() -> Behaviour:
    """Never decide, and swallow the first cancellation."""

    async def behaviour(request: OutboundRequest) -> Verdict:
        try:
            await asyncio.sleep(60)
        except asyncio.CancelledError:
            await asyncio.sleep(0.05)
        return admitted(request)

    return behaviour
