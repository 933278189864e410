"""Facts that rules read, decisions they make, and the one way decisions combine."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import reduce

from gateway.contract import ContextDispositionV1, TransformationKindV1


@dataclass(frozen=True, slots=True)
class FindingFacts:
    """Findings of one type in one object, without place or text."""

    type: str
    category: str
    severity: str
    confidence_milli: int
    count: int
    role: str = "text"  # the LeafRole of the leaves that these findings stand in


@dataclass(frozen=True, slots=True)
class ObjectFacts:
    """All that a rule may know of one object; enough to replay a policy without any content."""

    pointer: str
    kind: str
    channel: str
    bytes: int
    findings: tuple[FindingFacts, ...] = ()
    coverage: str = "complete"  # DetectorCoverage kinds: complete partial unsupported failed not_required
    coverage_reason: str = ""
    classification: str = ""
    provenance: str = ""  # "own", "foreign", "linked", "" where nothing is known
    rewritable: bool = True  # false in signed bodies and structural places


@dataclass(frozen=True, slots=True)
class RequestFacts:
    """All that a rule may know of the request around an object."""

    project: str
    principal: str = "unknown"
    principal_kind: str = "unknown"
    roles: tuple[str, ...] = ()
    team: str = ""
    provider: str = ""
    model: str = ""
    locality: str = "remote"
    region: str = ""
    organization_managed: bool = False
    route: str = "proxy"
    mode: str = "governed"
    time: str = ""  # RFC 3339, UTC
    classification: str = ""  # of whatever the project sends; objects carry it


@dataclass(frozen=True, slots=True)
class Decision:
    """What may happen to one object.

    `destinations` is None where every destination is allowed, else the names of those that are. `rules` names the
    rules that spoke. `mask` holds the finding types that must not leave in clear under any delivering disposition.
    `spoken` keeps every disposition that was combined, so that lifting the strictest leaves the next one.
    """

    disposition: ContextDispositionV1
    reason_codes: tuple[str, ...] = ()
    transformations: frozenset[TransformationKindV1] = frozenset()
    mask: frozenset[str] = frozenset()
    destinations: frozenset[str] | None = None
    rules: tuple[str, ...] = ()
    parameters: tuple[tuple[str, str], ...] = ()
    shadow: tuple[str, ...] = field(default=())  # reason codes that a shadow run would have enforced
    spoken: frozenset[ContextDispositionV1] = field(default=frozenset(), compare=False)

    def without(self, lifted: ContextDispositionV1) -> Decision:
        """What is left of a combined decision once a person lifted one of its dispositions; all else stays required."""
        left = {disposition for disposition in (*self.spoken, self.disposition) if disposition is not lifted}
        return replace(self, disposition=ContextDispositionV1.combine(*left), spoken=frozenset(left))


ALLOW = Decision(ContextDispositionV1.ALLOW)


def _join(a: Decision, b: Decision) -> Decision:
    if a.destinations is None or b.destinations is None:
        destinations = a.destinations if b.destinations is None else b.destinations
    else:
        destinations = a.destinations & b.destinations
    return Decision(
        ContextDispositionV1.combine(a.disposition, b.disposition),
        tuple(sorted({*a.reason_codes, *b.reason_codes})),
        a.transformations | b.transformations,
        a.mask | b.mask,
        destinations,
        tuple(sorted({*a.rules, *b.rules})),
        tuple(sorted({*a.parameters, *b.parameters})),
        tuple(sorted({*a.shadow, *b.shadow})),
        a.spoken | b.spoken | {a.disposition, b.disposition},
    )


def combine(*decisions: Decision) -> Decision:
    """The strictest disposition, the union of what is required, the intersection of where it may go.

    Commutative, associative and idempotent; adding a decision never lets more bytes out. No decisions: allow.
    """
    return reduce(_join, decisions, ALLOW)


ANSWER_LEVELS = ("off", "report", "mask", "block")
"""What a policy asks for a category of findings in an answer, least first. The last two hold the answer back."""


@dataclass(frozen=True, slots=True)
class AnswerRules:
    """What happens to findings in answers, by detector category; a category that is not named is `off`."""

    levels: tuple[tuple[str, str], ...] = ()

    def level(self, category: str) -> str:
        """One of ANSWER_LEVELS."""
        return dict(self.levels).get(category, ANSWER_LEVELS[0])

    def reported(self) -> AnswerRules:
        """These rules in shadow: what would be done is found and told, and nothing is held or changed."""
        return AnswerRules(
            tuple((name, min(level, "report", key=ANSWER_LEVELS.index)) for name, level in self.levels)
        )

    @property
    def scans(self) -> bool:
        """Whether answers are scanned at all."""
        return any(level != ANSWER_LEVELS[0] for _, level in self.levels)

    @property
    def holds(self) -> bool:
        """Whether an answer is held back until all of it was scanned."""
        return any(level in {"mask", "block"} for _, level in self.levels)
