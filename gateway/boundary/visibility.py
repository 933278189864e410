"""Whether what belongs to one project may be seen in another (contract.md §9.2 and §9.4).

`check_boundary` is the plain check of the boundary contract: identity and policy flag, nothing else.
`is_visible` is the gateway's own rule on top of it and is stricter: the role and the policy must both allow
the crossing, the fact's own privacy is honoured, and a recall never crosses.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

from gateway.contract import BoundaryPolicy, CrossProjectEventTypeV1, FactPrivacy

_E = CrossProjectEventTypeV1


@dataclass(frozen=True, slots=True)
class Fact:
    """What the rule knows of a piece of knowledge.

    `project` is the hash of its owner, empty where nobody knows; `links` are the projects that its owner
    links to; `digest` is the exact digest of the item, by which universal items are known.
    """

    project: str
    privacy: FactPrivacy = FactPrivacy.PROJECT_ONLY
    team: str = ""
    links: frozenset[str] = frozenset()
    digest: str = ""


@dataclass(frozen=True, slots=True)
class Asking:
    """Who wants to see it: as the gateway itself knows it, never as the request says.

    `role_allows` is `[io] allow_cross_project_search` of the principal's roles.
    """

    project: str
    team: str = ""
    role_allows: bool = False


@dataclass(frozen=True, slots=True)
class Crossing:
    """The answer, true where the boundary is not crossed or may be; `reason` is the event's `policy_reason`."""

    allowed: bool
    reason: str

    def __bool__(self) -> bool:
        return self.allowed


def same_identity(a: str, b: str) -> bool:
    """Whether two project hashes name the same project: two that are empty do not (contract.md §9.2)."""
    return bool(a) and a == b


def check_boundary(
    source: str, target: str, policy: BoundaryPolicy, event: CrossProjectEventTypeV1 | str
) -> Crossing:
    """The boundary contract's check: the same project, or the policy's flag for this kind of event.

    Privacy, roles and links are not looked at here. Raises ValueError for an event type that does not
    exist.
    """
    if same_identity(source, target):
        return Crossing(True, "same project")
    if _E(event) is _E.IMPORT:
        return _by_flag("cross_project_import", allowed=policy.cross_project_import)
    return _by_flag("cross_project_search", allowed=policy.cross_project_search)


def visibility(
    fact: Fact,
    asking: Asking,
    policy: BoundaryPolicy,
    *,
    event: CrossProjectEventTypeV1 | str = _E.SEARCH,
    universal: Collection[str] = (),
) -> Crossing:
    """Whether a fact is visible to who asks, with the reason (contract.md §9.4).

    `universal` holds the digests of items that are shared by design; they are exempt only by exact digest,
    and only while the policy's `universal_gotchas_enabled` stands.
    """
    kind = _E(event)
    if same_identity(fact.project, asking.project):
        return Crossing(True, "same project")
    if policy.universal_gotchas_enabled and fact.digest and fact.digest in universal:
        return Crossing(True, "universal item")
    if not asking.project:
        return Crossing(False, "asking project unknown")
    if not fact.project:
        return Crossing(False, "owning project unknown")
    if kind is _E.RECALL:
        return Crossing(False, "recall never crosses projects")
    if not asking.role_allows:
        return Crossing(False, "role denies allow_cross_project_search")
    if not (by_policy := check_boundary(asking.project, fact.project, policy, kind)):
        return by_policy
    return _by_privacy(fact, asking)


def is_visible(
    fact: Fact,
    asking: Asking,
    policy: BoundaryPolicy | None = None,
    *,
    event: CrossProjectEventTypeV1 | str = _E.SEARCH,
    universal: Collection[str] = (),
) -> bool:
    """`visibility` as a plain yes or no; without a policy the defaults hold, under which nothing crosses."""
    return visibility(fact, asking, policy or BoundaryPolicy(), event=event, universal=universal).allowed


def _by_flag(name: str, *, allowed: bool) -> Crossing:
    return Crossing(allowed, f"{name} {'enabled' if allowed else 'disabled'}")


def _by_privacy(fact: Fact, asking: Asking) -> Crossing:
    match fact.privacy:
        case FactPrivacy.TEAM:
            same = bool(fact.team) and fact.team == asking.team
            return Crossing(same, "same team" if same else "not on the team")
        case FactPrivacy.LINKED_PROJECTS:
            linked = asking.project in fact.links
            return Crossing(linked, "linked by the owner" if linked else "not linked by the owner")
        case FactPrivacy.PROJECT_ONLY:
            return Crossing(False, "fact is project_only")
