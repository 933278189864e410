"""What is told to the use case about each exchange, in order and once: its attempt, then its ending."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from dataclasses import replace

from gateway.ports import Attempt, Ending, UseCase
from gateway.proxy.exchange import Exchange
from gateway.proxy.load import Load
from gateway.proxy.tasks import Tasks


class Ledger:
    """The open exchanges of one proxy. Recording happens beside the traffic and never delays it."""

    def __init__(self, use_case: UseCase, tasks: Tasks, load: Load) -> None:
        self._use_case = use_case
        self._tasks = tasks
        self._load = load
        self._open: dict[str, Exchange] = {}

    def begin(self, exchange: Exchange) -> None:
        """A request was taken on."""
        self._open[exchange.request_id] = exchange
        self._load.begin()

    def of_client(self, client_id: str) -> Iterator[Exchange]:
        """The open exchanges of one client connection."""
        yield from [e for e in self._open.values() if e.client_id == client_id]

    def all(self) -> Iterator[Exchange]:
        """Every open exchange."""
        yield from list(self._open.values())

    def observe(self, exchange: Exchange) -> None:
        """Record the attempt, once, if bytes were tried to be sent."""
        if exchange.observing is not None or exchange.admitted is None or exchange.stopped:
            return
        wire = exchange.wire
        if not (wire.started or exchange.dialled):
            return
        failure = exchange.failure or ("other" if wire.started else "connect")
        exchange.observing = self._tasks.spawn(self._observed(exchange.request_id, wire.attempt(failure)))

    async def _observed(self, request_id: str, attempt: Attempt) -> None:
        await self._use_case.observe(request_id, attempt)

    def settle(self, exchange: Exchange, *, complete: bool) -> None:
        """End an exchange: give back what it held, and conclude what was admitted. Idempotent."""
        if exchange.settled:
            return
        exchange.settled = True
        exchange.wire.stop()
        if exchange.head_timer is not None:
            exchange.head_timer.cancel()
        self._open.pop(exchange.request_id, None)
        self._load.release(exchange.reserved)
        self._load.finish()
        if exchange.admitted is None:
            return
        self.observe(exchange)
        ending = Ending(
            response_complete=complete and not exchange.restore_failed, client_gone=exchange.client_gone
        )
        self._tasks.background(self._concluded(exchange, ending))

    def unsent(self, exchange: Exchange) -> None:
        """Conclude a request that was admitted when nobody could send it any more."""
        ending = Ending(response_complete=False, client_gone=exchange.client_gone)
        self._tasks.background(self._concluded(exchange, ending))

    async def _concluded(self, exchange: Exchange, ending: Ending) -> None:
        if (restorer := exchange.restorer) is not None:
            with suppress(
                Exception
            ):  # a restorer never raises; if one does, the ending is written without it
                ending = replace(
                    ending,
                    placeholders_restored=restorer.restored,
                    restore_withheld=restorer.withheld + restorer.refused,
                    restore_refused=restorer.refused,
                    usage=restorer.usage,
                )
        await self._use_case.conclude(exchange.request_id, ending)
