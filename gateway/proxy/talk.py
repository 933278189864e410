"""The messages of one upgraded connection: each of the client's is a request of its own, judged one after another.

Closed first: a message leaves only by `Outlet`, only after the use case admitted it, and only as what was admitted.
Whatever else happens to a message (refused, late, failed, cancelled) ends in a verdict that holds no message at all.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field, replace
from typing import Final, Protocol

from mitmproxy import http
from mitmproxy.proxy import events

from gateway.ports import Admitted, Conversing, OutboundRequest, Refusal, Refused, UseCase
from gateway.providers.credentials import carrying
from gateway.proxy.exchange import Exchange
from gateway.proxy.frames import Message
from gateway.proxy.ledger import Ledger
from gateway.proxy.load import OVERLOADED, Load
from gateway.proxy.outlet import Outlet
from gateway.proxy.refusals import FAILED, OVERRUN, REJECT_S, TOO_LARGE
from gateway.proxy.requests import new_request_id
from gateway.proxy.settings import ProxySettings
from gateway.proxy.tasks import Tasks, within

MAX_WAITING: Final = 64  # messages of one connection that wait for their verdict
MAX_OPEN: Final = (
    256  # messages of one connection that wait for an answer; the oldest is concluded without one
)
POLICY_VIOLATION, TOO_BIG, FAULT, TRY_AGAIN = 1008, 1009, 1011, 1013


class Office(Protocol):
    """What a connection asks of the proxy that it belongs to."""

    settings: ProxySettings
    use_case: UseCase
    load_state: Load
    tasks: Tasks
    ledger: Ledger

    def failed(self, place: str, error: Exception) -> None:
        """Something failed closed."""
        ...

    def alarm(self, reason: str) -> None:
        """Bytes that were not admitted tried to leave."""
        ...

    async def deliver(self, client_id: str, event: events.Event) -> bool:
        """Hand an event to the layers of a client's connection; False where it is gone."""
        ...


@dataclass(slots=True)
class Verdict:
    """A message is admitted (`exchange.admitted`), or refused with a message of the dialect, else with a close code."""

    exchange: Exchange
    text: bool
    refusal: bytes | None = field(default=None, repr=False)
    close: int = POLICY_VIOLATION


class Judged(events.MessageInjected[Verdict]):
    """A verdict on its way to the layer of its connection."""


@dataclass(slots=True)
class Talk:
    """One upgraded connection. `conversing` knows the dialect, `outlet` is the way to the provider."""

    office: Office
    upgrade: Exchange
    flow: http.HTTPFlow
    conversing: Conversing
    extensions: str  # offered to the provider
    outlet: Outlet = field(default_factory=Outlet)
    over: bool = False
    _waiting: deque[tuple[Exchange, Message]] = field(default_factory=deque)
    _judging: Exchange | None = None
    _open: dict[str, Exchange] = field(default_factory=dict)
    _reserved: int = 0  # for the message under way

    @property
    def limit(self) -> int:
        """Bytes of a message."""
        return self.office.settings.limits.ws_message_bytes

    @property
    def is_idle(self) -> bool:
        """Whether every message has its verdict."""
        return self._judging is None and not self._waiting

    # -- from the client ------------------------------------------------------------------------------------------

    def grow(self, size: int) -> bool:
        """Reserve for a message under way that has `size` bytes by now; False where there is no room."""
        if size > self._reserved:
            if not self.office.load_state.reserve(size - self._reserved):
                return False
            self._reserved = size
        return True

    def hear(self, message: Message) -> None:
        """A whole message of the client: it waits for its verdict."""
        exchange = self._begin(message.data, text=message.text)
        busy = self.office.load_state.refusal()
        if busy is None and len(self._waiting) >= MAX_WAITING:
            busy = OVERLOADED
        exchange.refusal = busy
        self._waiting.append((exchange, message))
        self._next()

    def unread(self, code: int) -> None:
        """A message that broke off by `code`: nothing of it is kept; where a limit was passed, that is recorded."""
        refusal = {TOO_BIG: TOO_LARGE, TRY_AGAIN: OVERLOADED}.get(code)
        if refusal is not None:
            exchange = self._begin(b"", text=True)
            self.office.tasks.background(self._record(exchange, refusal))

    async def _record(self, exchange: Exchange, refusal: Refusal) -> None:
        await self._reject(exchange, refusal)
        self.office.ledger.settle(exchange, complete=False)

    def _begin(self, data: bytes, *, text: bool) -> Exchange:
        up = self.upgrade
        exchange = Exchange(
            new_request_id(), up.client_id, up.peer, up.host, up.port, up.path, "intercept", talk=None
        )
        exchange.wire.transport_name = "websocket"
        exchange.reserved, self._reserved = self._reserved, 0
        exchange.outbound = OutboundRequest(
            request_id=exchange.request_id,
            peer=up.peer,
            method="GET",
            scheme=self.flow.request.scheme,
            host=up.host,
            port=up.port,
            target=self.flow.request.path,
            headers=(
                (b"content-type", b"application/json" if text else b"application/octet-stream"),
                *carrying(self.flow.request.headers.fields),
            ),
            body=data,
            transport="websocket",
        )
        self.office.ledger.begin(exchange)
        return exchange

    # -- the verdict ----------------------------------------------------------------------------------------------

    def _next(self) -> None:
        if self._judging is None and self._waiting and not self.over:
            self._judging, message = self._waiting.popleft()
            self.office.tasks.background(self._judge(self._judging, message))

    async def _judge(self, exchange: Exchange, message: Message) -> None:
        verdict = Verdict(exchange, message.text)
        try:
            await self._decide(exchange, verdict)
        except Exception as error:  # noqa: BLE001  the verdict holds no message; a record of it is tried for
            self.office.failed("websocket", error)
            exchange.admitted = None
            await self._fail(exchange, verdict)
        if exchange.settled or not await self.office.deliver(exchange.client_id, Judged(self.flow, verdict)):
            self._undelivered(exchange)

    async def _decide(self, exchange: Exchange, verdict: Verdict) -> None:
        office, outbound = self.office, exchange.outbound
        if exchange.refusal is not None or outbound is None:
            await self._refuse(exchange, verdict, exchange.refusal or FAILED)
            return
        limit = office.settings.limits.deadline_ms / 1000
        decided = await within(
            office.tasks, office.use_case.handle(outbound), limit, lambda late: self._too_late(exchange, late)
        )
        if decided is None:
            await self._refuse(exchange, verdict, OVERRUN)
        elif isinstance(decided, Refused):
            self._refused(exchange, verdict, decided)
        else:
            exchange.receipt, exchange.effect = decided.receipt, decided.effect
            exchange.admitted = decided
            if not exchange.may_write(decided.body):
                office.alarm("digest")
                exchange.admitted = None
                await self._refuse(exchange, verdict, FAILED)

    async def _fail(self, exchange: Exchange, verdict: Verdict) -> None:
        """Refuse after a fault; where not even that can be said, the connection is closed."""
        try:
            await self._refuse(exchange, verdict, FAILED)
        except Exception as error:  # noqa: BLE001  the verdict closes the connection
            self.office.failed("websocket", error)
            verdict.refusal, verdict.close = None, FAULT

    def _too_late(self, exchange: Exchange, decided: Admitted | Refused) -> None:
        if isinstance(decided, Admitted):
            self.office.ledger.unsent(exchange)

    def _undelivered(self, exchange: Exchange) -> None:
        """The client left while its message was judged."""
        if exchange.settled and exchange.admitted is not None:
            self.office.ledger.unsent(exchange)
        exchange.client_gone = True
        self.office.ledger.settle(exchange, complete=False)

    async def _refuse(self, exchange: Exchange, verdict: Verdict, refusal: Refusal) -> None:
        refused = await self._reject(exchange, refusal)
        if refusal.retry_after_s is not None:
            verdict.close = TRY_AGAIN  # what concerns the gateway, not the message, is no answer to it
        else:
            self._refused(exchange, verdict, refused)

    async def _reject(self, exchange: Exchange, refusal: Refusal) -> Refused:
        office, outbound = self.office, exchange.outbound
        refused: Refused | None = None
        try:
            if outbound is not None:
                refused = await within(office.tasks, office.use_case.reject(outbound, refusal), REJECT_S)
        except Exception as error:  # noqa: BLE001  the refusal needs no record
            office.failed("reject", error)
        if refused is None:
            refused = Refused(office.use_case.refuse(exchange.host, exchange.path, refusal))
        return refused

    def _refused(self, exchange: Exchange, verdict: Verdict, refused: Refused) -> None:
        exchange.receipt = refused.receipt
        data = exchange.outbound.body if exchange.outbound is not None else b""
        if verdict.text:
            verdict.refusal = self.conversing.refusal(data, refused)

    # -- what the layer does with it --------------------------------------------------------------------------------

    def judged(self, verdict: Verdict) -> bytes | None:
        """The verdict was delivered: the payload to send where the message is admitted. The next one is judged."""
        self._judging = None
        exchange, admitted = verdict.exchange, verdict.exchange.admitted
        if admitted is None or exchange.settled or self.over:
            self.office.ledger.settle(exchange, complete=False)
            self._next()
            return None
        for earlier in self._open.values():
            earlier.wire.multiplexed = True
        exchange.restorer = self.conversing.sent(exchange.request_id, admitted)
        self.outlet.admit(exchange)
        self._open[exchange.request_id] = exchange
        if len(self._open) > MAX_OPEN:
            self._close(next(iter(self._open)), complete=False)
        self._next()
        return admitted.body

    def left(self, exchange: Exchange) -> None:
        """The payload was given to the connection: its bytes are not held until the answer is over."""
        self.office.load_state.release(exchange.reserved)
        exchange.reserved, exchange.outbound, exchange.checked = 0, None, None
        if exchange.admitted is not None:
            exchange.admitted = replace(exchange.admitted, body=b"", restoration=None)

    # -- from the provider ----------------------------------------------------------------------------------------

    def told(self, data: bytes) -> tuple[bytes, ...]:
        """A text message of the provider; the messages for the client."""
        told = self.conversing.told(data)
        for name in told.answered:
            if (exchange := self._open.get(name)) is not None:
                exchange.wire.answer()
                self.office.ledger.observe(exchange)
        for name in told.ended:
            self._close(name, complete=True)
        return told.messages

    def _close(self, name: str, *, complete: bool) -> None:
        exchange = self._open.pop(name, None)
        if exchange is not None:
            exchange.wire.fail()
            self.office.ledger.settle(exchange, complete=complete)

    def end(self, *, client_gone: bool) -> tuple[bytes, ...]:
        """The connection is over: conclude what is open. What is still held for the client."""
        if self.over:
            return ()
        self.over = True
        rest = self.conversing.end()
        self.office.load_state.release(self._reserved)
        self._reserved = 0
        unjudged = [exchange for exchange, _ in self._waiting]
        unjudged += [self._judging] if self._judging is not None else []
        self._waiting.clear()
        for exchange in (*self._open.values(), *unjudged):
            exchange.client_gone |= client_gone
            exchange.wire.fail()
            self.office.ledger.settle(exchange, complete=False)
        self._open.clear()
        return rest
