"""What the control port knows, handed in by the composition root."""

from __future__ import annotations

import hmac
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from gateway.control.glass import Glass
from gateway.errors import SetupError
from gateway.ports import REVIEWER_ROLES, EvidenceStore, Reviewer

type Page = tuple[list[dict[str, Any]], str | None]
"""Items, newest first, and the cursor of the next page."""


def _no_guard(_record: Mapping[str, Any]) -> Mapping[str, Any]:
    raise SetupError("memory.unavailable", "this gateway was started without a memory guard")


class Desk(Protocol):
    """What reviewers do with held objects; ReviewError for what they may not."""

    async def rows(self, kind: str, query: Mapping[str, Any], who: Reviewer) -> Page:
        """A page of held objects of a kind (quarantine, approval)."""
        ...

    async def show(self, kind: str, name: str, who: Reviewer) -> Mapping[str, Any]:
        """One held object, without its content."""
        ...

    async def content(self, kind: str, name: str, who: Reviewer) -> bytes:
        """Its content; that it was looked at is recorded first."""
        ...

    async def decide(self, kind: str, name: str, act: str, who: Reviewer) -> Mapping[str, Any]:
        """Release, discard, approve or deny it."""
        ...


class Operation(Protocol):
    """What operators do with the gateway; ReviewError for what they may not."""

    async def reload(self, who: Reviewer) -> Mapping[str, Any]:
        """Load the policy anew."""
        ...

    def stopped(self) -> Mapping[str, Any]:
        """What the kill switch stops."""
        ...

    def stale(self) -> bool:
        """Whether the bundles on disk are not valid, so that an older policy is in force."""
        ...

    def budgets(self) -> Sequence[Mapping[str, Any]]:
        """What is used of each budget in its present window."""
        ...

    async def turn(self, who: Reviewer, *, on: bool, project: str, principal: str) -> Mapping[str, Any]:
        """Turn the kill switch on or off."""
        ...


OPERATOR = "operator"
"""The name under which the token of the control port itself acts."""


@dataclass(frozen=True, slots=True)
class ControlState:
    """The parts of a running gateway that the control port shows.

    `health` answers with an empty text when every worker accepts connections and evidence can be written, else with the
    reason. `projects` are rows as `/v1/projects` shows them. `desk` holds what waits for people, None where nothing is
    held; `reviewers` are those with a token of their own; `glass` lifts rules for a while. `memory_guard` takes and
    gives JSON objects, and raises GatewayError for what it refuses.
    """

    store: EvidenceStore
    token: str = field(repr=False)
    health: Callable[[], Awaitable[str]]
    metrics: Callable[[], Awaitable[bytes]]
    version: str
    projects: Sequence[Mapping[str, Any]] = ()
    memory_guard: Callable[[Mapping[str, Any]], Mapping[str, Any]] = _no_guard
    desk: Desk | None = None
    operation: Operation | None = None
    glass: Glass | None = None
    reviewers: Sequence[tuple[bytes, Reviewer]] = field(default=(), repr=False)
    degraded: Callable[[], Sequence[str]] = tuple  # what does not work and stops no request
    engine: str = ""  # which pattern engine detection runs on
    host: str = "127.0.0.1"  # where it listens; a name here is accepted in Host
    loopback: bool = True  # metrics need no token then

    def who(self, token: bytes) -> Reviewer | None:
        """Whose token this is; every one is compared in full, so that time tells nothing.

        The token of the port itself may do nearly everything where no reviewer is configured, else decide nothing.
        """
        everything = {*REVIEWER_ROLES} - {"break_glass"}  # that is a named person's alone
        roles = {"view", "operate"} if self.reviewers else everything
        known = [(self.token.encode("ascii"), Reviewer(OPERATOR, frozenset(roles))), *self.reviewers]
        found = [who for each, who in known if hmac.compare_digest(token, each)]
        return found[0] if found else None
