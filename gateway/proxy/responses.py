"""The answer's way back: streamed always, restored where the use case says so, never raising into mitmproxy.

mitmproxy treats an exception in a stream callable as a log line, once a chunk, and leaves the client with a head and
silence. `AnswerStream` catches, says so through `failed`, and the stream is cut visibly.
"""

from __future__ import annotations

from mitmproxy import http

from gateway.ports import BodyRestorer, Headers, NativeAnswer, Released
from gateway.proxy.exchange import Exchange

RECEIPT = b"x-egress-receipt"
EFFECT = b"x-egress-effect"
NOT_HTTP = (
    b'{"error":{"message":"The request is not valid HTTP.","type":"invalid_request_error",'
    b'"param":null,"code":"gateway_blocked"}}'
)


class AnswerStream:
    """The callable that mitmproxy feeds with an answer's body, and with b"" at its end."""

    def __init__(self, exchange: Exchange, restorer: BodyRestorer | None) -> None:
        self._exchange = exchange
        self._restorer = restorer

    def __call__(self, data: bytes) -> list[bytes]:
        """Pieces for the client. Never an empty piece: in a chunked answer that would be the end of it."""
        if self._exchange.restore_failed:
            return []
        out = data
        if self._restorer is not None:
            try:
                out = self._restorer.feed(data) if data else self._restorer.end()
            except Exception:  # noqa: BLE001  a restorer never raises; if one does, the answer ends here
                self._exchange.restore_failed = True
                return []
            self._exchange.restore_failed = self._restorer.broken
        return [out] if out else []


def native(answer: NativeAnswer, receipt: str) -> http.Response:
    """A whole native answer as mitmproxy's response."""
    fields = [(n, v) for n, v in answer.headers if n.lower() not in {b"content-length", RECEIPT}]
    fields.append((b"content-length", b"%d" % len(answer.body)))
    if receipt:
        fields.append((RECEIPT, receipt.encode()))
    response = http.Response.make(answer.status, answer.body)
    response.headers = http.Headers(fields)
    return response


def shapeless(status: int) -> http.Response:
    """An answer where neither host nor dialect is known."""
    response = http.Response.make(status, NOT_HTTP)
    response.headers = http.Headers(
        [
            (b"content-type", b"application/json"),
            (b"x-should-retry", b"false"),
            (b"content-length", b"%d" % len(NOT_HTTP)),
        ]
    )
    return response


def stream(flow: http.HTTPFlow, exchange: Exchange) -> None:
    """Prepare a provider's answer: headers, and the callable its body runs through."""
    response = flow.response
    if response is None:
        return
    response.stream = AnswerStream(exchange, None)  # whatever fails below, the answer is never held back
    if exchange.admitted is None:  # passed unread
        return
    ours = {RECEIPT, EFFECT}  # whatever a provider says of itself
    response.headers.fields = tuple(f for f in response.headers.fields if f[0].lower() not in ours)
    if exchange.receipt:
        response.headers.fields += ((RECEIPT, exchange.receipt.encode()),)
    if exchange.effect == "rewritten":
        response.headers.fields += ((EFFECT, b"rewritten"),)
    restoration = exchange.admitted.restoration
    bodiless = flow.request.method == "HEAD" or response.status_code in {204, 304}
    if bodiless or response.status_code == 101:
        return
    if restoration is not None and restoration.holds:
        exchange.holding, response.stream = True, False
    elif (restorer := _open(response, exchange)) is not None:
        if restorer.alters:
            _reframe(flow.request, response)
        response.stream = AnswerStream(exchange, restorer)


def held(response: http.Response, exchange: Exchange) -> NativeAnswer | None:
    """A held answer as the use case takes it; None where it was too large."""
    if exchange.overrun:
        return None
    return NativeAnswer(response.status_code, response.headers.fields, response.raw_content or b"")


def release(response: http.Response, released: Released, exchange: Exchange) -> None:
    """Let go of what the use case released of a held answer."""
    answer = released.answer
    exchange.restorer = released.counts
    ours = {b"content-length", b"transfer-encoding", b"content-md5"}
    fields = [(n, v) for n, v in answer.headers if n.lower() not in ours]
    known = {n.lower() for n, _ in fields}
    kept = [f for f in response.headers.fields if f[0].lower() in {RECEIPT, EFFECT} - known]
    response.status_code = answer.status
    response.headers = http.Headers([*fields, *kept, (b"content-length", b"%d" % len(answer.body))])
    response.raw_content = answer.body
    response.trailers = None


def _open(response: http.Response, exchange: Exchange) -> BodyRestorer | None:
    """The restorer of this answer; without one, placeholders reach the client as they are, which harms nobody."""
    restoration = exchange.admitted.restoration if exchange.admitted is not None else None
    if restoration is None:
        return None
    headers: Headers = response.headers.fields
    opened = restoration.open(response.status_code, headers)
    if opened is None:
        return None
    response.headers = http.Headers(opened[0])
    exchange.restorer = opened[1]
    return opened[1]


def _reframe(request: http.Request, response: http.Response) -> None:
    """Exactly one framing for a body whose length is not known before its end (RFC 9112 §6)."""
    response.headers.pop("content-length", None)
    response.headers.pop("content-md5", None)
    if response.is_http2 or response.is_http3:
        return
    if request.http_version == "HTTP/1.0":
        response.headers.pop("transfer-encoding", None)  # the end of the connection is the end of the body
    elif request.http_version == "HTTP/1.1":
        response.headers["transfer-encoding"] = "chunked"
