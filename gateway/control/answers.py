"""Answers of the control port: JSON, never cached, never framed."""

from __future__ import annotations

from typing import Any, Final

import orjson
from starlette.responses import Response

HEADERS: Final = {
    "cache-control": "no-store",
    "x-content-type-options": "nosniff",
    "referrer-policy": "no-referrer",
    "content-security-policy": "default-src 'none'; frame-ancestors 'none'",
}


def answer(document: Any, status: int = 200) -> Response:
    """A JSON document."""
    return raw(orjson.dumps(document), status)


def raw(body: bytes, status: int = 200, media_type: str = "application/json") -> Response:
    """Bytes that are already what they should be."""
    return Response(body, status, dict(HEADERS), media_type)


def failure(status: int, code: str, message: str = "", pointer: str = "") -> Response:
    """An error: a stable code, and a sentence of our own that quotes nothing."""
    error = {"code": code, "message": message or code}
    if pointer:
        error["pointer"] = pointer
    return answer({"error": error}, status)
