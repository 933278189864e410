"""Writes to memory under the guard: who they are assigned to, how surely, and what the policy is told of it.

A write is a request to a memory API, or a call of a memory tool in the history, which the agent has carried out already
when it is seen here. The guard's own function decides; a write that it would not accept gets a finding that rules read:
`memory_unsure` where it belongs into the inbox, `memory_ambiguous` where it belongs into cleanup.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace

from gateway.classify.belonging import FOREIGN, LINKED, Asker
from gateway.classify.memory import tool_name
from gateway.classify.objects import ContextObject, LeafFinding
from gateway.context.findings import Category, Severity
from gateway.context.objects import Leaf, LeafRole, ObjectKind
from gateway.memory import guard
from gateway.memory.guard import CLEANUP, INBOX
from gateway.memory.wire import arguments_of, is_memory_tool, is_write
from gateway.ports import Peer

UNSURE, AMBIGUOUS = "memory_unsure", "memory_ambiguous"
MEMORY_TYPES = frozenset({UNSURE, AMBIGUOUS})

NOBODY = "default"
"""The project of requests without credentials: an assignment to it is a guess."""

_TYPE_OF = {INBOX: UNSURE, CLEANUP: AMBIGUOUS}
_BY_CREDENTIALS, _BY_CONTENT, _GUESS = 0.9, 0.95, 0.5


def guard_writes(
    objects: Sequence[ContextObject], asker: Asker, leaves: Callable[[ContextObject], Sequence[Leaf]]
) -> None:
    """Give writes that the guard would not accept their finding; none where projects are not told apart."""
    if not asker.revision:
        return
    for item in objects:
        kept = tuple(f for f in item.scanned.findings if f.type not in MEMORY_TYPES)
        if len(kept) < len(item.scanned.findings):
            item.scanned = replace(item.scanned, findings=kept)
        if item.block.kind is ObjectKind.MEMORY and writes(item):
            destination = _destination(item, asker)
            if destination in _TYPE_OF and leaves(item):
                found = _finding(_TYPE_OF[destination])
                item.scanned = replace(item.scanned, findings=(*item.scanned.findings, found))


def writes(item: ContextObject) -> bool:
    """Whether an object is a write to memory: by the request that it stands in, or as the call of a tool."""
    if item.remembers:
        return True
    name = tool_name(item.block.value)
    return bool(name) and is_memory_tool(name) and is_write(name, arguments_of(item.block.value))


def _destination(item: ContextObject, asker: Asker) -> str:
    others = {c.project for c in item.scanned.claims if c.project != asker.project}
    if item.scanned.provenance == LINKED:
        others = set()  # what may be imported is no contamination
    record = {
        "raw_content": f"{item.block.kind} {item.digest.hex()}",  # the guard keeps it; the text stays where it is
        "candidate_project_id": asker.project,
        "memory_type": item.remembers or "note",
        "source": "tool call" if not item.remembers else "request",
        "timestamp": asker.time,
        "confidence": _confidence(item, asker),
    }
    return guard(record, now=asker.time, recognised=others).destination or ""


def _confidence(item: ContextObject, asker: Asker) -> float:
    """How surely the write is the asking project's: it said who it is, and its content may say the same."""
    if asker.project == NOBODY:
        return _GUESS
    own = any(c.project == asker.project for c in item.scanned.claims)
    return _BY_CONTENT if own and item.scanned.provenance != FOREIGN else _BY_CREDENTIALS


def _finding(kind: str) -> LeafFinding:
    """A finding about the whole object: it has no span, and nothing of it is masked."""
    return LeafFinding(
        leaf=0,
        role=LeafRole.TEXT,
        start=0,
        end=0,
        type=kind,
        category=Category.POLICY,
        severity=Severity.MEDIUM,
        confidence_milli=900,
        detector="memory_guard",
        token="",  # nothing is masked
    )


@dataclass(frozen=True, slots=True)
class PutAside:
    """The text of a write that the guard did not accept, for the queues. Not admitted yet: it may hold secrets."""

    memory_type: str
    source: str
    confidence: float
    text: str = field(repr=False)


def put_aside(objects: Sequence[ContextObject], project: str) -> list[PutAside]:
    """What a request holds for the queues; an object that was met before has been put aside already."""
    found = []
    for item in objects:
        kinds = {f.type for f in item.scanned.findings} & MEMORY_TYPES
        text = "\n".join(leaf.text for leaf in item.leaves or () if leaf.role is LeafRole.TEXT)
        if kinds and item.fresh and text.strip():
            source = "request" if item.remembers else "tool call"
            sure = _GUESS if project == NOBODY else _BY_CREDENTIALS
            found.append(PutAside(item.remembers or "note", source, sure, text))
    return found


def put_nothing_aside(_peer: Peer, _objects: Sequence[ContextObject]) -> None:
    """For a use case without queues."""
