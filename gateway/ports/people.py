"""What people hold, release and approve. See gateway.ports."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol


@dataclass(frozen=True, slots=True)
class Hold:
    """An object that waits for a person. `id` stands for object, project, destination and policy together."""

    id: str
    kind: str  # quarantine | approval
    project: str
    digest: str  # as evidence writes it
    destination: str
    policy: str  # digest of the policy in force
    principal: str
    time: str
    object_kind: str
    pointer: str
    size: int
    provenance: str
    reason_codes: tuple[str, ...]
    findings: tuple[Mapping[str, Any], ...]
    content: bytes = field(repr=False)


@dataclass(frozen=True, slots=True)
class Reviewer:
    """Somebody who may decide about held objects, as the control port authenticated them.

    `roles` are of REVIEWER_ROLES; `projects` empty: every one. `principals` are the names under which they send
    requests themselves: who asked can never decide.
    """

    name: str
    roles: frozenset[str]
    projects: frozenset[str] = frozenset()
    principals: frozenset[str] = frozenset()


REVIEWER_ROLES = ("view", "content", "release", "approve", "operate", "break_glass")
"""See what is held; look at content; release or discard; approve or deny; reload, and stop and start traffic."""


class Holding(Protocol):
    """Objects that are held until a person decides, and what was decided."""

    async def hold(self, holds: Sequence[Hold]) -> None:
        """Keep objects sealed, durable when it returns; one that is held already stays. EvidenceError otherwise."""
        ...

    async def reviews(self, project: str, holds: Sequence[str]) -> Mapping[str, str]:
        """`released` or `refused` by id, where somebody entitled decided so, it is genuine and not over yet."""
        ...

    async def wait(self, holds: Sequence[str], timeout_us: int) -> bool:
        """Whether one of them was decided about within this time."""
        ...
