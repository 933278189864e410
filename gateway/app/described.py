"""A request as a JSON document describes it (interfaces: `egress inspect`), turned into one that can be evaluated."""

from __future__ import annotations

import base64
import json
import uuid
from collections.abc import Mapping
from typing import Any, Final
from urllib.parse import SplitResult, urlsplit

from gateway.config import DEFAULT_PROJECT
from gateway.errors import ConfigError
from gateway.ports import OutboundRequest, Peer

MEMBERS: Final = ("method", "url", "headers", "body", "body_b64", "project", "principal")
_SCHEMES: Final = ("http", "https", "ws", "wss")
_ANYBODY: Final = {DEFAULT_PROJECT: Peer()}


def outbound(document: Mapping[str, Any], peers: Mapping[str, Peer] = _ANYBODY) -> OutboundRequest:
    """The request of one of `peers`, by user name as in the proxy's address (`project` or `project+principal`).

    ConfigError names everything that is wrong with the document, a client that is not among them included; values are
    never quoted.
    """
    problems = [f"{name}: unknown member" for name in document if name not in MEMBERS]
    problems += [
        f"{name}: a text is needed"
        for name in ("method", "project", "principal")
        if not isinstance(document.get(name) or "", str)
    ]
    parts = _url(document.get("url"), problems)
    headers = _headers(document.get("headers", {}), problems)
    body = _body(document, problems)
    user = "" if problems else _user(document)
    if user and user not in peers:
        known = ", ".join(sorted(peers))
        problems.append(
            f"project: the configuration has no such client; it knows {known} (project+principal)"
        )
    if problems or parts is None:
        raise ConfigError(problems)
    return OutboundRequest(
        request_id=uuid.uuid4().hex,
        peer=peers[user],
        method=str(document.get("method") or "POST"),
        scheme=parts.scheme,
        host=(parts.hostname or "").lower(),
        port=parts.port or (80 if parts.scheme in {"http", "ws"} else 443),
        target=(parts.path or "/") + (f"?{parts.query}" if parts.query else ""),
        headers=headers,
        body=body,
    )


def _user(document: Mapping[str, Any]) -> str:
    principal = document.get("principal")
    return f"{document.get('project') or DEFAULT_PROJECT}" + (f"+{principal}" if principal else "")


def _url(url: object, problems: list[str]) -> SplitResult | None:
    try:
        parts = urlsplit(url) if isinstance(url, str) else None
        if parts is not None and parts.scheme in _SCHEMES and parts.hostname and parts.port != 0:
            return parts
    except ValueError:  # brackets that do not close, a port that is none
        pass
    problems.append("url: an http:// or https:// URL with a host is needed")
    return None


def _headers(headers: object, problems: list[str]) -> tuple[tuple[bytes, bytes], ...]:
    if not isinstance(headers, Mapping) or not all(isinstance(value, str) for value in headers.values()):
        problems.append("headers: an object of texts is needed")
        return ()
    return tuple((str(k).encode("latin-1", "replace"), str(v).encode("utf-8", "surrogatepass"))
                 for k, v in headers.items())  # fmt: skip


def _body(document: Mapping[str, Any], problems: list[str]) -> bytes:
    """The body's bytes: of `body_b64`, of a text as it is, of anything else as compact JSON."""
    if "body_b64" in document and document.get("body") is not None:
        problems.append("body_b64: only one of body and body_b64 can be given")
    if "body_b64" in document:
        try:
            return base64.b64decode(document["body_b64"], validate=True)
        except (ValueError, TypeError):
            problems.append("body_b64: not base64")
            return b""
    body = document.get("body", "")
    if isinstance(body, str):
        return body.encode("utf-8", "surrogatepass")
    return json.dumps(body, ensure_ascii=False, separators=(",", ":")).encode("utf-8", "surrogatepass")
