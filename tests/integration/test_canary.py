"""Canaries in every place of every kind of request: none may appear in anything the gateway writes, but the vault.

Looked for in plain, in JSON escapes, base64, hex, percent encoding and as an unkeyed hash; in the log, the metrics,
every state file outside vault and keys, every database cell, and every answer of the control port's store.
"""

from __future__ import annotations

import base64
import gzip
import hashlib
import json
import sqlite3
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import quote

import pytest

from tests.support.gateway import Bench, gateway
from tests.support.provider import Answer

CANARIES = {
    "body": "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",
    "prose": "The heron told me about orchid-lantern-42 yesterday.",
    "name": "member-heron-quartz-77",
    "header": "header-walrus-cobalt-31",
    "query": "query-otter-saffron-58",
    "file": "file-badger-indigo-93.txt",
    "own key": "sk-ant-api03-own-credential-of-the-call-0123456789",
    "answer": "answer-lynx-vermilion-64",
    "model": "model-tapir-umber-12",
}


def requests() -> Iterator[tuple[str, bytes, str, list[tuple[str, str]]]]:
    """(what, body, target, headers) for every kind of request."""
    c = CANARIES
    key = [("x-api-key", c["own key"]), ("x-note", c["header"]), ("cookie", c["header"])]
    body = {
        "model": c["model"],
        "max_tokens": 1,
        "metadata": {c["name"]: "x"},
        "messages": [{"role": "user", "content": f"{c['prose']} {c['body']}"}],
    }
    plain = json.dumps(body).encode()
    yield "rewritten", plain, f"/v1/messages?trace={c['query']}", key
    yield "denied", json.dumps({**body, "model": c["body"]}).encode(), f"/v1/messages?trace={c['query']}", key
    yield "no JSON", plain[:-1], "/v1/messages", key
    yield (
        "duplicate member",
        plain[:-1] + b',"' + c["name"].encode() + b'":1,"' + c["name"].encode() + b'":2}',
        "/v1/messages",
        key,
    )
    yield "gzip", gzip.compress(plain), "/v1/messages", [*key, ("content-encoding", "gzip")]
    yield "broken gzip", gzip.compress(plain)[:-9], "/v1/messages", [*key, ("content-encoding", "gzip")]
    yield "unknown coding", plain, "/v1/messages", [*key, ("content-encoding", c["header"])]
    yield "unknown path", plain, f"/v1/{c['query']}/x", key
    yield "secret in path", plain, f"/v1/{c['body']}", key
    form = (
        f'--B\r\ncontent-disposition: form-data; name="file"; filename="{c["file"]}"\r\n\r\n{c["prose"]}\r\n--B--\r\n'
    ).encode()
    yield "form", form, "/v1/files", [*key, ("content-type", "multipart/form-data; boundary=B")]
    yield "opaque", b"\x00\x01" + plain, "/v1/messages", [*key, ("content-type", "application/octet-stream")]


def forms(value: str) -> list[bytes]:
    """How a canary could have been written down."""
    data = value.encode()
    core = base64.b64encode(data)[2:-4]
    digest = hashlib.sha256(data)
    return [
        data,
        core,
        data.hex().encode(),
        quote(value, safe="").encode(),
        digest.hexdigest().encode(),
        digest.digest(),
    ]


def cells(path: Path) -> bytes:
    """Every cell of a SQLite file."""
    out = bytearray()
    with sqlite3.connect(f"file:{path}?mode=ro", uri=True) as connection:
        for (table,) in connection.execute("select name from sqlite_master where type = 'table'").fetchall():
            for row in connection.execute(f'select * from "{table}"'):
                out += b"\n".join(c if isinstance(c, bytes) else str(c).encode() for c in row)
    connection.close()
    return bytes(out)


@pytest.mark.parametrize("enforcement", ["enforce", "shadow"])
async def test_no_canary_is_written_down(tmp_path: Path, enforcement: str) -> None:
    answer = json.dumps(
        {"type": "message", "content": [{"type": "text", "text": CANARIES["answer"]}]}
    ).encode()
    async with gateway(tmp_path, {"policy": {"enforcement": enforcement}}) as bench:
        for _what, body, target, headers in requests():
            bench.provider.script(Answer(pieces=(answer,)))
            await bench.send(body, target=target, headers=headers)
        rows = await bench.rows(limit=1000)
        assert len(rows) == len(list(requests()))
        written = collected(bench, rows)
        metrics = bench.running.core.metrics.render()
    written["metrics"] = metrics
    written.update({f"{p.name} (cells)": cells(p) for p in bench.state.glob("*.db")})
    written |= {name: data for name, data in bench.written().items() if not name.endswith(".db-wal")}

    found = [
        (where, what)
        for where, data in written.items()
        for what, value in CANARIES.items()
        for form in forms(value)
        if form in data and not (what == "model" and where != "log")
    ]
    assert found == []


def collected(bench: Bench, rows: list[dict[str, object]]) -> dict[str, bytes]:
    """What the control port would show, and the files as they are while the gateway runs."""
    return {"rows": json.dumps(rows).encode(), **{f"live {n}": d for n, d in bench.written().items()}}


def test_the_search_finds_what_is_there() -> None:
    value = CANARIES["prose"]
    for form in forms(value):
        assert any(f in b"..." + form + b"..." for f in forms(value))
