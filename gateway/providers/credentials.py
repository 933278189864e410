"""What a request proves itself with to its provider, wherever a dialect puts it; and whose it says that it is.

A credential is a value that opens an account: it is compared under a key and goes nowhere else. Some name their account
in the clear (a JSON Web Token, an AWS access key id). Such a name proves nothing here: it holds because the provider
checks the credential that carries it, and refuses what was forged.
"""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final
from urllib.parse import unquote_plus

import orjson

from gateway.ports import Headers

HEADERS: Final = frozenset(
    {
        b"authorization",
        b"x-api-key",  # Anthropic
        b"api-key",  # Azure OpenAI
        b"x-goog-api-key",  # Gemini
        b"ocp-apim-subscription-key",  # Azure API Management
        b"x-subscription-token",
        b"x-goog-iam-authorization-token",
    }
)
"""Headers whose whole value is a credential, or `SCHEME credential`."""

QUERY: Final = frozenset(
    {"key", "api-key", "api_key", "access_token", "subscription-key", "x-amz-credential"}
)
"""Members of the query that hold one: Gemini, Azure, OAuth 2.0 (RFC 6750 §2.3), presigned AWS requests."""

SELECTORS: Final = {"workspace": b"chatgpt-account-id", "organization": b"openai-organization"}
"""Headers by which a login that belongs to several organisations says for which of them it asks."""

_PROTOCOL: Final = "openai-insecure-api-key."  # a WebSocket subprotocol of OpenAI's, for browsers
_SIGNED: Final = re.compile(r"credential=([^/,\s]+)/", re.IGNORECASE)  # AWS Signature Version 4 and 4A
_ACCESS_KEY: Final = re.compile(r"A[KS]IA[A-Z2-7]{16}")
_LOGINS: Final = ("sk-ant-oat", "ya29.")  # opaque access tokens of Anthropic and Google
_JWT: Final = re.compile(r"[A-Za-z0-9_-]{2,}\.([A-Za-z0-9_-]{2,})\.[A-Za-z0-9_-]*")
_MAX_TOKEN: Final = 16_384


@dataclass(frozen=True, slots=True)
class Credential:
    """One credential of a request.

    `tenants` are ids by which its provider knows the account, where the credential itself says them; `login` is true
    of access tokens of people, which are renewed all the time and cannot be listed.
    """

    value: bytes = field(repr=False)
    tenants: frozenset[str] = frozenset()
    login: bool = False


def credentials(headers: Headers, target: str) -> tuple[Credential, ...]:
    """Every credential of a request, each once."""
    values = [*_of_headers(headers), *_of_query(target)]
    return tuple(credential(value) for value in dict.fromkeys(values) if value)


def credential(value: str) -> Credential:
    """What is known of one credential from itself."""
    raw = value.encode("latin-1", "replace")
    if _ACCESS_KEY.fullmatch(value):
        return Credential(raw, frozenset({aws_account(value)}))
    claims = _claims(value)
    if claims is not None:
        return Credential(raw, frozenset(_tenants(claims)), login=True)
    return Credential(raw, login=value.startswith(_LOGINS))


def carrying(headers: Headers) -> Headers:
    """The headers of an upgrade by which each of its messages is known to belong to the same account."""
    names = {*HEADERS, *SELECTORS.values(), b"sec-websocket-protocol"}
    return tuple(pair for pair in headers if pair[0].lower() in names)


def selected(headers: Headers) -> Mapping[str, frozenset[str]]:
    """What the SELECTORS of a request name."""
    return {
        kind: frozenset(value.decode("latin-1").strip() for name, value in headers if name.lower() == header)
        for kind, header in SELECTORS.items()
    }


def _of_headers(headers: Headers) -> Iterator[str]:
    for name, value in headers:
        text, lower = value.decode("latin-1").strip(), name.lower()
        if lower == b"sec-websocket-protocol":
            offered = (token.strip() for token in text.split(","))
            yield from (token.removeprefix(_PROTOCOL) for token in offered if token.startswith(_PROTOCOL))
        elif lower == b"authorization":
            yield _authorization(text)
        elif lower in HEADERS:
            yield text


def _authorization(value: str) -> str:
    """The credential of an Authorization field (RFC 9110 §11.6.2); all of it where it has no scheme."""
    scheme, _, rest = value.partition(" ")
    rest = rest.strip()
    if scheme.upper().startswith("AWS4-"):
        found = _SIGNED.search(rest)
        return found.group(1) if found is not None else value
    if scheme.lower() == "basic":
        try:
            return base64.b64decode(rest, validate=True).decode("latin-1")
        except binascii.Error:
            return value
    return rest or value


def _of_query(target: str) -> Iterator[str]:
    for pair in target.partition("?")[2].split("&"):
        name, _, value = pair.partition("=")
        name = unquote_plus(name).lower()
        if name in QUERY:
            text = unquote_plus(value, encoding="latin-1")
            yield text.partition("/")[0] if name == "x-amz-credential" else text


def aws_account(access_key: str) -> str:
    """The twelve digits of the AWS account that an access key id belongs to: bits 1 to 40 of its base32 part.

    Published by those who read it out (and what `sts get-access-key-info` tells); ids made before March 2019 hold
    another number, which is then no account that anybody listed.
    """
    number = int.from_bytes(base64.b32decode(access_key[4:])[:6])
    return f"{(number & 0x7FFF_FFFF_FF80) >> 7:012d}"


def _claims(token: str) -> dict[str, Any] | None:
    """The claims of a JSON Web Token (RFC 7519), whose signature only its provider can check."""
    found = _JWT.fullmatch(token) if len(token) <= _MAX_TOKEN else None
    if found is None:
        return None
    text = found.group(1)
    try:
        claims = orjson.loads(base64.urlsafe_b64decode(text + "=" * (-len(text) % 4)))
    except (binascii.Error, orjson.JSONDecodeError):
        return None
    return claims if isinstance(claims, dict) else None


def _tenants(claims: Mapping[str, Any]) -> Iterator[str]:
    """The ids of the account's organisation: OpenAI's claim for ChatGPT logins, Microsoft Entra's `tid`."""
    told = claims.get("https://api.openai.com/auth")
    ids: Sequence[Any] = (
        [told.get("chatgpt_account_id")] if isinstance(told, dict) else [],
        [claims.get("tid")],
    )
    for each in (item for group in ids for item in group):
        if isinstance(each, str) and each:
            yield each
