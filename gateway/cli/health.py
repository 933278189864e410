"""Whether a gateway runs, asked at its control port."""

from __future__ import annotations

import http.client
import json
from typing import Any

from gateway.config import Config

_MAX_BYTES = 1 << 16


def ask_health(config: Config, *, timeout_s: float = 2.0) -> dict[str, Any] | None:
    """What `/healthz` says; None where nothing that speaks like a gateway answers."""
    control = config.listen.control
    connection = http.client.HTTPConnection(control.host, control.port, timeout=timeout_s)
    try:
        connection.request("GET", "/healthz")
        said = json.loads(connection.getresponse().read(_MAX_BYTES))
    except (OSError, http.client.HTTPException, ValueError):
        return None
    finally:
        connection.close()
    return said if isinstance(said, dict) and isinstance(said.get("status"), str) else None


def is_healthy(config: Config, *, timeout_s: float = 2.0) -> bool:
    """Whether a gateway answers on the control port, and says that it can work."""
    said = ask_health(config, timeout_s=timeout_s)
    return said is not None and said["status"] == "ok"
