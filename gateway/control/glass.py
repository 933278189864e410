"""Routes of break-glass: `GET` and `POST /v1/break-glass`, `POST /v1/break-glass/{id}/end` (role break_glass)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from gateway.control.answers import answer, failure
from gateway.control.asking import body_of, who_asks
from gateway.ports import Reviewer


class Glass(Protocol):
    """What people do with rules that must not hold for a while; ReviewError for what they may not."""

    def rows(self) -> Sequence[Mapping[str, Any]]:
        """What is in force."""
        ...

    async def begin(self, who: Reviewer, document: Mapping[str, Any]) -> Mapping[str, Any]:
        """Lift rules for a while."""
        ...

    async def end(self, who: Reviewer, name: str) -> Mapping[str, Any]:
        """Put them back in force."""
        ...


def glass_routes(glass: Glass | None) -> Sequence[Route]:
    """The routes; none where nothing can be lifted."""
    if glass is None:
        return ()

    async def rows(_request: Request) -> Response:
        return answer({"items": list(glass.rows()), "next": None})

    async def begin(request: Request) -> Response:
        document = await body_of(request)
        if document is None:
            return failure(400, "body.malformed", "a JSON object is needed")
        return answer(await glass.begin(who_asks(request), document))

    async def end(request: Request) -> Response:
        if await body_of(request) is None:
            return failure(400, "body.malformed", "a JSON object is needed, which may be empty")
        return answer(await glass.end(who_asks(request), request.path_params["id"]))

    return (
        Route("/v1/break-glass", rows),
        Route("/v1/break-glass", begin, methods=["POST"]),
        Route("/v1/break-glass/{id}/end", end, methods=["POST"]),
    )
