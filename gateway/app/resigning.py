"""The Resigner port over a file of AWS credentials: requests to Bedrock leave under the gateway's own signature.

The file has the form that AWS tools share (`[default]`, `aws_access_key_id`, `aws_secret_access_key`,
`aws_session_token`). It is read again whenever it changed, so that whatever renews its session needs to tell nobody.
"""

from __future__ import annotations

import configparser
import os
import re
import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from gateway.config import Config
from gateway.egress.resigning import NoResigning
from gateway.errors import BodyError, SetupError
from gateway.ports import Headers, OutboundRequest, Resigner
from gateway.providers import hosts, sigv4

_WORD: Final = re.compile(r"[\x21-\x7e]{1,4096}")
_SERVICES: Final = frozenset({"bedrock", "bedrock-runtime", "bedrock-mantle"})
_DEFAULT_PORTS: Final = {"https": 443, "http": 80}


@dataclass(slots=True)
class AwsResigner:
    """ports.Resigner for Bedrock alone: no other service of AWS is ever signed for."""

    path: Path
    _known: tuple[tuple[int, int, int], sigv4.Credentials] | None = field(default=None, repr=False)
    _lock: threading.Lock = field(default_factory=threading.Lock, repr=False)

    def covers(self, request: OutboundRequest) -> bool:
        """See ports.Resigner."""
        return self._scope(request) is not None

    def signer(self, request: OutboundRequest) -> str:
        """The access key id that a request leaves under; empty where its client's stays. BodyError as `credentials`."""
        return self.credentials().access_key if self.covers(request) else ""

    def resign(self, request: OutboundRequest, headers: Headers, body: bytes, now: str) -> Headers:
        """See ports.Resigner. `now` is RFC 3339 in UTC."""
        scope = self._scope(request)
        if scope is None:
            return headers
        time = re.sub(r"[-:]|\.\d+", "", now)
        own = request.port == _DEFAULT_PORTS.get(request.scheme)
        host = request.host if own else f"{request.host}:{request.port}"
        outgoing = sigv4.Outgoing(request.method, host, request.target, headers, body)
        return sigv4.resigned(outgoing, scope, self.credentials(), time)

    def credentials(self) -> sigv4.Credentials:
        """What the file says now; BodyError `egress.resigning_failed` (503) where that is no credentials."""
        try:
            with self._lock:
                stat = self.path.stat()
                seen = (stat.st_mtime_ns, stat.st_ino, stat.st_size)
                if self._known is None or self._known[0] != seen:
                    self._known = (seen, read_credentials(self.path))
                return self._known[1]
        except (OSError, SetupError):
            raise BodyError("egress.resigning_failed", status=503) from None

    def _scope(self, request: OutboundRequest) -> sigv4.Scope | None:
        if hosts.provider(request.host) != "aws" or request.transport != "http":
            return None
        scope = sigv4.scope_of(request.headers)
        return scope if scope is not None and scope.service in _SERVICES else None


def read_credentials(path: Path) -> sigv4.Credentials:
    """The `[default]` credentials of a file; SetupError, without its content, where there are none."""
    parser = configparser.ConfigParser(interpolation=None, default_section="\0")
    values = ["", "", ""]
    try:
        parser.read_string(path.read_text("utf-8"))
        names = ("aws_access_key_id", "aws_secret_access_key", "aws_session_token")
        values = [parser.get("default", name, fallback="").strip() for name in names]
        usable = all(map(_WORD.fullmatch, filter(None, values))) and bool(values[0] and values[1])
    except (OSError, ValueError, configparser.Error):
        usable = False
    if not usable:
        raise SetupError(
            "upstream.aws_credentials",
            f"{os.fspath(path)} holds no usable AWS credentials",
            hint="a section [default] with aws_access_key_id and aws_secret_access_key",
        )
    return sigv4.Credentials(*values)


def signer_of(resigner: Resigner) -> Callable[[OutboundRequest], str]:
    """What tells the access key id under which a resigner signs a request."""
    return resigner.signer if isinstance(resigner, AwsResigner) else lambda _: ""


def resigner_of(config: Config) -> Resigner:
    """What a configuration says; SetupError where its file cannot be used."""
    path = config.upstream.aws_credentials
    if path is None:
        return NoResigning()
    read_credentials(path)
    return AwsResigner(path)
