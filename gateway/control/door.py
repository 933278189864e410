"""The door before every route: who may ask, from where, and what an error looks like.

Rules, in order. `Host` names an IP address, `localhost` or the configured host, so that a page elsewhere
cannot reach this port under a name of its own (DNS rebinding). A request that a browser makes for another
site is refused by `Origin` or `Sec-Fetch-Site`. Everything but health, and metrics on loopback, needs the
token: `Authorization: Bearer`, or for the console page alone Basic with the token as password, which is how a
browser can present one. An error answers with its code only.
"""

from __future__ import annotations

import base64
import binascii
import ipaddress
from typing import Final
from urllib.parse import urlsplit

from starlette.datastructures import Headers
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from gateway.control.answers import failure
from gateway.control.state import ControlState
from gateway.errors import GatewayError, ReviewError
from gateway.ports import Reviewer

OPEN_PATHS: Final = frozenset({"/livez", "/readyz", "/healthz"})
CONSOLE: Final = "/"
METRICS: Final = "/metrics"
_STATUS: Final = {
    "review.unknown": 404,
    "review.decided": 409,
    "review.act": 404,
    "query.invalid": 400,
    "break_glass.malformed": 400,
    "break_glass.minutes": 400,
    "break_glass.rules": 400,
    "break_glass.unknown": 400,
}
_TOKENS: Final = (
    "this token is not known here: give that of <state.dir>/control.token, or of a [reviewers.NAME] that the gateway"
    " was started with"
)
_SAME_SITE: Final = frozenset({"same-origin", "none"})


class Door:
    """ASGI middleware; the outermost layer, so that no exception reaches the server's log."""

    def __init__(self, app: ASGIApp, state: ControlState) -> None:
        self._app = app
        self._host = state.host.lower()
        self._state = state
        self._open = OPEN_PATHS | {METRICS} if state.loopback else OPEN_PATHS

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Let one request in, or answer it."""
        if scope["type"] != "http":
            return
        headers = Headers(scope=scope)
        who = self._who(scope["path"], headers.getlist("authorization"))
        refusal = self._refusal(scope["path"], headers, who)
        if refusal is not None:
            await refusal(scope, receive, send)
            return
        scope["reviewer"] = who
        started = False

        async def watched(message: Message) -> None:
            nonlocal started
            started = True
            await send(message)

        try:
            await self._app(scope, receive, watched)
        except ReviewError as error:
            answer = failure(_STATUS.get(error.code, 403), error.code, str(error))
        except GatewayError as error:
            answer = failure(503, error.code)
        except Exception:  # noqa: BLE001 - its text may hold content and must not reach the server's log
            answer = failure(500, "control.failed")
        else:
            return
        if not started:
            await answer(scope, receive, send)

    def _refusal(self, path: str, headers: Headers, who: Reviewer | None) -> Response | None:
        if not self._knows(headers.getlist("host")):
            return failure(421, "control.host", "this is not the name of this port")
        if not _same_origin(headers):
            return failure(403, "control.origin", "not for pages of other sites")
        if path in self._open or who is not None:
            return None
        scheme = 'Basic realm="gateway console", charset="UTF-8"' if path == CONSOLE else "Bearer"
        answer = failure(401, "control.unauthorized", _TOKENS)
        answer.headers["www-authenticate"] = scheme
        return answer

    def _knows(self, hosts: list[str]) -> bool:
        try:
            host = (urlsplit(f"//{hosts[0]}").hostname or "") if len(hosts) == 1 else ""
        except ValueError:
            return False
        if host in {"localhost", self._host}:
            return True
        try:
            ipaddress.ip_address(host)
        except ValueError:
            return False
        return True

    def _who(self, path: str, given: list[str]) -> Reviewer | None:
        if len(given) != 1:
            return None
        scheme, _, value = given[0].partition(" ")
        if scheme.lower() == "basic" and path == CONSOLE:
            try:
                value = base64.b64decode(value, validate=True).decode("ascii").partition(":")[2]
            except (binascii.Error, UnicodeDecodeError):
                return None
        elif scheme.lower() != "bearer":
            return None
        return self._state.who(value.strip().encode("utf-8", "replace"))


def _same_origin(headers: Headers) -> bool:
    """Whether the request comes from no page at all, or from one of this port (Fetch Metadata; RFC 6454)."""
    if headers.get("sec-fetch-site", "none") not in _SAME_SITE:
        return False
    origin = headers.get("origin")
    return origin is None or urlsplit(origin).netloc.lower() == headers["host"].lower()
