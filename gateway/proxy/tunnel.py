"""Connections whose content is not read: passed through and counted, or closed."""

from __future__ import annotations

from dataclasses import dataclass
from typing import override

from mitmproxy.proxy import commands, events, layer
from mitmproxy.proxy.context import Context
from mitmproxy.proxy.layers.tcp import TCPLayer


@dataclass(slots=True)
class Traffic:
    """Bytes that went through a tunnel, seen from the client."""

    up: int = 0
    down: int = 0


class Tunnel(TCPLayer):
    """A relay that keeps nothing and counts."""

    def __init__(self, context: Context, traffic: Traffic) -> None:
        super().__init__(context, ignore=True)
        self._traffic = traffic

    @override
    def relay_messages(self, event: events.Event) -> layer.CommandGenerator[None]:
        if isinstance(event, events.DataReceived):
            if event.connection == self.context.client:
                self._traffic.up += len(event.data)
            else:
                self._traffic.down += len(event.data)
        yield from super().relay_messages(event)


class Closed(layer.Layer):
    """The end of a connection that speaks something that is not let through."""

    @override
    def _handle_event(self, event: events.Event) -> layer.CommandGenerator[None]:
        if isinstance(event, events.Start):
            yield commands.CloseConnection(self.context.client)
