"""Headers by which a network tells a provider which organisations may be used from it. The provider does the refusing.

| provider | header | where |
|---|---|---|
| Anthropic | `anthropic-allowed-org-ids: uuid,uuid` | its API, claude.ai, logins; API keys and logins alike |
| OpenAI | `ChatGPT-Allowed-Workspace-Id: id,id` | chatgpt.com and logins; keys of the API belong to no workspace |
| Google | `X-Goog-Allowed-Resources: base64url(JSON)` | *.googleapis.com (Google Cloud organisation restrictions) |
"""

from __future__ import annotations

import base64
import re
from collections.abc import Callable, Sequence
from typing import Final

import orjson

from gateway.ports import Headers

type Write = Callable[[Sequence[str]], bytes]


def _listed(ids: Sequence[str]) -> bytes:
    return ",".join(ids).encode("ascii")


def _resources(ids: Sequence[str]) -> bytes:
    named = [each if "/" in each else f"organizations/{each}" for each in ids]
    document = orjson.dumps({"resources": named, "options": "strict"})
    return base64.urlsafe_b64encode(document)


_TABLE: Final[tuple[tuple[str, re.Pattern[str], bytes, Write], ...]] = (
    (
        "anthropic",
        re.compile(r"(?:.+\.)?(?:anthropic\.com|claude\.ai|claude\.com)"),
        b"anthropic-allowed-org-ids",
        _listed,
    ),
    (
        "openai",
        re.compile(r"(?:.+\.)?chatgpt\.com|(?:auth|chat)\.openai\.com"),
        b"ChatGPT-Allowed-Workspace-Id",
        _listed,
    ),
    ("google", re.compile(r".+\.googleapis\.com"), b"X-Goog-Allowed-Resources", _resources),
)

NAMES: Final = frozenset(name.lower() for _, _, name, _ in _TABLE)
"""The headers, in lower case: what a client says in one of them is never forwarded where we say something."""

PROVIDERS: Final = frozenset(provider for provider, _, _, _ in _TABLE)
"""Providers that know such a header."""


def restriction(provider: str, host: str, tenants: Sequence[str]) -> Headers:
    """The header that lets only these tenants in at a host; none where there is no such header, or nothing to say."""
    if not tenants:
        return ()
    return tuple(
        (name, write(sorted(set(tenants))))
        for known, hosts, name, write in _TABLE
        if known == provider and hosts.fullmatch(host)
    )
