"""Between mitmproxy's request and ours: what is taken off, what is checked, and how an admitted request is put back."""

from __future__ import annotations

import uuid

from mitmproxy import http

from gateway.ports import Admitted, Detour, Headers, OutboundRequest
from gateway.proxy.exchange import Exchange, Frozen
from gateway.proxy.routes import split_authority

# RFC 9110 §7.6.1: what concerns this hop only. `te: trailers` would ask for trailers that nobody reads here.
_HOP = frozenset(
    {
        b"proxy-authorization",
        b"proxy-connection",
        b"proxy-authenticate",
        b"keep-alive",
        b"upgrade",
        b"te",
        b"trailer",
    }
    | {b"http2-settings"}
)
METHODS = frozenset({"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "QUERY"})
"""Methods of intercepted requests: any other word would be a place that nobody reads (RFC 9110 §9.1)."""

_FRAMING = frozenset({b"content-length", b"transfer-encoding"})
_HARMLESS = frozenset({b"close", b"keep-alive", b""})


def new_request_id() -> str:
    """A fresh id; random, so that it tells nothing."""
    return str(uuid.uuid4())


def is_websocket(request: http.Request) -> bool:
    """Whether a request asks for a WebSocket (RFC 6455 §4.1, RFC 8441 §4)."""
    upgrade = request.headers.get("upgrade", "").lower()
    return "websocket" in [token.strip() for token in upgrade.split(",")]


def end_to_end(headers: Headers) -> Headers:
    """The headers without those of this hop; order and spelling stay."""
    named: set[bytes] = set()
    for name, value in headers:
        if name.lower() == b"connection":
            named |= {token.strip().lower() for token in value.split(b",")}
    drop = _HOP | (named - _HARMLESS - _FRAMING - {b"host"})
    if not named <= _HARMLESS:
        drop |= {b"connection"}
    return tuple(pair for pair in headers if pair[0].lower() not in drop)


def destinations_agree(request: http.Request, sni: str | None, host: str, port: int) -> bool:
    """Whether every place that names a destination names (host, port): SNI, Host, :authority, absolute target."""
    if sni is not None and split_authority(sni, port) != (host, port):
        return False
    names = [value.decode("latin-1") for name, value in request.headers.fields if name.lower() == b"host"]
    if len(names) > 1:
        return False
    if request.authority:
        names.append(request.authority)
    if not names:
        return request.http_version == "HTTP/1.0"
    return all(split_authority(name, port) == (host, port) for name in names)


def outbound(flow: http.HTTPFlow, exchange: Exchange, *, transport: str = "http") -> OutboundRequest:
    """The request as the use case sees it; a body that was not read is empty."""
    request = flow.request
    return OutboundRequest(
        request_id=exchange.request_id,
        peer=exchange.peer,
        method=request.method,
        scheme=request.scheme,
        host=exchange.host,
        port=exchange.port,
        target=request.path,
        headers=end_to_end(request.headers.fields),
        body=request.data.content or b"",
        transport=transport,
    )


def freeze(request: http.Request) -> Frozen:
    """Everything of a request head that reaches the wire."""
    data = request.data
    return (data.method, data.scheme, data.authority, data.host, data.port, data.path, data.headers.fields)


def put(request: http.Request, admitted: Admitted, *, absolute: bool = False) -> None:
    """Make the request the admitted one: its body, its headers, exactly one framing header with the true length.

    `absolute` keeps the absolute form of the target, which a parent proxy needs for plain HTTP.
    """
    framed = any(name.lower() in _FRAMING for name, _ in request.headers.fields)
    fields = with_length(end_to_end(admitted.headers), len(admitted.body), always=framed)
    request.data.headers = http.Headers(fields)
    request.data.content = admitted.body
    request.data.trailers = None
    if admitted.detour is not None:
        _turn_off(request, admitted.detour)
    if admitted.detour is None and not (request.is_http2 or request.is_http3 or absolute):
        request.data.authority = b""  # origin form; Host says where


def _turn_off(request: http.Request, place: Detour) -> None:
    """Address a request to a local model, in origin form."""
    data = request.data
    data.scheme, data.host, data.port = place.scheme.encode(), place.host, place.port
    data.path, data.authority = place.target.encode("ascii"), b""
    host = f"[{place.host}]" if ":" in place.host else place.host
    request.headers["Host"] = f"{host}:{place.port}"


def with_length(headers: Headers, length: int, *, always: bool) -> Headers:
    """Headers with one Content-Length that is true, where the first framing header stood (RFC 9112 §6.3).

    Without a body and without framing before (`always` false) none is added.
    """
    true = b"%d" % length
    kept: list[tuple[bytes, bytes]] = []
    placed = False
    for name, value in headers:
        if name.lower() not in _FRAMING:
            kept.append((name, value))
        elif not placed:
            placed = True
            spelled = name if name.lower() == b"content-length" else b"content-length"
            kept.append((spelled, true))
    if not placed and (length or always):
        kept.append((b"content-length", true))
    return tuple(kept)
