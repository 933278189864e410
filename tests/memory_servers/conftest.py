"""The server is installed first as the clients are; where it cannot be, the tests fail and say why."""

from __future__ import annotations

from tests.clients.conftest import installed

__all__ = ["installed"]
