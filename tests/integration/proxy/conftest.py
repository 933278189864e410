"""One real proxy, one fake provider, one scriptable use case."""

from __future__ import annotations

import datetime as dt
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pytest

from gateway.ports import Peer
from gateway.proxy.certs import CertificateAuthority, combined_bundle
from gateway.proxy.master import EgressProxy
from gateway.proxy.routes import HostRules
from gateway.proxy.settings import Access, Limits, ProxySettings
from tests.support.client import Connection, Http2
from tests.support.pki import Pki, make
from tests.support.provider import Provider
from tests.support.usecase import ScriptedUseCase


@pytest.fixture(scope="session")
def pki(tmp_path_factory: pytest.TempPathFactory) -> Pki:
    return make(tmp_path_factory.mktemp("pki"), "api.test", "other.test", "tunnel.test", "127.0.0.1")


@pytest.fixture(scope="session")
def authority(tmp_path_factory: pytest.TempPathFactory) -> tuple[CertificateAuthority, Path]:
    folder = tmp_path_factory.mktemp("ca")
    ca = CertificateAuthority.load_or_create(
        folder / "keys" / "ca.pem", folder / "ca.pem", now=dt.datetime.now(dt.UTC)
    )
    return ca, folder / "ca.pem"


@dataclass
class World:
    """Everything a test of the proxy touches."""

    proxy: EgressProxy
    provider: Provider
    use_case: ScriptedUseCase
    ca: Path
    reported: list[tuple[str, Any]] = field(default_factory=list)
    connections: list[Connection] = field(default_factory=list)

    async def raw(self) -> Connection:
        """A connection to the proxy port with nothing said on it."""
        connection = await Connection.open(self.proxy.port)
        self.connections.append(connection)
        return connection

    async def client(
        self, *, target: str = "api.test:443", sni: str | None = None, **options: Any
    ) -> Connection:
        """CONNECT and TLS; raises RefusedError when the CONNECT is."""
        connection = await self.raw()
        await connection.connect(target, options.pop("extra", b""))
        await connection.tls(self.ca, sni or target.rpartition(":")[0], options.pop("alpn", ("http/1.1",)))
        return connection

    async def http2(self, **options: Any) -> Http2:
        return Http2(await self.client(alpn=("h2",), **options))


type Start = Callable[..., Any]


@pytest.fixture
async def start(
    pki: Pki, authority: tuple[CertificateAuthority, Path], tmp_path: Path
) -> AsyncIterator[Start]:
    """Start a world: `limits`, other fields of ProxySettings, and options of the provider."""
    worlds: list[World] = []

    async def begin(
        *,
        limits: dict[str, Any] | None = None,
        alpn: tuple[str, ...] = ("http/1.1",),
        rogue: bool = False,
        plain: bool = False,
        pki: Pki = pki,
        **settings: Any,
    ) -> World:
        provider = Provider(pki, alpn=alpn, rogue=rogue)
        await provider.start(plain=plain)
        where = ("127.0.0.1", provider.port)
        base = ProxySettings(
            hosts=HostRules(
                intercept=frozenset({"api.test", "other.test"}),
                tunnel=frozenset({"tunnel.test"}),
                deny=frozenset({"denied.test"}),
            ),
            trust_file=combined_bundle(tmp_path / "trust.pem", pki.ca.read_bytes()),
            access={
                "default": Access(Peer()),
                "acme": Access(Peer(project="acme", team="web")),
                "acme+alice": Access(
                    Peer(project="acme", principal="alice", principal_kind="person"), b"s3cret"
                ),
            },
            connect_to={
                ("api.test", 443): where,
                ("other.test", 443): where,
                ("tunnel.test", 443): where,
                ("api.test", 80): where,
            },
            limits=Limits(**{"deadline_ms": 3000} | (limits or {})),
        )
        reported: list[tuple[str, Any]] = []
        use_case = ScriptedUseCase()
        proxy = EgressProxy(
            replace(base, **settings),
            use_case,
            authority[0],
            lambda name, facts: reported.append((name, facts)),
        )
        world = World(proxy, provider, use_case, authority[1], reported)
        worlds.append(world)
        await proxy.start()
        return world

    yield begin
    for world in worlds:
        for connection in world.connections:
            connection.abort()
        await world.proxy.stop(0)
        await world.provider.stop()


@pytest.fixture
async def world(start: Start) -> World:
    found = await start()
    assert isinstance(found, World)
    return found


@pytest.fixture
def pki_ca(pki: Pki) -> Path:
    """What a client trusts that talks to the provider without the gateway in between."""
    return pki.ca
