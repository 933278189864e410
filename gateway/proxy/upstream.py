"""Where upstream connections are really dialled, which addresses are out of bounds, and how long a set-up may take.

`connect_to` and the address checks change the address for the moment of the dial only: mitmproxy finds a connection
to reuse by the address that the client named, and takes the TLS name from it.
"""

from __future__ import annotations

import asyncio
import ipaddress
import socket
from collections.abc import Callable

from mitmproxy.connection import Connection, Server

from gateway.proxy.canary import CanaryTarget
from gateway.proxy.routes import is_local, is_private
from gateway.proxy.settings import Address, ProxySettings

OWN_PORT = "host.own_port"
PRIVATE = "host.private_address"
UNRESOLVED = "upstream.unresolved"


class Dialler:
    """Chooses addresses and watches set-ups. `give_up` ends the task that sets a connection up."""

    def __init__(self, settings: ProxySettings, give_up: Callable[[str, Connection], None]) -> None:
        self._settings = settings
        self._give_up = give_up
        self._named: dict[str, Address] = {}
        self._timers: dict[str, asyncio.TimerHandle] = {}
        self.own_ports: set[int] = set(settings.own_ports)
        self._canary = CanaryTarget(settings.canary)

    async def begin(self, client_id: str, server: Server) -> str | None:
        """Point a connection that is about to be dialled at its address. A reason code refuses it."""
        if server.address is None:
            return UNRESOLVED
        named: Address = (server.address[0], server.address[1])
        dial, reason = await self._address(named)
        if reason is not None:
            return reason
        self._named[server.id] = named
        server.address = dial
        limit = self._settings.limits.connect_timeout_s + self._settings.limits.handshake_timeout_s
        loop = asyncio.get_running_loop()
        self._timers[server.id] = loop.call_later(limit, self._give_up, client_id, server)
        return None

    def named(self, server: Server) -> None:
        """The dial is over: the connection carries the name that the client used again."""
        address = self._named.pop(server.id, None)
        if address is not None:
            # Server.__setattr__ refuses a new address on an open connection, rightly: this is the old one.
            server.__dict__["address"] = address

    def ready(self, server: Connection) -> None:
        """The connection is set up to its last layer, or gone."""
        timer = self._timers.pop(server.id, None)
        if timer is not None:
            timer.cancel()

    async def _address(self, named: Address) -> tuple[Address, str | None]:
        """The address to dial, and why it may not be dialled."""
        parent = self._settings.parent
        chosen = (parent is not None and named == (parent.host, parent.port)) or named in self._settings.local
        dial = named if chosen else self._settings.connect_to.get(named, named)
        dial = self._canary.address(*named) or dial
        chosen = chosen or dial != named
        careful = not (self._settings.is_local or chosen)
        if not careful and dial[1] not in self.own_ports:
            return dial, None
        addresses = await _resolve(dial)
        if not addresses:
            return dial, UNRESOLVED
        if dial[1] in self.own_ports and any(_is_ours(a) for a in addresses):
            return dial, OWN_PORT
        if careful and any(is_private(a) for a in addresses):
            return dial, PRIVATE
        return (
            addresses[0],
            dial[1],
        ), None  # the address that was judged, not one that a second look-up gives


def _is_ours(address: str) -> bool:
    """Whether an address belongs to this machine: only then can a socket be bound to it."""
    if is_local(address, ""):
        return True
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    with socket.socket(family, socket.SOCK_STREAM) as probe:
        try:
            probe.bind((address, 0))
        except OSError:
            return False
    return True


async def _resolve(address: Address) -> list[str]:
    try:
        return [str(ipaddress.ip_address(address[0].partition("%")[0]))]
    except ValueError:
        pass
    try:
        found = await asyncio.get_running_loop().getaddrinfo(*address, type=socket.SOCK_STREAM)
    except OSError:
        return []
    return list(dict.fromkeys(str(entry[4][0]) for entry in found))
