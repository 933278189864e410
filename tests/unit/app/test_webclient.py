"""The gateway's own requests end in time, whatever the other end does."""

from __future__ import annotations

import socket
import ssl
import threading
import time
from contextlib import closing, suppress
from pathlib import Path

import pytest

from gateway.app.webclient import WebClient, WebError
from gateway.config import parse
from gateway.errors import SetupError


def test_a_head_that_comes_byte_by_byte_is_cut_in_time() -> None:
    over = threading.Event()

    def drip(listener: socket.socket) -> None:
        connection, _ = listener.accept()
        with connection, suppress(OSError):
            connection.recv(4096)
            connection.sendall(b"HTTP/1.1 200 OK\r\nx: ")
            while not over.wait(0.05):
                connection.sendall(b"x")

    with closing(socket.create_server(("127.0.0.1", 0))) as listener:
        dripping = threading.Thread(target=drip, args=(listener,))
        dripping.start()
        client = WebClient(ssl.create_default_context(), seconds=0.4)
        began = time.monotonic()
        try:
            with pytest.raises(WebError) as caught:
                client.ask("GET", f"http://127.0.0.1:{listener.getsockname()[1]}/", {}, limit=100)
            took = time.monotonic() - began
        finally:
            over.set()
            dripping.join()
    assert caught.value.code == "web.timeout"
    assert took < 3


@pytest.mark.parametrize("content", [None, b"no certificate\n"])
def test_roots_that_cannot_be_used_are_said(tmp_path: Path, content: bytes | None) -> None:
    if content is not None:
        (tmp_path / "roots.pem").write_bytes(content)
    config = parse({"upstream": {"ca_file": "roots.pem"}}, tmp_path, {"HOME": "/"})
    with pytest.raises(SetupError) as refused:
        WebClient.of(config)

    assert "upstream.ca_file" in str(refused.value)
