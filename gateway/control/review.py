"""Routes for people who decide and people who operate: held objects, the kill switch, reloading.

```
GET  /v1/quarantine, /v1/approvals                    what is held, newest first
GET  /v1/quarantine/{id}, /v1/approvals/{id}          one object, without its content
GET  /v1/quarantine/{id}/content                      its content (role content; the look is recorded)
POST /v1/quarantine/{id}/release | discard            role release
POST /v1/approvals/{id}/approve | deny                role approve
GET, POST /v1/kill                                    {"on": true, "project": "", "principal": ""} (role operate)
GET  /v1/budgets                                      what is used of each budget
POST /v1/reload                                       role operate
```

Who asks is known by the token. Every POST carries JSON, so that no form of another site can make one.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import Final

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from gateway.control.answers import answer, failure, raw
from gateway.control.asking import body_of, who_asks
from gateway.control.query import QueryError, read_query
from gateway.control.state import ControlState, Desk, Operation

KINDS: Final = {"quarantine": "quarantine", "approvals": "approval"}

type Handler = Callable[[Request], Awaitable[Response]]


def review_routes(state: ControlState) -> Sequence[Route]:
    """The routes; lists are empty and acts are unknown where nothing is held."""
    found: list[Route] = []
    for noun, kind in KINDS.items():
        found += [
            Route(f"/v1/{noun}", _rows(state.desk, kind)),
            *(_desk_routes(state.desk, noun, kind) if state.desk is not None else ()),
        ]
    return [*found, *(_operation_routes(state.operation) if state.operation is not None else ())]


def _rows(desk: Desk | None, kind: str) -> Handler:
    async def rows(request: Request) -> Response:
        try:
            query = read_query(request.query_params)
        except QueryError as error:
            return failure(400, "query.invalid", str(error))
        items, cursor = ([], None) if desk is None else await desk.rows(kind, query, who_asks(request))
        return answer({"items": items, "next": cursor})

    return rows


def _desk_routes(desk: Desk, noun: str, kind: str) -> Sequence[Route]:
    async def show(request: Request) -> Response:
        return answer(await desk.show(kind, request.path_params["id"], who_asks(request)))

    async def content(request: Request) -> Response:
        return raw(await desk.content(kind, request.path_params["id"], who_asks(request)))

    async def decide(request: Request) -> Response:
        if await body_of(request) is None:
            return failure(400, "body.malformed", "a JSON object is needed, which may be empty")
        given = request.path_params
        return answer(await desk.decide(kind, given["id"], given["act"], who_asks(request)))

    return (
        Route(f"/v1/{noun}/{{id}}", show),
        Route(f"/v1/{noun}/{{id}}/content", content),
        Route(f"/v1/{noun}/{{id}}/{{act}}", decide, methods=["POST"]),
    )


def _operation_routes(operation: Operation) -> Sequence[Route]:
    async def stopped(_request: Request) -> Response:
        return answer(operation.stopped())

    async def turn(request: Request) -> Response:
        body = await body_of(request) or {}
        names = [body.get(name, "") for name in ("project", "principal")]
        if not isinstance(body.get("on"), bool) or not all(isinstance(name, str) for name in names):
            return failure(400, "body.malformed", "on must be true or false; project and principal are names")
        return answer(
            await operation.turn(who_asks(request), on=body["on"], project=names[0], principal=names[1])
        )

    async def budgets(_request: Request) -> Response:
        return answer({"items": list(operation.budgets()), "next": None})

    async def reload(request: Request) -> Response:
        if await body_of(request) is None:
            return failure(400, "body.malformed", "a JSON object is needed, which may be empty")
        return answer(await operation.reload(who_asks(request)))

    return (
        Route("/v1/kill", stopped),
        Route("/v1/kill", turn, methods=["POST"]),
        Route("/v1/budgets", budgets),
        Route("/v1/reload", reload, methods=["POST"]),
    )
