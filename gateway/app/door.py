"""The way in for `mitmdump -s addons/egress.py`: the same use case and the same addon, in somebody else's master."""

from __future__ import annotations

import os
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from pathlib import Path

from gateway.app import wiring
from gateway.app.serve import use_case
from gateway.config import load
from gateway.errors import ConfigError
from gateway.ports import UseCase
from gateway.proxy.certs import CertificateAuthority
from gateway.proxy.settings import ProxySettings


@dataclass(slots=True)
class Door:
    """What the addon of another master is made of. `open` before its first connection, `close` at its end."""

    settings: ProxySettings
    config_path: Path | None
    authority: CertificateAuthority | None = None
    _stack: AsyncExitStack = field(default_factory=AsyncExitStack)

    async def open(self) -> UseCase:
        """Start store, detectors and policy; SetupError or ConfigError where one of them is not right."""
        core = await self._stack.enter_async_context(use_case(load(self.config_path, os.environ)))
        self.authority = wiring.authority_of(core.config, core.keys)
        return core.egress

    async def close(self) -> None:
        """Finish the log and let go of the state folder."""
        await self._stack.aclose()


def build_addon(config_path: Path | None) -> Door:
    """The parts of the addon for a configuration file; ConfigError where that is not valid."""
    settings = load(config_path, os.environ)
    if settings.listen.workers != 1:
        raise ConfigError(["listen.workers: mitmdump is one process: 1; `egress up` starts several"])
    return Door(wiring.settings_of_proxy(settings), config_path)
