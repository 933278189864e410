"""Which project a connection belongs to by where it comes in and from: a listener of a project's own, or its network.

Where a connection comes from narrows what credentials and certificates may say, and never widens it: whoever names
another project than the place's is refused. A place of two projects (the listener of one, reached from the network of
another) is nobody's.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final

type Network = ipaddress.IPv4Network | ipaddress.IPv6Network


@dataclass(frozen=True, slots=True)
class Listener:
    """A further proxy port, whose connections belong to one project."""

    project: str
    host: str
    port: int
    is_loopback: bool = True

    def mode(self, base: str) -> str:
        """The mode of mitmproxy's that opens it, made of the one of the first port."""
        return f"{base}@{self.host}:{self.port}"


@dataclass(frozen=True, slots=True)
class Place:
    """Where a connection comes in and from. `project` is empty where that says nothing.

    `open` is set where it needs no credentials: from this machine, or from a network that is a project's.
    """

    project: str = ""
    is_loopback: bool = True
    by_network: bool = False
    conflict: bool = False

    @property
    def open(self) -> bool:
        """Whether who gives no credentials is let in, where no token is asked for."""
        return self.is_loopback or self.by_network

    def user(self, named: str) -> str | None:
        """The user name to look up for the one of the credentials; None where it names another project."""
        if not self.project or self.conflict:
            return None if self.conflict else named
        project, _, principal = named.partition("+")
        if project not in {"", self.project}:
            return None
        return f"{self.project}+{principal}" if principal else self.project


@dataclass(frozen=True, slots=True)
class Places:
    """Every further listener, and the networks of projects."""

    listeners: Sequence[Listener] = ()
    networks: Sequence[tuple[Network, str]] = field(default=())

    def at(self, mode: str, address: str, *, is_loopback: bool) -> Place:
        """The place of a connection that came in by a mode of mitmproxy's, from an address.

        `is_loopback` is of the first listener, which every other mode stands for.
        """
        _, at, port = mode.rpartition("@")
        entered = next((each for each in self.listeners if at and each.mode("") == f"@{port}"), None)
        inside = self._network(address)
        if entered is None:
            return Place(inside, is_loopback, bool(inside))
        both = bool(inside) and inside != entered.project
        return Place(entered.project, entered.is_loopback, bool(inside), both)

    def _network(self, address: str) -> str:
        """The project of the smallest network that an address is in; empty where it is in none."""
        if not self.networks:
            return ""
        try:
            ip = ipaddress.ip_address(address.partition("%")[0])
        except ValueError:
            return ""
        mapped = ip.ipv4_mapped if isinstance(ip, ipaddress.IPv6Address) else None
        inside = [each for each in self.networks if (mapped or ip) in each[0]]
        return max(inside, key=lambda each: each[0].prefixlen)[1] if inside else ""


NOWHERE: Final = Place()
"""A connection from this machine to the first listener."""
