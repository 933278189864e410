"""The control port: who may ask, what is answered, and that an error tells nothing."""

import asyncio
import base64
import socket
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import httpx
import orjson
import pytest

from gateway.control import ControlServer, ControlState, control_token, create_app
from gateway.errors import ContractError, EvidenceError, SetupError
from gateway.ports import Record, RequestRow
from gateway.workers import spawn

TOKEN = "t" * 43
DIGEST = "sha256:" + "a" * 64
LINEAGE = "sha256:" + "b" * 64
CANARY = "canary-9f3a"


class Evidence:
    """An EvidenceStore with one request, which notes what it is asked."""

    def __init__(self) -> None:
        self.queries: list[Mapping[str, Any]] = []
        self.broken: Exception | None = None

    async def append(self, records: Sequence[Record], row: RequestRow | None = None) -> None:
        raise AssertionError("the control port writes nothing")

    async def rows(self, query: Mapping[str, Any]) -> tuple[list[dict[str, Any]], str | None]:
        self.queries.append(query)
        if self.broken:
            raise self.broken
        if query.get("kind") == "boundary_event":
            return [{"event": "cross_project"}], None
        row = {
            "digest": DIGEST,
            "time": "2026-01-01T00:00:00Z",
            "project": "<b>web</b>",
            "provider": "openai",
            "effect": "rewritten",
            "receipt_state": "observed_model_egress",
            "lineage": LINEAGE,
            "evaluation": {"objects": [{"reason_codes": ["secret.redacted"]}]},
        }
        return [row], "17"

    async def record(self, digest: str) -> bytes | None:
        return {LINEAGE: b'{"receipt_state":"prepared"}', DIGEST: b'{"receipt_id":"x"}'}.get(digest)

    async def health(self) -> str:
        return ""


@pytest.fixture
def store() -> Evidence:
    return Evidence()


def guard(record: Mapping[str, Any]) -> Mapping[str, Any]:
    if record.get("bad"):
        raise ContractError("memory.malformed", CANARY, pointer="/bad")
    return {"decision": "allow"}


async def metrics() -> bytes:
    return b"gateway_build_info 1\n"


def state(store: Evidence, **changes: Any) -> ControlState:
    async def ready() -> str:
        return ""

    settings: dict[str, Any] = {
        "health": ready,
        "metrics": metrics,
        "version": "1.2.3",
        "projects": [{"name": name} for name in ("web", "api", "lib")],
        "memory_guard": guard,
    }
    return ControlState(store=store, token=TOKEN, **(settings | changes))


def client(of: ControlState, *, token: str | None = TOKEN, **options: Any) -> httpx.AsyncClient:
    headers = {"authorization": f"Bearer {token}"} if token else {}
    transport = httpx.ASGITransport(create_app(of))
    return httpx.AsyncClient(
        transport=transport, base_url="http://127.0.0.1:8081", headers=headers, **options
    )


PROTECTED = [
    "/v1/receipts",
    f"/v1/receipts/{DIGEST}",
    f"/v1/lineages/{LINEAGE}",
    "/v1/quarantine",
    "/v1/approvals",
    "/v1/boundary/events",
    "/v1/projects",
    "/",
]


@pytest.mark.parametrize("path", [*PROTECTED, "/v1/nothing", "/livezz"])
@pytest.mark.parametrize("token", [None, "", "x" * 43, TOKEN[:-1], TOKEN + "t", "ü" * 43])
async def test_without_the_token_nothing_is_told(store: Evidence, path: str, token: str | None) -> None:
    async with client(state(store), token=None) as asking:
        headers = {} if token is None else {b"authorization": b"Bearer " + token.encode()}
        answered = await asking.get(path, headers=headers)

    assert answered.status_code == 401
    assert store.queries == []


@pytest.mark.parametrize("path", PROTECTED)
async def test_with_the_token_every_path_answers(store: Evidence, path: str) -> None:
    async with client(state(store)) as asking:
        answered = await asking.get(path)

    assert answered.status_code == 200
    assert answered.headers["cache-control"] == "no-store"
    assert "default-src 'none'" in answered.headers["content-security-policy"]


@pytest.mark.parametrize(("loopback", "status"), [(True, 200), (False, 401)])
async def test_metrics_are_open_on_loopback_only(store: Evidence, loopback: bool, status: int) -> None:
    async with client(state(store, loopback=loopback), token=None) as asking:
        assert (await asking.get("/metrics")).status_code == status
        for path in ("/livez", "/readyz", "/healthz"):
            assert (await asking.get(path)).status_code == 200


@pytest.mark.parametrize("reason", ["", "evidence.unavailable"])
async def test_health_tells_the_reason(store: Evidence, reason: str) -> None:
    async def health() -> str:
        return reason

    async with client(state(store, health=health, engine="re2"), token=None) as asking:
        health_answer, live = await asking.get("/healthz"), await asking.get("/livez")

    assert live.status_code == 200
    assert health_answer.status_code == (503 if reason else 200)
    assert health_answer.json() == (
        {"status": "unavailable", "reason": reason, "engine": "re2"}
        if reason
        else {"status": "ok", "engine": "re2"}
    )


@pytest.mark.parametrize(
    ("host", "status"),
    [
        ("127.0.0.1:8081", 200),
        ("localhost:9", 200),
        ("[::1]:8081", 200),
        ("10.1.2.3", 200),
        ("gateway.corp:8081", 200),
        ("evil.example:8081", 421),
        ("localhost.evil.example", 421),
        ("", 421),
        ("[::1", 421),
    ],
)
async def test_other_names_of_this_port_are_refused(store: Evidence, host: str, status: int) -> None:
    """DNS rebinding: a page's own name that resolves to this machine."""
    async with client(state(store, host="gateway.corp")) as asking:
        assert (await asking.get("/livez", headers={"host": host})).status_code == status


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({"origin": "http://127.0.0.1:8081"}, 200),
        ({"sec-fetch-site": "same-origin"}, 200),
        ({"sec-fetch-site": "none"}, 200),
        ({"origin": "https://evil.example"}, 403),
        ({"origin": "http://127.0.0.1:3000"}, 403),
        ({"origin": "null"}, 403),
        ({"origin": ""}, 403),
        ({"sec-fetch-site": "cross-site"}, 403),
        ({"sec-fetch-site": "same-site"}, 403),
    ],
)
async def test_pages_of_other_sites_are_refused(
    store: Evidence, headers: dict[str, str], status: int
) -> None:
    async with client(state(store)) as asking:
        assert (await asking.get("/v1/projects", headers=headers)).status_code == status


def basic(password: str) -> dict[str, str]:
    return {"authorization": "Basic " + base64.b64encode(f"any:{password}".encode()).decode()}


async def test_a_browser_may_give_the_token_for_the_console_and_nothing_else(store: Evidence) -> None:
    async with client(state(store), token=None) as asking:
        assert (await asking.get("/", headers=basic(TOKEN))).status_code == 200
        assert (await asking.get("/", headers=basic("wrong"))).status_code == 401
        assert (await asking.get("/", headers={"authorization": "Basic ?"})).status_code == 401
        assert (await asking.get("/v1/receipts", headers=basic(TOKEN))).status_code == 401
        assert (await asking.get("/")).headers["www-authenticate"].startswith("Basic ")
        assert (await asking.get("/v1/receipts")).headers["www-authenticate"] == "Bearer"


async def test_the_console_escapes_and_carries_no_script(store: Evidence) -> None:
    async with client(state(store)) as asking:
        page = (await asking.get("/")).text

    assert "&lt;b&gt;web&lt;/b&gt;" in page
    assert "<b>web" not in page
    assert "<script" not in page
    assert "secret.redacted" in page
    assert DIGEST in page


async def test_listings_hand_a_checked_query_to_the_store(store: Evidence) -> None:
    parameters = {
        "limit": "7",
        "after": "17",
        "since": "2026-01-01T01:00:00+01:00",
        "until": "2026-01-02T00:00:00Z",
        "project": "web",
        "effect": "refused",
        "state": "rejected",
    }
    async with client(state(store)) as asking:
        answered = await asking.get("/v1/receipts", params=parameters)
        await asking.get("/v1/boundary/events")

    assert answered.json()["next"] == "17"
    assert store.queries[0] == {
        "limit": 7,
        "after": "17",
        "since": "2026-01-01T00:00:00.000000Z",
        "until": "2026-01-02T00:00:00.000000Z",
        "project": "web",
        "effect": "refused",
        "state": "rejected",
    }
    assert store.queries[1] == {"limit": 100, "kind": "boundary_event"}


@pytest.mark.parametrize(
    "query",
    [
        "limit=0",
        "limit=1001",
        "limit=-1",
        "limit=x",
        "limit=",
        "limit=%D9%A3",
        "limit=1&limit=2",
        "since=yesterday",
        "since=2026-13-01T00:00:00Z",
        "since=2026-01-01",
        "until=2026-01-01T00:00:00",
        "project=A",
        "effect=lost",
        "state=unknown",
        "after=%00",
        "digest=x",
        f"{CANARY}=1",
    ],
)
@pytest.mark.parametrize("path", ["/v1/receipts", "/v1/projects", "/v1/quarantine"])
async def test_wrong_parameters_are_refused(store: Evidence, path: str, query: str) -> None:
    async with client(state(store)) as asking:
        answered = await asking.get(f"{path}?{query}")

    assert answered.status_code == 400
    assert answered.json()["error"]["code"] == "query.invalid"
    assert CANARY not in answered.text
    assert store.queries == []


async def test_projects_are_paged(store: Evidence) -> None:
    async with client(state(store)) as asking:
        first = (await asking.get("/v1/projects", params={"limit": 2})).json()
        second = (await asking.get("/v1/projects", params={"limit": 2, "after": first["next"]})).json()
        one = (await asking.get("/v1/projects", params={"project": "web"})).json()

    assert [item["name"] for item in first["items"] + second["items"]] == ["api", "lib", "web"]
    assert second["next"] is None
    assert [item["name"] for item in one["items"]] == ["web"]


async def test_a_receipt_and_a_lineage_by_digest(store: Evidence) -> None:
    async with client(state(store)) as asking:
        assert (await asking.get(f"/v1/receipts/{DIGEST}")).json()["effect"] == "rewritten"
        assert (await asking.get(f"/v1/receipts/{LINEAGE}")).status_code == 404
        assert (await asking.get(f"/v1/lineages/{LINEAGE}")).content == b'{"receipt_state":"prepared"}'
        assert (await asking.get(f"/v1/lineages/{DIGEST}")).status_code == 404
        for path in ("receipts", "lineages"):
            assert (await asking.get(f"/v1/{path}/sha256:ABC")).status_code == 400
            assert (await asking.get(f"/v1/{path}/sha256:{'c' * 64}")).status_code in {200, 404}


@pytest.mark.parametrize(
    ("error", "status", "code"),
    [
        (EvidenceError("evidence.unavailable", CANARY), 503, "evidence.unavailable"),
        (RuntimeError(CANARY), 500, "control.failed"),
    ],
)
async def test_an_error_answers_with_its_code_only(
    store: Evidence, error: Exception, status: int, code: str
) -> None:
    store.broken = error
    async with client(state(store)) as asking:
        answered = await asking.get("/v1/receipts")

    assert (answered.status_code, answered.json()["error"]["code"]) == (status, code)
    assert CANARY not in answered.text


@pytest.mark.parametrize(
    ("body", "status", "code"),
    [
        (b'{"text":"x"}', 200, None),
        (b'{"bad":true}', 400, "memory.malformed"),
        (b"[]", 400, "body.malformed"),
        (b"{", 400, "body.malformed"),
        (b"\xff", 400, "body.malformed"),
        (b" " * (1 << 20) + b"{}", 413, "body.too_large"),
    ],
)
async def test_the_memory_guard(store: Evidence, body: bytes, status: int, code: str | None) -> None:
    async with client(state(store)) as asking:
        answered = await asking.post("/v1/memory/guard", content=body)

    assert answered.status_code == status
    assert answered.json().get("error", {}).get("code") == code
    assert CANARY not in answered.text


@pytest.mark.parametrize(
    ("method", "path", "status"),
    [("POST", "/v1/receipts", 405), ("GET", "/v1/memory/guard", 405), ("GET", "/v2", 404)],
)
async def test_what_does_not_exist(store: Evidence, method: str, path: str, status: int) -> None:
    async with client(state(store)) as asking:
        answered = await asking.request(method, path)

    assert answered.status_code == status
    assert set(orjson.loads(answered.content)) == {"error"}


def test_the_token_is_made_once_and_for_one_user(tmp_path: Path) -> None:
    folder = tmp_path / "state"
    token = control_token(folder)

    assert control_token(folder) == token
    assert len(token) >= 43
    assert (folder / "control.token").stat().st_mode & 0o777 == 0o600
    assert [path.name for path in folder.iterdir()] == ["control.token"]


def test_a_token_that_is_not_right_is_refused(tmp_path: Path) -> None:
    with pytest.raises(SetupError):
        control_token(tmp_path, create=False)
    path = tmp_path / "control.token"
    path.write_text("short\n")
    path.chmod(0o600)
    with pytest.raises(SetupError):
        control_token(tmp_path)
    path.write_text(TOKEN)
    path.chmod(0o644)
    with pytest.raises(SetupError) as caught:
        control_token(tmp_path)
    assert TOKEN not in str(caught.value)


async def test_the_server_runs_beside_other_work_and_stops(store: Evidence) -> None:
    server = ControlServer(create_app(state(store)), "127.0.0.1", 0)
    await server.start(spawn)
    async with httpx.AsyncClient(trust_env=False) as asking:
        answered = await asking.get(f"http://127.0.0.1:{server.port}/healthz")
    assert answered.json() == {"status": "ok"}
    assert "server" not in answered.headers
    async with asyncio.timeout(10):
        await server.close()
    with pytest.raises(OSError):
        socket.create_connection(("127.0.0.1", server.port), 1)


async def test_an_address_that_is_taken_is_a_setup_error(store: Evidence) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        server = ControlServer(create_app(state(store)), "127.0.0.1", taken.getsockname()[1])
        with pytest.raises(SetupError):
            await server.start(spawn)
