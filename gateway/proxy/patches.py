"""What of mitmproxy is replaced, in one place, so that a test can pin the source of all of it.

mitmproxy makes its HTTP layers by module-level names; `install` points those names at the guarded subclasses. There
is no way back in a process: connections that were once guarded never stop being so, and a guarded layer whose master
has no guard lets nothing through.
"""

from __future__ import annotations

from typing import Any

from mitmproxy import http
from mitmproxy.addonmanager import AddonManager
from mitmproxy.addons import proxyserver
from mitmproxy.addons.tlsconfig import TlsConfig
from mitmproxy.connection import Server
from mitmproxy.net import tls as net_tls
from mitmproxy.net.http import status_codes
from mitmproxy.proxy import events, mode_servers
from mitmproxy.proxy.layers import http as http_layers
from mitmproxy.proxy.layers import websocket as websocket_layers
from mitmproxy.proxy.layers.http import _http1, _http2, _http_h2, _upstream_proxy
from mitmproxy.proxy.layers.tcp import TCPLayer
from mitmproxy.proxy.server import ConnectionHandler
from wsproto import connection as ws_connection
from wsproto import frame_protocol as ws_frames

from gateway.proxy.guard import Guard, set_guard
from gateway.proxy.responses import NOT_HTTP
from gateway.proxy.stream import GuardedStream
from gateway.proxy.websocket import MessageLayer
from gateway.proxy.wire import (
    GuardedHttp1Client,
    GuardedHttp1Server,
    GuardedHttp2Client,
)

# The sources that the guarded classes override or lean on; tests/unit/proxy/test_patches.py holds their hash.
LEANS_ON: tuple[Any, ...] = (
    http_layers.HttpStream,
    http_layers.HttpLayer,
    http_layers.HttpClient,
    _http1.Http1Connection,
    _http1.Http1Client,
    _http1.Http1Server,
    _http1.make_error_response,
    _http2.Http2Connection,
    _http2.Http2Client,
    _http_h2.BufferedH2Connection,  # its buffers tell what of a body has not left
    _upstream_proxy.HttpUpstreamProxy,  # carries the connections of a parent proxy
    TCPLayer,
    TlsConfig,
    AddonManager,
    http.MessageData,
    mode_servers.AsyncioServerInstance,  # its `listen` gives way to a socket that processes share
    proxyserver.Servers,  # takes such an instance as one that it knows
    ConnectionHandler,  # its transports are asked, its tasks are cancelled
    Server,  # an address is put back past its guard
    events.MessageInjected,  # a verdict on a message travels as one
    websocket_layers.WebsocketLayer,  # is replaced as a whole
    ws_connection.Connection,
    ws_frames.FrameProtocol,
    ws_frames.FrameDecoder,  # calls extensions piece by piece, before a frame is whole
    ws_frames.MessageDecoder,  # refuses text that is no UTF-8
    net_tls._create_ssl_context,  # noqa: SLF001  reads the key log name that is cleared below
)


def not_http(status_code: int, message: str = "") -> bytes:
    """The answer to bytes that are no HTTP request, as JSON and without mitmproxy's message, which quotes them."""
    reason = status_codes.RESPONSES.get(status_code, "Error")
    head = (
        f"HTTP/1.1 {status_code} {reason}\r\ncontent-type: application/json\r\nx-should-retry: false\r\n"
        f"connection: close\r\ncontent-length: {len(NOT_HTTP)}\r\n\r\n"
    )
    return head.encode() + NOT_HTTP


def unchecked(_message: http.MessageData) -> None:
    """In place of a check of mitmproxy's own types that it leaves out itself where Python optimises."""


REPLACED: tuple[tuple[Any, str, Any], ...] = (
    (http_layers, "HttpStream", GuardedStream),
    (http_layers, "Http1Client", GuardedHttp1Client),
    (http_layers, "Http2Client", GuardedHttp2Client),
    (http_layers, "Http1Server", GuardedHttp1Server),
    (websocket_layers, "WebsocketLayer", MessageLayer),
    (_http1, "make_error_response", not_http),
    (http.MessageData, "__post_init__", unchecked),
    (net_tls, "log_master_secret", None),  # SSLKEYLOGFILE would write session keys of every client to a file
)


def install(options: object, guard: Guard) -> None:
    """Guard every connection of the master with these options."""
    for module, name, replacement in REPLACED:
        setattr(module, name, replacement)
    set_guard(options, guard)


def uninstall(options: object) -> None:
    """Take the guard away; what still runs under these options lets nothing through."""
    set_guard(options, None)
