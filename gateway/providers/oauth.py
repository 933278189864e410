"""Token endpoints of providers (RFC 6749): what a client proves itself with there is the call's own credential.

A refresh token or an authorisation code goes to the one who issued it, as an Authorization header does, so it is no
finding. Everything else of such a request is read as anywhere.
"""

from __future__ import annotations

from typing import Final

from gateway.context.objects import Block, Channel, Json, ObjectKind, WalkRules
from gateway.ports import EventReading, NativeAnswer, Refusal
from gateway.providers import base, hosts

_ENDPOINTS: Final = frozenset(
    {
        ("platform.claude.com", "/v1/oauth/token"),
        ("console.anthropic.com", "/v1/oauth/token"),
        ("api.anthropic.com", "/v1/oauth/token"),
        ("auth.openai.com", "/oauth/token"),
        ("oauth2.googleapis.com", "/token"),
        ("oauth2.googleapis.com", "/revoke"),
    }
)


class OAuthTokens:
    """Requests for tokens, as JSON or as forms."""

    id = "oauth"
    version = "1"
    rules = WalkRules(
        structural=base.names(
            "grant_type client_id redirect_uri scope audience resource token_type_hint state"
        ),
        known_names=frozenset({"expires_in"}),
        credentials=base.names(
            "refresh_token access_token id_token token code code_verifier client_secret client_assertion assertion "
            "subject_token device_code"
        ),
    )

    def matches(self, host: str, path: str) -> bool:
        """The endpoints that providers publish, and no other host's."""
        return (host, path) in _ENDPOINTS

    def blocks(self, body: Json) -> list[Block]:
        """Parameters only."""
        return [Block((), ObjectKind.PARAMETERS, Channel.OTHER, body)]

    def destination(self, host: str, path: str, body: Json) -> tuple[str, str]:
        """The host's provider; no model is asked."""
        return hosts.provider(host), ""

    def read_event(self, name: str, data: Json) -> EventReading:
        """Tokens come back as they are."""
        return EventReading(whole=False)

    def arguments(self, path: tuple[str | int, ...]) -> bool:
        """There are none."""
        return False

    def refuse(self, refusal: Refusal) -> NativeAnswer:
        """The error object of RFC 6749 §5.2."""
        return base.error_answer(refusal, _ERRORS)

    def stream_error(self, refusal: Refusal) -> bytes:
        """Nothing streams here."""
        return b""


def _error(refusal: Refusal, text: str) -> Json:
    kind = "temporarily_unavailable" if refusal.status >= 500 else "invalid_request"
    return {"error": kind, "error_description": text}


_ERRORS: Final = base.Errors(_error)
