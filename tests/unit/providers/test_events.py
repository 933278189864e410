"""What each dialect reads in the events of an answer."""

from typing import Any

import pytest

from gateway.context.objects import Json
from gateway.ports import Delta, EventReading, ProviderAdapter
from gateway.providers.anthropic import AnthropicMessages
from gateway.providers.bedrock import Bedrock
from gateway.providers.cohere import Cohere
from gateway.providers.gemini import Gemini
from gateway.providers.generic import Generic
from gateway.providers.mistral import Mistral
from gateway.providers.ollama import Ollama
from gateway.providers.openai_chat import OpenAIChat
from gateway.providers.openai_responses import OpenAIResponses

OVER = EventReading(ends=("*",))


def block(kind: str, **members: Any) -> dict[str, Any]:
    return {"type": "content_block_start", "index": 1, "content_block": {"type": kind, **members}}


def piece(kind: str, **members: Any) -> dict[str, Any]:
    return {"type": "content_block_delta", "index": 1, "delta": {"type": kind, **members}}


@pytest.mark.parametrize(
    ("data", "reading"),
    [
        ({"type": "message_start", "message": {"content": []}}, EventReading()),
        (block("text", text=""), EventReading()),
        (block("text", text="Hi"), EventReading((Delta(("content_block", "text"), "1"),))),
        (block("thinking", thinking="", signature=""), EventReading(whole=False)),
        (block("tool_use", input={}), EventReading()),
        (piece("text_delta", text="a"), EventReading((Delta(("delta", "text"), "1"),))),
        (
            piece("input_json_delta", partial_json='{"a'),
            EventReading((Delta(("delta", "partial_json"), "1", True),)),
        ),
        (piece("thinking_delta", thinking="a"), EventReading(whole=False)),
        (piece("signature_delta", signature="a"), EventReading(whole=False)),
        (piece("citations_delta", citation={"cited_text": "a"}), EventReading()),
        ({"type": "content_block_stop", "index": 1}, EventReading(ends=("1",))),
        ({"type": "message_delta", "delta": {"stop_reason": "end_turn"}}, EventReading()),
        ({"type": "message_stop"}, OVER),
        ({"type": "error", "error": {}}, OVER),
        ({"type": "ping"}, EventReading()),
        (
            {
                "type": "message",
                "content": [{"type": "thinking", "thinking": "x"}, {"type": "text", "text": "y"}],
            },
            EventReading(ends=("*",), sealed=(("content", 0),)),
        ),
    ],
)
def test_anthropic(data: Json, reading: EventReading) -> None:
    assert AnthropicMessages().read_event("", data) == reading


def chunk(**choice: Any) -> dict[str, Any]:
    return {"choices": [{"index": 2, **choice}]}


@pytest.mark.parametrize(
    ("data", "reading"),
    [
        (
            chunk(delta={"content": "a"}),
            EventReading((Delta(("choices", 0, "delta", "content"), "2:content"),)),
        ),
        (chunk(delta={"role": "assistant", "content": ""}), EventReading()),
        (
            chunk(delta={"reasoning_content": "a"}),
            EventReading((Delta(("choices", 0, "delta", "reasoning_content"), "2:reasoning_content"),)),
        ),
        (
            chunk(delta={"tool_calls": [{"index": 3, "function": {"name": "f", "arguments": '{"'}}]}),
            EventReading(
                (Delta(("choices", 0, "delta", "tool_calls", 0, "function", "arguments"), "2:tool:3", True),)
            ),
        ),
        (
            chunk(delta={"tool_calls": [{"index": 3, "custom": {"input": "x"}}]}),
            EventReading(
                (Delta(("choices", 0, "delta", "tool_calls", 0, "custom", "input"), "2:tool:3", tool=True),)
            ),
        ),
        (chunk(text="a"), EventReading((Delta(("choices", 0, "text"), "2:text"),))),
        (chunk(delta={}, finish_reason="stop"), EventReading(ends=("2:*",))),
        ({"choices": [], "usage": {"total_tokens": 1}}, EventReading()),
        ("[DONE]", OVER),
        ({"error": {"message": "x"}}, OVER),
        (chunk(message={"content": "whole"}, finish_reason="stop"), EventReading(ends=("2:*",))),
        (
            {"message": {"content": "a"}, "done": False},
            EventReading((Delta(("message", "content"), ":content"),)),
        ),
        ({"response": "a", "done": True}, EventReading((Delta(("response",), ":content"),), ("*",))),
        (
            {"type": "content-delta", "index": 0, "delta": {"message": {"content": {"text": "a"}}}},
            EventReading((Delta(("delta", "message", "content", "text"), "0:text"),)),
        ),
    ],
)
def test_chat(data: Json, reading: EventReading) -> None:
    native = data if isinstance(data, dict) else {}
    adapter = (
        Ollama() if "done" in native else Cohere() if native.get("type") == "content-delta" else OpenAIChat()
    )
    assert adapter.read_event("", data) == reading
    if adapter.id == "openai_chat":
        assert Mistral().read_event("", data) == reading


def event(kind: str, **members: Any) -> dict[str, Any]:
    return {"type": "response." + kind, "output_index": 1, **members}


@pytest.mark.parametrize(
    ("data", "reading"),
    [
        (
            event("output_text.delta", content_index=0, delta="a"),
            EventReading((Delta(("delta",), "1:0:response.output_text"),)),
        ),
        (
            event("function_call_arguments.delta", delta="{"),
            EventReading((Delta(("delta",), "1::response.function_call_arguments", True),)),
        ),
        (
            event("custom_tool_call_input.delta", delta="a"),
            EventReading((Delta(("delta",), "1::response.custom_tool_call_input", tool=True),)),
        ),
        (
            event("output_text.done", content_index=0, text="a"),
            EventReading(ends=("1:0:response.output_text",)),
        ),
        (event("content_part.done", content_index=0), EventReading(ends=("1:0:*",))),
        (event("output_item.done", item={"type": "message"}), EventReading(ends=("1:*",))),
        (event("output_item.done", item={"type": "reasoning"}), EventReading(whole=False)),
        (event("reasoning_summary_text.delta", delta="a"), EventReading(whole=False)),
        (event("output_audio.delta", delta="AAAA"), EventReading()),
        ({"type": "response.created", "response": {"output": []}}, EventReading()),
        (
            {
                "type": "response.completed",
                "response": {"output": [{"type": "message"}, {"type": "reasoning"}]},
            },
            EventReading(ends=("*",), sealed=(("response", "output", 1),)),
        ),
        ({"object": "response", "output": [{"type": "reasoning"}]}, EventReading(sealed=(("output", 0),))),
        ({"type": "error", "message": "x"}, OVER),
    ],
)
def test_responses(data: Json, reading: EventReading) -> None:
    assert OpenAIResponses().read_event("", data) == reading


def candidate(*parts: dict[str, Any], **members: Any) -> dict[str, Any]:
    return {"candidates": [{"index": 0, "content": {"parts": list(parts), "role": "model"}, **members}]}


AT = ("candidates", 0, "content", "parts")


@pytest.mark.parametrize(
    ("data", "reading"),
    [
        (candidate({"text": "a"}), EventReading((Delta((*AT, 0, "text"), "0:text"),))),
        (
            {"response": candidate({"text": "a"})},
            EventReading((Delta(("response", *AT, 0, "text"), "0:text"),)),
        ),
        (
            candidate({"text": "hm", "thought": True}, {"functionCall": {"args": {"a": "b"}}}),
            EventReading(sealed=((*AT, 0, "text"),)),
        ),
        (
            candidate({"text": "a"}, finishReason="STOP"),
            EventReading((Delta((*AT, 0, "text"), "0:text"),), ("0:*",)),
        ),
        ({"usageMetadata": {}}, EventReading()),
        ({"error": {"code": 400}}, OVER),
    ],
)
def test_gemini(data: Json, reading: EventReading) -> None:
    assert Gemini().read_event("", data) == reading


@pytest.mark.parametrize(
    ("name", "data", "reading"),
    [
        (
            "contentBlockDelta",
            {"contentBlockIndex": 1, "delta": {"text": "a"}},
            EventReading((Delta(("delta", "text"), "1"),)),
        ),
        (
            "",
            {"contentBlockDelta": {"contentBlockIndex": 1, "delta": {"toolUse": {"input": "{"}}}},
            EventReading((Delta(("contentBlockDelta", "delta", "toolUse", "input"), "1", True),)),
        ),
        ("contentBlockDelta", {"delta": {"reasoningContent": {"text": "a"}}}, EventReading(whole=False)),
        ("contentBlockStop", {"contentBlockIndex": 1}, EventReading(ends=("1",))),
        ("", {"contentBlockStop": {"contentBlockIndex": 1}}, EventReading(ends=("1",))),
        ("messageStop", {"stopReason": "end_turn"}, OVER),
        ("metadata", {"usage": {}}, EventReading()),
        ("chunk", piece("text_delta", text="a"), EventReading((Delta(("delta", "text"), "1"),))),
        ("chunk", piece("thinking_delta", thinking="a"), EventReading(whole=False)),
        ("chunk", {"type": "content_block_stop", "index": 1}, EventReading(ends=("1",))),
        ("chunk", {"type": "message_stop"}, OVER),
        ("chunk", {"type": "ping"}, EventReading()),
    ],
)
def test_bedrock(name: str, data: Json, reading: EventReading) -> None:
    assert Bedrock().read_event(name, data) == reading


def test_arguments_are_json_in_strings() -> None:
    call = ("choices", 0, "message", "tool_calls", 0, "function", "arguments")
    assert [a.arguments(call) for a in (OpenAIChat(), OpenAIResponses(), Generic())] == [True] * 3
    assert [a.arguments(call[:-1]) for a in (OpenAIChat(), OpenAIResponses(), Generic())] == [False] * 3
    assert [a.arguments(("content", 0, "input")) for a in (AnthropicMessages(), Gemini())] == [False] * 2
    assert Generic().read_event("x", {"a": 1}) == EventReading()


@pytest.mark.parametrize(
    ("adapter", "name", "data", "reading"),
    [
        (
            Ollama(),
            "",
            {"message": {"thinking": "a"}, "done": False},
            EventReading((Delta(("message", "thinking"), ":thinking"),)),
        ),
        (
            Cohere(),
            "",
            {"event_type": "text-generation", "text": "a"},
            EventReading((Delta(("text",), ":text"),)),
        ),
        (
            Cohere(),
            "content-delta",
            {"type": "content-delta", "index": 1, "delta": {"message": {"content": {"thinking": "a"}}}},
            EventReading((Delta(("delta", "message", "content", "thinking"), "1:thinking"),)),
        ),
        (Cohere(), "content-end", {"type": "content-end", "index": 1}, OVER),
        (
            OpenAIChat(),
            "",
            {"type": "transcript.text.delta", "delta": "a"},
            EventReading((Delta(("delta",), ":transcript.text.delta"),)),
        ),
        (
            Mistral(),
            "",
            chunk(delta={"content": [{"type": "thinking", "thinking": [{"type": "text", "text": "a"}]}]}),
            EventReading(
                (Delta(("choices", 0, "delta", "content", 0, "thinking", 0, "text"), "2:thinking:text"),)
            ),
        ),
        (
            AnthropicMessages(),
            "completion",
            {"type": "completion", "completion": " a"},
            EventReading((Delta(("completion",), ""),)),
        ),
        (Bedrock(), "chunk", {"outputText": "a"}, EventReading((Delta(("outputText",), "outputText"),))),
        (Bedrock(), "chunk", {"generation": "a"}, EventReading((Delta(("generation",), "generation"),))),
        (
            OpenAIResponses(),
            "thread.message.delta",
            {"id": "m", "delta": {"content": [{"index": 0, "type": "text", "text": {"value": "a"}}]}},
            EventReading((Delta(("delta", "content", 0, "text", "value"), "m:0:text", tool=False),)),
        ),
        (
            OpenAIResponses(),
            "thread.run.step.delta",
            {
                "id": "s",
                "delta": {"step_details": {"tool_calls": [{"index": 2, "function": {"arguments": "{"}}]}},
            },
            EventReading(
                (
                    Delta(
                        ("delta", "step_details", "tool_calls", 0, "function", "arguments"),
                        "s:2:function",
                        json_string=True,
                        tool=True,
                    ),
                )
            ),
        ),
        (OpenAIResponses(), "thread.message.completed", {"id": "m"}, OVER),
        (
            OpenAIResponses(),
            "",
            {"type": "message.output.delta", "output_index": 0, "content_index": 0, "content": "a"},
            EventReading((Delta(("content",), "0:0:message.output"),)),
        ),
        (
            OpenAIResponses(),
            "",
            {"type": "function.call.delta", "output_index": 1, "arguments": "{"},
            EventReading((Delta(("arguments",), "1::function.call", json_string=True),)),
        ),
        (
            Gemini(),
            "",
            {"event_type": "content.delta", "index": 0, "delta": {"type": "text", "text": "a"}},
            EventReading((Delta(("delta", "text"), "0:text"),)),
        ),
        (
            Gemini(),
            "",
            {"event_type": "content.delta", "index": 0, "delta": {"type": "thought_summary", "text": "a"}},
            EventReading(whole=False),
        ),
        (Gemini(), "", {"event_type": "content.stop", "index": 0}, EventReading(ends=("0:*",))),
        (Gemini(), "", {"event_type": "interaction.complete"}, OVER),
    ],
)
def test_relatives(adapter: ProviderAdapter, name: str, data: Json, reading: EventReading) -> None:
    assert adapter.read_event(name, data) == reading
