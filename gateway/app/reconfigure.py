"""`gateway.toml` read anew by a gateway that runs: host lists are taken up, of the rest it is said what must wait.

What a request is judged by besides the policy (listeners, stores, keys, limits, who is who) is built once at the start;
to change a part of it under requests in flight would be a mixture that nobody configured.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, fields, replace
from typing import Any, Final

from gateway.app import wiring
from gateway.config import Config, load
from gateway.config.settings import NAMED_SECTIONS, SECTIONS
from gateway.errors import ConfigError
from gateway.proxy.routes import HostRules
from gateway.telemetry.log import Log

LIVE: Final = frozenset({"hosts.intercept", "hosts.tunnel", "hosts.deny", "hosts.unknown"})
"""Settings that `egress reload` and SIGHUP take up."""

_FOUND: Final = frozenset(
    {"folders", "trial_folders"}
)  # where bundles were found: the policy's own reload looks there


@dataclass(frozen=True, slots=True)
class Reconfigured:
    """What became of the settings: taken up, waiting for a restart, or not valid (then nothing is taken up)."""

    applied: tuple[str, ...] = ()
    restart: tuple[str, ...] = ()
    problems: tuple[str, ...] = ()


def changed(old: Config, new: Config) -> Iterator[str]:
    """The paths of settings that differ, as `section.key` or `section.name`."""
    for section in SECTIONS:
        before, after = getattr(old, section), getattr(new, section)
        names = [each.name for each in fields(before) if each.name not in _FOUND]
        yield from (f"{section}.{name}" for name in names if getattr(before, name) != getattr(after, name))
    for section in NAMED_SECTIONS:
        before, after = getattr(old, section), getattr(new, section)
        yield from (f"{section}.{name}" for name in sorted(before.keys() | after.keys())
                    if before.get(name) != after.get(name))  # fmt: skip


@dataclass(slots=True)
class LiveSettings:
    """The settings that a gateway was started with, and those of its file since. `use` puts host lists in force."""

    started: Config
    use: Callable[[HostRules], None]
    log: Log | None = None
    _hosts: Any = field(init=False)  # the section in force

    def __post_init__(self) -> None:
        self._hosts = self.started.hosts

    async def reload(self) -> Reconfigured:
        """Read the file anew. Without one, or where it is not valid, everything stays as it is."""
        if self.started.source is None:
            return Reconfigured()
        try:
            found = await asyncio.to_thread(load, self.started.source, os.environ)
        except ConfigError as error:
            self._tell("settings_reload_failed", count=len(error.problems))
            return Reconfigured(problems=error.problems)
        current = replace(self.started, hosts=replace(found.hosts, websocket=self.started.hosts.websocket))
        applied = tuple(
            path for path in changed(replace(current, hosts=self._hosts), current) if path in LIVE
        )
        restart = tuple(path for path in changed(self.started, found) if path not in LIVE)
        if applied:
            self.use(wiring.host_rules(current))
            self._hosts = current.hosts
            self._tell("settings_reloaded", count=len(applied))
        for path in restart:
            self._tell("settings_need_restart", place=path)
        return Reconfigured(applied, restart)

    def _tell(self, name: str, **said: Any) -> None:
        if self.log is not None:
            self.log.event(name, level="warning" if name != "settings_reloaded" else "info", **said)
