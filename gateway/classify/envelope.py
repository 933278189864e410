"""What surrounds a body: the request target and the headers, scanned and never rewritten.

What a call proves itself with goes to its own provider untouched and is no finding, wherever it has the form of a
credential: one word, given once. Prose under such a name, or a second value, is read as anything else.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Final

from gateway.classify.objects import ContextObject, make
from gateway.context.objects import Block, Channel, Leaf, LeafRole, ObjectKind

_WORD: Final = re.compile(r"[\x21-\x7e]{1,16384}")
# RFC 9110 §11.4: a scheme and one token; or parameters, as AWS signs (Signature Version 4) and RFC 7616 has them
_PARAMETER: Final = r"[A-Za-z]+=(?:\"[^\"\s]{0,512}\"|[\x21-\x2b\x2d-\x7e]{0,1024})"
_AUTHORIZATION: Final = re.compile(
    rf"(?:[A-Za-z][A-Za-z0-9-]{{0,31}} +)?[\x21-\x7e]{{1,16384}}"
    rf"|(?:AWS4-[A-Z0-9-]{{1,32}}|Digest) +{_PARAMETER}(?:, *{_PARAMETER}){{0,15}}"
)
_CREDENTIALS: Final[Mapping[str, re.Pattern[str]]] = {
    "authorization": _AUTHORIZATION,
    "proxy-authorization": _AUTHORIZATION,
    "x-api-key": _WORD,
    "api-key": _WORD,
    "x-goog-api-key": _WORD,
    "x-amz-security-token": _WORD,
    "x-amz-date": re.compile(r"\d{8}T\d{6}Z"),
    "x-amz-content-sha256": re.compile(r"[0-9a-f]{64}|(?:STREAMING-)?[A-Z0-9-]{8,64}"),
    "x-goog-iam-authorization-token": _WORD,
    "ocp-apim-subscription-key": _WORD,
    "x-subscription-token": _WORD,
    "statsig-api-key": _WORD,  # Codex, to ab.chatgpt.com
    # RFC 6455 §4.1: sixteen random bytes; and the subprotocols by which OpenAI's browser clients name the call
    "sec-websocket-key": re.compile(r"[A-Za-z0-9+/]{21}[AQgw]=="),
    "sec-websocket-protocol": re.compile(
        r"(?:(?:realtime|openai-(?:beta|insecure-api-key|organization|project)\.[A-Za-z0-9_.-]{1,512})(?:, *|$)){1,8}"
    ),
}
"""Headers by which a call names itself to its own provider, with the form that such a value has."""

_SESSION: Final = re.compile(r"session|token|auth|csrf|sid|clearance", re.IGNORECASE)
_COOKIE: Final = re.compile(r"[^=;\s]+=[\x21-\x3a\x3c-\x7e]*")
_FRAMING: Final = frozenset(
    {"host", "content-length", "transfer-encoding"}
)  # checked before, and written anew
_CREDENTIAL_QUERY: Final = frozenset({"key", "api-key", "api_key", "access_token", "subscription-key"})
_KEY: Final = re.compile(r"(?:[A-Za-z0-9._~/=-]|%2[BbFf]|%3[Dd]){1,4096}")


def envelope(target: str, headers: Sequence[tuple[bytes, bytes]]) -> list[ContextObject]:
    """The request target and the headers that are no credentials, as objects that are scanned and never rewritten."""
    objects = [_object(ObjectKind.TARGET, _target(target))]
    leaves = _headers([(name.decode("latin-1"), value.decode("latin-1")) for name, value in headers])
    return [*objects, _object(ObjectKind.HEADER, leaves)] if leaves else objects


def _target(target: str) -> list[Leaf]:
    path, _, query = target.partition("?")
    leaves = [Leaf(("path",), path, LeafRole.STRUCTURAL, "path")]
    pairs = [pair.partition("=") for pair in query.split("&")] if query else []
    count = Counter(name.lower() for name, _, _ in pairs)
    for name, _, value in pairs:
        own = name.lower() in _CREDENTIAL_QUERY and count[name.lower()] == 1 and _KEY.fullmatch(value)
        if not own:
            leaves.append(Leaf(("query",), value or name, LeafRole.STRUCTURAL, name[:64]))
            leaves.append(Leaf(("query",), name, LeafRole.STRUCTURAL))
    return leaves


def _headers(headers: Sequence[tuple[str, str]]) -> list[Leaf]:
    count = Counter(name.lower() for name, _ in headers)
    leaves = []
    for spelled, value in headers:
        name = spelled.lower()
        if name in _FRAMING or (count[name] == 1 and _is_own(name, value)):
            continue
        pieces = _cookies(value) if name == "cookie" else [value]
        leaves += [Leaf(("header",), piece, LeafRole.STRUCTURAL, name[:64]) for piece in pieces]
        leaves.append(Leaf(("header",), spelled, LeafRole.STRUCTURAL))
    return leaves


def _is_own(name: str, value: str) -> bool:
    form = _CREDENTIALS.get(name)
    return form is not None and form.fullmatch(value.strip()) is not None


def _cookies(value: str) -> list[str]:
    """Cookies but for those that are a session with the provider itself (RFC 6265 §4.2)."""
    pairs = [pair.strip() for pair in value.split(";")]
    return [pair for pair in pairs if pair and not _is_session(pair)]


def _is_session(pair: str) -> bool:
    return _COOKIE.fullmatch(pair) is not None and _SESSION.search(pair.partition("=")[0]) is not None


def _object(kind: ObjectKind, leaves: list[Leaf]) -> ContextObject:
    block = Block((str(kind),), kind, Channel.OTHER, [[leaf.name, leaf.text] for leaf in leaves])
    item = make(block)
    item.leaves = leaves
    item.size = sum(len(leaf.text) for leaf in leaves)
    return item
