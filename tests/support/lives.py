"""A gateway that is killed and started again and again, while clients go on asking.

`python -m tests.support.lives` imports everything once and then forks a whole gateway for each configuration path that
it reads from standard input, so that a life costs a fraction of a second to begin. Each one is `gateway.app.run`, as
`egress up` calls it; only the detector is built once, and there are no scanning processes.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
import os
import random
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.support.client import Connection, RefusedError, Reply, post
from tests.support.pki import make
from tests.support.provider import Provider
from tests.support.waiting import eventually

HOST = "api.anthropic.com"
SECRET = "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"


def free_ports(count: int) -> list[int]:
    """Ports that nobody listens on now."""
    held = [socket.socket() for _ in range(count)]
    for sock in held:
        sock.bind(("127.0.0.1", 0))
    ports = [sock.getsockname()[1] for sock in held]
    for sock in held:
        sock.close()
    return ports


@dataclass
class Asked:
    """One request of a client: what was sent, and what came back of it."""

    body: bytes
    clean: bool  # leaves as it is, so its digest is known beforehand
    status: int = 0
    receipt: str = ""


@dataclass
class Traffic:
    """Clients that ask without end; every request has a number of its own, in a header."""

    port: int
    ca: Path
    seed: int = 1
    asked: dict[int, Asked] = field(default_factory=dict)
    answered: int = 0
    _dice: random.Random = field(init=False)

    def __post_init__(self) -> None:
        self._dice = random.Random(self.seed)

    def make(self) -> tuple[int, Asked]:
        """The next request: small, large, with a secret in it, or not readable."""
        number, dice = len(self.asked), self._dice.random()
        text = f"question {number} of {self.seed}"
        if dice < 0.15:
            text += " with much more to read" * self._dice.randrange(500, 9000)
        elif dice < 0.3:
            text += f" about {SECRET}"
        document = {"model": "m", "max_tokens": 5, "messages": [{"role": "user", "content": text}]}
        body = json.dumps(document).encode()[: -1 if 0.3 <= dice < 0.35 else None]
        made = self.asked[number] = Asked(body, clean=SECRET.encode() not in body)
        return number, made

    async def client(self) -> None:
        """Ask on one connection until it breaks, then on a new one, until cancelled."""
        while True:
            try:
                await self._connection()
            except (OSError, RefusedError, asyncio.IncompleteReadError, ValueError):
                await asyncio.sleep(0.02)

    async def _connection(self) -> None:
        connection = await Connection.open(self.port)
        try:
            async with asyncio.timeout(5):
                await connection.connect(f"{HOST}:443")
                await connection.tls(self.ca, HOST)
            while True:
                number, made = self.make()
                marked = post(made.body, host=HOST, headers=b"x-number: %d\r\n" % number)
                reply = await connection.ask(marked)
                made.status, made.receipt = reply.status, reply.header("x-egress-receipt") or ""
                self.answered += reply.status > 0
                if not reply.complete:
                    return
        finally:
            connection.abort()


@dataclass
class Lives:
    """The state folder, the provider and the clients that outlive every gateway."""

    folder: Path
    provider: Provider
    config: Path
    traffic: Traffic
    control: int
    kills: int = 0

    @classmethod
    async def begin(cls, folder: Path, seed: int = 1) -> Lives:
        """Start the provider and write the configuration."""
        pki = make(folder / "pki", HOST)
        provider = Provider(pki)
        await provider.start()
        proxy, control = free_ports(2)
        config = folder / "gateway.toml"
        config.write_text(
            f'[listen]\nproxy = "127.0.0.1:{proxy}"\ncontrol = "127.0.0.1:{control}"\n'
            f'[state]\ndir = "{folder / "state"}"\n[upstream]\nca_file = "{pki.ca}"\n'
            f'[upstream.connect_to]\n"{HOST}:443" = "127.0.0.1:{provider.port}"\n'
        )
        return cls(folder, provider, config, Traffic(proxy, folder / "state" / "ca.pem", seed), control)

    @property
    def database(self) -> Path:
        return self.folder / "state" / "egress.db"

    async def ready(self, alive: Callable[[], bool], seconds: float = 30.0) -> None:
        """Wait until the proxy accepts connections."""
        until = time.monotonic() + seconds
        while time.monotonic() < until:
            with suppress(OSError):
                _, writer = await asyncio.open_connection("127.0.0.1", self.traffic.port)
                writer.transport.abort()
                return
            assert alive(), f"the gateway did not start: {(self.folder / 'log').read_text()[-2000:]}"
            await asyncio.sleep(0.01)
        raise AssertionError("the gateway does not accept connections")

    async def health(self) -> tuple[int, str]:
        """Status and text of `/healthz`."""
        reader, writer = await asyncio.open_connection("127.0.0.1", self.control)
        try:
            writer.write(b"GET /healthz HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n\r\n")
            answer = (await reader.read()).decode()
        finally:
            writer.transport.abort()
        return int(answer.split(" ")[1]), answer.partition("\r\n\r\n")[2]

    async def ask(self, text: str = "hello") -> Reply:
        """One request on a connection of its own."""
        document = {"model": "m", "max_tokens": 5, "messages": [{"role": "user", "content": text}]}
        connection = await Connection.open(self.traffic.port)
        try:
            await connection.connect(f"{HOST}:443")
            await connection.tls(self.traffic.ca, HOST)
            return await connection.ask(post(json.dumps(document).encode(), host=HOST))
        finally:
            connection.abort()

    async def work(self, answers: int, seconds: float = 10.0) -> None:
        """Wait until clients got so many more answers; the first takes a while."""
        until, wanted = time.monotonic() + seconds, self.traffic.answered + answers
        while self.traffic.answered < wanted and time.monotonic() < until:
            await asyncio.sleep(0.005)


class Forge:
    """The process that forks gateways."""

    def __init__(self, folder: Path, prefix: Sequence[str] = (), **environment: str) -> None:
        """`prefix` stands before the command, and must end in replacing itself by it."""
        self._log = (folder / "log").open("ab")
        self.process = subprocess.Popen(
            [*prefix, sys.executable, "-m", "tests.support.lives"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._log,
            text=True,
            env={**os.environ, **environment},
        )

    def fork(self, config: Path) -> int:
        """Start a gateway; its process id."""
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.process.stdin.write(f"{config}\n")
        self.process.stdin.flush()
        return int(self.process.stdout.readline())

    def close(self) -> None:
        """End it; gateways that it forked go on."""
        self.process.communicate()
        self._log.close()


def alive(pid: int) -> bool:
    """Whether a gateway that was forked is there."""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


async def end(pid: int, number: signal.Signals) -> None:
    """Signal a gateway and wait until it is gone."""
    with suppress(ProcessLookupError):
        os.kill(pid, number)
    await eventually(lambda: not alive(pid))


def problems(
    lives: Lives, records: Callable[[str], list[dict[str, Any]]], rows: list[dict[str, Any]]
) -> list[str]:
    """What the evidence says against what the provider and the clients saw. Every gateway has ended before."""
    admitted = {record["request_digest"] for record in records("admission")}
    receipts = {row["digest"] for row in rows}
    found = []
    seen: set[str] = set()
    for arrived in lives.provider.arrived:
        asked = lives.traffic.asked[int(arrived.header("x-number") or -1)]
        digest = _digest(bytes(arrived.body) if arrived.complete else asked.body)
        if arrived.complete:
            seen.add(digest)
        if (arrived.complete or asked.clean) and digest not in admitted:
            found.append(f"{len(arrived.body)} bytes of a request arrived without an admission")
        if asked.clean and not asked.body.startswith(bytes(arrived.body)):
            found.append("other bytes arrived than were sent")
    found += [
        f"the receipt of an answer with status {asked.status} is not there"
        for asked in lives.traffic.asked.values()
        if asked.receipt and asked.receipt not in receipts
    ]
    for row in rows:
        state, admission = row["receipt_state"], row["admission"]
        if admission and not row["lineage"]:
            found.append("an admitted request has no lineage")
        claims = state in {"observed_model_egress", "handed_off"}
        if claims and admission["request_digest"] not in seen:
            found.append(f"a lineage claims {state} and the provider saw nothing")
    return found


def _digest(body: bytes) -> str:
    return f"sha256:{hashlib.sha256(body).hexdigest()}"


def _serve() -> None:
    from gateway import app
    from gateway.app import serve, wiring
    from gateway.config import load

    detector = wiring.build_detector()
    pool = serve.scanner_of

    def scanner(settings: Any, built: Any) -> Any:
        made = pool(settings, built)
        made._workers, made._inline_bytes = 0, 1 << 30
        return made

    wiring.build_detector = lambda config=None: detector
    serve.scanner_of = scanner
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    for line in sys.stdin:
        settings = load(Path(line.strip()), {})
        pid = os.fork()
        if pid == 0:
            signal.signal(signal.SIGCHLD, signal.SIG_DFL)
            null = os.open(os.devnull, os.O_RDWR)
            os.dup2(null, 0)
            os.dup2(2, 1)
            os._exit(app.run(settings))
        print(pid, flush=True)


if __name__ == "__main__":
    _serve()
