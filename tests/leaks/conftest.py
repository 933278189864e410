"""The benchmark is installed first; where it cannot be, its tests fail and say why."""

from __future__ import annotations

from tests.clients.conftest import installed

__all__ = ["installed"]
