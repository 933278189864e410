"""Driving an evaluation: its look-ups answered from the ports."""

from __future__ import annotations

from collections.abc import Generator
from dataclasses import dataclass
from functools import partial
from typing import Any

from gateway.classify.evaluate import Evaluation
from gateway.classify.lookups import Claims, Issued, Lookup, Masked, Recall, Reviews, Scan, Visible
from gateway.classify.masked import masked_values
from gateway.egress.aside import Aside
from gateway.egress.conversations import Conversations
from gateway.egress.dossier import Dossier
from gateway.ports import Holding, Ownership, Scanner, ValueVault


def _step(work: Generator[Lookup, Any, Evaluation], answer: Any) -> Lookup | Evaluation:
    """What is asked next, or the result."""
    try:
        return work.send(answer)
    except StopIteration as stop:
        result: Evaluation = stop.value
        return result


@dataclass(slots=True)
class Driver:
    """Answers the look-ups of evaluations. Whatever a port raises ends the evaluation."""

    scanner: Scanner
    vault: ValueVault
    ownership: Ownership
    conversations: Conversations
    holding: Holding
    aside: Aside

    async def run(
        self, work: Generator[Lookup, Any, Evaluation], dossier: Dossier, deadline_us: int
    ) -> Evaluation:
        """The result of an evaluation, which must be there by `deadline_us` on the monotonic clock."""
        answer: Any = None
        while True:
            lookup = await self.aside.run(dossier.body_bytes, partial(_step, work, answer))
            if isinstance(lookup, Evaluation):
                return lookup
            answer = await self._answer(lookup, dossier, deadline_us)

    async def _answer(self, lookup: Lookup, dossier: Dossier, deadline_us: int) -> Any:
        peer = dossier.request.peer
        match lookup:
            case Scan(items):
                return await self.scanner.scan(items, deadline_us=deadline_us)
            case Issued(macs):
                return await self.vault.issued(peer.project, macs)
            case Masked():
                version, values = await self.vault.masked(peer.project)
                return version, masked_values(values)
            case Claims(texts):
                return await self.ownership.claims(texts)
            case Visible(reaches):
                dossier.rulings = self.ownership.rule(peer, reaches, dossier.time)
                return [ruling.allowed for ruling in dossier.rulings]
            case Reviews(holds):
                return await self.holding.reviews(peer.project, holds)
            case Recall(hashes):
                return await self.conversations.recall(peer.project, hashes)
