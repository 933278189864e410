"""mitmproxy is pinned; this pins what of it the guarded layers override or lean on."""

from __future__ import annotations

import hashlib
import inspect
from importlib.metadata import version

from gateway.proxy import patches

# Read the difference before changing a hash: each of these is part of what keeps unadmitted bytes from leaving.
PINNED = {
    "mitmproxy.proxy.layers.http.HttpStream": "baaac4f7cdb36a32",
    "mitmproxy.proxy.layers.http.HttpLayer": "8da4a8a48e637b88",
    "mitmproxy.proxy.layers.http.HttpClient": "8401d422afdaff15",
    "mitmproxy.proxy.layers.http._http1.Http1Connection": "c0675638b0756013",
    "mitmproxy.proxy.layers.http._http1.Http1Client": "706b7a68f2809929",
    "mitmproxy.proxy.layers.http._http1.Http1Server": "cc8428d0bb6f79a5",
    "mitmproxy.proxy.layers.http._http1.make_error_response": "03ce75ab62e8e78b",
    "mitmproxy.proxy.layers.http._http2.Http2Connection": "2aab9ba553a3721c",
    "mitmproxy.proxy.layers.http._http2.Http2Client": "a113056f7d2beb2f",
    "mitmproxy.proxy.layers.http._http_h2.BufferedH2Connection": "c085c1abb1f4c477",
    "mitmproxy.proxy.layers.http._upstream_proxy.HttpUpstreamProxy": "18b3216088063f7b",
    "mitmproxy.proxy.layers.tcp.TCPLayer": "5e842b94cd4425b0",
    "mitmproxy.addons.tlsconfig.TlsConfig": "befdc99e53448259",
    "mitmproxy.addonmanager.AddonManager": "6be8dc580f5c66bf",
    "mitmproxy.http.MessageData": "bad2ea9a351a70d6",
    "mitmproxy.proxy.mode_servers.AsyncioServerInstance": "d565bfefd6af81fe",
    "mitmproxy.addons.proxyserver.Servers": "6c950fbed489ee4c",
    "mitmproxy.proxy.server.ConnectionHandler": "f7209a1273f3da94",
    "mitmproxy.connection.Server": "757f6dcd0838e6c2",
    "mitmproxy.proxy.events.MessageInjected": "f18c7daacb0db65f",
    "mitmproxy.proxy.layers.websocket.WebsocketLayer": "094cd5f8cf031433",
    "wsproto.connection.Connection": "6b70917fe888fb2c",
    "wsproto.frame_protocol.FrameProtocol": "ff40772c901f3baa",
    "wsproto.frame_protocol.FrameDecoder": "a06eb6159106220a",
    "wsproto.frame_protocol.MessageDecoder": "038365303d22c0a0",
    "mitmproxy.net.tls._create_ssl_context": "d322b556bd36254f",
}


def _hash(thing: object) -> str:
    return hashlib.sha256(inspect.getsource(thing).encode()).hexdigest()[:16]  # type: ignore[arg-type]


def test_mitmproxy_is_the_version_that_was_read() -> None:
    assert version("mitmproxy") == "12.3.1"


def test_the_sources_leant_on_are_those_that_were_read() -> None:
    assert {f"{thing.__module__}.{thing.__qualname__}": _hash(thing) for thing in patches.LEANS_ON} == PINNED
