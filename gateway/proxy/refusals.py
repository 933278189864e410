"""What the edge itself refuses, and why."""

from __future__ import annotations

from typing import Final

from gateway.ports import Refusal

REJECT_S: Final = 2.0  # for recording a refusal of the edge; the answer does not wait longer

FAILED: Final = Refusal(400, ("gateway.error",), "The gateway could not evaluate the request.")
MALFORMED: Final = Refusal(400, ("request.malformed",), "The request is not valid HTTP.")
OVERRUN: Final = Refusal(503, ("deadline.exceeded",), "The gateway could not evaluate the request in time.")
TRAILERS: Final = Refusal(400, ("request.trailers",), "Requests with trailers are not read.")
TOO_LARGE: Final = Refusal(413, ("body.too_large",), "The request body is larger than the gateway reads.")
WEBSOCKET: Final = Refusal(
    426, ("websocket.unsupported",), "Messages of this WebSocket are not read here: use HTTP."
)
UNREACHABLE: Final = Refusal(502, ("upstream.unreachable",), "The provider could not be reached.")
TIMED_OUT: Final = Refusal(504, ("upstream.timeout",), "The provider did not answer in time.")
UNRELEASED: Final = Refusal(502, ("answer.unscanned",), "The answer could not be scanned.")
