"""How long a big body holds others up: the whole gateway, asked for its health every five milliseconds meanwhile.

Who asks and who sends are processes of their own. The answers tell how long the event loop was not there for others,
whatever the reason, a busy machine included: a row of no body says what that alone comes to.
"""

from __future__ import annotations

import asyncio
import json
import multiprocessing
import socket
import sys
import tempfile
import time
from collections.abc import Iterator
from multiprocessing.connection import Connection as Pipe
from pathlib import Path
from typing import Any

from bench.payloads import Traffic
from bench.proxy import HOST, _free_port, _gateway_config, _process
from bench.table import Suite, percentile
from tests.support.client import Connection, post
from tests.support.pki import make
from tests.support.provider import Answer, Provider

EVERY_S = 0.005


def _messages(count: int, size: int) -> bytes:
    said = [
        {"role": ("user", "assistant")[n % 2], "content": f"message {n} of many, all new. " * size}
        for n in range(count)
    ]
    return json.dumps({"model": "m", "max_tokens": 1, "messages": said}).encode()


def _nodes(count: int) -> bytes:
    document: dict[str, Any] = {
        "model": "m",
        "max_tokens": 1,
        "messages": [{"role": "user", "content": "hello"}],
    }
    document["metadata"] = {"rows": [{"n": n} for n in range(count)]}
    return json.dumps(document).encode()


def bodies() -> Iterator[tuple[str, bytes]]:
    """Bodies by what is much about them."""
    yield "none", b""
    yield "one text", _messages(1, 350_000)
    yield "agent's traffic", Traffic(3).body(4_000_000)
    yield "4,000 messages", _messages(4000, 70)
    yield "20,000 messages (over max_objects)", _messages(20_000, 15)
    yield "100,000 messages (over max_objects)", _messages(100_000, 1)
    yield "300,000 values", _nodes(150_000)


def _ask(port: int, pipe: Pipe) -> None:
    """Ask for health until told to stop; sends back how long each answer took, in milliseconds."""
    question = b"GET /healthz HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n"
    took = []
    pipe.send("ready")
    while not pipe.poll(EVERY_S):
        began = time.perf_counter()
        with socket.create_connection(("127.0.0.1", port), timeout=60) as connection:
            connection.sendall(question)
            while connection.recv(65_536):
                pass
        took.append((time.perf_counter() - began) * 1000)
    pipe.send(took)


async def _send(port: int, ca: Path, body: bytes) -> int:
    connection = await Connection.open(port)
    try:
        await connection.connect(f"{HOST}:443")
        await connection.tls(ca, HOST)
        return (await connection.ask(post(body, host=HOST))).status
    finally:
        await connection.close()


def _post(port: int, ca: Path, body: bytes, pipe: Pipe) -> None:
    pipe.send(asyncio.run(_send(port, ca, body)))


def _peak_mb(pid: int) -> float:
    """The most memory that the process ever had, and from now on the count begins anew."""
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    peak = next(int(line.split()[1]) for line in lines if line.startswith("VmHWM"))
    Path(f"/proc/{pid}/clear_refs").write_text("5")
    return peak / 1024


def _measured(control: int, proxy: int, ca: Path, body: bytes) -> tuple[int, float, list[float]]:
    context = multiprocessing.get_context("spawn")
    asking, theirs = context.Pipe()
    asker = context.Process(target=_ask, args=(control, theirs))
    asker.start()
    asking.recv()
    status, began = 0, time.perf_counter()
    if body:
        sending, others = context.Pipe()
        sender = context.Process(target=_post, args=(proxy, ca, body, others))
        sender.start()
        status = sending.recv()
        sender.join()
    else:
        time.sleep(2)
    seconds = time.perf_counter() - began
    asking.send("stop")
    took = asking.recv()
    asker.join()
    return status, seconds, took


async def _run(suite: Suite, rounds: int) -> None:
    answer = json.dumps({"type": "message", "content": [{"type": "text", "text": "ok"}]}).encode()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        pki = make(folder / "pki", HOST, "127.0.0.1")
        provider = Provider(pki, alpn=("http/1.1",))
        provider.answer_to = lambda _request: Answer(pieces=(answer,))  # type: ignore[method-assign]
        await provider.start()
        proxy, control = _free_port(), _free_port()
        config = _gateway_config(folder, proxy, control, provider.port, pki.ca)
        command = [sys.executable, "-m", "gateway.cli", "up", "--config", str(config)]
        ca = folder / "state" / "ca.pem"
        async with _process(*command, port=control) as gateway:
            while not ca.exists():  # noqa: ASYNC110 - another process has no event to wait for
                await asyncio.sleep(0.1)
            await _send(proxy, ca, Traffic(1).body(2_000))
            for kind, body in bodies():
                best: tuple[float, tuple[Any, ...]] | None = None
                for _ in range(max(1, rounds // 3)):
                    _peak_mb(gateway)
                    before = _peak_mb(gateway)
                    status, seconds, took = await asyncio.to_thread(_measured, control, proxy, ca, body)
                    grown = _peak_mb(gateway) - before
                    row = (status, seconds, percentile(took, 0.5), percentile(took, 0.99), max(took), grown)
                    best = min(best, (max(took), row)) if best is not None else (max(took), row)
                suite.add(kind, len(body), *(best[1] if best is not None else ()))
        await provider.stop()


def run(rounds: int) -> Iterator[Suite]:
    """The suite."""
    suite = Suite(
        "answers to others while a big body is worked on, milliseconds (the calmest round)",
        ("body", "bytes", "status", "seconds", "p50", "p99", "longest", "MB more at most"),
    )
    asyncio.run(_run(suite, rounds))
    yield suite
