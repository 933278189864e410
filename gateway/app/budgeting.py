"""Budgets: how much a principal, a project or everybody may ask of models in a window of time.

Requests and bytes are counted when a request is let in, tokens when its answer ended: what a provider counts is known
only then. Windows begin at multiples of their length since 1970, so that a restart begins no new one.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import partial
from typing import Any, Final

from gateway.app.clock import SystemClock
from gateway.config import Config
from gateway.config.settings import Budget
from gateway.errors import EvidenceError
from gateway.ports import Clock, Peer, Refusal
from gateway.store.budgets import FILE, Account, BudgetCounts, Used

_TOKENS: Final = ("input_tokens", "output_tokens")
_UNCOUNTED: Final = Refusal(503, ("budget.unavailable",), "")


@dataclass(slots=True)
class Budgets:
    """The budgets of a configuration; `counts` is None where there are none.

    The file is shared by every process of the machine. Whoever finds it held waits for at most
    store.budgets.BUSY_MS, and is refused then.
    """

    budgets: Sequence[Budget]
    counts: BudgetCounts | None
    clock: Clock
    _thread: ThreadPoolExecutor = field(
        default_factory=lambda: ThreadPoolExecutor(1, thread_name_prefix="budgets")
    )

    async def take(self, peer: Peer, size: int) -> Refusal | None:
        """Count a request with a body of `size` bytes, or say why it may not go. What cannot be counted does not go."""
        asked = list(self._asked(peer.project, peer.principal))
        if self.counts is None or not asked:
            return None
        try:
            over = await self._counted(partial(self.counts.take, asked, Used(1, size)))
        except EvidenceError:
            return _UNCOUNTED
        return Refusal(400, (f"budget.{over}",), "") if over else None

    async def spent(self, project: str, principal: str, usage: Mapping[str, int]) -> None:
        """Count the tokens of an answer. EvidenceError where that cannot be done."""
        tokens = sum(usage.get(name, 0) for name in _TOKENS)
        accounts = [account for account, _ in self._asked(project, principal)]
        if self.counts is not None and tokens and accounts:
            await self._counted(partial(self.counts.add, accounts, Used(tokens=tokens)))

    async def _counted[R](self, count: Callable[[], R]) -> R:
        """Count on a thread of its own: other processes may hold the file, and other requests must not wait for it."""
        try:
            return await asyncio.get_running_loop().run_in_executor(self._thread, count)
        except RuntimeError as error:  # the thread takes no more work
            raise EvidenceError("budget.unavailable", "nothing can be counted: the gateway stops") from error

    def _asked(self, project: str, principal: str) -> Iterator[tuple[Account, Used]]:
        now = _seconds(self.clock)
        of = {"gateway": "", "project": project, "principal": f"{project}+{principal}"}
        for budget in self.budgets:
            if (not budget.projects or project in budget.projects) and (
                not budget.principals or principal in budget.principals
            ):
                ends = (now // budget.window_s + 1) * budget.window_s
                yield Account(budget.name, of[budget.per], ends), _limit(budget)

    def close(self) -> None:
        """Close the counters, once what is being counted has been."""
        self._thread.shutdown()
        if self.counts is not None:
            self.counts.close()


def _limit(budget: Budget) -> Used:
    return Used(budget.requests, budget.bytes, budget.tokens)


def _seconds(clock: Clock) -> int:
    return int(datetime.fromisoformat(clock.now()).timestamp())


def budgets_of(config: Config, clock: Clock) -> Budgets:
    """The budgets of a configuration over the file of its state folder; SetupError where that cannot be used."""
    budgets = tuple(config.budgets.values())
    counts = BudgetCounts(config.state.dir / FILE) if budgets else None
    if counts is not None:
        counts.forget(_seconds(clock))
    return Budgets(budgets, counts, clock)


def budget_rows(config: Config) -> list[dict[str, Any]]:
    """What is used of each budget in its present window, as commands and the control port show it."""
    known = config.budgets
    if not known or not (config.state.dir / FILE).exists():
        return []
    with closing(BudgetCounts(config.state.dir / FILE)) as counts:
        return [
            {
                "budget": account.budget,
                "per": known[account.budget].per,
                "of": account.who,
                "window_ends": datetime.fromtimestamp(account.ends, UTC).isoformat().replace("+00:00", "Z"),
                "used": _document(used),
                "limits": _document(_limit(known[account.budget])),
            }
            for account, used in counts.all(_seconds(SystemClock()))
            if account.budget in known
        ]


def _document(used: Used) -> dict[str, int]:
    return {"requests": used.requests, "bytes": used.bytes, "tokens": used.tokens}
