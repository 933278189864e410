"""A use case that is not there yet refuses, or waits; nothing passes in between."""

from __future__ import annotations

import asyncio

from gateway.ports import Admitted, Attempt, ConnectionEvent, Ending, OutboundRequest, Peer, Refusal, Refused
from gateway.proxy.late import LateUseCase
from tests.support.usecase import ScriptedUseCase

REQUEST = OutboundRequest("1", Peer(), "POST", "https", "api.test", 443, "/v1", (), b"{}")
ATTEMPT = Attempt(1, "http", 200, None, "sha256:0", 2, True, "answered", True)


async def test_requests_wait_for_the_use_case() -> None:
    late, inner = LateUseCase(), ScriptedUseCase()
    waiting = asyncio.ensure_future(late.handle(REQUEST))
    await asyncio.sleep(0)
    assert not waiting.done()
    late.open(inner)
    assert isinstance(await waiting, Admitted)
    await late.observe("1", ATTEMPT)
    await late.conclude("1", Ending(True))
    await late.note(ConnectionEvent(Peer(), "h", 443, "refused", "host.denied"))
    await late.reject(REQUEST, Refusal(413, ("body.too_large",), ""))
    assert inner.order == ["handle", "observe", "conclude", "note", "reject"]


async def test_closed_it_refuses_everything() -> None:
    late = LateUseCase()
    waiting = asyncio.ensure_future(late.handle(REQUEST))
    await asyncio.sleep(0)
    late.close()
    refused = await waiting
    assert isinstance(refused, Refused)
    assert refused.answer.status == 503
    assert b"gateway.disabled" in refused.answer.body
    assert (await late.reject(REQUEST, Refusal(413, ("body.too_large",), ""))).answer.status == 413
    await late.observe("1", ATTEMPT)
    await late.conclude("1", Ending(True))
    await late.note(ConnectionEvent(Peer(), "h", 443, "refused", "host.denied"))
