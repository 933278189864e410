"""What is done about a request after it left: attempts observed, answers scanned or released, one lineage written."""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import replace

from gateway.classify.answers import AnswerRestoration
from gateway.egress.answering import UNSCANNED, Answering, Back, listener
from gateway.egress.dossier import Surroundings
from gateway.egress.exchange import Exchange
from gateway.errors import GatewayError
from gateway.ports import (
    Attempt,
    Clock,
    ConnectionEvent,
    Ending,
    EvidenceStore,
    Gate,
    Meter,
    NativeAnswer,
    OutboundRequest,
    Policy,
    ProviderAdapter,
    Refusal,
    Released,
    Scanner,
)
from gateway.providers.generic import Generic

PATIENCE_S = 0.02
"""For so long the records of an attempt wait for the ending of a short answer, to be stored with it."""


def way_back(
    request: OutboundRequest, policy: Policy, receipt: str, made: AnswerRestoration
) -> tuple[Back, AnswerRestoration]:
    """The way back of a request that is admitted, under the policy that admitted it."""
    path = request.target.partition("?")[0]
    asked = Refusal(400, (), "", receipt, request.request_id, host=request.host, path=path)
    rules = policy.answers
    heeding = replace(made, listener=listener(rules), holds=rules.holds)
    return Back(rules, heeding, policy, asked), heeding


class Afterwards:
    """The second half of ports.UseCase; its fields are those of the first."""

    __slots__ = ()

    find: Callable[[str, str], ProviderAdapter]
    policy: Callable[[], Policy]
    scanner: Scanner
    store: EvidenceStore
    clock: Clock
    meter: Meter
    surroundings: Surroundings
    gate: Gate
    deadline_us: int
    _open: OrderedDict[str, Exchange]

    @property
    def _answering(self) -> Answering:
        return Answering(self.scanner, self.clock, self.meter, self.deadline_us)

    async def observe(self, request_id: str, attempt: Attempt) -> None:
        """See ports.UseCase."""
        if (exchange := self._open.get(request_id)) is None:
            return
        try:
            waiting = exchange.waits(attempt)
        except GatewayError as error:
            self.meter.failed_closed(error.code)
            return
        try:
            if not await waiting.is_overdue(PATIENCE_S):
                return
            await self.store.append(waiting.records, exchange.row)
            exchange.stored(attempt, waiting.records)
        except GatewayError as error:
            self.meter.failed_closed(error.code)
        finally:  # also where this is cancelled: the ending waits for it
            waiting.stored()

    async def conclude(self, request_id: str, ending: Ending) -> None:
        """See ports.UseCase."""
        if (exchange := self._open.pop(request_id, None)) is None:
            return
        try:
            if exchange.back is not None:
                ending = await self._told(exchange.back, ending)
            await self._count(exchange, ending)
            await self._end(exchange, ending)
            self.meter.concluded(ending)
        except GatewayError as error:
            self.meter.failed_closed(error.code)

    async def _count(self, exchange: Exchange, ending: Ending) -> None:
        """Count the tokens; the lineage is written whatever becomes of that."""
        try:
            await self.gate.spent(*exchange.spender, ending.usage or {})
        except GatewayError as error:
            self.meter.failed_closed(error.code)
        except Exception as error:  # noqa: BLE001 - as for the scan below
            self.meter.fault(error)

    async def _end(self, exchange: Exchange, ending: Ending) -> None:
        rest = await exchange.rest()
        try:
            await self.store.append(*exchange.conclude(ending, rest))
        except GatewayError as error:
            if not rest:
                raise
            self.meter.failed_closed(error.code)  # an attempt that cannot be recorded counts for nothing
            await self.store.append(*exchange.conclude(ending))

    async def _told(self, back: Back, ending: Ending) -> Ending:
        try:
            return await self._answering.told(back, ending)
        except Exception as error:  # noqa: BLE001 - the lineage is written whatever becomes of the scan
            self.meter.fault(error)
            return replace(ending, answer_codes=(UNSCANNED,))

    async def release(self, request_id: str, answer: NativeAnswer | None) -> Released:
        """See ports.UseCase."""
        exchange = self._open.get(request_id)
        back = exchange.back if exchange is not None else None
        if back is None:  # concluded meanwhile: nobody can say what this answers
            refusal = Refusal(502, ("gateway.error",), "", request_id=request_id)
            return Released(Generic().refuse(refusal))
        if answer is None:
            return Released(self._answering.refused(back, 502, "answer.too_large"))
        try:
            return await self._answering.release(back, answer)
        except Exception as error:  # noqa: BLE001 - an answer that was to be held back is not let out unseen
            self.meter.fault(error)
            return Released(self._answering.refused(back, 502, UNSCANNED))

    async def note(self, event: ConnectionEvent) -> None:
        """See ports.UseCase."""
        try:
            records, row = self.surroundings.connection(
                event, self.find(event.host, "/"), self.policy(), self.clock.now()
            )
            await self.store.append(records, row)
        except GatewayError as error:
            self.meter.failed_closed(error.code)
        self.meter.connection(event.action, event.reason_code)

    def exchange(self, request_id: str) -> Exchange | None:
        """What is known of an admitted request whose lineage is not written yet."""
        return self._open.get(request_id)

    async def close(self) -> None:
        """Write the lineages of exchanges that are still open, as far as they are proven."""
        waiting = list(self._open)
        await asyncio.gather(*(self.conclude(r, Ending(response_complete=False)) for r in waiting))
