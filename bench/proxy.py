"""What the whole gateway costs a request beside stock `mitmdump` without scanning and beside no proxy, in one run.

Processor time is read from /proc: the proxy's processes, user and system, over many requests on one keep-alive
connection. Every round drives all variants in turn, so that a busy neighbour slows them alike.
"""

from __future__ import annotations

import asyncio
import json
import os
import shutil
import signal
import socket
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path

from bench.payloads import Traffic
from bench.table import Suite, percentile
from tests.support.client import Connection, post
from tests.support.pki import make
from tests.support.provider import Answer, Provider

HOST = "api.anthropic.com"
REQUESTS = 60
_REDIRECT = """
import sys
def requestheaders(flow):
    host = flow.request.headers.get("host")
    flow.request.host, flow.request.port = "127.0.0.1", {port}
    flow.request.headers["host"] = host
"""


def _cpu_s(pid: int) -> float:
    """Processor seconds of a process and all below it."""
    ticks = 0
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = stat.read_text().rpartition(")")[2].split()
        except OSError:
            continue
        if int(stat.parent.name) == pid or int(fields[3]) == pid:  # the process, or of its session
            ticks += int(fields[11]) + int(fields[12])
    return ticks / os.sysconf("SC_CLK_TCK")


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@asynccontextmanager
async def _process(*command: str, port: int) -> AsyncIterator[int]:
    process = subprocess.Popen(  # noqa: ASYNC220
        command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True
    )
    try:
        for _ in range(600):
            try:
                _, writer = await asyncio.open_connection("127.0.0.1", port)
                writer.close()
                break
            except OSError:
                await asyncio.sleep(0.1)
        yield process.pid
    finally:
        os.killpg(process.pid, signal.SIGTERM)
        process.wait(20)


async def _drive(port: int, ca: Path, bodies: list[bytes]) -> list[float]:
    """Latencies in milliseconds of requests on one connection through a proxy."""
    connection = await Connection.open(port)
    await connection.connect(f"{HOST}:443")
    await connection.tls(ca, HOST)
    took = []
    try:
        for body in bodies:
            began = time.perf_counter()
            reply = await connection.ask(post(body, host=HOST))
            took.append((time.perf_counter() - began) * 1000)
            if reply.status != 200:
                raise RuntimeError(f"the proxy answered {reply.status}")
    finally:
        await connection.close()
    return took


def _gateway_config(folder: Path, proxy: int, control: int, upstream: int, ca: Path) -> Path:
    path = folder / "gateway.toml"
    path.write_text(
        f'[listen]\nproxy = "127.0.0.1:{proxy}"\ncontrol = "127.0.0.1:{control}"\n'
        f'[state]\ndir = "{folder / "state"}"\n'
        f'[upstream]\nca_file = "{ca}"\nconnect_to = {{ "{HOST}:443" = "127.0.0.1:{upstream}" }}\n'
    )
    return path


def _cold(rounds: int) -> list[bytes]:
    return [Traffic(100 + rounds * 1000 + n).body(60_000) for n in range(REQUESTS)]


def _growing() -> list[bytes]:
    traffic = Traffic(5)
    traffic.body(56_000)
    bodies = []
    for _ in range(REQUESTS):
        traffic.turn(150)
        bodies.append(traffic.encoded())
    return bodies


async def _run(rounds: int, suite: Suite) -> None:
    answer = json.dumps({"type": "message", "content": [{"type": "text", "text": "ok"}]}).encode()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        pki = make(folder / "pki", HOST, "127.0.0.1")
        provider = Provider(pki, alpn=("http/1.1",))
        provider.answer_to = lambda _request: Answer(pieces=(answer,))  # type: ignore[method-assign]
        await provider.start()
        proxy, control, stock = _free_port(), _free_port(), _free_port()
        config = _gateway_config(folder, proxy, control, provider.port, pki.ca)
        script = folder / "redirect.py"
        script.write_text(_REDIRECT.format(port=provider.port))
        egress = [sys.executable, "-m", "gateway.cli", "up", "--config", str(config)]
        mitmdump = [
            shutil.which("mitmdump", path=str(Path(sys.executable).parent)) or "mitmdump", "-q",
            "--listen-host", "127.0.0.1", "-p", str(stock), "-s", str(script),
            "--set", f"confdir={folder / 'mitm'}", "--set", "connection_strategy=lazy",
            "--set", f"ssl_verify_upstream_trusted_ca={pki.ca}", "--set", "flow_detail=0",
        ]  # fmt: skip
        async with _process(*egress, port=proxy) as ours, _process(*mitmdump, port=stock) as theirs:
            for _ in range(300):
                if (folder / "state" / "ca.pem").exists() and (
                    folder / "mitm" / "mitmproxy-ca-cert.pem"
                ).exists():
                    break
                await asyncio.sleep(0.1)
            await _rounds(rounds, suite, folder, (proxy, ours), (stock, theirs))
        await provider.stop()


async def _rounds(
    rounds: int, suite: Suite, folder: Path, gateway: tuple[int, int], stock: tuple[int, int]
) -> None:
    trusted = {"gateway": folder / "state" / "ca.pem", "mitmdump": folder / "mitm" / "mitmproxy-ca-cert.pem"}
    places = {"gateway": gateway, "mitmdump": stock}
    await _drive(gateway[0], trusted["gateway"], [Traffic(1).body(2_000)])
    await _drive(stock[0], trusted["mitmdump"], [Traffic(1).body(2_000)])
    for scenario, bodies_of in (
        ("60 KB, all new", _cold),
        ("60 KB, 150 bytes new a turn", lambda _: _growing()),
    ):
        cpu: dict[str, list[float]] = {name: [] for name in places}
        took: dict[str, list[float]] = {name: [] for name in places}
        for number in range(rounds):
            bodies = bodies_of(number)
            for name, (port, pid) in places.items():
                before = _cpu_s(pid)
                took[name] += await _drive(port, trusted[name], bodies)
                cpu[name].append((_cpu_s(pid) - before) * 1e6 / len(bodies))
        ratio = statistics.median(a / b for a, b in zip(cpu["gateway"], cpu["mitmdump"], strict=True))
        for name in places:
            suite.add(
                scenario,
                name,
                statistics.median(cpu[name]),
                ratio if name == "gateway" else 1.0,
                statistics.median(took[name]),
                percentile(took[name], 0.99),
            )


def run(rounds: int) -> Iterator[Suite]:
    """The suite."""
    suite = Suite(
        "proxied requests, one client, keep-alive",
        ("scenario", "proxy", "processor us a request", "x stock mitmdump", "p50 ms", "p99 ms"),
    )
    asyncio.run(_run(max(3, rounds // 3), suite))
    yield suite
