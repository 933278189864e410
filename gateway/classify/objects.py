"""Objects of one evaluation: blocks with digests, leaves and findings, and what is remembered of them.

What is remembered between requests holds no text: spans, types and placeholders only.
"""

from __future__ import annotations

import hashlib
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, override

from gateway.context import jsontext, walk
from gateway.context.decisions import ALLOW, Decision, FindingFacts, ObjectFacts
from gateway.context.findings import Category, Severity
from gateway.context.objects import Block, Json, Leaf, LeafRole, ObjectKind, Path, WalkRules
from gateway.context.pointer import to_pointer

EDITABLE = frozenset({LeafRole.TEXT, LeafRole.NAME, LeafRole.NUMBER, LeafRole.ENCODED})
UNSCANNED = frozenset({LeafRole.SEALED, LeafRole.MEDIA})
_CACHE_CONTROL = (
    {"type": "ephemeral"},
    {"type": "ephemeral", "ttl": "5m"},
    {"type": "ephemeral", "ttl": "1h"},
)


@dataclass(frozen=True, slots=True)
class LeafFinding:
    """A finding in one leaf of an object.

    `token` is the placeholder of its value; `encoded`: the value stands there in another form, so that the span's own
    text is not the value.
    """

    leaf: int
    role: LeafRole
    start: int
    end: int
    type: str
    category: Category
    severity: Severity
    confidence_milli: int
    detector: str
    token: str
    encoded: bool = False


@dataclass(frozen=True, slots=True)
class Claim:
    """Evidence that one leaf of an object belongs to a project, or speaks of it (see ports.Claimed)."""

    leaf: int
    role: LeafRole
    project: str
    evidence: str
    confidence_milli: int
    spans: tuple[tuple[int, int], ...]
    sources: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Scanned:
    """What is remembered of an object, without any text.

    Findings, coverage, how many of the project's masked values it was compared with, and whose it is: `claimed` is the
    revision of the projects' index that `claims` were looked up in. `provenance` is of one request and not remembered.
    """

    findings: tuple[LeafFinding, ...] = ()
    coverage: str = "complete"
    coverage_reason: str = ""
    opaque_bytes: int = 0
    compared: int = 0
    claims: tuple[Claim, ...] = ()
    claimed: int = -1
    provenance: str = ""


@dataclass(frozen=True, slots=True)
class Treatment:
    """What is done to one object beyond masking (gateway.classify.treatment). `text` is that of a stub."""

    kind: str  # stub | drop | summary | cut | refuse
    workers: tuple[str, ...] = ()
    text: str = ""


@dataclass(frozen=True, slots=True)
class Sticky:
    """A treatment that a conversation has used, with the decision that asked for it."""

    treatment: Treatment
    decision: Decision


_NOTHING_YET = Scanned()


@dataclass(slots=True)
class ContextObject:
    """One block under evaluation.

    `dialect` and `rules` are those of a part that speaks another dialect than its request (a line of a batch). `unread`
    is the coverage and its reason where bytes hold no text to read, so that there are no leaves. `prefix` is the part
    of a form or the line of a batch that the block stands in; the block's own path begins there. `rewritable` is false
    where the client signed the body. `seams` are those of its findings that it owes to its neighbours. `raw`
    are the bytes of a file that is no text, `whole` the paths of files and token ids all of whose text was extracted.
    """

    block: Block
    digest: bytes
    size: int
    scanned: Scanned = _NOTHING_YET
    remembered: Scanned | None = None  # as an earlier request left it
    fresh: bool = False
    leaves: list[Leaf] | None = None
    decision: Decision = ALLOW
    edits: tuple[LeafFinding, ...] = ()
    dialect: str = ""
    rules: WalkRules | None = None
    unread: tuple[str, str] | None = None
    remembers: str = ""  # the type of memory that the request writes to
    prefix: Path = ()
    rewritable: bool = True
    classification: str = ""  # of what its project sends
    treatment: Treatment | None = None
    seams: tuple[LeafFinding, ...] = ()
    raw: bytes = field(default=b"", repr=False)
    whole: frozenset[Path] = frozenset()

    @property
    def pointer(self) -> str:
        """RFC 6901 pointer of the block; its tokens are names of the dialect, never data."""
        return to_pointer(self.place)

    @property
    def place(self) -> Path:
        """Where the block stands in the whole body."""
        return (*self.prefix, *self.block.path) if self.prefix else self.block.path

    @property
    def sensitive(self) -> bool:
        """Whether the plain digest could be guessed (contract.md §13 row 2): it is then written keyed."""
        return bool(self.scanned.findings) or self.size < 64

    def facts(self, *, rewritable: bool) -> ObjectFacts:
        """What rules may know of this object."""
        return ObjectFacts(
            pointer=self.pointer,
            kind=self.block.kind,
            channel=self.block.channel,
            bytes=self.size,
            findings=summarise(self.scanned.findings),
            coverage=self.scanned.coverage,
            coverage_reason=self.scanned.coverage_reason,
            classification=self.classification,
            provenance=self.scanned.provenance,
            rewritable=rewritable,
        )

    @override
    def __repr__(self) -> str:
        return f"ContextObject({self.block.kind}, {self.size} bytes, {self.digest.hex()[:12]})"


def summarise(findings: Sequence[LeafFinding]) -> tuple[FindingFacts, ...]:
    """Findings by type and leaf role: the highest severity and confidence, and the count."""
    groups: dict[tuple[str, str], list[LeafFinding]] = {}
    for finding in findings:
        groups.setdefault((finding.type, str(finding.role)), []).append(finding)
    return tuple(
        FindingFacts(
            type=kind,
            category=str(group[0].category),
            severity=str(max((f.severity for f in group), key=lambda s: s.rank)),
            confidence_milli=max(f.confidence_milli for f in group),
            count=len(group),
            role=role,
        )
        for (kind, role), group in sorted(groups.items())
    )


def make(block: Block) -> ContextObject:
    """The object of a block: digest of its canonical JSON without holes, and that form's size in bytes."""
    data = jsontext.canonical(_content(block))
    return ContextObject(block, hashlib.sha256(data).digest(), len(data))


def _content(block: Block) -> Json:
    value = walk.residue(block) if block.holes else block.value
    if isinstance(value, dict) and "cache_control" in value and value["cache_control"] in _CACHE_CONTROL:
        # Clients move this marker from turn to turn; it must not make an old object look new.
        return {k: v for k, v in value.items() if k != "cache_control"}
    return value


type Crossing = tuple[tuple[int, LeafFinding], ...]
"""What was found over a seam: each piece with how many texts back it stands, 0 for the newest."""


class ScanCache:
    """Remembered scans of one process by (project, digest, kind, channel, dialect, detector revision); bounded.

    Big requests ask from a thread of their own (gateway.egress.aside), so every method may be called from any.
    """

    def __init__(self, max_entries: int = 200_000) -> None:
        self._entries: OrderedDict[tuple[Any, ...], Scanned] = OrderedDict()
        self._crossings: OrderedDict[tuple[Any, ...], Crossing] = OrderedDict()
        self._clean: dict[tuple[Any, ...], dict[bytes, bytes]] = {}
        self._max = max_entries

    def get(self, key: tuple[Any, ...]) -> Scanned | None:
        """The remembered scan, or None."""
        return _recent(self._entries, key)

    def put(self, key: tuple[Any, ...], scanned: Scanned) -> None:
        """Remember a scan; the least used entry goes when the cache is full."""
        _keep(self._entries, key, scanned, self._max)

    def crossing(self, key: tuple[Any, ...]) -> Crossing | None:
        """What was found over a seam; None where it was not looked at."""
        return _recent(self._crossings, key)

    def put_crossing(self, key: tuple[Any, ...], crossing: Crossing) -> None:
        """Remember a seam; the least used entry goes when the cache is full."""
        _keep(self._crossings, key, crossing, self._max)

    def clean_seams(self, scope: tuple[Any, ...]) -> dict[bytes, bytes]:
        """For texts by digest what stood before one over whose seam nothing was found; `scope` as in keys of scans."""
        found = self._clean.setdefault(scope, {})
        if len(found) > self._max:
            found.clear()
        return found

    def __len__(self) -> int:
        return len(self._entries)


def _recent[K, V](entries: OrderedDict[K, V], key: K) -> V | None:
    """An entry, which thereby becomes the last to go."""
    found = entries.get(key)
    if found is not None:
        with suppress(KeyError):  # it went meanwhile, for one that another thread put there
            entries.move_to_end(key)
    return found


def _keep[K, V](entries: OrderedDict[K, V], key: K, value: V, most: int) -> None:
    entries[key] = value
    with suppress(KeyError):
        entries.move_to_end(key)
        if len(entries) > most:
            entries.popitem(last=False)


def is_chained(kind: str, channel: str) -> bool:
    """Whether a block makes part of the chain by which a conversation is recognised; prompts do not, notes in them."""
    if kind == ObjectKind.MEMORY:
        return channel != "system"
    return kind not in {
        ObjectKind.PARAMETERS, ObjectKind.SYSTEM, ObjectKind.TOOL_DEFINITION, ObjectKind.HEADER, ObjectKind.TARGET,
    }  # fmt: skip


def chain(objects: Sequence[ContextObject]) -> tuple[list[int], list[bytes]]:
    """Indexes of the chained objects, and the hash of the chain up to and including each."""
    indexes, hashes, last = [], [], b"conversation"
    for index, item in enumerate(objects):
        if is_chained(item.block.kind, item.block.channel):
            last = hashlib.sha256(last + item.digest).digest()
            indexes.append(index)
            hashes.append(last)
    return indexes, hashes


type StickyEdits = Mapping[bytes, tuple[LeafFinding, ...]]
"""Edits that a conversation has used already, by object digest."""

type StickyTreatments = Mapping[bytes, Sticky]
"""Treatments that a conversation has used already, by object digest."""
