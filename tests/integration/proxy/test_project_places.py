"""Listeners and networks of projects, through real sockets."""

from __future__ import annotations

import ipaddress
from typing import Any

import pytest

from gateway.ports import Peer
from gateway.proxy.places import Listener, Places
from gateway.proxy.settings import Access
from tests.integration.proxy.conftest import Start
from tests.support.client import Connection, credentials, post
from tests.support.lives import free_ports

ACCESS = {
    "default": Access(Peer()),
    "acme": Access(Peer(project="acme")),
    "zoo": Access(Peer(project="zoo"), b"t0ken"),
}


async def _connected(port: int, sent: bytes) -> tuple[int, Connection]:
    connection = await Connection.open(port)
    await connection.send(b"CONNECT api.test:443 HTTP/1.1\r\nHost: api.test:443\r\n" + sent + b"\r\n")
    reply = await connection.reply(bodiless=True)
    return reply.status, connection


async def test_a_listener_says_which_project(start: Start) -> None:
    first, second = free_ports(2)
    places = Places([Listener("acme", "127.0.0.1", first), Listener("zoo", "127.0.0.1", second)])
    world = await start(places=places, access=ACCESS)
    for port, sent, project in (
        (world.proxy.port, b"", ""),
        (first, b"", "acme"),
        (second, credentials("zoo", "t0ken"), "zoo"),
    ):
        status, connection = await _connected(port, sent)
        world.connections.append(connection)
        assert status == 200
        await connection.tls(world.ca, "api.test")
        await connection.send(post(b"{}"))
        assert (await connection.reply()).status == 200
        assert world.use_case.handled[-1].peer.project == (project or Peer().project)
    for port, sent in (
        (first, credentials("zoo", "t0ken")),
        (first, credentials("default")),
        (second, b""),
        (second, credentials("acme")),
    ):
        status, connection = await _connected(port, sent)
        world.connections.append(connection)
        assert status == 407
    assert len(world.use_case.handled) == 3


async def test_plain_requests_are_of_their_listener_too(start: Start) -> None:
    (port,) = free_ports(1)
    world = await start(plain=True, places=Places([Listener("acme", "127.0.0.1", port)]), access=ACCESS)
    for sent, status in ((b"", 200), (credentials("zoo", "t0ken"), 407)):
        connection = await Connection.open(port)
        world.connections.append(connection)
        body = b"POST http://api.test/v1/messages HTTP/1.1\r\nHost: api.test\r\n"
        await connection.send(body + sent + b"Content-Length: 2\r\n\r\n{}")
        assert (await connection.reply()).status == status
    assert [request.peer.project for request in world.use_case.handled] == ["acme"]


@pytest.mark.parametrize(
    ("network", "sent", "status", "project"),
    [
        ("127.0.0.0/8", b"", 200, "acme"),
        ("127.0.0.0/8", credentials("zoo", "t0ken"), 407, None),
        ("10.0.0.0/8", b"", 200, ""),
        ("10.0.0.0/8", credentials("zoo", "t0ken"), 200, "zoo"),
    ],
)
async def test_a_network_says_which_project(
    start: Start, network: str, sent: bytes, status: int, project: str | None
) -> None:
    world = await start(places=Places(networks=[(ipaddress.ip_network(network), "acme")]), access=ACCESS)
    got, connection = await _connected(world.proxy.port, sent)
    world.connections.append(connection)
    assert got == status
    if project is not None:
        await connection.tls(world.ca, "api.test")
        await connection.send(post(b"{}"))
        await connection.reply()
        assert world.use_case.handled[0].peer.project == (project or Peer().project)


async def test_no_listener_of_ours_is_a_destination(start: Start) -> None:
    (port,) = free_ports(1)
    listener = Listener("acme", "127.0.0.1", port)
    settings: dict[str, Any] = {"places": Places([listener]), "own_ports": frozenset({port})}
    world = await start(**settings, access=ACCESS)
    connection = await world.raw()
    await connection.send(b"CONNECT 127.0.0.1:%d HTTP/1.1\r\nHost: 127.0.0.1:%d\r\n\r\n" % (port, port))
    assert (await connection.reply()).status == 403
