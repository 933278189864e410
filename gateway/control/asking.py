"""Who asks the control port, and the JSON object that a request carries."""

from __future__ import annotations

from typing import Any, Final

import orjson
from starlette.requests import Request

from gateway.ports import Reviewer

_MAX_BODY: Final = 4096


def who_asks(request: Request) -> Reviewer:
    """Who asks, as the door knew them by their token."""
    who: Reviewer = request.scope["reviewer"]
    return who


async def body_of(request: Request) -> dict[str, Any] | None:
    """The JSON object that a request carries; None where it carries none, or too much."""
    body = bytearray()
    async for chunk in request.stream():
        body += chunk
        if len(body) > _MAX_BODY:
            return None
    try:
        document = orjson.loads(bytes(body))
    except orjson.JSONDecodeError:
        return None
    return document if isinstance(document, dict) else None
