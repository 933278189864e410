"""Dialects over a WebSocket: which messages ask for an answer, what begins and ends one, how a refusal is said.

Responses: each client message is a `response.create` with new items only. A refusal is `response.failed` with the code
`invalid_prompt`, which agents show once and do not retry. Realtime: events of a session; a refusal is an `error` event.
Gemini Live: messages of one member each, which the server writes as binary ones; it has no error message, so that a
refusal closes the connection (code 1008).
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

from gateway.ports import Refusal
from gateway.providers import base, gemini_live
from gateway.providers.gemini import Gemini
from gateway.providers.openai_responses import OpenAIResponses, failed

_PATH: Final = re.compile(r"(?:/[^/]+)*/(responses|realtime)")
_LIVE: Final = re.compile(r"/ws/google\.(?:ai|cloud)\.[a-z0-9.]+(?:/|\.)bidigeneratecontent(?:constrained)?")
_REFUSED: Final = "Model Egress Gateway refused this message."


@dataclass(frozen=True, slots=True)
class Spoken:
    """One dialect over a WebSocket. All names are kinds of messages, which `kind` tells: values of the member `type`.

    `asks`: client messages that ask for a response; `begins` and `ends`: server events of one. An `error` answers the
    oldest message that has no answer; where `error_ends`, it ends a response that has begun as well.
    """

    asks: frozenset[str]
    begins: frozenset[str]
    ends: frozenset[str]
    error_ends: bool
    refuse: Callable[[str, str], dict[str, Any]] | None  # (text, request id) to the event
    kind: Callable[[Any], str] = base.type_of
    binary: bool = False  # the server's messages are text in binary frames

    def refusal(self, message: Any, text: str, request_id: str) -> bytes | None:
        """The event that refuses a client's message, with the stream and event that the client named; None: close."""
        if self.refuse is None:
            return None
        event = self.refuse(text or _REFUSED, request_id)
        if stream := base.text_at(message, "stream_id"):
            event["stream_id"] = stream
        if "event_id" in event and (named := base.text_at(message, "event_id")):
            event["error"]["event_id"] = named
        return base.encode(event)


def _failed(text: str, request_id: str) -> dict[str, Any]:
    event = failed(Refusal(400, (), "", request_id=request_id))
    event["response"]["error"]["message"] = text
    return event


def _error(text: str, request_id: str) -> dict[str, Any]:
    error = {"type": "invalid_request_error", "code": "gateway_blocked", "message": text, "param": None}
    return {
        "type": "error",
        "event_id": f"event_{request_id or 'gateway'}",
        "error": {**error, "event_id": None},
    }


_ENDS: Final = frozenset(
    {"response.completed", "response.incomplete", "response.failed", "response.cancelled", "response.done"}
)
RESPONSES: Final = Spoken(
    frozenset({"response.create"}), frozenset({"response.created"}), _ENDS, error_ends=True, refuse=_failed
)
REALTIME: Final = Spoken(
    frozenset({"response.create"}), frozenset({"response.created"}), _ENDS, error_ends=False, refuse=_error
)


LIVE: Final = Spoken(
    frozenset({"setup", "clientContent", "toolResponse"}),
    frozenset({"serverContent"}),
    frozenset({"setupComplete", "toolCall", "serverContent.turnComplete"}),
    error_ends=False,
    refuse=None,
    kind=gemini_live.kind,
    binary=True,
)


def spoken(dialect: str, path: str) -> Spoken | None:
    """How a dialect is spoken over a WebSocket at a request path; None where that is not known, as for all others."""
    if dialect == Gemini.id:
        return LIVE if _LIVE.fullmatch(base.normalise(path)) else None
    found = _PATH.fullmatch(base.normalise(path)) if dialect == OpenAIResponses.id else None
    if found is None:
        return None
    return REALTIME if found[1] == "realtime" else RESPONSES
