"""The door for `mitmdump -s addons/egress.py`: the gateway's own addon in a master that is not ours.

    EGRESS_CONFIG=gateway.toml mitmdump -s addons/egress.py \
        --set connection_strategy=lazy --set rawtcp=false --set websocket=false

No logic lives here. It refuses to load with options that would let something through, and while it is not loaded,
not ready, or has been unloaded by mitmproxy's hot reload, the guarded HTTP layers let nothing pass. `egress up` is the
way to run the gateway; this is for those who already run mitmproxy.
"""

from __future__ import annotations

import asyncio
import logging
import os
from pathlib import Path
from typing import Any

from mitmproxy import ctx, exceptions
from mitmproxy.addonmanager import Loader

from gateway.app.door import Door, build_addon
from gateway.errors import GatewayError
from gateway.ports import UseCase
from gateway.proxy.addon import EgressAddon
from gateway.proxy.late import LateUseCase
from gateway.proxy.tls import Leaves

logger = logging.getLogger("gateway.addons.egress")

# option -> the only value under which nothing leaves unread
REQUIRED: dict[str, Any] = {
    "connection_strategy": "lazy",
    "rawtcp": False,
    "websocket": False,
    "stream_large_bodies": None,
    "body_size_limit": None,
    "ssl_insecure": False,
    "allow_hosts": [],
    "ignore_hosts": [],
    "tcp_hosts": [],
    "udp_hosts": [],
    "validate_inbound_headers": True,
    "upstream_cert": False,
}


class EgressDoor:
    """Loads the gateway into a running mitmproxy, or stops it from forwarding anything."""

    def __init__(self) -> None:
        self.addons: list[Any] = []
        self._use_case = LateUseCase()
        self._door: Door | None = None
        self._leaves: Leaves | None = None
        self._task: asyncio.Task[None] | None = None

    def load(self, loader: Loader) -> None:
        """Take over the connections before anything is decided."""
        path = os.environ.get("EGRESS_CONFIG")
        try:
            self._door = build_addon(Path(path) if path else None)
        except GatewayError as error:
            raise exceptions.OptionsError(  # type: ignore[no-untyped-call]
                f"the gateway cannot be loaded: {error.code}"
            ) from error
        stock = loader.master.addons.get("tlsconfig")
        if stock is not None:
            loader.master.addons.remove(stock)  # it would make a CA of its own, whose key is every leaf's key
        self._leaves = Leaves(None)
        guard = EgressAddon(self._door.settings, self._use_case)
        self.addons = [self._leaves, guard]
        guard.load(loader)

    def configure(self, updated: set[str]) -> None:
        """Refuse options that fail open, now and whenever they change."""
        wrong = [name for name, value in REQUIRED.items() if getattr(ctx.options, name, value) != value]
        if wrong:
            self._use_case.close()
            hints = " ".join(f"{name}={str(REQUIRED[name]).lower()}" for name in wrong)
            raise exceptions.OptionsError(  # type: ignore[no-untyped-call]
                f"these options would let requests leave unread; set: {hints}"
            )

    def running(self) -> None:
        """Open store, detectors and policy; until that is done every request waits or is refused."""
        self._task = asyncio.get_running_loop().create_task(self._open())

    async def _open(self) -> None:
        if self._door is None or self._leaves is None:
            return
        try:
            use_case: UseCase = await self._door.open()
        except GatewayError as error:
            logger.error("the gateway cannot start: %s", error.code)  # noqa: TRY400  a traceback may quote content
            ctx.master.shutdown()  # type: ignore[no-untyped-call]
            return
        trust = str(self._door.settings.trust_file)
        ctx.options.update(ssl_verify_upstream_trusted_ca=trust)  # type: ignore[no-untyped-call]
        self._leaves.authority = self._door.authority
        self._use_case.open(use_case)

    async def done(self) -> None:
        """Let go of the state folder."""
        self._use_case.close()
        if self._door is not None:
            await self._door.close()


addons = [EgressDoor()]
