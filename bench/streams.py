"""What a streamed answer waits for: the first event after the request, and each event on its way, beside no proxy.

The provider writes a time into each event of an Anthropic stream, one every 20 ms; the client, in the same process,
reads how old each is. Connections are up before the clock starts. The request holds a secret, so that the gateway reads
every event for placeholders; stock `mitmdump` streams unread.
"""

from __future__ import annotations

import asyncio
import json
import re
import shutil
import ssl
import statistics
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from bench.proxy import _REDIRECT, _free_port, _gateway_config, _process
from bench.table import Suite, percentile
from gateway.cli.demo_script import github_token
from tests.support.client import Connection, post
from tests.support.pki import make
from tests.support.speech import event

HOST = "api.anthropic.com"
STREAMS = (1, 16, 64)
EVENTS = 50
_EVERY_S = 0.02
_TOKEN = (
    github_token()
)  # of the project: masked before the clock starts, as in every turn of an agent but the first
_STAMP = re.compile(rb'"text": ?"(\d+\.\d+)')


def _tick() -> bytes:
    delta = {"type": "text_delta", "text": f"{time.perf_counter():.6f} and a few words more"}
    return event({"type": "content_block_delta", "index": 0, "delta": delta}, "content_block_delta")


@dataclass
class Delays:
    """Milliseconds."""

    first: list[float] = field(default_factory=list)
    events: list[float] = field(default_factory=list)


async def _serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    try:
        while True:
            head = await reader.readuntil(b"\r\n\r\n")
            length = re.search(rb"(?i)content-length: *(\d+)", head)
            await reader.readexactly(int(length[1]) if length else 0)
            writer.write(
                b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n"
            )
            for _ in range(EVENTS):
                data = _tick()
                writer.write(b"%x\r\n%s\r\n" % (len(data), data))
                await writer.drain()
                await asyncio.sleep(_EVERY_S)
            writer.write(b"0\r\n\r\n")
            await writer.drain()
    except (asyncio.IncompleteReadError, OSError):
        writer.close()


async def _connect(port: int, ca: Path, *, proxied: bool) -> Connection:
    if proxied:
        connection = await Connection.open(port)
        await connection.connect(f"{HOST}:443")
        await connection.tls(ca, HOST)
        return connection
    context = ssl.create_default_context(cafile=str(ca))
    return Connection(*await asyncio.open_connection("127.0.0.1", port, ssl=context, server_hostname=HOST))


async def _stream(connection: Connection, body: bytes, delays: Delays) -> None:
    """One answer, event by event."""
    began, seen = time.perf_counter(), 0
    await connection.send(post(body, host=HOST))
    while seen < EVENTS:
        line = await connection.reader.readline()
        if not line:
            raise RuntimeError("the stream broke off")
        if (stamp := _STAMP.search(line)) is not None:
            now = time.perf_counter()
            if not seen:
                delays.first.append((now - began) * 1000)
            delays.events.append((now - float(stamp[1])) * 1000)
            seen += 1
    await connection.reader.readuntil(b"0\r\n\r\n")


def _body(number: int) -> bytes:
    text = f"Conversation {number}. The token is {_TOKEN}. " + "Some words of a prompt. " * 80
    asked = {"model": "m", "max_tokens": 9, "stream": True, "messages": [{"role": "user", "content": text}]}
    return json.dumps(asked).encode()


async def _measure(count: int, rounds: int, port: int, ca: Path, *, proxied: bool) -> Delays:
    delays = Delays()
    connections = [await _connect(port, ca, proxied=proxied) for _ in range(count)]
    try:
        await asyncio.gather(*(_stream(c, _body(n), Delays()) for n, c in enumerate(connections)))
        for number in range(rounds):
            asked = [_body(1000 * number + n) for n in range(count)]
            pairs = zip(connections, asked, strict=True)
            await asyncio.gather(*(_stream(c, body, delays) for c, body in pairs))
    finally:
        for connection in connections:
            await connection.close()
    return delays


async def _run(rounds: int, suite: Suite) -> None:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        pki = make(folder / "pki", HOST, "127.0.0.1")
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(pki.leaf)
        server = await asyncio.start_server(_serve, "127.0.0.1", 0, ssl=context)
        upstream = server.sockets[0].getsockname()[1]
        proxy, control, stock = _free_port(), _free_port(), _free_port()
        config = _gateway_config(folder, proxy, control, upstream, pki.ca)
        script = folder / "redirect.py"
        streaming = "\ndef responseheaders(flow):\n    flow.response.stream = True\n"
        script.write_text(_REDIRECT.format(port=upstream) + streaming)
        egress = [sys.executable, "-m", "gateway.cli", "up", "--config", str(config)]
        mitmdump = [
            shutil.which("mitmdump", path=str(Path(sys.executable).parent)) or "mitmdump", "-q",
            "--listen-host", "127.0.0.1", "-p", str(stock), "-s", str(script),
            "--set", f"confdir={folder / 'mitm'}", "--set", "connection_strategy=lazy",
            "--set", f"ssl_verify_upstream_trusted_ca={pki.ca}", "--set", "flow_detail=0",
        ]  # fmt: skip
        async with _process(*egress, port=proxy), _process(*mitmdump, port=stock):
            ours, theirs = folder / "state" / "ca.pem", folder / "mitm" / "mitmproxy-ca-cert.pem"
            for _ in range(300):
                if ours.exists() and theirs.exists():
                    break
                await asyncio.sleep(0.1)
            places = {
                "none": (upstream, pki.ca, False),
                "mitmdump": (stock, theirs, True),
                "gateway": (proxy, ours, True),
            }
            for count in STREAMS:
                for name_, (port, ca, proxied) in places.items():
                    _add(suite, count, name_, await _measure(count, rounds, port, ca, proxied=proxied))
        server.close()


def _add(suite: Suite, count: int, name: str, delays: Delays) -> None:
    suite.add(
        count,
        name,
        statistics.median(delays.first),
        percentile(delays.first, 0.99),
        statistics.median(delays.events),
        percentile(delays.events, 0.99),
    )


def run(rounds: int) -> Iterator[Suite]:
    """The suite."""
    suite = Suite(
        f"streamed answers of {EVENTS} events, one every {_EVERY_S * 1000:.0f} ms",
        ("streams", "proxy", "first p50 ms", "first p99 ms", "event p50 ms", "event p99 ms"),
    )
    asyncio.run(_run(max(2, rounds // 3), suite))
    yield suite
