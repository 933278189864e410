"""Provider accounts where none are listed."""

from __future__ import annotations

from gateway.ports import OutboundRequest, Standing


class AnyAccount:
    """ports.Accounts that lets every account be used and attests none."""

    def standing(self, request: OutboundRequest, provider: str, *, login: bool) -> Standing:
        """See ports.Accounts."""
        return Standing()
