"""A restorer passes on whatever it cannot read: any JSON as an event of any dialect, and any bytes at all."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gateway.classify.answers import AnswerRestoration
from gateway.classify.placeholders import Placeholders
from gateway.classify.values import Values
from gateway.context.objects import Limits
from gateway.providers import registry

TOKEN = Placeholders(b"k" * 32, b"m" * 32).issue("v", "PASSWORD")
NAMES = (
    "type", "index", "delta", "text", "content", "content_block", "choices", "message", "tool_calls", "function",
    "arguments", "candidates", "parts", "response", "output", "item", "done", "event_type", "thinking", "output_index",
    "contentBlockIndex", "toolUse", "input", "finish_reason", "error", "sequence_number", "usage", "bytes",
)  # fmt: skip
WORDS = (
    "content_block_delta", "text_delta", "input_json_delta", "response.output_text.delta", "message_stop", "[DONE]",
    "response.completed", "content-delta", "function_call", "tool_use", TOKEN, TOKEN[:9], f'{{"a": "{TOKEN}"', "E", "",
)  # fmt: skip
json_values = st.recursive(
    st.none() | st.booleans() | st.integers(-3, 3) | st.sampled_from(WORDS),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(NAMES), inner, max_size=5),
    max_leaves=12,
)
ADAPTERS = registry.builtin()
KINDS = (
    "text/event-stream",
    "application/x-ndjson",
    "application/json",
    "application/vnd.amazon.eventstream",
    "text/plain",
)


def opened(adapter: Any, kind: str) -> Any:
    values = Values({TOKEN: lambda: "v"})
    found = AnswerRestoration(adapter, values, Limits()).open(200, ((b"content-type", kind.encode()),))
    assert found is not None
    return found[1]


@pytest.mark.parametrize("adapter", ADAPTERS, ids=lambda a: a.id)
@settings(max_examples=60, deadline=None)
@given(st.lists(json_values, max_size=5))
def test_any_json_as_events(adapter: Any, events: list[Any]) -> None:
    for kind, frame in (("text/event-stream", "data: {}\n\n"), ("application/x-ndjson", "{}\n")):
        answer = "".join(frame.format(json.dumps(event)) for event in events).encode()
        run = opened(adapter, kind)
        out = run.feed(answer) + run.end()
        assert TOKEN.encode() in answer or TOKEN[:9].encode() in answer or out == answer
        assert out.count(b"\n") == answer.count(b"\n")


@pytest.mark.parametrize("adapter", ADAPTERS, ids=lambda a: a.id)
@settings(max_examples=40, deadline=None)
@given(json_values)
def test_any_json_as_a_whole(adapter: Any, value: Any) -> None:
    answer = json.dumps(value).encode()
    run = opened(adapter, "application/json")
    out = run.feed(answer) + run.end()
    assert out == answer or TOKEN.encode() in answer or isinstance(value, list)
    json.loads(out)


@settings(max_examples=100, deadline=None)
@given(st.binary(max_size=60), st.sampled_from(KINDS))
def test_any_bytes(data: bytes, kind: str) -> None:
    run = opened(ADAPTERS[0], kind)
    out = run.feed(data) + run.end()
    assert out == data or kind == "application/vnd.amazon.eventstream"
