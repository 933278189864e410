"""A provider on loopback for the demonstration: real TLS, OpenAI chat and Anthropic messages, streamed.

It answers with the text that it received, cut into pieces of a few characters, and keeps every body, so that what
left the gateway can be compared with what was meant to leave. `python -m gateway.cli.fake_provider` runs it alone.
"""

from __future__ import annotations

import asyncio
import datetime as dt
import json
import ssl
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import click
import orjson
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

HOSTS: Final = ("api.openai.com", "api.anthropic.com")
PIECE: Final = 7  # characters of an event: shorter than any placeholder, so that each one is cut
MAX_BODY_BYTES: Final = 32 << 20
_VALID_DAYS: Final = 7


@dataclass(frozen=True, slots=True)
class Received:
    """One request as it arrived."""

    path: str
    body: bytes = field(repr=False)


class FakeProvider:
    """Serves until `close`; `received` grows with every request. `address` is (host, port) once started."""

    def __init__(self, folder: Path, host: str = "127.0.0.1", port: int = 0) -> None:
        self.received: list[Received] = []
        self.ca_file = folder / "provider-ca.pem"
        self.address = (host, port)
        self._context = _tls(folder, self.ca_file)
        self._loop = asyncio.new_event_loop()
        self._server: asyncio.Server | None = None
        self._serving: dict[asyncio.Task[None], asyncio.StreamWriter] = {}
        self._thread = threading.Thread(target=self._loop.run_forever, name="fake provider", daemon=True)

    def start(self) -> None:
        """Listen, in a thread of its own."""
        self._thread.start()
        asyncio.run_coroutine_threadsafe(self._listen(), self._loop).result(10)

    async def _listen(self) -> None:
        host, port = self.address
        self._server = await asyncio.start_server(self._serve, host, port, ssl=self._context)
        self.address = self._server.sockets[0].getsockname()[:2]

    def close(self) -> None:
        """Stop: end what is being answered, and wait for the thread."""
        asyncio.run_coroutine_threadsafe(self._end(), self._loop).result(10)
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(10)
        self._loop.close()

    async def _end(self) -> None:
        if self._server is not None:
            self._server.close()
        for task, writer in list(self._serving.items()):
            # Over TLS a connection that only closes would wait for its peer, beyond the end of the loop.
            writer.transport.abort()
            task.cancel()
        if self._serving:
            await asyncio.wait(self._serving, timeout=5)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None  # noqa: S101 - a coroutine that asyncio serves runs in one
        self._serving[task] = writer
        task.add_done_callback(lambda done: self._serving.pop(done, None))
        try:
            path, body = await _request(reader)
            self.received.append(Received(path, body))
            for part in _answer(path, body):
                writer.write(part)
                await writer.drain()
        except (asyncio.IncompleteReadError, ConnectionError, ValueError):
            return  # a client that went away, or was no client
        finally:
            writer.close()
            with suppress(OSError):
                await writer.wait_closed()


async def _request(reader: asyncio.StreamReader) -> tuple[str, bytes]:
    """Path without query, and body; ValueError for what is no HTTP/1.1 request with a Content-Length."""
    head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").split("\r\n")
    _method, target, _version = head[0].split(" ")
    headers = {
        name.lower(): value.strip() for name, _, value in (line.partition(":") for line in head[1:] if line)
    }
    size = int(headers.get("content-length", "0"))
    if size > MAX_BODY_BYTES:
        raise ValueError("too large")
    return target.partition("?")[0], await reader.readexactly(size)


def _answer(path: str, body: bytes) -> Iterator[bytes]:
    """The whole answer, one piece a network write."""
    document = orjson.loads(body) if body else {}
    text = "I received: " + " | ".join(_texts(document))
    if path == "/v1/chat/completions":
        events, whole = _openai_events(text), _openai_whole(text)
    elif path == "/v1/messages":
        events, whole = _anthropic_events(text), _anthropic_whole(text)
    else:
        yield (
            _head("404 Not Found", "application/json")
            + b'{"error":{"message":"no such path","type":"not_found"}}'
        )
        return
    if not document.get("stream"):
        yield _head("200 OK", "application/json") + orjson.dumps(whole)
        return
    yield _head("200 OK", "text/event-stream")
    yield from events


def _head(status: str, media_type: str) -> bytes:
    return f"HTTP/1.1 {status}\r\ncontent-type: {media_type}\r\nconnection: close\r\n\r\n".encode()


def _texts(document: dict[str, Any]) -> Iterator[str]:
    """What users and tools say in a request, in order."""
    for message in document.get("messages", ()):
        content = message.get("content")
        if isinstance(content, str):
            yield content
        for block in content if isinstance(content, list) else ():
            inner = block.get("text", block.get("content"))
            if isinstance(inner, str):
                yield inner


def _pieces(text: str) -> Iterator[str]:
    return (text[start : start + PIECE] for start in range(0, len(text), PIECE))


def _event(data: Any, name: str = "") -> bytes:
    line = f"event: {name}\n" if name else ""
    return f"{line}data: {json.dumps(data) if not isinstance(data, str) else data}\n\n".encode()


def _openai_events(text: str) -> Iterator[bytes]:
    base = {"id": "chatcmpl-demo", "object": "chat.completion.chunk", "created": 0, "model": "gpt-demo"}
    for number, piece in enumerate(_pieces(text)):
        delta = {"content": piece} | ({"role": "assistant"} if number == 0 else {})
        yield _event(base | {"choices": [{"index": 0, "delta": delta, "finish_reason": None}]})
    yield _event(base | {"choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]})
    yield _event("[DONE]")


def _openai_whole(text: str) -> dict[str, Any]:
    message = {"role": "assistant", "content": text}
    choice = {"index": 0, "message": message, "finish_reason": "stop"}
    usage = {"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2}
    base = {"id": "chatcmpl-demo", "object": "chat.completion", "created": 0, "model": "gpt-demo"}
    return base | {"choices": [choice], "usage": usage}


def _anthropic_events(text: str) -> Iterator[bytes]:
    yield _event(
        {"type": "message_start", "message": _anthropic_whole("") | {"content": []}}, "message_start"
    )
    start = {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}}
    yield _event(start, "content_block_start")
    for piece in _pieces(text):
        delta = {"type": "text_delta", "text": piece}
        yield _event({"type": "content_block_delta", "index": 0, "delta": delta}, "content_block_delta")
    yield _event({"type": "content_block_stop", "index": 0}, "content_block_stop")
    end = {"type": "message_delta", "delta": {"stop_reason": "end_turn", "stop_sequence": None}}
    yield _event(end | {"usage": {"output_tokens": 1}}, "message_delta")
    yield _event({"type": "message_stop"}, "message_stop")


def _anthropic_whole(text: str) -> dict[str, Any]:
    return {
        "id": "msg_demo",
        "type": "message",
        "role": "assistant",
        "model": "claude-demo",
        "content": [{"type": "text", "text": text}],
        "stop_reason": None,
        "stop_sequence": None,
        "usage": {"input_tokens": 1, "output_tokens": 1},
    }


def _tls(folder: Path, ca_file: Path) -> ssl.SSLContext:
    """A certificate for the provider hosts under a CA of its own, made anew; only the CA's certificate is kept."""
    ca_key, key = ec.generate_private_key(ec.SECP256R1()), ec.generate_private_key(ec.SECP256R1())
    issuer = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "Fake provider CA (demonstration)")])
    now = dt.datetime.fromtimestamp(time.time(), dt.UTC)
    end = now + dt.timedelta(days=_VALID_DAYS)
    base = x509.CertificateBuilder().issuer_name(issuer).not_valid_before(now - dt.timedelta(hours=1))
    base = base.not_valid_after(end)
    usage = x509.KeyUsage(False, False, False, False, False, True, True, False, False)
    ca = (
        base.subject_name(issuer)
        .public_key(ca_key.public_key())
        .serial_number(x509.random_serial_number())
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .add_extension(usage, critical=True)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(ca_key.public_key()), critical=False)
        .sign(ca_key, hashes.SHA256())
    )
    names = x509.SubjectAlternativeName([x509.DNSName(host) for host in HOSTS])
    leaf = (
        base.subject_name(x509.Name([]))
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .add_extension(names, critical=True)
        .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
        .add_extension(
            x509.AuthorityKeyIdentifier.from_issuer_public_key(ca_key.public_key()), critical=False
        )
        .sign(ca_key, hashes.SHA256())
    )
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    ca_file.write_bytes(ca.public_bytes(serialization.Encoding.PEM))
    pair = folder / "provider-leaf.pem"
    pair.touch(mode=0o600)
    private = key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    pair.write_bytes(private + leaf.public_bytes(serialization.Encoding.PEM))
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(pair)
    context.set_alpn_protocols(["http/1.1"])
    pair.unlink()
    return context


@contextmanager
def fake_provider(folder: Path, host: str = "127.0.0.1", port: int = 0) -> Iterator[FakeProvider]:
    """A provider that serves inside the block."""
    provider = FakeProvider(folder, host, port)
    provider.start()
    try:
        yield provider
    finally:
        provider.close()


@click.command()
@click.option("--host", default="127.0.0.1", show_default=True)
@click.option("--port", default=9443, show_default=True)
@click.option("--dir", "folder", type=click.Path(file_okay=False, path_type=Path), required=True)
def main(host: str, port: int, folder: Path) -> None:
    """Serve until interrupted; DIR gets the CA that the gateway must trust (upstream.ca_file)."""
    with fake_provider(folder, host, port) as provider:
        click.echo(f"fake provider on {provider.address[0]}:{provider.address[1]}, CA in {provider.ca_file}")
        threading.Event().wait()


if __name__ == "__main__":
    main()
