"""Gemini Live through the gateway: JSON in both kinds of frames, masked on the way out and whole on the way back."""

from __future__ import annotations

import asyncio
import base64
import json
import ssl
from collections.abc import AsyncIterator
from typing import Any

import pytest
import pytest_asyncio
from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import ConnectionClosed

from tests.support.gateway import Bench, gateway
from tests.support.sockets import Socket

pytestmark = pytest.mark.asyncio(loop_scope="module")
HOST = "generativelanguage.googleapis.com"
SERVICE = "ws/google.ai.generativelanguage.v1beta.GenerativeService.BidiGenerateContent"
SECRET = "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"  # a published sample whose checksum holds


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def bench(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Bench]:
    async with gateway(tmp_path_factory.mktemp("live")) as running:
        yield running


@pytest.fixture(autouse=True)
def _fresh(bench: Bench) -> None:
    bench.provider.arrived.clear()
    bench.provider.sockets.clear()
    bench.provider.speak = speak


async def speak(socket: Socket) -> None:
    """Answer in binary frames, as the service does: the text of a turn in pieces, a tool call on `call`, sound on `sound`."""
    async for message in socket:
        said = json.loads(message)
        if "setup" in said:
            await say(socket, {"setupComplete": {}})
        elif "clientContent" in said:
            text = said["clientContent"]["turns"][-1]["parts"][-1]["text"]
            if text.startswith("sound"):
                await socket.send(bytes(range(256)))
            for at in range(0, len(text), 9):
                await say(socket, {"serverContent": {"modelTurn": {"parts": [{"text": text[at : at + 9]}]}}})
            call = {"id": "1", "name": "write_file", "args": {"path": "a", "text": text}}
            await say(socket, {"toolCall": {"functionCalls": [call]}})
        elif "toolResponse" in said:
            text = said["toolResponse"]["functionResponses"][0]["response"]["output"]
            await say(socket, {"serverContent": {"outputTranscription": {"text": text[:20]}}})
            await say(socket, {"serverContent": {"outputTranscription": {"text": text[20:]}}})
            await say(
                socket, {"serverContent": {"turnComplete": True}, "usageMetadata": {"totalTokenCount": 9}}
            )


async def say(socket: Socket, message: dict[str, Any]) -> None:
    await socket.send(json.dumps(message).encode())


async def open_to(bench: Bench, path: str = f"/{SERVICE}?key=AIzaOwnKeyOfTheCall") -> ClientConnection:
    context = ssl.create_default_context(cafile=str(bench.state / "ca.pem"))
    return await connect(f"wss://{HOST}{path}", proxy=f"http://127.0.0.1:{bench.port}", ssl=context)


async def heard(socket: ClientConnection, until: str) -> list[Any]:
    found: list[Any] = []
    async with asyncio.timeout(20):
        while not found or not (isinstance(found[-1], dict) and until in json.dumps(found[-1])):
            message = await socket.recv()
            assert isinstance(message, bytes)
            found.append(json.loads(message) if message[:1] == b"{" else message)
    return found


def turn(text: str) -> dict[str, Any]:
    return {"clientContent": {"turns": [{"role": "user", "parts": [{"text": text}]}], "turnComplete": True}}


@pytest.mark.parametrize("binary", [False, True])
@pytest.mark.parametrize("slashes", ["/", "//"])
async def test_a_conversation_with_a_tool(bench: Bench, binary: bool, slashes: str) -> None:
    def written(message: dict[str, Any]) -> str | bytes:
        text = json.dumps(message)
        return text.encode() if binary else text

    socket = await open_to(bench, f"{slashes}{SERVICE}?key=AIzaOwnKeyOfTheCall")
    async with socket:
        setup = {
            "setup": {
                "model": "models/gemini-live",
                "systemInstruction": {"parts": [{"text": f"use {SECRET}"}]},
            }
        }
        await socket.send(written(setup))
        assert await heard(socket, "setupComplete") == [{"setupComplete": {}}]
        await socket.send(written(turn(f"see {SECRET} there")))
        told = await heard(socket, "toolCall")
        text = "".join(
            p["text"] for m in told if "serverContent" in m for p in m["serverContent"]["modelTurn"]["parts"]
        )
        assert text == f"see {SECRET} there"
        assert told[-1]["toolCall"]["functionCalls"][0]["args"]["text"] == f"see {SECRET} there"
        answer = {
            "toolResponse": {
                "functionResponses": [
                    {"id": "1", "name": "write_file", "response": {"output": f"wrote {SECRET}"}}
                ]
            }
        }
        await socket.send(written(answer))
        told = await heard(socket, "turnComplete")
        said = "".join(m["serverContent"].get("outputTranscription", {}).get("text", "") for m in told)
        assert said == f"wrote {SECRET}"
    arrived = [m if isinstance(m, str) else m.decode() for m in bench.provider.sockets[0].messages]
    assert len(arrived) == 3
    assert SECRET not in "".join(arrived)
    rows = (await bench.rows())[:3]
    assert {row["effect"] for row in rows} == {"rewritten"}
    assert {row["receipt"]["destination"].get("model") for row in rows} >= {"gemini-live"}
    assert all(row["evaluation"]["response"]["complete"] for row in rows)


async def test_a_refusal_closes_and_says_who_did(bench: Bench) -> None:
    socket = await open_to(bench)
    await socket.send(json.dumps({"setup": {"model": SECRET}}))
    with pytest.raises(ConnectionClosed) as caught:
        await heard(socket, "never")
    assert caught.value.rcvd is not None
    assert caught.value.rcvd.code == 1008
    assert caught.value.rcvd.reason.startswith("Model Egress Gateway refused this message; receipt sha256:")
    assert bench.provider.sockets[0].messages == []


async def test_sound_is_media_and_what_is_none_is_opaque(bench: Bench) -> None:
    pcm = base64.b64encode(bytes(range(1, 255)) * 20).decode()
    socket = await open_to(bench)
    async with socket:
        await socket.send(
            json.dumps({"realtimeInput": {"audio": {"mimeType": "audio/pcm;rate=16000", "data": pcm}}})
        )
        await socket.send(json.dumps(turn("sound please")))
        told = await heard(socket, "toolCall")
    assert bytes(range(256)) in told
    assert pcm in str(bench.provider.sockets[0].messages[0])
    rows = (await bench.rows())[:2]
    assert "coverage.unsupported_media" in repr(rows)


@pytest.mark.parametrize("payload", [b"\x00\x01\x02\xff" * 9, b"\x93NUMPY" + bytes(99)])
async def test_binary_frames_that_nobody_knows_are_refused(bench: Bench, payload: bytes) -> None:
    socket = await open_to(bench)
    await socket.send(payload)
    with pytest.raises(ConnectionClosed):
        await heard(socket, "never")
    assert bench.provider.sockets[0].messages == []
