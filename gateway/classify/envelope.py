"""What surrounds a body: the request target and the headers, scanned and never rewritten."""

from __future__ import annotations

from collections.abc import Sequence

from gateway.classify.objects import ContextObject, make
from gateway.context.objects import Block, Channel, Leaf, LeafRole, ObjectKind

CREDENTIAL_HEADERS = frozenset(
    {
        b"authorization", b"proxy-authorization", b"cookie", b"x-api-key", b"api-key", b"x-goog-api-key",
        b"x-amz-security-token", b"x-amz-date", b"x-amz-content-sha256", b"x-goog-iam-authorization-token",
        b"ocp-apim-subscription-key", b"x-subscription-token", b"openai-organization", b"openai-project",
        b"statsig-api-key",  # Codex, to ab.chatgpt.com
    }
)  # fmt: skip
"""Headers by which a call names itself to its own provider: they go there untouched and are no findings."""

PLUMBING_HEADERS = frozenset(
    {
        b"host", b"content-length", b"transfer-encoding", b"connection", b"accept", b"accept-encoding",
        b"accept-language", b"content-type", b"content-encoding", b"user-agent", b"expect", b"te", b"upgrade",
        b"sec-websocket-key", b"sec-websocket-version", b"sec-websocket-extensions", b"sec-websocket-protocol",
        b"traceparent", b"tracestate", b"proxy-connection",
    }
)  # fmt: skip

CREDENTIAL_QUERY = frozenset({"key", "api-key", "api_key", "access_token", "subscription-key"})


def envelope(target: str, headers: Sequence[tuple[bytes, bytes]]) -> list[ContextObject]:
    """The request target and the headers that are no credentials, as objects that are scanned and never rewritten."""
    path, _, query = target.partition("?")
    leaves = [Leaf(("path",), path, LeafRole.STRUCTURAL, "path")]
    for pair in query.split("&") if query else ():
        name, _, value = pair.partition("=")
        if name.lower() not in CREDENTIAL_QUERY:
            leaves.append(Leaf(("query",), value or pair, LeafRole.STRUCTURAL, name[:64]))
            leaves.append(Leaf(("query",), name, LeafRole.STRUCTURAL))
    objects = [_envelope_object(ObjectKind.TARGET, leaves)]
    header_leaves = [
        Leaf(("header",), value.decode("latin-1"), LeafRole.STRUCTURAL, name.decode("latin-1").lower()[:64])
        for name, value in headers
        if name.lower() not in CREDENTIAL_HEADERS and name.lower() not in PLUMBING_HEADERS
    ]
    header_leaves += [
        Leaf(("header",), name.decode("latin-1"), LeafRole.STRUCTURAL)
        for name, _ in headers
        if name.lower() not in CREDENTIAL_HEADERS and name.lower() not in PLUMBING_HEADERS
    ]
    header_leaves += [
        Leaf(("header",), value.decode("latin-1"), LeafRole.STRUCTURAL, "user-agent")
        for name, value in headers
        if name.lower()
        in (b"user-agent", b"accept", b"accept-language", b"content-type", b"traceparent", b"tracestate")
    ]
    if header_leaves:
        objects.append(_envelope_object(ObjectKind.HEADER, header_leaves))
    return objects


def _envelope_object(kind: ObjectKind, leaves: list[Leaf]) -> ContextObject:
    block = Block((str(kind),), kind, Channel.OTHER, [[leaf.name, leaf.text] for leaf in leaves])
    item = make(block)
    item.leaves = leaves
    item.size = sum(len(leaf.text) for leaf in leaves)
    return item
