"""The table of docs/receipts.md, driven end to end: what happens on the wire, and the state that the records claim.

A real gateway with its real store, before a provider that fails on purpose. In every row the claim is also held against
what the provider saw.
"""

from __future__ import annotations

import asyncio
import errno
import json
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import replace
from typing import Any

import pytest
import pytest_asyncio
from websockets.asyncio.client import connect

from gateway.app import serve
from gateway.cli.demo_script import github_token
from gateway.errors import EvidenceError
from gateway.ports import Attempt
from gateway.store.audit import verify_store
from tests.support.claims import ANSWERED, HOST, TIMES, Claim, Life, body, settled
from tests.support.client import Connection, post
from tests.support.gateway import gateway
from tests.support.provider import Answer, ResetError
from tests.support.sockets import Socket, create, echo
from tests.support.waiting import eventually
from tests.unit.providers.test_dialects import PIXEL

pytestmark = pytest.mark.asyncio(loop_scope="module")

BIG = body("so long a text " * 1_500_000)  # more than both kernels buffer on loopback
PICTURE = body(
    messages=[
        {
            "role": "user",
            "content": [
                {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": PIXEL}}
            ],
        }
    ]
)


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def shared(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Life]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(serve.wiring, "settings_of_proxy", settled(**TIMES))
        async with gateway(tmp_path_factory.mktemp("life")) as bench:
            yield Life(bench)
        key = bench.running.core.keys.signing_key().public_key
        assert verify_store(bench.state / "egress.db", key).ok


@pytest_asyncio.fixture(loop_scope="module")
async def life(shared: Life) -> Life:
    shared.bench.provider._answers.clear()
    shared.bench.provider.speak = None
    return shared


ROWS: dict[str, tuple[bytes, Answer, Claim]] = {
    "answered": (body(), Answer(), ANSWERED),
    **{
        f"answered {status}": (
            body(),
            Answer(status),
            replace(ANSWERED, observed=(("response_observed", status),)),
        )
        for status in (307, 401, 429, 529)
    },
    "reset after the request": (
        body(),
        Answer(reset="body"),
        Claim("handed_off", 0, (("no_response_observed", "other"),), "acknowledged", complete=False),
    ),
    "no head in time": (
        body(),
        Answer(silent=True),
        Claim("handed_off", 0, (("no_response_observed", "timeout"),), "acknowledged", complete=False),
    ),
    "reset while the body was written": (
        BIG,
        Answer(reset="head"),
        Claim("prepared", 0, (("no_response_observed", "other"),), "maybe", complete=False),
    ),
    "answered before the body was written": (
        BIG,
        Answer(413, early=True),
        Claim("handed_off", 0, (("response_observed", 413),), "answered", complete=True),
    ),
    "a stream that breaks": (
        body(),
        Answer(framing="chunked", pieces=(b"data: 1\n\n", 0.05, ResetError)),
        replace(ANSWERED, complete=False),
    ),
    "not inspected in full": (
        PICTURE,
        Answer(),
        replace(ANSWERED, state="partial"),
    ),
    "not inspected in full, and reset": (
        PICTURE,
        Answer(reset="body"),
        Claim("partial", 0, (("no_response_observed", "other"),), "acknowledged", complete=False),
    ),
}


@pytest.mark.parametrize("row", ROWS)
async def test_the_table(life: Life, row: str) -> None:
    sent, answer, expected = ROWS[row]
    life.bench.provider.script(answer)
    await life.bench.send(sent)
    found = await life.claim()
    if (
        "reset after" in row or "and reset" in row
    ):  # whether the kernel had an acknowledgement before the reset
        assert found.level in {"acknowledged", "handed_over"}
        found = replace(found, level=expected.level)
    assert found == expected


async def test_a_redirect_is_not_followed(life: Life) -> None:
    before = len(life.bench.arrived)
    life.bench.provider.script(Answer(307, headers=(("location", "https://api.openai.com/v1/x"),)))
    assert (await life.bench.send(body())).status == 307
    assert (await life.claim()).counted == 1
    assert len(life.bench.arrived) == before + 1


async def test_what_is_refused_is_rejected_without_an_admission(life: Life) -> None:
    before = len(life.bench.arrived)
    assert (await life.bench.send(b'{"messages": [,]}')).status == 400
    assert await life.claim() == Claim("rejected", 0, (), "not_attempted", complete=False)
    assert (await life.bench.rows(limit=1))[0]["admission"] is None
    assert len(life.bench.arrived) == before


@pytest.mark.parametrize(
    ("answer", "state", "counted"),
    [
        (Answer(silent=True), "handed_off", 0),
        (
            Answer(framing="chunked", pieces=(b"data: 1\n\n", *([0.05, b"data: 2\n\n"] * 60))),
            "observed_model_egress",
            1,
        ),
    ],
)
async def test_a_client_that_leaves(life: Life, answer: Answer, state: str, counted: int) -> None:
    life.bench.provider.script(answer)
    before = len(life.bench.arrived)
    connection = await Connection.open(life.bench.port)
    await connection.connect(f"{HOST}:443")
    await connection.tls(life.bench.state / "ca.pem", HOST)
    await connection.send(post(body(), host=HOST))
    await eventually(lambda: len(life.bench.arrived) > before and life.bench.arrived[-1].complete)
    if counted:
        await connection.reader.readuntil(b"data: 1")
    connection.abort()
    found = await life.claim()
    assert (found.state, found.counted, found.complete) == (state, counted, False)


async def test_an_observation_that_cannot_be_stored_counts_for_nothing(
    life: Life, monkeypatch: pytest.MonkeyPatch
) -> None:
    egress = life.bench.running.core.egress
    append = type(egress.store).append

    async def failing(self: Any, records: Any, row: Any = None) -> None:
        if any(record.kind == "observation" for record in records):
            raise EvidenceError("evidence.unavailable", "the disk is full")
        await append(self, records, row)

    monkeypatch.setattr(type(egress.store), "append", failing)
    assert (await life.bench.send(body())).status == 200
    found = await life.claim()
    assert (found.state, found.counted, found.observed) == ("handed_off", 0, ())


async def test_other_bytes_than_the_admitted_ones_are_an_alarm(
    life: Life, monkeypatch: pytest.MonkeyPatch
) -> None:
    egress = life.bench.running.core.egress
    observe = type(egress).observe

    async def other(self: Any, request_id: str, attempt: Attempt) -> None:
        await observe(self, request_id, replace(attempt, written_digest=f"sha256:{'0' * 64}"))

    monkeypatch.setattr(type(egress), "observe", other)
    assert (await life.bench.send(body())).status == 200
    found = await life.claim()
    assert (found.state, found.counted, found.observed) == ("prepared", 0, ())
    events, _ = await egress.store.rows({"kind": "event", "limit": 1000})
    assert any(event.get("alarm") is True for event in events)


async def test_a_client_that_tries_again_has_a_record_each_time(life: Life) -> None:
    life.bench.provider.script(Answer(reset="body"), Answer())
    for state in ("handed_off", "observed_model_egress"):
        await life.bench.send(body("again"))
        assert (await life.claim()).state == state
    first, second = await life.bench.rows(limit=2)
    assert first["digest"] != second["digest"]
    assert first["admission"]["request_digest"] == second["admission"]["request_digest"]


# -- messages on a WebSocket --------------------------------------------------------------------------------------


async def silent(socket: Socket) -> None:
    await socket.receive()
    socket.writer.transport.abort()


@pytest.mark.parametrize(
    ("speak", "state", "counted"), [(echo, "observed_model_egress", 1), (silent, "handed_off", 0)]
)
async def test_a_message_is_claimed_as_a_request_is(
    life: Life, speak: Callable[[Socket], Awaitable[None]], state: str, counted: int
) -> None:
    life.bench.provider.speak = speak
    context = ssl.create_default_context(cafile=str(life.bench.state / "ca.pem"))
    proxy = f"http://127.0.0.1:{life.bench.port}"
    socket = await connect("wss://api.openai.com/v1/responses", proxy=proxy, ssl=context)
    await socket.send(create("hello"))
    async with asyncio.timeout(10):
        try:
            while json.loads(await socket.recv())["type"] != "response.completed":
                pass
        except Exception:
            pass
    await socket.close()
    found = await life.claim()
    assert (found.state, found.counted, len(found.observed)) == (state, counted, 1)


async def test_what_cannot_be_learnt_is_not_admitted(life: Life, monkeypatch: pytest.MonkeyPatch) -> None:
    async def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, "no space left")

    egress = life.bench.running.core.egress
    monkeypatch.setattr(type(egress.ownership), "learn", full)
    arrived = len(life.bench.arrived)
    reply = await life.bench.send(body("hello there"))
    row = (await life.bench.rows())[0]

    assert (reply.status, len(life.bench.arrived)) == (503, arrived)
    assert (row["effect"], row["admission"]) == ("refused", None)
    assert egress.exchange(row["request_id"]) is None


async def test_what_a_conversation_cannot_keep_is_admitted_and_never_sent(
    life: Life, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Both are synced side by side, so that the admission may stand where the other fails: the lineage says the rest."""

    async def full(*_: object) -> None:
        raise EvidenceError("conversations.unavailable", "no space left")

    egress = life.bench.running.core.egress
    monkeypatch.setattr(type(egress.conversations.store), "save", full)
    arrived = len(life.bench.arrived)
    reply = await life.bench.send(body(f"the token is {github_token()}"))  # masked, so it is to be remembered
    row = (await life.bench.rows())[0]

    assert (reply.status, len(life.bench.arrived)) == (503, arrived)
    assert (row["effect"], row["receipt_state"], row["attempts"]) == ("rewritten", "prepared", [])
    assert row["lineage"]
    assert egress.exchange(row["request_id"]) is None
