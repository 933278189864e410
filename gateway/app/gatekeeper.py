"""The Gate port: the kill switch, which is a file, and budgets, which are counted in memory.

`<state.dir>/kill` stops requests from the moment it exists: an empty file stops all of them, a JSON object
`{"all": true}`, `{"projects": [...]}` or `{"principals": [...]}` what it names. What cannot be read stops everything.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import orjson

from gateway.config.settings import Budget
from gateway.ports import Clock, Peer, Refusal

KILL_FILE: Final = "kill"
_KILLED: Final = Refusal(503, ("policy.kill_switch",), "")
_MAX_COUNTERS: Final = 100_000


@dataclass(frozen=True, slots=True)
class Stopped:
    """What the kill switch stops."""

    everything: bool = False
    projects: frozenset[str] = frozenset()
    principals: frozenset[str] = frozenset()

    def __bool__(self) -> bool:
        return self.everything or bool(self.projects or self.principals)

    def stops(self, peer: Peer) -> bool:
        """Whether this peer's requests are stopped."""
        return self.everything or peer.project in self.projects or peer.principal in self.principals

    def document(self) -> dict[str, Any]:
        """The content of the file, and the answer of the control port."""
        return {
            "all": self.everything,
            "projects": sorted(self.projects),
            "principals": sorted(self.principals),
        }

    def changed(self, *, on: bool, project: str = "", principal: str = "") -> Stopped:
        """The switch turned on or off for a project, a principal, or for all."""
        if not project and not principal:
            return Stopped(everything=True) if on else Stopped()
        projects, principals = set(self.projects), set(self.principals)
        for names, name in ((projects, project), (principals, principal)):
            if name:
                (names.add if on else names.discard)(name)
        return Stopped(self.everything, frozenset(projects), frozenset(principals))


def read_stopped(data: bytes) -> Stopped:
    """What a kill file says; everything where it says nothing that can be read."""
    try:
        document = orjson.loads(data)
        everything, projects, principals = (document.get(k) for k in ("all", "projects", "principals"))
        lists = all(
            isinstance(names, list) and all(isinstance(n, str) for n in names)
            for names in (projects or [], principals or [])
        )
        known = isinstance(everything, bool | None) and not document.keys() - {
            "all",
            "projects",
            "principals",
        }
    except (orjson.JSONDecodeError, AttributeError):
        return Stopped(everything=True)
    if not lists or not known:
        return Stopped(everything=True)
    return Stopped(bool(everything), frozenset(projects or ()), frozenset(principals or ()))


class KillFile:
    """The file. `state` looks at it each time: a look costs microseconds, and a stop must not wait for a poll."""

    def __init__(self, folder: Path) -> None:
        self._path = folder / KILL_FILE
        self._seen: tuple[int, int, int] | None = None
        self._state = Stopped()

    def state(self) -> Stopped:
        """What is stopped now."""
        try:
            stat = self._path.stat()
            seen = (stat.st_mtime_ns, stat.st_size, stat.st_ino)
            if seen != self._seen:
                self._state = read_stopped(self._path.read_bytes())
                self._seen = seen
        except FileNotFoundError:
            self._seen, self._state = None, Stopped()
        except OSError:
            self._seen, self._state = None, Stopped(everything=True)
        return self._state

    def turn(self, *, on: bool, project: str = "", principal: str = "") -> Stopped:
        """Turn the switch, atomically; raises OSError where it cannot be done."""
        state = self.state().changed(on=on, project=project, principal=principal)
        if not state:
            self._path.unlink(missing_ok=True)
            return state
        draft = self._path.with_name(f".{KILL_FILE}.{os.getpid()}")
        draft.write_bytes(orjson.dumps(state.document()))
        draft.replace(self._path)
        return state


@dataclass(slots=True)
class _Count:
    window: int
    requests: int = 0
    bytes: int = 0


@dataclass(slots=True)
class Gatekeeper:
    """ports.Gate. `turned` is told when the kill switch is found in another position than before."""

    kill: KillFile
    budgets: Sequence[Budget]
    clock: Clock
    turned: Callable[[Stopped], None]
    _last: Stopped = field(default_factory=Stopped)
    _counts: dict[tuple[str, str], _Count] = field(default_factory=dict)

    def stopped(self, peer: Peer) -> Refusal | None:
        """See ports.Gate."""
        state = self.kill.state()
        if state != self._last:
            self._last = state
            self.turned(state)
        return _KILLED if state.stops(peer) else None

    def admits(self, peer: Peer, size: int) -> Refusal | None:
        """See ports.Gate."""
        if (stopped := self.stopped(peer)) is not None:
            return stopped
        now = self.clock.monotonic_us() // 1_000_000
        counts = [
            (budget, self._count(budget, peer, now)) for budget in self.budgets if _is_for(budget, peer)
        ]
        for budget, count in counts:
            if budget.requests and count.requests + 1 > budget.requests:
                return Refusal(400, ("budget.requests",), "")
            if budget.bytes and count.bytes + size > budget.bytes:
                return Refusal(400, ("budget.bytes",), "")
        for _, count in counts:
            count.requests += 1
            count.bytes += size
        return None

    def _count(self, budget: Budget, peer: Peer, now: int) -> _Count:
        of = {"gateway": "", "project": peer.project, "principal": f"{peer.project}+{peer.principal}"}
        key, window = (budget.name, of[budget.per]), now // budget.window_s
        count = self._counts.get(key)
        if count is None or count.window != window:
            if len(self._counts) >= _MAX_COUNTERS:
                self._forget(now)
            count = self._counts[key] = _Count(window)
        return count

    def _forget(self, now: int) -> None:
        """Drop the counters of windows that are over."""
        windows: Mapping[str, int] = {budget.name: now // budget.window_s for budget in self.budgets}
        self._counts = {k: c for k, c in self._counts.items() if c.window == windows[k[0]]}


def _is_for(budget: Budget, peer: Peer) -> bool:
    return (not budget.projects or peer.project in budget.projects) and (
        not budget.principals or peer.principal in budget.principals
    )
