"""Several processes: durable records through the writer's socket, and requests a second with one worker and with two.

Clients and provider run in this process, on the same cores as the gateway: on a machine of two cores two workers have
little to gain, and the processor time of a request tells more than the rate.
"""

from __future__ import annotations

import asyncio
import json
import sys
import tempfile
import time
import uuid
from collections.abc import Iterator
from pathlib import Path

import httpx

from bench.payloads import Traffic
from bench.proxy import HOST, _cpu_s, _drive, _free_port, _gateway_config, _process
from bench.store import Maker, _append, _open
from bench.table import Suite, percentile
from gateway.app.processes import Orders, launch
from gateway.app.signing import keyring
from gateway.app.stores import frame_bound
from gateway.config import parse
from gateway.store.remote import RemoteEvidence, WriterLink
from gateway.store.service import SOCKET
from tests.support.pki import make
from tests.support.provider import Answer, Provider

CONNECTIONS = 16


async def _through_the_socket(suite: Suite, decisions: int, new: int, rounds: int) -> None:
    for in_flight in (1, 16, 64):
        found: dict[str, list[tuple[float, list[float]]]] = {"in the process": [], "through the socket": []}
        for _ in range(max(2, rounds // 3)):  # in turn, so that a busy neighbour slows both alike
            for name, times in found.items():
                times.append(await _round(decisions, new, in_flight, socket=name != "in the process"))
        for name, times in found.items():
            rate, waits = max(times)
            suite.add(decisions, in_flight, name, rate, percentile(waits, 0.5), percentile(waits, 0.99))


async def _round(decisions: int, new: int, in_flight: int, *, socket: bool) -> tuple[float, list[float]]:
    maker = Maker(decisions, new)
    made = [maker.make() for _ in range(300 if in_flight == 1 else 2000)]
    with tempfile.TemporaryDirectory() as name:
        if not socket:
            store = _open(Path(name))
            try:
                return await _timed(store, made, in_flight)
            finally:
                await store.close()
        settings = parse({"state": {"dir": name}}, Path(name), {"HOME": name})
        keyring(settings)
        writer = await launch("writer", Orders(settings, "writer"))
        await writer.ready.wait()
        link = WriterLink(Path(name) / SOCKET, uuid.uuid4().hex, bound=frame_bound(settings))
        link.open()
        await link.ready(10)
        try:
            return await _timed(RemoteEvidence(link, settings.state.database), made, in_flight)
        finally:
            await link.close()
            writer.stop()
            await writer.ended(10)


async def _timed(store: object, made: list, in_flight: int) -> tuple[float, list[float]]:  # type: ignore[type-arg]
    await _append(store, made[:1], 1)  # type: ignore[arg-type]
    began = time.perf_counter()
    waits = await _append(store, made[1:], in_flight)  # type: ignore[arg-type]
    return (len(made) - 1) / (time.perf_counter() - began), waits


async def _requests(suite: Suite, rounds: int) -> None:
    answer = json.dumps({"type": "message", "content": [{"type": "text", "text": "ok"}]}).encode()
    for workers in (1, 2):
        with tempfile.TemporaryDirectory() as name:
            folder = Path(name)
            pki = make(folder / "pki", HOST, "127.0.0.1")
            provider = Provider(pki, alpn=("http/1.1",))
            provider.answer_to = lambda _request: Answer(pieces=(answer,))  # type: ignore[method-assign]
            await provider.start()
            proxy, control = _free_port(), _free_port()
            config = _gateway_config(folder, proxy, control, provider.port, pki.ca)
            config.write_text(config.read_text().replace("[listen]\n", f"[listen]\nworkers = {workers}\n"))
            command = [sys.executable, "-m", "gateway.cli", "up", "--config", str(config)]
            async with _process(*command, port=control) as gateway:
                await _ready(control)
                await _loaded(suite, workers, rounds, proxy, gateway, folder / "state" / "ca.pem")
            await provider.stop()


async def _ready(control: int) -> None:
    async with httpx.AsyncClient() as client:
        while (await client.get(f"http://127.0.0.1:{control}/healthz")).status_code != 200:  # noqa: ASYNC110
            await asyncio.sleep(0.1)  # another process has no event to wait for


async def _loaded(suite: Suite, workers: int, rounds: int, proxy: int, gateway: int, ca: Path) -> None:
    await _drive(proxy, ca, [Traffic(1).body(2_000)])
    for size in (2_000, 60_000):
        best, took, cpu = 0.0, [0.0], 0.0
        for number in range(max(2, rounds // 3)):
            bodies = [
                [Traffic(number * 10_000 + c * 100 + n).body(size) for n in range(20)]
                for c in range(CONNECTIONS)
            ]
            before, began = _cpu_s(gateway), time.perf_counter()
            found = await asyncio.gather(*(_drive(proxy, ca, each) for each in bodies))
            count, seconds = sum(map(len, found)), time.perf_counter() - began
            if count / seconds > best:
                best, took = count / seconds, [ms for each in found for ms in each]
                cpu = (_cpu_s(gateway) - before) * 1e6 / count
        suite.add(size, workers, best, cpu, percentile(took, 0.5), percentile(took, 0.99))


def run(rounds: int) -> Iterator[Suite]:
    """The suites."""
    suite = Suite(
        "durable evidence in the process and through the socket of the evidence writer",
        ("decisions", "in flight", "store", "requests a second (best)", "ms p50", "ms p99"),
    )
    asyncio.run(_through_the_socket(suite, 8, 8, rounds))
    asyncio.run(_through_the_socket(suite, 200, 3, rounds))
    yield suite
    suite = Suite(
        f"requests through the whole gateway on {CONNECTIONS} connections, all content new",
        ("bytes", "workers", "requests a second (best)", "processor us a request", "ms p50", "ms p99"),
    )
    asyncio.run(_requests(suite, rounds))
    yield suite
