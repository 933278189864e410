"""Routes of the control port; shapes as `docs/control.md` has them."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Final

import orjson
from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from gateway.control.answers import answer, failure, raw
from gateway.control.console import page
from gateway.control.door import Door
from gateway.control.glass import glass_routes
from gateway.control.query import DIGEST, QueryError, read_query
from gateway.control.review import review_routes
from gateway.control.state import ControlState, Page
from gateway.errors import ContractError, EvidenceError

MAX_BODY_BYTES: Final = 1 << 20  # a memory record is a paragraph, not an archive

type List = Callable[[Mapping[str, Any]], Awaitable[Page]]


def create_app(state: ControlState) -> Starlette:
    """The application; hand it to `ControlServer`."""
    rows = state.store.rows

    async def boundary_events(query: Mapping[str, Any]) -> Page:
        return await rows({**query, "kind": "boundary_event"})

    async def projects(query: Mapping[str, Any]) -> Page:
        names = sorted(state.projects, key=lambda project: str(project["name"]))
        return _cut([dict(project) for project in names], query)

    routes = [
        Route("/livez", _live),
        Route("/readyz", _health(state, for_traffic=True)),
        Route("/healthz", _health(state)),
        Route("/metrics", _metrics(state)),
        Route("/v1/receipts", _listing(rows)),
        Route("/v1/receipts/{digest}", _receipt(state)),
        Route("/v1/lineages/{digest}", _lineage(state)),
        *review_routes(state),
        *glass_routes(state.glass),
        Route("/v1/boundary/events", _listing(boundary_events)),
        Route("/v1/projects", _listing(projects)),
        Route("/v1/memory/guard", _guard(state), methods=["POST"]),
        Route("/", page(state)),
    ]
    return Starlette(
        routes=routes,
        middleware=[Middleware(Door, state=state)],
        exception_handlers={404: _unknown, 405: _unknown},
    )


async def _unknown(_request: Request, error: Exception) -> Response:
    status = getattr(error, "status_code", 404)
    return failure(status, "control.no_such_path" if status == 404 else "control.no_such_method")


async def _live(_request: Request) -> Response:
    return answer({"status": "ok"})


_STOPPED: Final = "the kill switch stops all requests"


def _health(state: ControlState, *, for_traffic: bool = False) -> Callable[[Request], Awaitable[Response]]:
    """Whether the gateway works; `for_traffic` also asks whether requests may pass at all (`/readyz`)."""

    async def health(_request: Request) -> Response:
        reason = await state.health()
        rows = state.glass.rows() if state.glass is not None else ()
        broken = [{name: row[name] for name in ("id", "expires")} for row in rows]
        said: dict[str, Any] = {"break_glass": broken} if broken else {}
        if degraded := list(state.degraded()):
            said["degraded"] = degraded
        if state.engine:
            said["engine"] = state.engine
        if state.operation is not None:
            stopped = state.operation.stopped()
            if any(stopped.values()):
                said["kill_switch"] = stopped
            if state.operation.stale():
                said["policy"] = "stale"
            if for_traffic and stopped["all"]:
                reason = reason or _STOPPED
        if reason:
            return answer({"status": "unavailable", "reason": reason, **said}, 503)
        return answer({"status": "ok", **said})

    return health


def _metrics(state: ControlState) -> Callable[[Request], Awaitable[Response]]:
    async def metrics(_request: Request) -> Response:
        return raw(await state.metrics(), media_type="text/plain; version=0.0.4; charset=utf-8")

    return metrics


def _listing(items: List) -> Callable[[Request], Awaitable[Response]]:
    async def listing(request: Request) -> Response:
        try:
            query = read_query(request.query_params)
        except QueryError as error:
            return failure(400, "query.invalid", str(error))
        found, cursor = await items(query)
        return answer({"items": found, "next": cursor})

    return listing


def _cut(items: list[dict[str, Any]], query: Mapping[str, Any]) -> Page:
    """One page of a list that is in memory; the cursor is the name of its last item."""
    after = str(query.get("after", ""))
    wanted = [
        item for item in items if item["name"] > after and query.get("project", item["name"]) == item["name"]
    ]
    found = wanted[: query["limit"]]
    return found, found[-1]["name"] if len(found) < len(wanted) else None


def _receipt(state: ControlState) -> Callable[[Request], Awaitable[Response]]:
    async def receipt(request: Request) -> Response:
        digest = request.path_params["digest"]
        if not DIGEST.fullmatch(digest):
            return failure(400, "query.invalid", "a digest is sha256: and 64 lower-case hex digits")
        found, _ = await state.store.rows({"limit": 1, "digest": digest})
        row = next((row for row in found if row["digest"] == digest), None)
        return answer(row) if row else failure(404, "evidence.unknown", "no receipt of this digest")

    return receipt


def _lineage(state: ControlState) -> Callable[[Request], Awaitable[Response]]:
    """The record in its canonical bytes, so that the digest of the answer is the digest asked for."""

    async def lineage(request: Request) -> Response:
        digest = request.path_params["digest"]
        if not DIGEST.fullmatch(digest):
            return failure(400, "query.invalid", "a digest is sha256: and 64 lower-case hex digits")
        record = await state.store.record(digest)
        if record is None or "receipt_state" not in orjson.loads(record):  # the member no other record has
            return failure(404, "evidence.unknown", "no lineage of this digest")
        return raw(record)

    return lineage


def _guard(state: ControlState) -> Callable[[Request], Awaitable[Response]]:
    async def guard(request: Request) -> Response:
        body = bytearray()
        async for chunk in request.stream():
            body += chunk
            if len(body) > MAX_BODY_BYTES:
                return failure(413, "body.too_large", f"at most {MAX_BODY_BYTES} bytes")
        try:
            record = orjson.loads(bytes(body))
        except orjson.JSONDecodeError:
            return failure(400, "body.malformed", "not JSON")
        if not isinstance(record, dict):
            return failure(400, "body.malformed", "not a JSON object")
        try:
            return answer(state.memory_guard(record))
        except ContractError as error:
            return failure(400, error.code, pointer=error.pointer)
        except EvidenceError as error:
            return failure(503, error.code, str(error))

    return guard
