"""The upgrade request: which ones are followed, and how the admitted one is written (RFC 6455 §4).

Fields that the use case does not look into must not carry anything of the client's: the key has one form, extensions
are written anew from what is understood, and subprotocols are those that providers define.
"""

from __future__ import annotations

import re
from typing import Final

from mitmproxy import http

from gateway.proxy import frames
from gateway.proxy.requests import is_websocket

_KEY: Final = re.compile(r"[A-Za-z0-9+/]{21}[AQgw]==")  # 16 bytes
_EXTENSIONS: Final = b"sec-websocket-extensions"
_WRITTEN: Final = frozenset({b"connection", b"upgrade", _EXTENSIONS})
# OpenAI, for browsers that can set no header: the last three name the call to its own provider, as Authorization does.
_PROTOCOL: Final = re.compile(
    r"realtime|openai-beta\.[a-z0-9-]{1,64}"
    r"|openai-(?:insecure-api-key|organization|project)\.[A-Za-z0-9_.-]{1,512}"
)


def is_followed(request: http.Request) -> bool:
    """Whether an upgrade is one whose messages can be read: plain HTTP/1.1, no body, nothing unknown in its fields."""
    return (
        request.method == "GET"
        and request.http_version == "HTTP/1.1"
        and is_websocket(request)
        and request.headers.get("content-length", "0") == "0"
        and "transfer-encoding" not in request.headers
        and "expect" not in request.headers
        and _one(request, "upgrade").lower() == "websocket"
        and "upgrade" in _tokens(request, "connection")
        and _one(request, "sec-websocket-version") == "13"
        and _KEY.fullmatch(_one(request, "sec-websocket-key")) is not None
        and all(map(_PROTOCOL.fullmatch, _tokens(request, "sec-websocket-protocol", lower=False)))
        and not any(n.lower() == b"sec-websocket-accept" for n, _ in request.headers.fields)
    )


def _one(request: http.Request, name: str) -> str:
    """The value of a field that stands once; empty else."""
    values = request.headers.get_all(name)
    return values[0] if len(values) == 1 else ""


def _tokens(request: http.Request, name: str, *, lower: bool = True) -> list[str]:
    joined = ",".join(request.headers.get_all(name))
    tokens = [token.strip() for token in (joined.lower() if lower else joined).split(",")]
    return [token for token in tokens if token]


def offered(request: http.Request) -> str:
    """The extensions to offer the provider: of those that the client offers, the ones that can be read."""
    return frames.written(frames.offers(",".join(request.headers.get_all("sec-websocket-extensions"))))


def put(request: http.Request, extensions: str) -> None:
    """Make an admitted request an upgrade again; `extensions` are what is offered."""
    kept = tuple(pair for pair in request.headers.fields if pair[0].lower() not in _WRITTEN)
    fields = [(b"Connection", b"Upgrade"), (b"Upgrade", b"websocket")]
    if extensions:
        fields.append((b"Sec-WebSocket-Extensions", extensions.encode("ascii")))
    request.headers.fields = (*kept, *fields)


def agreed(response: http.Response) -> frames.Parameters | None:
    """What the provider agreed to; ValueError where that cannot be read."""
    return frames.agreed(",".join(response.headers.get_all("sec-websocket-extensions")))
