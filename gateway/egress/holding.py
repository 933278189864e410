"""Objects of one request that wait for a person: their ids, and what is kept of them."""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from gateway.classify.deciding import HELD
from gateway.classify.history import keeps_here
from gateway.classify.objects import ContextObject, summarise
from gateway.context import jsontext, walk
from gateway.contract import ContextDispositionV1
from gateway.egress.records import finding_row, object_digest
from gateway.ports import Hold, Peer

_D = ContextDispositionV1
_LETTER = {_D.QUARANTINE: "q", _D.ALLOW_WITH_APPROVAL: "a"}
_KIND = {_D.QUARANTINE: "quarantine", _D.ALLOW_WITH_APPROVAL: "approval"}
WAITING = frozenset({"quarantine.held", "approval.pending"})


@dataclass(frozen=True, slots=True)
class Holder:
    """Names the held objects of one request. `key` is the project's; a decision for one id fits no other request.

    The part of an id before the dot is the object's alone, so that its stub stays the same when the policy or the
    destination changes; the part behind it is that of destination and policy.
    """

    key: bytes = field(repr=False)
    destination: str
    policy: str

    def name(self, disposition: ContextDispositionV1, item: ContextObject) -> str:
        """The id under which an object is held."""
        thing = self._tag(f"{disposition}\0{item.block.kind}".encode(), item.digest)[:16]
        return (
            f"{_LETTER[disposition]}-{thing}.{self._tag(self.destination.encode(), self.policy.encode())[:8]}"
        )

    def _tag(self, *parts: bytes) -> str:
        joined = b"hold" + b"".join(len(part).to_bytes(4) + part for part in parts)
        return hmac.digest(self.key, joined, hashlib.sha256).hex()

    def holds(self, objects: Sequence[ContextObject], peer: Peer, time: str) -> list[Hold]:
        """What is to be kept of the objects that nobody has decided about; nothing of a request that is denied."""
        if any(item.decision.disposition is _D.DENY and keeps_here(item) for item in objects):
            return []
        waiting = (item for item in objects if item.decision.disposition in HELD)
        return [self._hold(item, peer, time) for item in waiting if WAITING & {*item.decision.reason_codes}]

    def _hold(self, item: ContextObject, peer: Peer, time: str) -> Hold:
        disposition = item.decision.disposition
        return Hold(
            id=self.name(disposition, item),
            kind=_KIND[disposition],
            project=peer.project,
            digest=object_digest(item, self.key),
            destination=self.destination,
            policy=self.policy,
            principal=peer.principal,
            time=time,
            object_kind=str(item.block.kind),
            pointer=item.pointer,
            size=item.size,
            provenance=item.scanned.provenance,
            reason_codes=item.decision.reason_codes,
            findings=tuple(finding_row(f) for f in summarise(item.scanned.findings)),
            content=jsontext.canonical(walk.residue(item.block)),
        )


class NothingHeld:
    """ports.Holding without a store: what is held stays held, and nobody can release it (`egress inspect`)."""

    async def hold(self, holds: Sequence[Any]) -> None:
        """See ports.Holding."""

    async def reviews(self, project: str, holds: Sequence[str]) -> Mapping[str, str]:
        """See ports.Holding."""
        return {}

    async def wait(self, holds: Sequence[str], timeout_us: int) -> bool:
        """See ports.Holding."""
        return False


class OpenGate:
    """ports.Gate that stops nobody."""

    async def admits(self, peer: Peer, size: int) -> None:
        """See ports.Gate."""

    def stopped(self, peer: Peer) -> None:
        """See ports.Gate."""

    async def spent(self, project: str, principal: str, usage: Mapping[str, int]) -> None:
        """See ports.Gate."""
