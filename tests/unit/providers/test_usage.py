"""Token figures mean the same for every dialect, whole and streamed, in every framing, compressed or not."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import pytest

from gateway.classify.answers import AnswerRestoration
from gateway.classify.values import Values
from gateway.context.objects import Limits
from gateway.providers import registry
from gateway.providers.usage import Usage, reports
from tests.support.streams import DIALECTS, MODEL, Dialect

CASES: list[dict[str, Any]] = json.loads((Path(__file__).parents[2] / "vectors" / "usage.json").read_text())
AWS = "bedrock-runtime.us-east-1.amazonaws.com"


@pytest.mark.parametrize("case", CASES, ids=lambda case: case["name"])
def test_figures(case: dict[str, Any]) -> None:
    usage = Usage()
    for event in case["events"]:
        usage.note(event)

    assert usage.tokens == case["usage"]


@pytest.mark.parametrize("case", [c for c in CASES if c["usage"]], ids=lambda case: case["name"])
def test_what_reports_figures_is_always_parsed(case: dict[str, Any]) -> None:
    """An event without any of the marks is not looked at."""
    usage = Usage()
    for event in case["events"]:
        if reports(json.dumps(event)) and reports(json.dumps(event, separators=(",", ":"))):
            usage.note(event)

    assert usage.tokens == case["usage"]


def read(host: str, path: str, answer: bytes, *headers: tuple[bytes, bytes], size: int = 11) -> Any:
    """The bytes and the figures of an answer to a request in which nothing was masked."""
    adapter = registry.find(registry.builtin(), host, path)
    opened = AnswerRestoration(adapter, Values({}), Limits()).open(200, headers)
    assert opened is not None
    kept, run = opened
    out = b"".join(run.feed(answer[at : at + size]) for at in range(0, len(answer), size)) + run.end()
    assert kept == headers
    return out, run.usage


@pytest.mark.parametrize("coding", ["", "gzip"])
@pytest.mark.parametrize("dialect", [d for d in DIALECTS if "gemini" not in d.name], ids=lambda d: d.name)
def test_streams(dialect: Dialect, coding: str) -> None:
    """The bytes go on as they came, also those of a coding that is undone only to read them."""
    answer = dialect.write(["a", "b"], ['{"c": 1}'])
    sent = gzip.compress(answer) if coding else answer
    head = [(b"content-type", dialect.content_type.encode()), (b"content-length", b"%d" % len(sent))]
    head += [(b"content-encoding", coding.encode())] if coding else []
    out, usage = read(dialect.host, dialect.path, sent, *head)

    assert out == sent
    assert usage


def test_a_coding_that_does_not_hold_changes_nothing_where_nothing_is_restored() -> None:
    sent = gzip.compress(b'{"usage":{"prompt_tokens":5}}')[:-4] + b"xxxx and more"
    head = ((b"content-type", b"application/json"), (b"content-encoding", b"gzip"))

    assert read("api.openai.com", "/v1/chat/completions", sent, *head) == (sent, None)


def test_the_head_of_an_answer() -> None:
    head = (
        (b"content-type", b"application/json"),
        (b"X-Amzn-Bedrock-Input-Token-Count", b"12"),
        (b"X-Amzn-Bedrock-Output-Token-Count", b"5"),
    )
    out, usage = read(AWS, f"{MODEL}/invoke", b'{"outputs":[{"text":"x"}]}', *head)

    assert out == b'{"outputs":[{"text":"x"}]}'
    assert usage == {"input_tokens": 12, "output_tokens": 5}
