"""The table behind docs/coverage.md: each row is tried, so that what is documented is what happens.

The other way round, every dialect, every alternative of a dialect's paths and every sample body stands in the table.
"""

from __future__ import annotations

import base64
import json
import re
import tomllib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from gateway.classify.answers import AnswerRestoration
from gateway.classify.values import Values
from gateway.context import eventstream
from gateway.context.objects import Limits
from gateway.providers import (
    anthropic,
    base,
    bedrock,
    cohere,
    gemini,
    mistral,
    ollama,
    openai_chat,
    openai_responses,
    registry,
)
from gateway.providers.websocket import spoken
from tests.properties.test_stream_law import KEYS
from tests.support.evaluation import ADAPTERS, Session
from tests.unit.classify.test_forms import EVERY_BYTE, FORM, form, line, part

TOKEN = "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"
SAID = f"see {TOKEN} there"
PLACEHOLDER = KEYS.issue("hunter2 swordfish", "PASSWORD")
TABLE = tomllib.loads((Path(__file__).parents[2] / "vectors" / "coverage.toml").read_text())


@dataclass(frozen=True)
class Row:
    """One line of the table."""

    host: str
    signed: bool
    path: str
    dialect: str
    body: str
    request: str
    answers: tuple[str, ...]

    def __str__(self) -> str:
        return f"{self.host}{self.path}-{self.body}"


ROWS = [
    Row(
        provider["host"],
        provider.get("signed", False),
        row["path"],
        row["dialect"],
        row["body"],
        row.get("request", "rewritten"),
        tuple(row["answers"]),
    )
    for provider in TABLE["provider"]
    for row in provider["paths"]
]
_MESSAGES = [{"role": "user", "content": SAID}]
_CONTENTS = {"contents": [{"role": "user", "parts": [{"text": SAID}]}]}
_CONVERSE = {"messages": [{"role": "user", "content": [{"text": SAID}]}]}
_OAUTH = {"grant_type": "refresh_token", "refresh_token": TOKEN, "client_id": "c"}
JSON_BODIES: dict[str, Any] = {
    "chat": {"model": "m", "messages": _MESSAGES},
    "messages": {"model": "m", "max_tokens": 1, "messages": _MESSAGES},
    "message_batch": {"requests": [{"custom_id": "1", "params": {"model": "m", "messages": _MESSAGES}}]},
    "prompt": {"model": "m", "prompt": SAID},
    "input": {"model": "m", "input": [SAID]},
    "inputs": {"inputs": [SAID]},
    "token_ids": {"model": "m", "input": [[1, 2, 3]]},
    "metadata": {"metadata": {"note": SAID}},
    "items": {"model": "m", "input": [{"role": "user", "content": [{"type": "input_text", "text": SAID}]}]},
    "conversation": {"items": [{"type": "message", "role": "user", "content": SAID}]},
    "instructions": {"model": "m", "instructions": SAID},
    "thread": {"messages": _MESSAGES},
    "content": {"role": "user", "content": SAID},
    "tool_outputs": {"tool_outputs": [{"tool_call_id": "t", "output": SAID}]},
    "session": {"session": {"type": "realtime", "instructions": SAID}},
    "contents": _CONTENTS,
    "embed": {"content": {"parts": [{"text": SAID}]}},
    "embed_batch": {"requests": [{"model": "m", "content": {"parts": [{"text": SAID}]}}]},
    "gemini_batch": {"batch": {"inputConfig": {"requests": {"requests": [{"request": _CONTENTS}]}}}},
    "instances": {"instances": [{"prompt": SAID}]},
    "interaction": {"model": "m", "input": SAID},
    "code_assist": {"model": "m", "project": "p", "request": _CONTENTS},
    "converse": _CONVERSE,
    "count_converse": {"input": {"converse": _CONVERSE}},
    "titan": {"inputText": SAID},
    "cohere_v1": {"message": SAID, "chat_history": [{"role": "USER", "message": SAID}]},
    "texts": {"model": "m", "texts": [SAID], "input_type": "search_query"},
    "rerank": {"model": "m", "query": SAID, "documents": [SAID]},
    "ocr": {
        "model": "m",
        "document": {
            "type": "document_url",
            "document_url": "data:text/plain;base64," + base64.b64encode(SAID.encode()).decode(),
        },
    },
    "conversations": {"input": [{"messages": _MESSAGES}]},
    "examples": {"inputs": [SAID], "examples": [{"text": SAID, "label": "x"}]},
    "summarize": {"text": SAID},
    "create": {"model": "m", "from": "base", "system": SAID, "messages": _MESSAGES},
    "prompt_token_ids": {"model": "m", "prompt_token_ids": [1, 2, 3]},
    "prompt_embeds": {"model": "m", "prompt_embeds": base64.b64encode(bytes(range(256))).decode()},
    "events": {"events": [{"event_type": "x", "data": {"note": SAID}}]},
    "oauth": _OAUTH,
}
_BATCH = line("/v1/chat/completions", JSON_BODIES["chat"])
OTHER_BODIES: dict[str, tuple[str, bytes]] = {
    "form": (FORM, form(part("m", "model"), part(SAID, "prompt"), part(SAID, "file", "a.txt", "text/plain"))),
    "form_batch": (FORM, form(part("batch", "purpose"), part(_BATCH, "file", "b.jsonl"))),
    "related": (
        "multipart/related; boundary=XX",
        b'--XX\r\nContent-Type: application/json; charset=UTF-8\r\n\r\n{"file": {"display_name": "a"}}\r\n'
        b"--XX\r\nContent-Type: text/plain\r\n\r\n" + SAID.encode() + b"\r\n--XX--\r\n",
    ),
    "form_binary": (FORM, form(part("user_data", "purpose"), part(EVERY_BYTE, "file", "a.bin"))),
    "form_session": (
        FORM,
        form(
            part("v=0\r\n", "sdp", kind="application/sdp"),
            part(json.dumps(JSON_BODIES["session"]["session"]), "session", kind="application/json"),
        ),
    ),
    "form_pairs": ("application/x-www-form-urlencoded", f"note=see+{TOKEN}".encode()),
    "file_text": ("text/plain", SAID.encode()),
    "file_binary": ("application/octet-stream", EVERY_BYTE),
    "oauth_form": ("application/x-www-form-urlencoded", f"grant_type=refresh_token&refresh_token={TOKEN}".encode()),
    "grpc": ("application/grpc+proto", b"\x00\x00\x00\x00\x05\n\x03abc"),
    "protobuf": ("application/connect+proto", b"\x00\x00\x00\x00\x05\n\x03abc"),
}  # fmt: skip


def body_of(row: Row) -> tuple[str, bytes]:
    """The content type and bytes of a row's sample."""
    if row.body in JSON_BODIES:
        return "application/json", json.dumps(JSON_BODIES[row.body]).encode()
    return OTHER_BODIES[row.body]


@pytest.mark.parametrize("row", ROWS, ids=str)
def test_requests(row: Row) -> None:
    kind, body = body_of(row)
    assert registry.find(ADAPTERS, row.host, row.path).id == row.dialect
    result = Session().send(
        body, host=row.host, target=row.path, content_type=kind, rewritable=not row.signed
    )
    match row.request:
        case "rewritten":
            assert result.rewritten
            assert result.body is not None
            assert TOKEN.encode() not in result.body
            assert result.carried
        case "fixed":
            assert result.body is None
            assert {"secret.blocked", "egress.signed_body"} & set(result.reason_codes)
        case "policy":
            assert result.body is None
            assert "coverage.opaque" in result.reason_codes
        case "credentials":
            assert result.body == body
        case other:
            pytest.fail(other)


def answer_of(form_: str) -> tuple[str, bytes]:
    """An answer with a placeholder in some text that is complete in itself."""
    data = json.dumps({"id": "1", "note": f"see {PLACEHOLDER} there"}).encode()
    inner = json.dumps({"bytes": base64.b64encode(data).decode()}).encode()
    return {
        "json": ("application/json", data),
        "sse": ("text/event-stream", b"event: note\ndata: " + data + b"\n\n"),
        "ndjson": ("application/x-ndjson", data + b"\n"),
        "array": ("application/json; charset=UTF-8", b"[" + data + b"\n]"),
        "eventstream": ("application/vnd.amazon.eventstream", eventstream.encode(((":event-type", "chunk"),), inner)),
    }[form_]  # fmt: skip


@pytest.mark.parametrize("row", [row for row in ROWS if not row.signed], ids=str)
def test_answers(row: Row) -> None:
    adapter = registry.find(ADAPTERS, row.host, row.path)
    for form_ in row.answers:
        kind, data = answer_of(form_)
        values = Values({PLACEHOLDER: lambda: "hunter2 swordfish"})
        opened = AnswerRestoration(adapter, values, Limits()).open(200, ((b"content-type", kind.encode()),))
        assert opened is not None
        got = opened[1].feed(data) + opened[1].end()
        assert PLACEHOLDER.encode() not in got
        if form_ == "eventstream":
            (frame,) = eventstream.Decoder().feed(got)
            got = frame.data.encode()
        assert b"see hunter2 swordfish there" in got


@pytest.mark.parametrize(("place", "row"), [(p, row) for row in TABLE["socket"] for p in row["places"]])
def test_sockets(place: str, row: dict[str, Any]) -> None:
    host, _, path = place.partition("/")
    adapter = registry.find(ADAPTERS, host, f"/{path}")
    known = spoken(adapter.id, f"/{path}")
    assert ("read" if known else "refused") == row["handling"]
    if known is not None:
        assert adapter.id == row["dialect"]
        refused = known.refusal({}, "why", "id")
        assert (refused is None) == row["refusal"].startswith("close")
        assert refused is None or json.loads(refused)["type"] in row["refusal"]


def test_every_dialect_and_every_sample_stands_in_the_table() -> None:
    assert {row.dialect for row in ROWS} == {adapter.id for adapter in ADAPTERS}
    assert {row.body for row in ROWS} == {*JSON_BODIES, *OTHER_BODIES}
    assert len({(row.host, row.path, row.body, row.signed) for row in ROWS}) == len(ROWS)


ALIASES = {
    # words of paths that carry what another path of the table carries
    "apply", "async", "checks", "guardrail",
    "computetokens", "asyncbatchembedcontent", "generatemessage", "generateanswer", "predictlongrunning",
    "delete", "pull", "push", "copy", "show", "detokenize", "jobs", "agents",
    "constrained", "cloud", "bidigeneratecontent",  # sockets
    "threads",  # left to OpenAI by Anthropic
}  # fmt: skip
PATTERNS = {
    "anthropic": anthropic._PATH,
    "openai_chat": openai_chat._PATH,
    "mistral": re.compile(mistral._ANYWHERE.pattern + mistral._AT_HOME.pattern),
    "cohere": re.compile(cohere._ANYWHERE.pattern + cohere._AT_HOME.pattern),
    "ollama": ollama._PATH,
    "openai_responses": openai_responses._PATH,
    "gemini": gemini._PATH,
    "bedrock": bedrock._PATH,
}


def test_every_kind_of_path_stands_in_the_table() -> None:
    """The words that a dialect's paths are made of: each is in a documented path, or an alias of one."""
    missing = set()
    for dialect, pattern in PATTERNS.items():
        listed = " ".join(base.normalise(row.path) for row in ROWS if row.dialect == dialect)
        missing |= {word for word in re.findall(r"[a-z_]{4,}", pattern.pattern) if word not in listed}
    assert missing == ALIASES
