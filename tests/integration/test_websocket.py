"""The whole gateway over WebSockets: masked on the way out, whole on the way back, turn by turn and across connections."""

from __future__ import annotations

import asyncio
import json
import ssl
from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import openai
import pytest
import pytest_asyncio
from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import InvalidStatus

from gateway.cli import demo_script
from gateway.cli.environment import PROXY, ROOTS
from tests.support.copyist import COPIED, Copyist
from tests.support.gateway import Bench, gateway
from tests.support.provider import Provider
from tests.support.sdk import use_tool
from tests.support.sockets import Socket, copying, create, echo, events_of

pytestmark = [
    pytest.mark.asyncio(loop_scope="module"),
    pytest.mark.filterwarnings(
        "ignore:connect.. must be used as a context manager:DeprecationWarning"
    ),  # openai's
]

SECRET = "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"  # a published sample whose checksum holds
TOOLS = [
    {"type": "function", "name": name, "parameters": {"type": "object", "properties": {}}, "strict": False}
    for name in ("read_file", "write_file")
]


@dataclass(frozen=True)
class Place:
    bench: Bench
    copyist: Copyist
    token: str

    @property
    def provider(self) -> Provider:
        return self.bench.provider

    def arrived(self) -> list[str]:
        return [str(message) for socket in self.provider.sockets for message in socket.messages]

    async def talk(self, **options: Any) -> ClientConnection:
        context = ssl.create_default_context(cafile=str(self.bench.state / "ca.pem"))
        proxy = f"http://127.0.0.1:{self.bench.port}"
        return await connect("wss://api.openai.com/v1/responses", proxy=proxy, ssl=context, **options)


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def place(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Place]:
    folder = tmp_path_factory.mktemp("websocket")
    for name, text in demo_script.POLICY.items():
        path = folder / "policy" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    copyist = Copyist(folder / "settings.conf", folder / "copy.conf")
    token = demo_script.github_token()
    copyist.source.write_text(f"# deployment\nGITHUB_TOKEN={token}\n")
    async with gateway(folder, {"policy": {"bundles": ["policies/default", "policy"]}}) as bench:
        yield Place(bench, copyist, token)


@pytest.fixture(autouse=True)
def _fresh(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in PROXY:
        monkeypatch.setenv(name, f"http://127.0.0.1:{place.bench.port}")
    for name in ROOTS:
        monkeypatch.setenv(name, str(place.bench.state / "ca-bundle.pem"))
    for name in ("NO_PROXY", "no_proxy", "ALL_PROXY", "all_proxy"):
        monkeypatch.delenv(name, raising=False)
    place.provider.sockets.clear()
    place.provider.arrived.clear()
    place.provider.speak = echo
    place.copyist.target.unlink(missing_ok=True)


async def answer(socket: ClientConnection) -> list[dict[str, Any]]:
    events: list[dict[str, Any]] = []
    async with asyncio.timeout(20):
        while not events or events[-1]["type"] not in {"response.completed", "response.failed"}:
            events.append(json.loads(await socket.recv()))
    return events


def text_in(events: list[dict[str, Any]]) -> str:
    return "".join(e["delta"] for e in events if e["type"] == "response.output_text.delta")


def turns(connection: Any, prompt: str) -> str:
    """Work over one connection until the model ends its turn; each turn sends only what is new."""
    items: list[Any] = [{"role": "user", "content": prompt}]
    previous: str | None = None
    while True:
        more = {"previous_response_id": previous} if previous else {}
        connection.response.create(model="gpt-5", input=items, tools=TOOLS, **more)
        done: Any = next(
            e for e in connection if e.type in {"response.completed", "response.failed", "error"}
        )
        if done.type != "response.completed":
            raise ValueError(done.response.error.message)
        calls = [item for item in done.response.output if item.type == "function_call"]
        if not calls:
            return str(done.response.output[-1].content[0].text)
        previous = done.response.id
        items = [
            {
                "type": "function_call_output",
                "call_id": call.call_id,
                "output": use_tool(call.name, json.loads(call.arguments)),
            }
            for call in calls
        ]


async def test_a_tool_call_gets_the_value_that_the_model_never_saw(place: Place) -> None:
    place.provider.speak = copying(place.copyist)

    def work() -> str:
        with openai.OpenAI(api_key="sk-dummy").responses.connect() as connection:
            return turns(connection, "Copy the token.")

    said = await asyncio.to_thread(work)
    assert len(place.provider.sockets) == 1
    assert len(place.arrived()) == 3
    assert not any(place.token in message for message in place.arrived())
    assert place.copyist.target.read_text() == f"token={place.token}\n"
    assert said == f"I copied {place.token} for you."
    assert "previous_response_id" in place.arrived()[2]


async def test_the_same_holds_for_the_asynchronous_client(place: Place) -> None:
    place.provider.speak = copying(place.copyist)
    said: list[Any] = []
    async with openai.AsyncOpenAI(api_key="sk-dummy") as client, client.responses.connect() as connection:
        await connection.response.create(model="gpt-5", input=f"Copy {place.token}.", tools=TOOLS)  # type: ignore[arg-type]
        async for event in connection:
            said.append(event)
            if event.type == "response.completed":
                break
    (call,) = said[-1].response.output
    assert (call.name, json.loads(call.arguments)) == ("read_file", {"file_path": str(place.copyist.source)})
    assert place.token not in "".join(place.arrived())


async def test_every_message_has_its_receipt_and_lineage(place: Place) -> None:
    socket = await place.talk()
    await socket.send(create(f"Repeat {SECRET}"))
    await answer(socket)
    await socket.close()
    message, head = (await place.bench.rows())[:2]

    assert message["evaluation"]["transport"] == "websocket"
    assert message["effect"] == "rewritten"
    assert message["receipt_state"] == "observed_model_egress"
    assert message["evaluation"]["response"]["placeholders_restored"] == 4  # the deltas, and three snapshots
    assert message["evaluation"]["response"]["complete"] is True
    assert (head["evaluation"]["transport"], head["effect"]) == ("http", "forwarded")
    assert head["receipt_state"] == "observed_model_egress"


async def test_what_was_masked_in_one_turn_is_restored_in_later_ones_event_by_event(place: Place) -> None:
    token = ""

    async def later(socket: Socket) -> None:
        nonlocal token
        first = await socket.receive()
        (token,) = COPIED.findall(str(first))
        for event in events_of("noted", 1):
            await socket.send(event)
        await socket.receive()
        for event in events_of(f"it was {token}!", 2, size=3):
            await socket.send(event)

    place.provider.speak = later
    socket = await place.talk()
    await socket.send(create(f"Remember {SECRET}"))
    plain = await answer(socket)
    await socket.send(create("What was it?", previous_response_id="resp_1"))
    events = await answer(socket)
    expected = events_of(f"it was {token}!", 2, size=3)
    await socket.close()

    assert plain == events_of("noted", 1)
    assert text_in(events) == f"it was {SECRET}!"
    assert [e["type"] for e in events] == [e["type"] for e in expected]
    assert events[-1]["response"]["output"][0]["content"][0]["text"] == f"it was {SECRET}!"
    assert SECRET not in "".join(place.arrived())


async def test_a_response_is_continued_on_another_connection(place: Place) -> None:
    first = await place.talk()
    await first.send(create(f"Remember {SECRET}"))
    await answer(first)
    (token,) = set(COPIED.findall(place.arrived()[0]))
    await first.close()

    async def repeat(socket: Socket) -> None:
        await socket.receive()
        for event in events_of(f"it was {token}", 9):
            await socket.send(event)
        await socket.receive()

    place.provider.speak = repeat
    second = await place.talk()
    await second.send(create("What was it?", previous_response_id="resp_1"))
    assert text_in(await answer(second)) == f"it was {SECRET}"
    await second.close()
    stranger = await place.talk()
    await stranger.send(create("What was it?"))
    assert text_in(await answer(stranger)) == f"it was {token}"
    await stranger.close()


async def test_a_denial_is_one_event_and_the_message_never_leaves(place: Place) -> None:
    card = demo_script.card_number()

    def work() -> str:
        with openai.OpenAI(api_key="sk-dummy").responses.connect() as connection:
            return turns(connection, f"Refund card {card}.")

    with pytest.raises(ValueError, match="Model Egress Gateway refused this request") as refused:
        await asyncio.to_thread(work)
    row = (await place.bench.rows())[0]
    assert row["digest"] in str(refused.value)
    assert row["effect"] == "refused"
    assert row["evaluation"]["transport"] == "websocket"
    assert place.arrived() == []
    assert card not in str(refused.value)


@pytest.mark.parametrize("message", ["{", "plain text", '{"a":1,"a":2}', f'["{SECRET}"', ""])
async def test_a_message_that_is_no_json_never_leaves(place: Place, message: str) -> None:
    socket = await place.talk()
    await socket.send(message)
    if message:
        (event,) = await answer(socket)
        assert event["response"]["error"]["code"] == "invalid_prompt"
        assert place.arrived() == []
    await socket.close()
    assert SECRET not in "".join(place.arrived())


async def test_a_binary_message_is_opaque(place: Place) -> None:
    socket = await place.talk()
    await socket.send(b"\x00\xff" + SECRET.encode())
    await asyncio.wait_for(socket.wait_closed(), 5)
    assert socket.close_code == 1008
    assert place.arrived() == []


async def test_a_secret_in_the_upgrade_is_refused(place: Place) -> None:
    with pytest.raises(InvalidStatus) as refused:
        await place.talk(additional_headers={"x-note": SECRET})
    assert refused.value.response.status_code == 400
    assert place.provider.sockets == []


async def test_realtime_events_are_read(place: Place) -> None:
    received: list[str] = []

    async def session(socket: Socket) -> None:
        async for message in socket:
            received.append(str(message))
            await socket.send({"type": "session.updated", "session": json.loads(message)["session"]})

    place.provider.speak = session
    context = ssl.create_default_context(cafile=str(place.bench.state / "ca.pem"))
    proxy = f"http://127.0.0.1:{place.bench.port}"
    url = "wss://api.openai.com/v1/realtime?model=gpt-realtime"
    async with connect(url, proxy=proxy, ssl=context) as socket:
        await socket.send(
            json.dumps({"type": "session.update", "session": {"instructions": f"the key is {SECRET}"}})
        )
        event = json.loads(await socket.recv())
    assert event["session"]["instructions"] == f"the key is {SECRET}"
    assert SECRET not in "".join(received)
    row = (await place.bench.rows())[0]
    assert row["receipt_state"] == "observed_model_egress"


async def test_nothing_of_all_this_is_written_anywhere(place: Place) -> None:
    await place.bench.rows()
    for name, data in place.bench.written().items():
        assert SECRET.encode() not in data, name
        assert place.token.encode() not in data, name
    assert Path(place.bench.state).exists()
