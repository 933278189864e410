"""A whole gateway in this process, before a fake provider with real TLS: what integration tests run against."""

from __future__ import annotations

import io
import json
from collections.abc import AsyncIterator, Callable, Iterable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from gateway.app.serve import Running, serving
from gateway.config import parse
from gateway.telemetry.log import Log
from tests.support.client import Connection, Reply, credentials, post
from tests.support.pki import Pki, make
from tests.support.provider import Arrived, Provider
from tests.support.waiting import eventually

HOSTS = ("api.openai.com", "api.anthropic.com", "generativelanguage.googleapis.com", "chatgpt.com")


@dataclass
class Bench:
    """A gateway that runs, its provider, and everything it writes."""

    running: Running
    provider: Provider
    state: Path
    log: io.StringIO = field(default_factory=io.StringIO)

    @property
    def port(self) -> int:
        """Of the proxy."""
        return self.running.proxy.port

    async def send(
        self,
        body: bytes | dict[str, Any],
        *,
        host: str = "api.anthropic.com",
        target: str = "/v1/messages",
        headers: Iterable[tuple[str, str]] = (),
        user: str = "",
    ) -> Reply:
        """One request through CONNECT and TLS, on a connection of its own; `user` as in the proxy's address."""
        data = body if isinstance(body, bytes) else json.dumps(body).encode()
        connection = await Connection.open(self.port)
        try:
            await connection.connect(f"{host}:443", credentials(user) if user else b"")
            await connection.tls(self.state / "ca.pem", host)
            extra = b"".join(f"{name}: {value}\r\n".encode() for name, value in headers)
            return await connection.ask(post(data, host=host, path=target, headers=extra))
        finally:
            await connection.close()

    @property
    def arrived(self) -> list[Arrived]:
        """What the provider got."""
        return self.provider.arrived

    async def rows(self, **query: Any) -> list[dict[str, Any]]:
        """The evidence so far, newest first, once what is under way has been written."""
        rows, _ = await eventually(
            lambda: self.running.core.egress.store.rows(query),
            lambda found: all(row["lineage"] for row in found[0]),
        )
        return rows

    def written(self) -> dict[str, bytes]:
        """Every file of the state folder that may not hold values, and the log."""
        found = {
            str(path.relative_to(self.state)): path.read_bytes()
            for path in self.state.rglob("*")
            if path.is_file() and not {"vault", "keys"} & set(path.relative_to(self.state).parts)
        }
        return {**found, "log": self.log.getvalue().encode()}


@asynccontextmanager
async def gateway(
    folder: Path,
    document: dict[str, Any] | None = None,
    provider_of: Callable[[Pki], Provider] = Provider,
    hosts: tuple[str, ...] = (),
) -> AsyncIterator[Bench]:
    """Run a gateway in `folder`; `document` is merged into its configuration, section by section.

    `hosts` are names that the provider answers to beside the usual ones.
    """
    pki = make(folder / "pki", *HOSTS, *hosts)
    provider = provider_of(pki)
    await provider.start()
    state = folder / "state"
    settings: dict[str, Any] = {
        "listen": {"proxy": "127.0.0.1:0", "control": "127.0.0.1:0"},
        "state": {"dir": str(state)},
        "upstream": {
            "ca_file": str(pki.ca),
            "connect_to": {f"{host}:443": f"127.0.0.1:{provider.port}" for host in (*HOSTS, *hosts)},
        },
    }
    for section, values in (document or {}).items():
        settings[section] = {**settings.get(section, {}), **values}
    log = io.StringIO()
    try:
        async with serving(parse(settings, folder, {}), Log(log)) as running:
            yield Bench(running, provider, state, log)
    finally:
        await provider.stop()
