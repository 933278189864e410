"""Realistic answers of four dialects, small enough to read: they echo the last user text."""

from __future__ import annotations

import json


def realistic(host: str, target: str, body: bytes) -> tuple[int, list[tuple[str, str]], list[bytes]]:
    """Status, headers and network writes for a request."""
    return (
        200,
        [("content-type", "application/json")],
        [json.dumps({"ok": True, "bytes": len(body)}).encode()],
    )
