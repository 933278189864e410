"""What each dialect says of the parts it knows: kind, channel, and the roles of the leaves inside."""

import base64
from typing import Any

import pytest

from gateway.context import pointer, walk
from gateway.context.objects import Json, Limits
from gateway.ports import ProviderAdapter
from gateway.providers.anthropic import AnthropicMessages
from gateway.providers.bedrock import Bedrock
from gateway.providers.cohere import Cohere
from gateway.providers.gemini import Gemini
from gateway.providers.mistral import Mistral
from gateway.providers.ollama import Ollama
from gateway.providers.openai_chat import OpenAIChat
from gateway.providers.openai_responses import OpenAIResponses

SEAL = base64.b64encode(bytes(range(1, 200))).decode()
PIXEL = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR4nGNgYGBgAAAABQABh6FO1AAAAABJRU5ErkJggg=="


def read(adapter: ProviderAdapter, body: Json) -> dict[str, tuple[str, str, dict[str, str]]]:
    """Pointer of the block -> (kind, channel, {leaf pointer: role})."""
    found = {}
    for block in adapter.blocks(body):
        leaves = {}
        for leaf in walk.leaves(block, adapter.rules, Limits()):
            at, outer = pointer.to_pointer(leaf.path), leaf.outer
            while outer is not None:
                at, outer = pointer.to_pointer(outer.path) + "!" + at, outer.outer
            leaves[at + ("#" if "name" in leaf.role else "")] = str(leaf.role)
        found[pointer.to_pointer(block.path)] = (str(block.kind), str(block.channel), leaves)
    return found


ANTHROPIC: list[tuple[dict[str, Any], str, str, dict[str, str]]] = [
    ({"type": "text", "text": "hi"}, "text", "assistant", {"/type": "structural", "/text": "text"}),
    (
        {"type": "thinking", "thinking": "hm", "signature": SEAL},
        "thinking",
        "assistant",
        {"/type": "structural", "/thinking": "thinking", "/signature": "sealed"},
    ),
    (
        {"type": "thinking", "thinking": "hm", "signature": "prose is not a signature, so it is read"},
        "thinking",
        "assistant",
        {"/type": "structural", "/thinking": "thinking", "/signature": "structural"},
    ),
    ({"type": "redacted_thinking", "data": SEAL}, "sealed", "assistant", {"/type": "structural", "/data": "sealed"}),
    (
        {"type": "tool_use", "id": "toolu_1", "name": "f", "input": {"id": "x", "n": 12345678, "signature": SEAL}},
        "tool_call",
        "assistant",
        {
            "/type": "structural", "/id": "structural", "/name": "structural", "/input/id#": "name", "/input/id": "text",
            "/input/n#": "name", "/input/n": "number", "/input/signature#": "name", "/input/signature": "text",
        },
    ),
    (
        {"type": "tool_result", "tool_use_id": "t", "content": [{"type": "text", "text": '{"a": "b"}'}]},
        "tool_result",
        "tool",
        {
            "/type": "structural", "/tool_use_id": "structural", "/content/0/type": "structural",
            "/content/0/text!/a#": "name", "/content/0/text!/a": "text",
        },
    ),
    (
        {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": PIXEL}},
        "media",
        "assistant",
        {"/type": "structural", "/source/type": "structural", "/source/media_type": "structural", "/source/data": "media"},
    ),
    (
        {"type": "image", "source": {"type": "url", "url": "https://x.example/y.png"}},
        "reference",
        "assistant",
        {"/type": "structural", "/source/type": "structural", "/source/url": "reference"},
    ),
    (
        {"type": "document", "title": "t", "source": {"type": "text", "media_type": "text/plain", "data": "aGVsbG8="}},
        "document",
        "assistant",
        {
            "/type": "structural", "/title": "text", "/source/type": "structural", "/source/media_type": "structural",
            "/source/data": "text",
        },
    ),
    (
        {"type": "document", "source": {"type": "base64", "media_type": "text/plain", "data": "aGVsbG8="}},
        "document",
        "assistant",
        {"/type": "structural", "/source/type": "structural", "/source/media_type": "structural", "/source/data": "encoded"},
    ),
    (
        {"type": "web_search_tool_result", "tool_use_id": "t", "content": [{"url": "https://x", "encrypted_content": SEAL}]},
        "tool_result",
        "tool",
        {
            "/type": "structural", "/tool_use_id": "structural", "/content/0/url": "reference",
            "/content/0/encrypted_content": "sealed",
        },
    ),
    ({"type": "container_upload", "file_id": "file_1"}, "reference", "assistant", {"/type": "structural", "/file_id": "reference"}),
]  # fmt: skip


@pytest.mark.parametrize(
    ("part", "kind", "channel", "roles"),
    ANTHROPIC,
    ids=lambda x: x.get("type") if isinstance(x, dict) else "",
)
def test_anthropic_parts(part: dict[str, Any], kind: str, channel: str, roles: dict[str, str]) -> None:
    body = {"messages": [{"role": "assistant", "content": [part]}]}
    assert read(AnthropicMessages(), body)["/messages/0/content/0"] == (kind, channel, roles)


def test_anthropic_bodies() -> None:
    found = read(
        AnthropicMessages(),
        {
            "model": "claude-x",
            "system": [{"type": "text", "text": "s", "cache_control": {"type": "ephemeral"}}],
            "messages": [{"role": "system", "content": "plan mode"}, {"role": "alien", "content": "?"}],
            "tools": [
                {
                    "name": "f",
                    "description": "d",
                    "input_schema": {"type": "object", "properties": {"q": {"type": "string"}}},
                }
            ],
            "metadata": {"user_id": '{"device_id":"x"}'},
            "thinking": {"type": "adaptive"},
        },
    )
    assert {place: entry[:2] for place, entry in found.items()} == {
        "/system/0": ("system", "system"),
        "/messages/0/content": ("system", "system"),
        "/messages/1/content": ("text", "other"),
        "/tools/0": ("tool_definition", "other"),
        "": ("parameters", "other"),
    }
    assert found[""][2]["/metadata/user_id"] == "structural"
    assert found["/tools/0"][2]["/input_schema/properties/q#"] == "structural_name"
    assert found["/tools/0"][2]["/description"] == "text"


def test_anthropic_batches() -> None:
    body = {
        "requests": [
            {"custom_id": "c", "params": {"model": "m", "messages": [{"role": "user", "content": "hi"}]}}
        ]
    }
    found = read(AnthropicMessages(), body)
    assert list(found) == ["/requests/0/params/messages/0/content", ""]
    assert AnthropicMessages().destination("api.anthropic.com", "/v1/messages/batches", body) == (
        "anthropic",
        "m",
    )


def test_chat_messages() -> None:
    body = {
        "model": "gpt-x",
        "messages": [
            {"role": "developer", "content": "rules"},
            {"role": "user", "name": "ann", "content": [
                {"type": "text", "text": "hi"},
                {"type": "image_url", "image_url": {"url": "https://x/y.png"}},
                {"type": "image_url", "image_url": {"url": "data:image/png;base64," + PIXEL}},
                {"type": "input_audio", "input_audio": {"data": "AAAA", "format": "wav"}},
                {"type": "file", "file": {"file_id": "file-1"}},
                {"type": "file", "file": {"file_data": "data:text/csv;base64,YSxi", "filename": "a.csv"}},
            ]},
            {"role": "assistant", "content": None, "reasoning_content": "hm", "tool_calls": [
                {"id": "c1", "type": "function", "function": {"name": "f", "arguments": '{"path": "x", "n": [7654321]}'}},
                {"id": "c2", "type": "custom", "custom": {"name": "g", "input": "free"}},
            ]},
            {"role": "tool", "tool_call_id": "c1", "content": "result"},
        ],
        "tools": [{"type": "function", "function": {"name": "f", "parameters": {"type": "object"}}}],
        "metadata": {"k": "v"},
        "user": "u-1",
    }  # fmt: skip
    found = read(OpenAIChat(), body)
    assert {place: entry[:2] for place, entry in found.items()} == {
        "/messages/0/content": ("system", "system"),
        "/messages/1/content/0": ("text", "user"),
        "/messages/1/content/1": ("reference", "user"),
        "/messages/1/content/2": ("media", "user"),
        "/messages/1/content/3": ("media", "user"),
        "/messages/1/content/4": ("reference", "user"),
        "/messages/1/content/5": ("document", "user"),
        "/messages/2/reasoning_content": ("text", "assistant"),
        "/messages/2/tool_calls/0": ("tool_call", "assistant"),
        "/messages/2/tool_calls/1": ("tool_call", "assistant"),
        "/messages/3/content": ("tool_result", "tool"),
        "/tools/0": ("tool_definition", "other"),
        "": ("parameters", "other"),
    }
    assert found["/messages/2/tool_calls/0"][2] == {
        "/id": "structural", "/type": "structural", "/function/name": "structural",
        "/function/arguments!/path#": "name", "/function/arguments!/path": "text",
        "/function/arguments!/n#": "name", "/function/arguments!/n/0": "number",
    }  # fmt: skip
    assert found["/messages/1/content/5"][2]["/file/file_data"] == "encoded"
    assert found["/messages/1/content/1"][2]["/image_url/url"] == "reference"
    assert found[""][2] == {
        "/model": "structural", "/messages/1/role": "structural",
        "/messages/1/name": "structural", "/messages/2/role": "structural", "/messages/3/role": "structural",
        "/messages/3/tool_call_id": "structural", "/metadata/k#": "name", "/metadata/k": "text", "/user": "structural",
    }  # fmt: skip


@pytest.mark.parametrize(
    ("body", "blocks"),
    [
        ({"prompt": "p", "system": "s", "template": "t", "context": [1, 2]},
         {"/prompt": "text", "/system": "system", "/template": "system", "/context": "reference"}),
        ({"document": {"type": "document_url", "document_url": "https://x"}}, {"/document": "reference"}),
        ({"document": {"type": "image_url", "image_url": {"url": "data:image/png;base64," + PIXEL}}}, {"/document": "document"}),
        ({"prompt_token_ids": [1]}, {"/prompt_token_ids": "opaque"}),
        ({"prompt": "p", "suffix": "s"}, {"/prompt": "text", "/suffix": "text"}),
        ({"prompt": ["a", "b"]}, {"/prompt/0": "text", "/prompt/1": "text"}),
        ({"input": [1, 2, 3]}, {"/input": "opaque"}),
        ({"input": [[1, 2], [3]]}, {"/input": "opaque"}),
        ({"input": ["text"]}, {"/input/0": "text"}),
        ({"messages": [{"role": "user", "content": "x", "images": [PIXEL]}]},
         {"/messages/0/content": "text", "/messages/0/images/0": "media"}),
        ({"message": "m", "chat_history": [{"role": "CHATBOT", "message": "h"}], "preamble": "p", "documents": ["d"]},
         {"/message": "text", "/chat_history/0/message": "text", "/preamble": "system", "/documents/0": "document"}),
        ({"query": "q", "documents": [{"text": "d"}]}, {"/query": "text", "/documents/0": "document"}),
        ({"inputs": [{"role": "user", "content": "c"}]}, {"/inputs/0/content": "text"}),
    ],
)  # fmt: skip
def test_relatives_of_chat(body: dict[str, Any], blocks: dict[str, str]) -> None:
    native = {"images": Ollama(), "template": Ollama(), "chat_history": Cohere(), "document": Mistral()}
    messages = body.get("messages", [{}])[0]
    adapter = next((native[name] for name in native if name in body or name in messages), OpenAIChat())
    assert {place: entry[0] for place, entry in read(adapter, body).items() if place} == blocks


def test_responses_items() -> None:
    body = {
        "model": "gpt-x",
        "instructions": "i",
        "previous_response_id": "resp_1",
        "input": [
            {"role": "user", "content": "easy"},
            {"type": "message", "role": "developer", "content": [{"type": "input_text", "text": "d"}]},
            {"type": "message", "role": "user", "content": [
                {"type": "input_image", "image_url": "data:image/png;base64," + PIXEL},
                {"type": "input_image", "image_url": "https://x/y.png"},
                {"type": "input_file", "file_id": "file-1"},
                {"type": "input_file", "filename": "a.txt", "file_data": "data:text/plain;base64,aGk="},
            ]},
            {"type": "reasoning", "id": "rs", "summary": [{"type": "summary_text", "text": "hm"}], "encrypted_content": SEAL},
            {"type": "function_call", "call_id": "c", "name": "f", "arguments": '{"a": "b"}'},
            {"type": "function_call_output", "call_id": "c", "output": "out"},
            {"type": "custom_tool_call", "call_id": "c", "name": "g", "input": "free"},
            {"type": "compaction", "encrypted_content": SEAL},
            {"type": "item_reference", "id": "msg_1"},
            {"type": "additional_tools", "role": "developer", "tools": [
                {"type": "namespace", "name": "ns", "tools": [{"type": "function", "name": "t"}]}, {"type": "function", "name": "u"},
            ]},
            {"type": "future_item", "blob": "text"},
        ],
        "tools": [{"type": "mcp", "server_url": "https://m", "authorization": "Bearer x"}],
        "prompt": {"id": "p", "variables": {"who": "ann"}},
    }  # fmt: skip
    found = read(OpenAIResponses(), body)
    assert {place: entry[:2] for place, entry in found.items()} == {
        "/instructions": ("system", "system"),
        "/input/0/content": ("text", "user"),
        "/input/1/content/0": ("system", "system"),
        "/input/2/content/0": ("media", "user"),
        "/input/2/content/1": ("reference", "user"),
        "/input/2/content/2": ("reference", "user"),
        "/input/2/content/3": ("document", "user"),
        "/input/3": ("thinking", "assistant"),
        "/input/4": ("tool_call", "assistant"),
        "/input/5": ("tool_result", "tool"),
        "/input/6": ("tool_call", "assistant"),
        "/input/7": ("sealed", "assistant"),
        "/input/8": ("reference", "other"),
        "/input/9/tools/0/tools/0": ("tool_definition", "other"),
        "/input/9/tools/1": ("tool_definition", "other"),
        "/input/10": ("text", "user"),
        "/tools/0": ("tool_definition", "other"),
        "/prompt/variables": ("text", "user"),
        "": ("parameters", "other"),
    }
    assert found["/input/3"][2]["/summary/0/text"] == "thinking"
    assert found["/input/3"][2]["/encrypted_content"] == "sealed"
    assert found["/tools/0"][2]["/authorization"] == "structural"
    assert found[""][2]["/previous_response_id"] == "reference"


def test_responses_frames() -> None:
    frame = {
        "type": "response.create",
        "model": "gpt-x",
        "input": [{"type": "function_call_output", "call_id": "c", "output": "o"}],
    }
    assert list(read(OpenAIResponses(), frame)) == ["/input/0", ""]
    realtime = {"type": "session.update", "session": {"instructions": "i", "tools": [{"name": "t"}]}}
    assert list(read(OpenAIResponses(), realtime)) == ["/session/instructions", "/session/tools/0", ""]
    item = {
        "type": "conversation.item.create",
        "item": {"role": "user", "content": [{"type": "input_text", "text": "x"}]},
    }
    assert list(read(OpenAIResponses(), item)) == ["/item/content/0", ""]


def test_gemini_contents() -> None:
    inner = {
        "systemInstruction": {"parts": [{"text": "s"}]},
        "contents": [
            {"role": "user", "parts": [{"text": "hi"}, {"inlineData": {"mimeType": "image/png", "data": PIXEL}},
                                       {"inlineData": {"mimeType": "text/plain", "data": "aGk="}},
                                       {"fileData": {"fileUri": "gs://b/o"}}]},
            {"role": "model", "parts": [{"text": "hm", "thought": True},
                                        {"functionCall": {"id": "1", "name": "f", "args": {"p": "x"}}, "thoughtSignature": SEAL}]},
            {"role": "user", "parts": [{"functionResponse": {"name": "f", "response": {"output": "o"}}}]},
        ],
        "tools": [{"functionDeclarations": [{"name": "f", "description": "d"}]}, {"googleSearch": {}}],
        "cachedContent": "cachedContents/1",
    }  # fmt: skip
    expected = {
        "/systemInstruction/parts/0": ("system", "system"),
        "/contents/0/parts/0": ("text", "user"),
        "/contents/0/parts/1": ("media", "user"),
        "/contents/0/parts/2": ("media", "user"),
        "/contents/0/parts/3": ("reference", "user"),
        "/contents/1/parts/0": ("thinking", "assistant"),
        "/contents/1/parts/1": ("tool_call", "assistant"),
        "/contents/2/parts/0": ("tool_result", "tool"),
        "/tools/0/functionDeclarations/0": ("tool_definition", "other"),
        "/tools/1": ("tool_definition", "other"),
    }
    found = read(Gemini(), inner)
    assert {place: entry[:2] for place, entry in found.items() if place} == expected
    assert found["/contents/1/parts/1"][2] == {
        "/functionCall/id": "structural", "/functionCall/name": "structural", "/functionCall/args/p#": "name",
        "/functionCall/args/p": "text", "/thoughtSignature": "sealed",
    }  # fmt: skip
    assert found["/contents/0/parts/2"][2]["/inlineData/data"] == "encoded"
    assert found[""][2]["/cachedContent"] == "reference"
    wrapped = read(Gemini(), {"model": "m", "project": "p", "request": inner})
    assert {
        place.removeprefix("/request"): entry[:2] for place, entry in wrapped.items() if place
    } == expected
    assert (
        Gemini().destination("cloudcode-pa.googleapis.com", "/v1internal:generateContent", {"model": "m"})[1]
        == "m"
    )


def test_converse() -> None:
    body = {
        "system": [{"text": "s"}],
        "messages": [
            {"role": "user", "content": [{"text": "hi"}, {"image": {"format": "png", "source": {"bytes": PIXEL}}},
                                         {"document": {"format": "txt", "name": "n", "source": {"bytes": "aGk="}}},
                                         {"video": {"format": "mp4", "source": {"s3Location": {"uri": "s3://b/k"}}}}]},
            {"role": "assistant", "content": [
                {"reasoningContent": {"reasoningText": {"text": "hm", "signature": SEAL}}},
                {"toolUse": {"toolUseId": "t", "name": "f", "input": {"a": "b"}}}]},
            {"role": "user", "content": [{"toolResult": {"toolUseId": "t", "content": [{"json": {"k": "v"}}]}}]},
        ],
        "toolConfig": {"tools": [{"toolSpec": {"name": "f", "inputSchema": {"json": {"type": "object"}}}}]},
    }  # fmt: skip
    found = read(Bedrock(), body)
    assert {place: entry[:2] for place, entry in found.items() if place} == {
        "/system/0": ("system", "system"),
        "/messages/0/content/0": ("text", "user"),
        "/messages/0/content/1": ("media", "user"),
        "/messages/0/content/2": ("document", "user"),
        "/messages/0/content/3": ("reference", "user"),
        "/messages/1/content/0": ("thinking", "assistant"),
        "/messages/1/content/1": ("tool_call", "assistant"),
        "/messages/2/content/0": ("tool_result", "tool"),
        "/toolConfig/tools/0": ("tool_definition", "other"),
    }
    assert found["/messages/0/content/1"][2]["/image/source/bytes"] == "media"
    assert found["/messages/0/content/2"][2]["/document/source/bytes"] == "encoded"
    assert found["/messages/1/content/0"][2] == {
        "/reasoningContent/reasoningText/text": "thinking",
        "/reasoningContent/reasoningText/signature": "sealed",
    }


def test_invoke_with_the_body_of_an_anthropic_model() -> None:
    part = {"type": "thinking", "thinking": "hm", "signature": SEAL}
    body = {"anthropic_version": "bedrock-2023-05-31", "messages": [{"role": "assistant", "content": [part]}]}
    roles = read(Bedrock(), body)["/messages/0/content/0"][2]
    assert roles == {"/type": "structural", "/thinking": "thinking", "/signature": "sealed"}


def test_gemini_in_snake_case() -> None:
    body = {"contents": {"parts": {"text": "hi"}}, "system_instruction": {"parts": {"text": "s"}},
            "tools": [{"function_declarations": [{"name": "f"}]}]}  # fmt: skip
    assert {place: entry[0] for place, entry in read(Gemini(), body).items() if place} == {
        "/contents/parts": "text",
        "/system_instruction/parts": "system",
        "/tools/0/function_declarations/0": "tool_definition",
    }
