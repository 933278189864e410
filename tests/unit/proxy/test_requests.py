"""Headers of this hop, framing, and destinations that must agree."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from mitmproxy import http

from gateway.ports import Headers
from gateway.proxy.requests import destinations_agree, end_to_end, is_websocket, with_length


@pytest.mark.parametrize(
    ("headers", "length", "always", "expected"),
    [
        (((b"Content-Length", b"5"),), 5, True, ((b"Content-Length", b"5"),)),
        (((b"Content-Length", b"5"),), 7, True, ((b"Content-Length", b"7"),)),
        (((b"A", b"1"), (b"Transfer-Encoding", b"chunked"), (b"B", b"2")), 3, True,
         ((b"A", b"1"), (b"content-length", b"3"), (b"B", b"2"))),
        (((b"A", b"1"),), 0, False, ((b"A", b"1"),)),
        (((b"A", b"1"),), 0, True, ((b"A", b"1"), (b"content-length", b"0"))),
        (((b"A", b"1"),), 2, False, ((b"A", b"1"), (b"content-length", b"2"))),
        (((b"content-length", b"1"), (b"CONTENT-LENGTH", b"2"), (b"transfer-encoding", b"chunked")), 4, True,
         ((b"content-length", b"4"),)),
    ],
)  # fmt: skip
def test_one_true_length(headers: Headers, length: int, always: bool, expected: Headers) -> None:
    assert with_length(headers, length, always=always) == expected


FIELD = st.tuples(
    st.sampled_from([b"content-length", b"Content-Length", b"transfer-encoding", b"X-A", b"accept"]),
    st.binary(max_size=4),
)


@given(st.lists(FIELD, max_size=8).map(tuple), st.integers(0, 10**9))
def test_exactly_one_framing_for_any_headers(headers: Headers, length: int) -> None:
    framed = with_length(headers, length, always=True)
    assert [v for n, v in framed if n.lower() in {b"content-length", b"transfer-encoding"}] == [
        b"%d" % length
    ]
    rest = [pair for pair in headers if pair[0].lower() not in {b"content-length", b"transfer-encoding"}]
    assert [p for p in framed if p[0].lower() not in {b"content-length", b"transfer-encoding"}] == rest


@pytest.mark.parametrize(
    ("headers", "expected"),
    [
        (((b"Host", b"h"), (b"X", b"1")), ((b"Host", b"h"), (b"X", b"1"))),
        (((b"Proxy-Authorization", b"Basic x"), (b"PROXY-CONNECTION", b"keep-alive"), (b"X", b"1")), ((b"X", b"1"),)),
        (((b"Connection", b"keep-alive"), (b"X", b"1")), ((b"Connection", b"keep-alive"), (b"X", b"1"))),
        (((b"Connection", b"close"),), ((b"Connection", b"close"),)),
        (((b"Connection", b"X-Hop, keep-alive"), (b"x-hop", b"1"), (b"Y", b"1")), ((b"Y", b"1"),)),
        (((b"Connection", b"Host, Content-Length"), (b"Host", b"h"), (b"Content-Length", b"1")),
         ((b"Host", b"h"), (b"Content-Length", b"1"))),
        (((b"Upgrade", b"h2c"), (b"HTTP2-Settings", b"x"), (b"TE", b"trailers"), (b"Trailer", b"x")), ()),
        (((b"Authorization", b"Bearer k"), (b"Cookie", b"c")), ((b"Authorization", b"Bearer k"), (b"Cookie", b"c"))),
    ],
)  # fmt: skip
def test_what_concerns_this_hop_stays_here(headers: Headers, expected: Headers) -> None:
    assert end_to_end(headers) == expected


def _request(*hosts: str, authority: str = "", version: str = "HTTP/1.1") -> http.Request:
    request = http.Request.make("POST", "https://api.test/v1", b"")
    request.headers = http.Headers([(b"host", h.encode("utf-8")) for h in hosts])
    request.data.authority = authority.encode()
    request.http_version = version
    return request


@pytest.mark.parametrize(
    ("request_", "sni", "agree"),
    [
        (_request("api.test"), "api.test", True),
        (_request("API.TEST:443"), "api.test", True),
        (_request("api.test."), None, True),
        (_request("api.test"), "other.test", False),
        (_request("other.test"), "api.test", False),
        (_request("api.test:80"), "api.test", False),
        (_request("api.test", "api.test"), "api.test", False),
        (_request(), "api.test", False),
        (_request(version="HTTP/1.0"), "api.test", True),
        (_request(authority="api.test", version="HTTP/2.0"), "api.test", True),
        (_request("api.test", authority="api.test:443", version="HTTP/2.0"), "api.test", True),
        (_request("other.test", authority="api.test", version="HTTP/2.0"), "api.test", False),
        (_request("api.test", authority="other.test"), "api.test", False),
        (_request("user@api.test"), "api.test", False),
        (_request("api.test, other.test"), "api.test", False),
        (_request(""), "api.test", False),
    ],
)
def test_every_name_of_the_destination_must_agree(
    request_: http.Request, sni: str | None, agree: bool
) -> None:
    assert destinations_agree(request_, sni, "api.test", 443) is agree


@pytest.mark.parametrize(
    ("value", "asks"),
    [("websocket", True), ("WebSocket", True), ("h2c, websocket", True), ("h2c", False), ("", False)],
)
def test_websocket_upgrades(value: str, asks: bool) -> None:
    request = _request("api.test")
    request.headers["upgrade"] = value
    assert is_websocket(request) is asks
