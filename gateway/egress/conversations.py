"""Which conversation a request continues, and the edits that conversation has used.

A conversation is a project and the longest chain of object digests that an earlier request of it had. Edits are
sticky in it: a policy that is loosened later does not reach back into what was already sent.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from gateway.classify.lookups import Recalled
from gateway.classify.objects import LeafFinding, Sticky, StickyEdits, StickyTreatments, Treatment
from gateway.context.decisions import Decision
from gateway.context.findings import Category, Severity
from gateway.context.objects import LeafRole
from gateway.contract import ContextDispositionV1, TransformationKindV1
from gateway.ports import ConversationStore

MAX_CHAINS = 200_000
MAX_KEPT_EDITS = 4096


@dataclass(slots=True)
class _State:
    """`sent` is how many objects of the chain the provider has got: not all where the last request was refused."""

    sent: int
    edits: StickyEdits = field(default_factory=dict)
    treatments: StickyTreatments = field(default_factory=dict)
    stored: Mapping[str, Any] | None = None  # as the store gave it, or was given it


@dataclass(slots=True)
class Conversations:
    """Conversations of one process; those that cannot be told from their objects alone are kept in a store as well.

    That is where objects left changed, where something signed stands in them, so that nothing before it may change, and
    where the last request was refused. `shared`: other processes write to the same store, so that it is told of every
    request, and what it says of a chain holds against what is known here.
    """

    store: ConversationStore
    shared: bool = False
    _chains: OrderedDict[tuple[str, bytes], _State] = field(default_factory=OrderedDict)

    async def recall(self, project: str, hashes: Sequence[bytes]) -> Recalled | None:
        """The state of the conversation with the longest known chain among these, shortest first."""
        length = next((n for n in range(len(hashes), 0, -1) if (project, hashes[n - 1]) in self._chains), 0)
        if not length or self.shared:
            kept = await self.store.find(project, hashes[max(length - 1, 0) :][::-1])
            if kept is not None:
                length = hashes.index(kept[0]) + 1
                before = self._chains.get((project, kept[0]))
                if before is None or before.stored is not kept[1]:
                    self._remember(project, kept[0], _state(kept[1], length))
        if not length:
            return None
        state = self._chains[project, hashes[length - 1]]
        name = hashes[length - 1].hex()[:16]
        return Recalled(name, state.sent, state.edits, state.treatments, length)

    async def keep(
        self,
        project: str,
        hashes: Sequence[bytes],
        recalled: Recalled | None,
        edits: StickyEdits,
        treatments: StickyTreatments,
        *,
        signed: bool = False,
    ) -> None:
        """Remember what this request sends, durably where it matters; `treatments` are all that hold now."""
        if not hashes:
            return
        known = dict(recalled.edits) if recalled is not None else {}
        known.update(edits)
        while len(known) > MAX_KEPT_EDITS:
            known.pop(next(iter(known)))
        state = _State(len(hashes), known, dict(treatments))
        if self.are_durable(recalled, edits, treatments, signed=signed):
            await self._save(project, hashes[-1], state)
        elif self.shared:
            state.stored = _stored(state)
            await self.store.note(project, hashes[-1], state.stored)
        self._remember(project, hashes[-1], state)

    @staticmethod
    def are_durable(
        recalled: Recalled | None, edits: StickyEdits, treatments: StickyTreatments, *, signed: bool
    ) -> bool:
        """Whether `keep` has to wait for the disk: a conversation cannot be told from its objects alone any more."""
        return bool(edits or treatments or signed or (recalled is not None and recalled.edits))

    async def refused(self, project: str, hashes: Sequence[bytes], recalled: Recalled | None) -> None:
        """Remember that this request was refused: what it holds is history once the conversation goes on without it."""
        if not hashes or (recalled is not None and recalled.seen == len(hashes)):
            return
        state = (
            _State(0) if recalled is None else _State(recalled.length, recalled.edits, recalled.treatments)
        )
        await self._save(project, hashes[-1], state)
        self._remember(project, hashes[-1], state)

    async def _save(self, project: str, anchor: bytes, state: _State) -> None:
        state.stored = _stored(state)
        await self.store.save(project, anchor, state.stored)

    def _remember(self, project: str, anchor: bytes, state: _State) -> None:
        self._chains[project, anchor] = state
        self._chains.move_to_end((project, anchor))
        while len(self._chains) > MAX_CHAINS:
            self._chains.popitem(last=False)


def _stored(state: _State) -> Mapping[str, Any]:
    edits, treatments = edits_to(state.edits), treatments_to(state.treatments)
    return {"sent": state.sent, "edits": edits, "treatments": treatments}


def _state(kept: Mapping[str, Any], length: int) -> _State:
    """A state as it was stored under a chain of this length."""
    sent = int(kept.get("sent", length))
    return _State(sent, edits_from(kept["edits"]), treatments_from(kept["treatments"]), kept)


def edits_to(edits: StickyEdits) -> Mapping[str, Any]:
    """The stored form: by digest, each edit as a list; holds placeholders, never values."""
    return {
        key.hex(): [
            [f.leaf, f.role, f.start, f.end, f.type, f.category, f.severity, f.confidence_milli, f.detector, f.token,
             f.encoded]
            for f in found
        ]
        for key, found in edits.items()
    }  # fmt: skip


def edits_from(kept: Mapping[str, Any]) -> dict[bytes, tuple[LeafFinding, ...]]:
    """The edits of a stored form."""
    return {bytes.fromhex(key): tuple(_edit(row) for row in rows) for key, rows in kept.items()}


def _edit(row: Sequence[Any]) -> LeafFinding:
    leaf, role, start, end, kind, category, severity, confidence, detector, token, encoded = row
    return LeafFinding(
        int(leaf), LeafRole(role), int(start), int(end), str(kind), Category(category), Severity(severity),
        int(confidence), str(detector), str(token), bool(encoded),
    )  # fmt: skip


def treatments_to(treatments: StickyTreatments) -> Mapping[str, Any]:
    """The stored form: what was done, and what of the decision must hold again; no content."""
    return {
        key.hex(): [
            kept.treatment.kind,
            list(kept.treatment.workers),
            kept.treatment.text,
            str(kept.decision.disposition),
            list(kept.decision.reason_codes),
            sorted(kept.decision.transformations),
            [list(pair) for pair in kept.decision.parameters],
        ]
        for key, kept in treatments.items()
    }


def treatments_from(kept: Mapping[str, Any]) -> dict[bytes, Sticky]:
    """The treatments of a stored form."""
    return {bytes.fromhex(key): _sticky(row) for key, row in kept.items()}


def _sticky(row: Sequence[Any]) -> Sticky:
    kind, workers, text, disposition, codes, transformations, parameters = row
    decision = Decision(
        ContextDispositionV1(disposition),
        tuple(codes),
        frozenset(TransformationKindV1(name) for name in transformations),
        parameters=tuple((str(name), str(value)) for name, value in parameters),
    )
    return Sticky(Treatment(str(kind), tuple(workers), str(text)), decision)
