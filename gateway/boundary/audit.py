"""Events about attempts to reach across projects, allowed or not, in exactly the contract's JSON (§9.1)."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass

from gateway.boundary.visibility import Crossing, same_identity
from gateway.contract import BoundaryPolicy, CrossProjectEventTypeV1, CrossProjectEventV1
from gateway.errors import ContractError

UNKNOWN_PROJECT = "unknown"
"""What stands in an event for a project that nobody could determine."""

MAX_EVENTS = 1000
"""Events that one answer may hold (contract.md §9.2)."""


@dataclass(frozen=True, slots=True)
class Attempt:
    """One attempt to reach what may be another project's: who asked, whose it is, by which tool, how many facts."""

    event: CrossProjectEventTypeV1
    asking: str
    owner: str
    tool: str
    action: str
    facts: int


def crossing_event(
    attempt: Attempt, crossing: Crossing, *, at: str, policy: BoundaryPolicy
) -> CrossProjectEventV1 | None:
    """The event of an attempt; None where the project is the asker's own or the policy switches the audit off.

    For a search or a recall the source is who asks and the target the foreign store; for an import the
    source is where the material comes from and the target who takes it in (contract.md §9.1). `facts` is
    the true number reached.
    """
    if same_identity(attempt.asking, attempt.owner) or not policy.audit_cross_access:
        return None
    source, target = attempt.asking or UNKNOWN_PROJECT, attempt.owner or UNKNOWN_PROJECT
    if attempt.event is CrossProjectEventTypeV1.IMPORT:
        source, target = target, source
    return CrossProjectEventV1(
        timestamp=at,
        event_type=attempt.event,
        source_project_hash=source,
        target_project_hash=target,
        tool=attempt.tool,
        action=attempt.action,
        facts_accessed=attempt.facts,
        allowed=crossing.allowed,
        policy_reason=crossing.reason,
    )


def load_events(data: bytes, limit: int = 100) -> list[CrossProjectEventV1]:
    """The last `limit` events of a JSONL file's content, in file order (contract.md §9.2).

    Lines that are no event are passed over: a torn last line must not hide the others.
    """
    found: deque[CrossProjectEventV1] = deque(maxlen=max(0, min(limit, MAX_EVENTS)))
    for line in data.splitlines():
        if not line.strip():
            continue
        try:
            found.append(CrossProjectEventV1.from_json(line))
        except ContractError:
            continue
    return list(found)
