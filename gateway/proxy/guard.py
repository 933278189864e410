"""What the layers ask of the proxy they belong to, and how a request is known again below the hooks."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Protocol, cast

from mitmproxy import http
from mitmproxy.connection import Connection
from mitmproxy.proxy import layer
from mitmproxy.proxy.context import Context
from mitmproxy.proxy.layers.http._upstream_proxy import HttpUpstreamProxy

from gateway.ports import Refusal
from gateway.proxy.exchange import Exchange

_ATTRIBUTE = "egress_exchange"


class Guard(Protocol):
    """What the layers ask of the proxy they belong to."""

    max_header_bytes: int

    def transport(self, client: Connection, server: Connection) -> asyncio.WriteTransport | None:
        """The transport under an upstream connection of this client."""
        ...

    def sending(self, exchange: Exchange, client: Connection, server: Connection) -> None:
        """The connection is up and the head of the request is about to be written."""
        ...

    def sent(self, exchange: Exchange, client: Connection, server: Connection) -> None:
        """The last byte of the request was handed to the connection."""
        ...

    def alarm(self, reason: str) -> None:
        """Bytes that were not admitted tried to leave."""
        ...

    def exchange(self, flow: http.HTTPFlow) -> Exchange | None:
        """The exchange of a flow, None before its head was looked at."""
        ...

    def room(self, exchange: Exchange, size: int) -> Refusal | None:
        """Why a request body may not grow to `size` bytes, or None."""
        ...

    def relay(self, client: Connection) -> Callable[[Context], layer.Layer] | None:
        """What makes the layer of a tunnel where this client's CONNECT led to one."""
        ...

    def failure(self, exchange: Exchange) -> http.Response:
        """The answer to a request whose attempt failed, in the provider's shape."""
        ...


_guards: dict[int, Guard] = {}  # by identity of the options that every context of one master shares


def set_guard(options: object, guard: Guard | None) -> None:
    """Make `guard` the one behind every connection of the master with these options; None: nothing passes."""
    if guard is None:
        _guards.pop(id(options), None)
    else:
        _guards[id(options)] = guard


def guard_of(context: Context) -> Guard | None:
    """The guard of the master that a layer belongs to; None lets nothing through."""
    return _guards.get(id(context.options))


def bind(request: http.Request, exchange: Exchange) -> None:
    """Tie a request to its exchange, by which the upstream layers know it again."""
    setattr(request, _ATTRIBUTE, exchange)


def bound(request: http.Request) -> Exchange | None:
    """The exchange of a request, None for one that never passed the hooks."""
    return cast("Exchange | None", getattr(request, _ATTRIBUTE, None))


def carrier(context: Context) -> Connection:
    """The connection whose transport carries an upstream connection: itself, or the parent proxy's.

    The innermost parent layer is the one of this connection; an outer one belongs to the client's CONNECT.
    """
    for each in reversed(context.layers):
        if isinstance(each, HttpUpstreamProxy):
            return each.tunnel_connection
    return context.server
