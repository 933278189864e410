"""The scanning process: build one detector, then answer scans until the other end closes.

It is started as a fresh interpreter and not forked, and imports this module rather than the gateway's main
one, so that no lock, thread, key or open connection of the gateway comes with it.
"""

from __future__ import annotations

import json
import pickle
import resource
import signal
import socket
from collections.abc import Sequence
from importlib import import_module
from typing import TYPE_CHECKING

from gateway.workers import wire

if TYPE_CHECKING:  # the process needs only what its detector needs
    from gateway.ports import Detector


def build(factory: str, arguments: Sequence[str] = ()) -> Detector:
    """The detector that `package.module:callable` makes of the arguments; raises whatever it raises."""
    module, _, attribute = factory.partition(":")
    detector: Detector = getattr(import_module(module), attribute)(*arguments)
    return detector


def _receive(channel: socket.socket, size: int) -> bytes:
    """Exactly `size` bytes; EOFError where the gateway has gone."""
    parts = bytearray()
    while len(parts) < size:
        part = channel.recv(min(size - len(parts), 1 << 20))
        if not part:
            raise EOFError
        parts += part
    return bytes(parts)


def _answer(detector: Detector, payload: bytes) -> bytes:
    try:
        items = pickle.loads(payload)  # noqa: S301 - from the gateway that started this process
        return wire.pack_results(detector.scan(items))
    except Exception as error:  # noqa: BLE001 - whatever it is, the gateway is told, and refuses
        return wire.pack_failure(error)


def main(descriptor: int, factory: str, *arguments: str) -> None:
    """Serve scans on an inherited socket; returns when the gateway closes it."""
    # A group signal (Ctrl-C, a supervisor) must not kill scans that the gateway still waits for: it closes
    # the socket.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))  # a core dump would hold content
    with socket.socket(fileno=descriptor) as channel:
        try:
            detector = build(factory, arguments)
        except Exception as error:  # noqa: BLE001 - reported to the gateway, which refuses to start
            channel.sendall(wire.frame(wire.pack_failure(error)))
            return
        channel.sendall(wire.frame(json.dumps({"revision": detector.revision}).encode()))
        try:
            while True:
                (size,) = wire.HEADER.unpack(_receive(channel, wire.HEADER.size))
                channel.sendall(wire.frame(_answer(detector, _receive(channel, size))))
        except (EOFError, ConnectionError):
            return
