"""What an evaluation asks of its surroundings. It yields one of these and is sent the answer; it does no I/O itself.

| look-up  | answer |
|----------|--------|
| Scan     | one ScanResult an item, in order |
| Issued   | the placeholders that exist already for values with these keyed digests: {mac: token} |
| Masked   | the values this project has masked, oldest first: (version, [MaskedValue]) |
| Claims   | for each text the projects that it belongs to or speaks of: [(Claimed, ...)] |
| Visible  | for each reach for another project's content whether it is allowed: [bool] |
| Reviews  | what people decided about held objects: {hold id: state}, an id without a decision left out |
| Recall   | the Recalled state of the conversation with the longest of these chains, or None |
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from gateway.classify.objects import StickyEdits, StickyTreatments
from gateway.context.findings import ScanItem
from gateway.ports import Reach


@dataclass(frozen=True, slots=True)
class Scan:
    """Texts that no remembered scan covers."""

    items: Sequence[ScanItem]


@dataclass(frozen=True, slots=True)
class Issued:
    """Keyed digests of values that a placeholder is needed for."""

    macs: Sequence[bytes]


@dataclass(frozen=True, slots=True)
class Masked:
    """The values that this project has masked so far."""


@dataclass(frozen=True, slots=True)
class Recall:
    """Chain hashes of the request's history, shortest first."""

    hashes: Sequence[bytes]


@dataclass(frozen=True, slots=True)
class Recalled:
    """What a conversation has already sent: how many chained objects, and the edits and treatments it used.

    `seen` is how many chained objects the gateway has met: more than `length` where the last request was refused.
    """

    conversation: str
    length: int
    edits: StickyEdits = field(default_factory=dict)
    treatments: StickyTreatments = field(default_factory=dict)
    seen: int = 0


@dataclass(frozen=True, slots=True)
class Claims:
    """Texts of new objects, to be compared with what is known of every project."""

    texts: Sequence[str] = field(repr=False)


@dataclass(frozen=True, slots=True)
class Visible:
    """What this request holds of other projects."""

    reaches: Sequence[Reach]


@dataclass(frozen=True, slots=True)
class Reviews:
    """Objects that wait for a person, by the ids under which they are held."""

    holds: Sequence[str]


type Lookup = Scan | Issued | Masked | Claims | Visible | Reviews | Recall
