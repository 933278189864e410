"""What operators do with a running gateway: load the policy anew, stop and start traffic; and who may do what."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from gateway.app.budgeting import budget_rows
from gateway.app.gatekeeper import KillFile
from gateway.app.policies import LivePolicy
from gateway.app.reconfigure import LiveSettings, Reconfigured
from gateway.app.tokens import token_of
from gateway.config import Config
from gateway.contract.canonical import canonical_json
from gateway.egress.records import record
from gateway.errors import ReviewError, SetupError
from gateway.ports import Clock, EvidenceStore, Reviewer


@dataclass(frozen=True, slots=True)
class Operation:
    """Acts on the whole gateway; each is recorded with who did it."""

    policy: LivePolicy
    trial: LivePolicy | None
    kill: KillFile
    evidence: EvidenceStore
    clock: Clock
    config: Config
    spread: Callable[[], Awaitable[Sequence[str]]] | None = None  # has the other processes load it too
    settings: LiveSettings | None = None

    async def reload(self, who: Reviewer) -> Mapping[str, Any]:
        """Load the bundles and the configuration file anew.

        `ok` is false where one is not valid; what was in force of it stays. `settings` says which settings were taken
        up, and which wait for a restart.
        """
        _require(who)
        result = await self.policy.reload()
        tried = await self.trial.reload() if self.trial is not None else None
        problems = [*result.problems, *(tried.problems if tried is not None else ())]
        settings = await self.settings.reload() if self.settings is not None else Reconfigured()
        problems += settings.problems
        needed = result.ok or settings.applied
        elsewhere = await self.spread() if self.spread is not None and needed else ()
        done = result.ok and not elsewhere and not settings.problems
        await self._record(who, event="policy.reload", ok=done, policy=result.digest)
        return {
            "ok": done,
            "changed": result.changed,
            "digest": result.digest,
            "problems": [*problems, *(each for each in elsewhere if each not in problems)],
            "settings": {"applied": list(settings.applied), "restart": list(settings.restart)},
        }

    def stopped(self) -> Mapping[str, Any]:
        """What the kill switch stops."""
        return self.kill.state().document()

    def stale(self) -> bool:
        """Whether the bundles on disk are not valid, so that an older policy is in force."""
        return any(each.stale for each in (self.policy, self.trial) if each is not None)

    def budgets(self) -> Sequence[Mapping[str, Any]]:
        """What is used of each budget in its present window."""
        return budget_rows(self.config)

    async def turn(self, who: Reviewer, *, on: bool, project: str, principal: str) -> Mapping[str, Any]:
        """Turn the kill switch. A stop takes effect before it is recorded, and also where it cannot be recorded."""
        _require(who)
        try:
            state = await asyncio.to_thread(self.kill.turn, on=on, project=project, principal=principal)
        except OSError as error:
            raise SetupError("kill.unusable", f"the kill file cannot be written ({error.strerror})") from None
        await self._record(who, event="kill_switch", on=on, stopped=state.document())
        return state.document()

    async def _record(self, who: Reviewer, **event: Any) -> None:
        body = canonical_json({"time": self.clock.now(), "reviewer": who.name, **event})
        await self.evidence.append([record("event", (body,))])


def _require(who: Reviewer) -> None:
    if "operate" not in who.roles:
        raise ReviewError("review.role", "this needs the role operate")


def reviewers_of(config: Config) -> Sequence[tuple[bytes, Reviewer]]:
    """Reviewers by their tokens; SetupError where one cannot be read, or two have the same."""
    found = [
        (token_of(settings.token_file), Reviewer(
            name, frozenset(settings.roles), frozenset(settings.projects), frozenset(settings.principals)
        ))
        for name, settings in config.reviewers.items()
    ]  # fmt: skip
    if len({token for token, _ in found}) < len(found):
        raise SetupError("setup.token_file", "two reviewers have the same token")
    return found
