"""What is remembered of one admitted request until its lineage is written, and what its attempts prove."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from gateway.contract import (
    ContextReceiptStateV1,
    DeliveryOutcomeV1,
    EgressAdmissionReceiptV1,
    IntegrationRouteV1,
)
from gateway.contract.fragments import join_lineage
from gateway.egress.answering import Back
from gateway.egress.records import record
from gateway.evidence.lineage import attempt_records, prove, response_event
from gateway.ports import Attempt, Ending, Record, RequestRow


class Waiting:
    """The records of an attempt while they wait for the request's ending, to be stored with it in one append."""

    def __init__(self, attempt: Attempt, records: list[Record]) -> None:
        self.attempt, self.records = attempt, records
        self._over: asyncio.Future[bool] = asyncio.get_running_loop().create_future()
        self._stored = asyncio.Event()

    async def is_overdue(self, seconds: float) -> bool:
        """Whether no ending came within so many seconds: the attempt is then to be stored alone."""
        alarm = asyncio.get_running_loop().call_later(seconds, self._end, True)
        try:
            return await asyncio.shield(self._over)
        finally:
            alarm.cancel()

    def _end(self, overdue: bool) -> None:
        if not self._over.done():
            self._over.set_result(overdue)

    def stored(self) -> None:
        """The append of the attempt alone is over, whether or not it could be made."""
        self._stored.set()

    async def taken(self) -> bool:
        """The ending is there: whether it has to store the attempt. Else the attempt's own append is over now."""
        self._end(False)
        if not self._over.result():
            return True
        await self._stored.wait()
        return False


@dataclass(slots=True)
class Exchange:
    """One request after its evaluation. `request` is the wire form of its ContextRequestV1.

    The lineage is joined from the fragments of the evaluation, as a long conversation has hundreds of outcomes.
    """

    row: RequestRow
    request: Mapping[str, Any]
    outcome: str
    outcomes: tuple[bytes, ...] = field(repr=False)
    held_back: bool
    admission: EgressAdmissionReceiptV1 | None = None
    # Sources of other projects that were recognised in the request.
    candidates: Sequence[Mapping[str, Any]] = ()
    handed_off: bool = False
    counted: list[str] = field(default_factory=list)
    back: Back | None = field(default=None, repr=False)  # what the policy asks of the answer
    waiting: list[Waiting] = field(default_factory=list, repr=False)

    @property
    def spender(self) -> tuple[str, str]:
        """Whose budget the answer counts against: project and principal."""
        return self.row.project, str(self.request["principal"].get("id", "unknown"))

    def observe(self, attempt: Attempt) -> list[Record]:
        """What is recorded of an attempt (contract.md §7.3, §10.2)."""
        if self.admission is None:
            return []
        proof = prove(attempt, self.admission)
        self.handed_off |= proof.handed_off
        return attempt_records(attempt, self.admission)

    def waits(self, attempt: Attempt) -> Waiting:
        """The records of an attempt, which an ending that comes soon takes with it."""
        made = Waiting(attempt, self.observe(attempt))
        self.waiting.append(made)
        return made

    async def rest(self) -> list[Waiting]:
        """The attempts that are to be stored with the ending."""
        waiting, self.waiting = self.waiting, []
        return [each for each in waiting if await each.taken()]

    def stored(self, attempt: Attempt, records: list[Record]) -> None:
        """The records of an attempt are durable, or are in one transaction with what claims its observation."""
        if self.admission is not None and prove(attempt, self.admission).counts:
            self.counted.append(records[0].digest)

    def lineage(self) -> tuple[Record, str]:
        """The lineage (contract.md §5) and its receipt state."""
        state = ContextReceiptStateV1.derive(
            DeliveryOutcomeV1(self.outcome),
            IntegrationRouteV1.PROXY,
            self.handed_off,
            len(self.counted),
            self.held_back,
        )
        head: dict[str, Any] = {
            "schema_version": 1,
            "request": dict(self.request),
            "decision_receipt": self.row.receipt,
            "receipt_state": str(state),
        }
        if self.candidates:
            head["candidates"] = [dict(candidate) for candidate in self.candidates]
        if self.row.admission:
            head["egress_admission"] = self.row.admission
        if self.counted:
            head["egress_observations"] = self.counted
        return record("lineage", join_lineage(head, self.outcomes)), str(state)

    def conclude(self, ending: Ending, rest: Sequence[Waiting] = ()) -> tuple[list[Record], RequestRow]:
        """The lineage, what is told of the way back, and the row that names them; before them attempts of the `rest`.

        They are one transaction: what the lineage claims of these attempts is durable with it.
        """
        before, self.counted = self.counted, list(self.counted)
        for each in rest:
            self.stored(each.attempt, each.records)
        made, state = self.lineage()
        self.counted = before
        told = response_event(self.row.receipt, ending)
        seen = [record for each in rest for record in each.records]
        return [*seen, made, told], replace(self.row, lineage=made.digest, receipt_state=state)
