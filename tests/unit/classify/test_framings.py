"""How an answer's body is read: what its head says, else its first bytes, whatever the cuts."""

from __future__ import annotations

import gzip
import json
import zlib
from collections.abc import Sequence

import brotli
import pytest
import zstandard

from gateway.classify.answers import AnswerRestoration, AnswerRestorer
from gateway.classify.placeholders import Placeholders
from gateway.classify.values import Values
from gateway.context.objects import Limits
from gateway.providers import registry

VALUE = 'hunter2 "swordfish"'
TOKEN = Placeholders(b"k" * 32, b"m" * 32).issue(VALUE, "PASSWORD")
ESCAPED = json.dumps(VALUE)[1:-1]
CHUNK = json.dumps({"choices": [{"index": 0, "delta": {"content": f"a {TOKEN}."}}]})
SSE = f"data: {CHUNK}\n\ndata: [DONE]\n\n"
LINES = f"{CHUNK}\n{CHUNK}\n"
WHOLE = json.dumps({"choices": [{"message": {"content": TOKEN}}]})
TYPES = ["", "text/plain", "text/plain; charset=utf-8", "application/octet-stream"]
BODIES = {
    "sse": SSE,
    "sse after a comment": ": hello\n\n" + SSE,
    "sse after a mark": "\ufeff" + SSE,
    "sse with ids": SSE.replace("data: {", "id: 7\ndata: {"),
    "sse, CRLF": SSE.replace("\n", "\r\n"),
    "sse, CR": SSE.replace("\n", "\r"),
    "lines": LINES,
    "lines without the last line end": LINES[:-1],
    "lines, CRLF": LINES.replace("\n", "\r\n"),
    "one line": f"{CHUNK}\n",
    "array": f"[{CHUNK}\n,\r\n{CHUNK}]",
    "whole": WHOLE,
    "whole, indented": json.dumps(json.loads(WHOLE), indent=2) + "\n",
    "whole, after blanks": "\n  \n" + WHOLE,
}


def opened(*headers: tuple[bytes, bytes], limits: Limits | None = None) -> AnswerRestorer:
    adapter = registry.find(registry.builtin(), "api.openai.com", "/v1/chat/completions")
    found = AnswerRestoration(adapter, Values({TOKEN: lambda: VALUE}), limits or Limits()).open(200, headers)
    assert found is not None
    assert isinstance(found[1], AnswerRestorer)
    return found[1]


def through(run: AnswerRestorer, pieces: Sequence[bytes]) -> bytes:
    return b"".join(run.feed(piece) for piece in pieces) + run.end()


@pytest.mark.parametrize("kind", [*TYPES, "own"])
@pytest.mark.parametrize("body", BODIES.values(), ids=BODIES.keys())
def test_every_form_is_known_by_its_beginning(body: str, kind: str) -> None:
    data = body.encode()
    own = b"text/event-stream" if "data:" in body else b"application/json"
    head = [(b"content-type", own if kind == "own" else kind.encode())] if kind else []
    expected = body.replace(TOKEN, ESCAPED).encode()

    for size in (1, 5, len(data)):
        pieces = [data[at : at + size] for at in range(0, len(data), size)]
        assert through(opened(*head), pieces) == expected
    for at in range(min(len(data), 40)):
        assert through(opened(*head), [data[:at], data[at:]]) == expected


def test_text_without_a_form_is_text() -> None:
    for text in ("dat", "date: x", f"event {TOKEN}", "x", "", f"It is {TOKEN}."):
        pieces = [text[at : at + 1].encode() for at in range(len(text))]
        assert through(opened(), pieces) == text.replace(TOKEN, VALUE).encode()


def test_lines_are_not_kept_until_the_end() -> None:
    run = opened((b"content-type", b"application/json"))
    first = run.feed(f"{CHUNK}\n".encode())
    second = run.feed(f"{CHUNK}\n".encode())

    assert first == b""
    assert second.decode().count(ESCAPED) == 2


CODINGS = {
    "gzip": gzip.compress,
    "deflate": zlib.compress,
    "br": brotli.compress,
    "zstd": zstandard.ZstdCompressor().compress,
    "gzip, br": lambda data: brotli.compress(gzip.compress(data)),
}


@pytest.mark.parametrize("coding", CODINGS)
def test_a_compressed_answer_is_decoded_where_something_is_restored(coding: str) -> None:
    data = CODINGS[coding](SSE.encode())
    for size in (1, 7, len(data)):
        run = opened((b"content-type", b"text/event-stream"), (b"content-encoding", coding.encode()))
        pieces = [data[at : at + size] for at in range(0, len(data), size)]
        assert through(run, pieces) == SSE.replace(TOKEN, ESCAPED).encode()
        assert not run.broken


@pytest.mark.parametrize("coding", CODINGS)
def test_an_answer_that_is_cut_inside_its_coding_is_broken(coding: str) -> None:
    data = CODINGS[coding]((SSE * 50).encode())
    run = opened((b"content-type", b"text/event-stream"), (b"content-encoding", coding.encode()))
    through(run, [data[: len(data) // 2]])

    assert run.broken


@pytest.mark.parametrize("coding", ["gzip", "zstd", "br"])
def test_an_answer_that_grows_without_end_is_broken_and_never_held(coding: str) -> None:
    """A megabyte that grows to a gigabyte."""
    zeros = bytes(1 << 20)
    if coding == "gzip":
        made = zlib.compressobj(9, zlib.DEFLATED, 31)
        bomb = b"".join(made.compress(zeros) for _ in range(1024)) + made.flush()
    elif coding == "zstd":
        bomb = CODINGS["zstd"](zeros * 1024)
    else:
        bomb = brotli.compress(zeros * 1024, quality=2)
    run = opened((b"content-type", b"text/event-stream"), (b"content-encoding", coding.encode()))
    out = sum(len(run.feed(bomb[at : at + 65536])) for at in range(0, len(bomb), 65536))

    assert run.broken
    assert out <= Limits().max_body_bytes


def test_an_event_that_never_ends_is_broken() -> None:
    run = opened((b"content-type", b"text/event-stream"))
    for _ in range(40):
        run.feed(b"data: " + b"x" * (1 << 20))

    assert run.broken
