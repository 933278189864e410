"""What messages over a WebSocket cost, and whether memory grows with a conversation: 2,000 turns on one connection.

Each turn is one message of the client (1 KB that is new, permessage-deflate) and 23 of the provider. Beside it stands
stock `mitmdump`, which relays the same messages unread and keeps them all.
"""

from __future__ import annotations

import asyncio
import json
import shutil
import ssl
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from websockets.asyncio.client import connect

from bench.proxy import _REDIRECT, _cpu_s, _free_port, _process
from bench.table import Suite, percentile
from tests.support.pki import make
from tests.support.provider import Provider
from tests.support.sockets import Socket, create, events_of

HOST = "api.openai.com"
TURNS = 2000
_WARM = 100
_ANSWER = [json.dumps(event) for event in events_of("a word " * 18)]
_WORDS = ("module", "handler", "token stream", "schema", "retry", "cursor", "window", "parser")


async def _speak(socket: Socket) -> None:
    socket.keep = False
    async for _ in socket:
        for event in _ANSWER:
            await socket.send(event)


def _message(number: int) -> str:
    text = f"Turn {number}: " + " ".join(
        f"{_WORDS[(number * 7 + n) % 8]} {number * 31 + n}" for n in range(70)
    )
    return create(text, previous_response_id=f"resp_{number}")


def _resident_mb(pid: int) -> float:
    pages = int(Path(f"/proc/{pid}/statm").read_text().split()[1])
    return pages * 4096 / 1e6


async def _turns(socket: Any, first: int, count: int) -> list[float]:
    """Milliseconds of each turn, from the message to the end of its answer."""
    took = []
    for number in range(first, first + count):
        began = time.perf_counter()
        await socket.send(_message(number))
        for _ in _ANSWER:
            await socket.recv()
        took.append((time.perf_counter() - began) * 1000)
    return took


async def _measure(suite: Suite, name: str, port: int, pid: int, ca: Path) -> None:
    context = ssl.create_default_context(cafile=str(ca))
    url, proxy = f"wss://{HOST}/v1/responses", f"http://127.0.0.1:{port}"
    async with connect(url, proxy=proxy, ssl=context, max_size=None, ping_interval=None) as socket:
        await _turns(socket, 0, _WARM)
        before, cpu, began = _resident_mb(pid), _cpu_s(pid), time.perf_counter()
        took = await _turns(socket, _WARM, TURNS)
        seconds, cpu = time.perf_counter() - began, _cpu_s(pid) - cpu
        messages = TURNS * (1 + len(_ANSWER))
        suite.add(
            name,
            messages / seconds,
            TURNS / seconds,
            cpu * 1e6 / TURNS,
            percentile(took, 0.5),
            percentile(took, 0.99),
            before,
            _resident_mb(pid) - before,
        )


async def _run(suite: Suite) -> None:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        pki = make(folder / "pki", HOST, "127.0.0.1")
        provider = Provider(pki, alpn=("http/1.1",))
        provider.speak = _speak
        await provider.start()
        proxy, control, stock = _free_port(), _free_port(), _free_port()
        config = folder / "gateway.toml"
        config.write_text(
            f'[listen]\nproxy = "127.0.0.1:{proxy}"\ncontrol = "127.0.0.1:{control}"\n'
            f'[state]\ndir = "{folder / "state"}"\n'
            f'[upstream]\nca_file = "{pki.ca}"\n'
            f'connect_to = {{ "{HOST}:443" = "127.0.0.1:{provider.port}" }}\n'
        )
        script = folder / "redirect.py"
        script.write_text(_REDIRECT.format(port=provider.port))
        egress = [sys.executable, "-m", "gateway.cli", "up", "--config", str(config)]
        mitmdump = [
            shutil.which("mitmdump", path=str(Path(sys.executable).parent)) or "mitmdump", "-q",
            "--listen-host", "127.0.0.1", "-p", str(stock), "-s", str(script),
            "--set", f"confdir={folder / 'mitm'}", "--set", "connection_strategy=lazy",
            "--set", f"ssl_verify_upstream_trusted_ca={pki.ca}", "--set", "flow_detail=0",
        ]  # fmt: skip
        async with _process(*egress, port=proxy) as ours:
            await _measure(suite, "gateway", proxy, ours, folder / "state" / "ca.pem")
        async with _process(*mitmdump, port=stock) as theirs:
            await _measure(suite, "mitmdump", stock, theirs, folder / "mitm" / "mitmproxy-ca-cert.pem")
        await provider.stop()


def run(rounds: int) -> Iterator[Suite]:
    """The suite."""
    suite = Suite(
        f"one WebSocket, {TURNS} turns of 1 message out and {len(_ANSWER)} back",
        (
            "proxy",
            "messages a second",
            "turns a second",
            "processor us a turn",
            "p50 ms a turn",
            "p99 ms a turn",
            "resident MB at turn 100",
            "MB more at the end",
        ),
    )
    asyncio.run(_run(suite))
    yield suite
