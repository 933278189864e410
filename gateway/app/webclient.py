"""One small HTTPS request of the gateway's own, bounded in time and size: no redirects, no cookies, nothing kept open.

Blocking: call it in a thread. Trust is that of upstream connections; a company proxy is gone through where one is set.
"""

from __future__ import annotations

import base64
import socket
import ssl
import threading
import time
from collections.abc import Mapping
from contextlib import closing, suppress
from dataclasses import dataclass, field
from http.client import HTTPConnection, HTTPException, HTTPResponse, HTTPSConnection
from typing import Final
from urllib.parse import unquote, urlsplit

import certifi

from gateway.config import Config
from gateway.errors import GatewayError, SetupError, words_of

_PIECE: Final = 65_536


class WebError(GatewayError):
    """No usable answer; `code` says what kind, never where or with what."""


@dataclass(frozen=True, slots=True)
class WebAnswer:
    """A whole answer."""

    status: int
    headers: Mapping[str, str]  # lower-case names
    body: bytes = field(repr=False)


@dataclass(frozen=True, slots=True)
class WebClient:
    """How the gateway reaches services of its own organisation. `seconds` bounds a whole request."""

    context: ssl.SSLContext
    proxy: str = field(default="", repr=False)
    seconds: float = 20.0

    @classmethod
    def of(cls, config: Config, seconds: float = 20.0) -> WebClient:
        """The roots that upstream connections trust, and the company proxy."""
        context = ssl.create_default_context(cafile=certifi.where())
        if (extra := config.upstream.ca_file) is not None:
            try:
                context.load_verify_locations(cafile=str(extra))
            except OSError as error:  # ssl.SSLError is one
                why = "it holds no certificates" if isinstance(error, ssl.SSLError) else error.strerror
                raise SetupError(
                    "setup.roots", f"upstream.ca_file: {extra} cannot be used: {why}", hint="name a PEM file"
                ) from None
        return cls(context, config.upstream.proxy, seconds)

    def ask(
        self, method: str, url: str, headers: Mapping[str, str], body: bytes = b"", *, limit: int
    ) -> WebAnswer:
        """One request; WebError where there is no answer within the time, or one of more than `limit` bytes."""
        until = time.monotonic() + self.seconds
        connection = self._connection(url)
        # A head that comes one byte after the other lets no wait of its own time out.
        cut = threading.Timer(self.seconds, _cut, (connection,))
        cut.daemon = True
        cut.start()
        parts = urlsplit(url)
        target = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
        try:
            connection.request(method, target, body or None, dict(headers))
            with closing(connection.getresponse()) as answer:
                cut.cancel()
                read = self._read(connection, answer, until, limit)
        except (OSError, HTTPException) as error:
            raise _failed(error, late=time.monotonic() >= until) from None
        finally:
            cut.cancel()
            connection.close()
        return WebAnswer(answer.status, {k.lower(): v for k, v in answer.getheaders()}, read)

    def _connection(self, url: str) -> HTTPConnection:
        parts = urlsplit(url)
        host, secure = parts.hostname or "", parts.scheme == "https"
        port = parts.port or (443 if secure else 80)
        if not self.proxy or not secure:  # plain HTTP is for this machine alone
            if secure:
                return HTTPSConnection(host, port, timeout=self.seconds, context=self.context)
            return HTTPConnection(host, port, timeout=self.seconds)
        parent = urlsplit(self.proxy)
        connection = HTTPSConnection(
            parent.hostname or "", parent.port, timeout=self.seconds, context=self.context
        )
        named = {}
        if parent.username is not None:
            pair = f"{unquote(parent.username)}:{unquote(parent.password or '')}".encode()
            named["Proxy-Authorization"] = "Basic " + base64.b64encode(pair).decode("ascii")
        connection.set_tunnel(host, port, named)
        return connection

    def _read(self, connection: HTTPConnection, answer: HTTPResponse, until: float, limit: int) -> bytes:
        """The body; every wait for more is bounded by what is left of the whole time."""
        found = bytearray()
        while True:
            left = until - time.monotonic()
            if left <= 0:
                raise TimeoutError
            if connection.sock is not None:
                connection.sock.settimeout(left)
            piece = answer.read1(_PIECE)
            if not piece:
                return bytes(found)
            found += piece
            if len(found) > limit:
                raise WebError("web.too_large", f"the answer has more than {limit} bytes")


def _failed(error: Exception, *, late: bool) -> WebError:
    if late or isinstance(error, TimeoutError):
        return WebError("web.timeout", "no answer in time")
    if isinstance(error, ssl.SSLError):
        return WebError("web.tls", "the server's certificate does not verify, or TLS failed")
    return WebError("web.unreachable", f"no answer ({words_of(error)})")


def _cut(connection: HTTPConnection) -> None:
    """End a connection under whoever reads from it."""
    sock = connection.sock
    if sock is not None:
        with suppress(OSError):
            sock.shutdown(socket.SHUT_RDWR)
