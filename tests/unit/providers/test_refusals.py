"""Refusals in each provider's own shape: shown once, not retried, and with nothing of the content."""

import json
from dataclasses import replace
from typing import Any

import pytest

from gateway.context import eventstream, sse
from gateway.ports import NativeAnswer, ProviderAdapter, Refusal
from gateway.providers import openai_responses, registry

REFUSAL = Refusal(
    400, ("secret.denied", "policy.strict"), "A private key stands in message 3.", "sha256:ab", "req_1"
)
TEXT = "A private key stands in message 3. [secret.denied, policy.strict] (receipt sha256:ab)"


def adapters() -> dict[str, ProviderAdapter]:
    return {adapter.id: adapter for adapter in registry.builtin()}


def read(answer: NativeAnswer) -> tuple[dict[str, str], Any]:
    headers = {name.decode(): value.decode() for name, value in answer.headers}
    assert len(headers) == len(answer.headers)
    assert headers["content-type"] == "application/json"
    assert int(headers["content-length"]) == len(answer.body)
    assert headers["x-egress-receipt"] == "sha256:ab"
    return headers, json.loads(answer.body)


@pytest.mark.parametrize("name", ["openai_chat", "openai_responses", "generic"])
def test_openai_shaped(name: str) -> None:
    headers, body = read(adapters()[name].refuse(REFUSAL))
    error = body["error"]
    assert (error["type"], error["code"], error["param"]) == (
        "invalid_request_error",
        "gateway_blocked",
        None,
    )
    assert error["message"].endswith(TEXT)
    assert (headers["x-should-retry"], headers["x-request-id"]) == ("false", "req_1")


def test_anthropic() -> None:
    headers, body = read(adapters()["anthropic"].refuse(REFUSAL))
    assert (body["type"], body["error"]["type"], body["request_id"]) == (
        "error",
        "invalid_request_error",
        "req_1",
    )
    assert body["error"]["message"].endswith(TEXT)
    assert (headers["x-should-retry"], headers["request-id"]) == ("false", "req_1")


def test_gemini() -> None:
    headers, body = read(adapters()["gemini"].refuse(REFUSAL))
    assert (body["error"]["code"], body["error"]["status"]) == (400, "INVALID_ARGUMENT")
    assert headers["x-should-retry"] == "false"


def test_bedrock() -> None:
    headers, body = read(adapters()["bedrock"].refuse(REFUSAL))
    assert body["message"].endswith(TEXT)
    assert (headers["x-amzn-errortype"], headers["x-amzn-requestid"]) == ("ValidationException", "req_1")


@pytest.mark.parametrize("name", list(adapters()))
def test_overload_says_when_to_come_back(name: str) -> None:
    answer = adapters()[name].refuse(
        Refusal(503, ("gateway.overloaded",), "Too much at once.", "sha256:ab", retry_after_s=2)
    )
    headers, _ = read(answer)
    assert answer.status == 503
    assert headers["retry-after"] == "2"
    assert "x-should-retry" not in headers


@pytest.mark.parametrize("name", list(adapters()))
def test_no_words_that_clients_act_on(name: str) -> None:
    text = adapters()[name].refuse(REFUSAL).body.decode().lower()
    for word in (
        "content_policy_violation",
        "prompt is too long",
        "context length",
        "overloaded",
        "rate limit",
        "api key",
    ):
        assert word not in text


@pytest.mark.parametrize(
    ("name", "event", "path"),
    [
        ("anthropic", "error", ("error", "message")),
        ("openai_chat", "", ("error", "message")),
        ("openai_responses", "response.failed", ("response", "error", "message")),
        ("gemini", "", ("error", "message")),
        ("generic", "", ("error", "message")),
    ],
)
def test_errors_in_mid_stream(name: str, event: str, path: tuple[str, ...]) -> None:
    (read_back,) = sse.Decoder().feed(adapters()[name].stream_error(REFUSAL))
    message: Any = json.loads(read_back.data)
    for token in path:
        message = message[token]
    assert read_back.name == event
    assert message.endswith(TEXT)


def test_the_frame_that_codex_shows_and_does_not_retry() -> None:
    frame = openai_responses.failed(REFUSAL)
    assert frame["response"]["error"]["code"] == "invalid_prompt"
    assert frame["type"] == "response.failed"


@pytest.mark.parametrize(
    ("host", "path", "expected"),
    [
        ("api.openai.com", "/v1/chat/completions", ("error", "message")),
        ("api.cohere.com", "/v2/chat", ("message",)),
        ("api.cohere.com", "/compatibility/v1/chat/completions", ("error", "message")),
        ("ollama.com", "/api/chat", ("error",)),
        ("ollama.com", "/v1/chat/completions", ("error", "message")),
        ("localhost", "/api/generate", ("error",)),
        ("localhost", "/v1/chat/completions", ("error", "message")),
        ("router.huggingface.co", "/hf-inference/models/x", ("error",)),
        ("api.voyageai.com", "/v1/embeddings", ("detail",)),
        ("api.jina.ai", "/v1/embeddings", ("detail",)),
        ("openrouter.ai", "/api/v1/chat/completions", ("error", "message")),
        ("api.mistral.ai", "/v1/chat/completions", ("message",)),
        ("x.openai.azure.com", "/openai/deployments/d/chat/completions", ("error", "message")),
    ],
)
def test_those_who_differ_get_what_their_clients_read(
    host: str, path: str, expected: tuple[str, ...]
) -> None:
    adapter = adapters()["openai_chat"]
    refusal = replace(REFUSAL, host=host, path=path)
    answer = adapter.refuse(refusal)
    _, body = read(answer)
    message = body
    for name in expected:
        message = message[name]
    assert message.endswith(TEXT)
    assert answer.status == 400
    ending = adapter.stream_error(refusal)
    assert TEXT.encode() in ending
    assert ending.startswith(b"data: ") is (path not in {"/api/chat", "/api/generate"})


def test_mistral_and_openrouter_name_a_code() -> None:
    adapter = adapters()["openai_chat"]
    mistral = json.loads(adapter.refuse(replace(REFUSAL, host="api.mistral.ai")).body)
    openrouter = json.loads(adapter.refuse(replace(REFUSAL, host="openrouter.ai")).body)
    assert (mistral["object"], mistral["code"], mistral["type"]) == (
        "error",
        "gateway_blocked",
        "invalid_request_error",
    )
    assert openrouter["error"]["code"] == 400


def test_bedrock_ends_a_stream_with_an_exception_frame() -> None:
    (frame,) = eventstream.Decoder().feed(adapters()["bedrock"].stream_error(REFUSAL))
    assert frame.name == "validationException"
    assert json.loads(frame.data)["message"].endswith(TEXT)
