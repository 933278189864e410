"""Requests that clients signed, where there is nothing to sign them with anew."""

from __future__ import annotations

from gateway.ports import Headers, OutboundRequest


class NoResigning:
    """ports.Resigner that leaves every signature as it is."""

    def covers(self, request: OutboundRequest) -> bool:
        """See ports.Resigner."""
        return False

    def resign(self, request: OutboundRequest, headers: Headers, body: bytes, now: str) -> Headers:
        """See ports.Resigner."""
        return headers
