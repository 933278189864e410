"""The Gate port: the kill switch, which is a file, and budgets (gateway.app.budgeting).

`<state.dir>/kill` stops requests from the moment it exists: an empty file stops all of them, a JSON object
`{"all": true}`, `{"projects": [...]}` or `{"principals": [...]}` what it names. What cannot be read stops everything;
so does `null`, which is neither on nor off.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import orjson

from gateway.app.budgeting import Budgets
from gateway.files import replace_file
from gateway.ports import Peer, Refusal

KILL_FILE: Final = "kill"
_KILLED: Final = Refusal(503, ("policy.kill_switch",), "")


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
        everything = document.get("all", False)
        projects, principals = (document.get(k, []) for k in ("projects", "principals"))
        lists = all(
            isinstance(names, list) and all(isinstance(n, str) for n in names)
            for names in (projects, principals)
        )
        known = isinstance(everything, bool) and not document.keys() - {"all", "projects", "principals"}
    except (orjson.JSONDecodeError, AttributeError):
        return Stopped(everything=True)
    if not lists or not known:
        return Stopped(everything=True)
    return Stopped(everything, frozenset(projects), frozenset(principals))


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
        # Durable, as what was stopped must stay so; and for others to read, as root may turn it for the gateway's user.
        replace_file(self._path, (orjson.dumps(state.document()),), mode=0o644)
        return state


@dataclass(slots=True)
class Gatekeeper:
    """ports.Gate. `turned` is told when the kill switch is found in another position than before."""

    kill: KillFile
    budgets: Budgets
    turned: Callable[[Stopped], None]
    _last: Stopped = field(default_factory=Stopped)

    def stopped(self, peer: Peer) -> Refusal | None:
        """See ports.Gate."""
        state = self.kill.state()
        if state != self._last:
            self._last = state
            self.turned(state)
        return _KILLED if state.stops(peer) else None

    async def admits(self, peer: Peer, size: int) -> Refusal | None:
        """See ports.Gate."""
        return self.stopped(peer) or await self.budgets.take(peer, size)

    async def spent(self, project: str, principal: str, usage: Mapping[str, int]) -> None:
        """See ports.Gate."""
        await self.budgets.spent(project, principal, usage)
