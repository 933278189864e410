"""What the proxy is told by the composition root. Values only; nothing here reads a file or the environment."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import override

from gateway.ports import Peer
from gateway.proxy.places import Places
from gateway.proxy.routes import HostRules

type Address = tuple[str, int]

# Longer than any provider thinks before its first byte, short enough that a dead peer is noticed the same day.
IDLE_TIMEOUT_S = 1800
CONNECT_TIMEOUT_S = 10.0
HANDSHAKE_TIMEOUT_S = 10.0
HEAD_TIMEOUT_S = 900.0
MAX_HEADER_BYTES = 64 * 1024


@dataclass(frozen=True, slots=True)
class Access:
    """How a client becomes a peer: the token it must present under one user name (`<project>[+<principal>]`).

    An empty token asks for none, which is honoured on a loopback listener only.
    """

    peer: Peer
    token: bytes = field(default=b"", repr=False)


@dataclass(frozen=True, slots=True)
class ParentProxy:
    """The company proxy that every upstream connection goes through."""

    host: str
    port: int
    scheme: str = "http"  # http | https: how the parent itself is spoken to
    authorization: bytes = field(
        default=b"", repr=False
    )  # the whole Proxy-Authorization value, empty for none

    @override
    def __str__(self) -> str:
        return f"{self.host}:{self.port}"


@dataclass(frozen=True, slots=True)
class Limits:
    """Bounds of one proxy process. Sizes in bytes, times as their names say."""

    max_body_bytes: int = 32 * 1024 * 1024
    max_inflight_bytes: int = 512 * 1024 * 1024
    max_connections: int = 1024
    max_header_bytes: int = MAX_HEADER_BYTES
    ws_message_bytes: int = 32 * 1024 * 1024  # of one WebSocket message, inflated
    deadline_ms: int = 10_000
    connect_timeout_s: float = CONNECT_TIMEOUT_S
    handshake_timeout_s: float = HANDSHAKE_TIMEOUT_S
    head_timeout_s: float = HEAD_TIMEOUT_S
    idle_timeout_s: int = IDLE_TIMEOUT_S


@dataclass(frozen=True, slots=True)
class ProxySettings:
    """A listener, those of projects beside it (`places`), and everything they are allowed to do.

    `access` is keyed by the user name of the proxy credentials; the entry `default` serves clients without any.
    `connect_to` maps (host, port) as the client named it to where it is dialled instead; the TLS name stays.
    `own_ports` are ports of this gateway, refused as destinations; the proxy adds its own port.
    """

    hosts: HostRules
    trust_file: Path  # one PEM file: public roots, and `upstream.ca_file` where there is one
    listen_host: str = "127.0.0.1"
    listen_port: int = 0
    is_loopback: bool = True
    access: Mapping[str, Access] = field(default_factory=lambda: {"default": Access(Peer())})
    connect_to: Mapping[Address, Address] = field(default_factory=dict)
    parent: ParentProxy | None = None
    local: frozenset[Address] = (
        frozenset()
    )  # models on this machine, which only the gateway itself sends requests to
    own_ports: frozenset[int] = frozenset()
    canary: Path | None = None  # the file that opens the way for `egress doctor` (gateway.proxy.canary)
    limits: Limits = field(default_factory=Limits)
    websocket: bool = True  # whether messages are read where the dialect is known; otherwise upgrades get 426
    tls_cert: Path | None = None  # a TLS listener (`https://` proxy): its certificate chain and key
    tls_key: Path | None = None
    places: Places = field(default_factory=Places)
    client_ca: Path | None = None  # roots of client certificates, whose subject says who the client is

    @property
    def is_local(self) -> bool:
        """Whether only this machine reaches any of the listeners."""
        return self.is_loopback and all(each.is_loopback for each in self.places.listeners)
