"""Documents and token ids through the gateway, with the readers that are off by default: a PDF, whole or not, and ids."""

from __future__ import annotations

import base64
import gzip
import io
import json
import time
from collections.abc import AsyncIterator
from typing import Any

import pytest
import pytest_asyncio

from gateway.app import extracting
from gateway.app.tokentables import TokenTables
from tests.support.client import Connection
from tests.support.gateway import Bench, gateway
from tests.support.pictures import pdf

pypdf = pytest.importorskip("pypdf", reason="the extra `documents` is not installed")
pytestmark = pytest.mark.asyncio(loop_scope="module")
SECRET = "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"  # a published sample whose checksum holds
MAIL = "alice.meyer@northwind-traders.org"


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def bench(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Bench]:
    folder = tmp_path_factory.mktemp("extracting")
    tables = folder / "tables"
    tables.mkdir()
    lines = b"\n".join(base64.b64encode(bytes([n])) + b" %d" % n for n in range(256))
    (tables / "cl100k_base.tiktoken.gz").write_bytes(gzip.compress(lines))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(extracting, "installed_tables", lambda: TokenTables(tables))
        async with gateway(folder, {"plugins": {"extractors": ["pdf", "token_ids"]}}) as running:
            yield running


@pytest.fixture(autouse=True)
def _fresh(bench: Bench) -> None:
    bench.provider.arrived.clear()


def anthropic(data: bytes) -> dict[str, Any]:
    source = {"type": "base64", "media_type": "application/pdf", "data": base64.b64encode(data).decode()}
    return {
        "model": "m",
        "max_tokens": 1,
        "messages": [{"role": "user", "content": [{"type": "document", "source": source}]}],
    }


def changed(data: bytes, change: str) -> bytes:
    writer = pypdf.PdfWriter(clone_from=pypdf.PdfReader(io.BytesIO(data)))
    if change == "attachment":
        writer.add_attachment("a.txt", b"not read")
    elif change == "encrypted":
        writer.encrypt("x")
    elif change == "title":
        writer.add_metadata({"/Title": f"see {SECRET} there"})
    out = io.BytesIO()
    writer.write(out)
    return out.getvalue()


async def test_a_clean_document_goes_and_counts_as_read(bench: Bench) -> None:
    body = json.dumps(anthropic(pdf("the harvest was good", packed=True))).encode()
    for _ in range(2):  # the second time from what is remembered of the object
        assert (await bench.send(body)).status == 200
        row = (await bench.rows())[0]
        assert row["evaluation"]["coverage"]["bytes_opaque"] == 0
    assert [bytes(a.body) for a in bench.arrived] == [body, body]


@pytest.mark.parametrize("text", [SECRET, MAIL])
async def test_a_document_that_says_what_must_not_leave_does_not_leave(bench: Bench, text: str) -> None:
    reply = await bench.send(anthropic(pdf(f"see {text} there", packed=True)))
    assert (reply.status, bench.arrived) == (400, [])
    assert text.encode() not in reply.body
    assert text not in repr(bench.written())


async def test_what_stands_beside_the_pages_is_read_too(bench: Bench) -> None:
    reply = await bench.send(anthropic(changed(pdf("hello"), "title")))
    assert (reply.status, bench.arrived) == (400, [])
    assert b"egress.extracted_content" in reply.body


@pytest.mark.parametrize(
    "data",
    [changed(pdf("hello"), "attachment"), changed(pdf("hello"), "encrypted"), pdf("x")[:200] + b"%%EOF"],
)
async def test_a_document_that_cannot_be_read_whole_follows_the_policy(bench: Bench, data: bytes) -> None:
    reply = await bench.send(anthropic(data))
    assert (reply.status, bench.arrived) == (400, [])
    assert b"coverage.unsupported_document" in reply.body


@pytest.mark.parametrize(("text", "status"), [("hello", 200), (f"see {SECRET}", 400)])
async def test_a_document_in_a_form(bench: Bench, text: str, status: int) -> None:
    head = b'--XX\r\nContent-Disposition: form-data; name="file"; filename="a.pdf"\r\nContent-Type: application/pdf\r\n\r\n'
    body = head + pdf(text, packed=True) + b"\r\n--XX--\r\n"
    connection = await Connection.open(bench.port)
    await connection.connect("api.openai.com:443")
    await connection.tls(bench.state / "ca.pem", "api.openai.com")
    request = "POST /v1/files HTTP/1.1\r\nHost: api.openai.com\r\nContent-Type: multipart/form-data; boundary=XX\r\n"
    reply = await connection.ask(f"{request}Content-Length: {len(body)}\r\n\r\n".encode() + body)
    await connection.close()
    assert reply.status == status
    assert [bytes(a.body) for a in bench.arrived] == ([body] if status == 200 else [])


@pytest.mark.parametrize(
    ("text", "status"), [("hello", 200), (f"see {SECRET} there", 400), (f"see {MAIL}", 400)]
)
@pytest.mark.parametrize("nested", [False, True])
async def test_token_ids_are_read_as_what_they_stand_for(
    bench: Bench, text: str, status: int, nested: bool
) -> None:
    ids = list(text.encode())
    body = json.dumps({"model": "text-embedding-3-small", "input": [ids, [104]] if nested else ids}).encode()
    reply = await bench.send(body, host="api.openai.com", target="/v1/embeddings")
    assert reply.status == status
    assert [bytes(a.body) for a in bench.arrived] == ([body] if status == 200 else [])


@pytest.mark.parametrize(("model", "ids"), [("voyage-3", [104]), ("text-embedding-3-small", [104, 100_257])])
async def test_ids_that_nobody_knows_follow_the_policy(bench: Bench, model: str, ids: list[int]) -> None:
    reply = await bench.send({"model": model, "input": ids}, host="api.openai.com", target="/v1/embeddings")
    assert (reply.status, bench.arrived) == (400, [])
    assert b"egress.opaque_payload" in reply.body


async def test_a_reader_that_hangs_is_killed_in_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(extracting.sys, "executable", "/bin/sleep")
    processes = extracting.PdfProcesses(arguments=("60",))
    began = time.monotonic()
    assert await processes.read(pdf("x"), deadline_us=int((began + 0.3) * 1e6)) == ("", False)
    assert time.monotonic() - began < 5


@pytest.mark.parametrize("said", [b"", b"[]", b"{", b'{"text": 1}', b'{"text": "a", "whole": 1}'])
async def test_what_the_reader_may_say(said: bytes) -> None:
    assert extracting._checked(said) in {("", False), ("a", False)}
