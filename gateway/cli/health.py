"""Whether a gateway runs, asked at its control port."""

from __future__ import annotations

import http.client

from gateway.config import Config


def is_healthy(config: Config, *, timeout_s: float = 2.0) -> bool:
    """Whether a gateway answers on the control port, and says that it can work."""
    control = config.listen.control
    connection = http.client.HTTPConnection(control.host, control.port, timeout=timeout_s)
    try:
        connection.request("GET", "/healthz")
        answer = connection.getresponse()
        return answer.status == 200 and b'"ok"' in answer.read(1024)
    except (OSError, http.client.HTTPException):
        return False
    finally:
        connection.close()
