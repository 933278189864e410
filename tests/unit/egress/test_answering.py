"""Answers that are held back: none gets to the client because nobody could read it."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import pytest

from gateway.app.clock import SystemClock
from gateway.classify.answers import AnswerRestoration
from gateway.classify.values import Values
from gateway.context.decisions import AnswerRules
from gateway.context.findings import Category, Finding, ScanItem, ScanResult, Severity
from gateway.context.objects import Limits
from gateway.detect.engine import build
from gateway.egress.answering import Answering, Back, listener
from gateway.policy import load_policy
from gateway.ports import Headers, NativeAnswer, Refusal
from gateway.providers import registry
from tests.support.evaluation import ADAPTERS, bundle

ENGINE = build()
AWS = "AKIAJYNZX3RQ7FEHQ5WT"
SAID = json.dumps({"choices": [{"message": {"role": "assistant", "content": f"The key is {AWS}."}}]}).encode()
JSON, STREAM = (b"content-type", b"application/json"), (b"content-type", b"text/event-stream")
_MANIFEST = b'name = "answers"\nversion = "1.0.0"\ndescription = "x"\n[answers]\nsecret = "block"\n'
POLICY = load_policy(
    [bundle(), {"bundle.toml": _MANIFEST}],
    mode="governed",
    enforcement="enforce",
)


class Scans:
    revision = "1"

    async def scan(self, items: Sequence[ScanItem], *, deadline_us: int) -> list[ScanResult]:
        return ENGINE.scan(items)


class Deaf:
    """A meter that nobody reads."""

    def __getattr__(self, name: str) -> Any:
        return lambda *_: None


class Names:
    """Finds one short name."""

    revision = "1"

    async def scan(self, items: Sequence[ScanItem], *, deadline_us: int) -> list[ScanResult]:
        return [_named(item.text) for item in items]


def _named(text: str) -> ScanResult:
    at = text.find("Ann")
    found = Finding("person_name", Category.PII, Severity.LOW, 700, at, at + 3, "x")
    return ScanResult((found,) if at >= 0 else ())


async def test_a_name_of_three_letters_is_masked_and_words_around_it_stay() -> None:
    said = json.dumps({"choices": [{"message": {"role": "assistant", "content": "Ann met Anna, Ann?"}}]})
    rules = AnswerRules((("pii", "mask"),))
    adapter = registry.find(ADAPTERS, "api.openai.com", "/v1/chat/completions")
    made = AnswerRestoration(adapter, Values({}), Limits(), listener=listener(rules), holds=True)
    back = Back(rules, made, POLICY, Refusal(400, (), ""))
    answering = Answering(Names(), SystemClock(), Deaf(), 10_000_000)
    result = await answering.release(back, NativeAnswer(200, (JSON,), said.encode()))
    told = json.loads(result.answer.body)["choices"][0]["message"]["content"]
    mark = told.partition(" ")[0]
    assert told == f"{mark} met Anna, {mark}?"
    assert mark.startswith("[REDACTED:")


async def released(data: bytes, headers: Headers, limits: Limits) -> tuple[NativeAnswer, tuple[str, ...]]:
    adapter = registry.find(ADAPTERS, "api.openai.com", "/v1/chat/completions")
    made = AnswerRestoration(adapter, Values({}), limits, listener=listener(POLICY.answers), holds=True)
    back = Back(POLICY.answers, made, POLICY, Refusal(400, (), ""))
    answering = Answering(Scans(), SystemClock(), Deaf(), 10_000_000)
    result = await answering.release(back, NativeAnswer(200, headers, data))
    assert back.scanned is not None
    return result.answer, back.scanned.codes


@pytest.mark.parametrize(
    ("data", "headers", "status", "code"),
    [
        (SAID, (JSON,), 400, "answer.secret"),
        (SAID + b"}", (JSON,), 400, "answer.secret"),
        (b"data: " + SAID + b"}\n\n", (STREAM,), 400, "answer.secret"),
        (SAID + b" " * 4000, (JSON,), 400, "answer.unscanned"),
        (SAID, (JSON, (b"content-encoding", b"dcz")), 502, "answer.unscanned"),
        (SAID, ((b"content-type", b"application/xml"),), 502, "answer.unscanned"),
    ],
    ids=[
        "whole",
        "no JSON",
        "no JSON in an event",
        "longer than is read",
        "an unknown coding",
        "an unknown kind",
    ],
)
async def test_what_cannot_be_read_is_not_let_out(
    data: bytes, headers: Headers, status: int, code: str
) -> None:
    answer, codes = await released(data, headers, Limits(max_body_bytes=2000))
    assert (answer.status, AWS.encode() in answer.body) == (status, False)
    assert code in codes


async def test_a_picture_is_let_out_and_said_to_be_unscanned() -> None:
    answer, codes = await released(b"\x89PNG", ((b"content-type", b"image/png"),), Limits())
    assert (answer.body, codes) == (b"\x89PNG", ("answer.unscanned",))
