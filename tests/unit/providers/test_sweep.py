"""A canary planted at each place of each body in turn is read, and can be cut out again wherever it may be edited.

Places: every string, every member name, every number, and strings and names inside strings that hold JSON.
"""

import copy
import json
from collections.abc import Iterator
from pathlib import Path as File
from typing import Any
from urllib.parse import urlsplit

import pytest

from gateway.context import jsontext, media, splice, walk
from gateway.context.findings import Edit
from gateway.context.objects import Json, LeafRole, Limits, Path
from gateway.ports import ProviderAdapter
from gateway.providers import registry
from tests.unit.providers.test_blocks import CAPTURES, VECTORS
from tests.unit.providers.test_dialects import PIXEL, SEAL

CANARY = "ghp_c4n4ryc4n4ryc4n4ryc4n4ryc4n4ry00"
NUMBER = 4000731592846002
EDITABLE = {LeafRole.TEXT, LeafRole.NAME, LeafRole.NUMBER, LeafRole.ENCODED}
UNREAD = {LeafRole.SEALED, LeafRole.MEDIA}
LIMITS = Limits()
ADAPTERS = registry.builtin()

BODIES: list[tuple[str, dict[str, Any]]] = [
    (
        "https://api.anthropic.com/v1/messages",
        {
            "model": "m", "max_tokens": 1, "system": "s", "metadata": {"user_id": "u"}, "stop_sequences": ["x"],
            "mcp_servers": [{"type": "url", "url": "https://m", "name": "n", "authorization_token": "t"}],
            "messages": [
                {"role": "user", "content": [
                    {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": PIXEL}},
                    {"type": "document", "title": "t", "context": "c",
                     "source": {"type": "base64", "media_type": "text/plain", "data": "aGVsbG8gd29ybGQ="}},
                    {"type": "search_result", "source": "https://s", "title": "t", "content": [{"type": "text", "text": "x"}]},
                ]},
                {"role": "assistant", "content": [
                    {"type": "thinking", "thinking": "h", "signature": SEAL}, {"type": "redacted_thinking", "data": SEAL},
                    {"type": "tool_use", "id": "i", "name": "n", "input": {"a": {"b": ["c", 1, None, '{"d": ["e"]}']}}},
                ]},
                {"role": "user", "content": [
                    {"type": "tool_result", "tool_use_id": "i", "is_error": False, "content": '[{"k": "v", "n": 1}]'},
                    {"type": "future", "payload": {"deep": {"er": "x"}}},
                ]},
            ],
        },
    ),
    (
        "https://api.openai.com/v1/chat/completions",
        {
            "model": "m", "user": "u", "metadata": {"k": "v"}, "stop": ["x"], "new_option": {"a": "b"},
            "messages": [
                {"role": "user", "name": "n", "content": [{"type": "image_url", "image_url": {"url": "https://x", "detail": "low"}}]},
                {"role": "assistant", "content": None, "tool_calls": [
                    {"id": "i", "type": "function", "function": {"name": "f", "arguments": '{"a": {"b": "c"}}'}}]},
                {"role": "tool", "tool_call_id": "i", "content": "r"},
            ],
            "tools": [{"type": "function", "function": {"name": "f", "description": "d", "parameters": {
                "type": "object", "properties": {"p": {"type": "string", "enum": ["e"], "default": "z"}}, "required": ["p"]}}}],
        },
    ),
    (
        "https://api.openai.com/v1/responses",
        {
            "model": "m", "instructions": "i", "previous_response_id": "p", "prompt_cache_key": "c",
            "input": [
                {"role": "user", "content": [{"type": "input_file", "filename": "f", "file_data": "data:text/plain;base64,aGk="}]},
                {"type": "reasoning", "id": "r", "summary": [{"type": "summary_text", "text": "s"}], "encrypted_content": SEAL},
                {"type": "local_shell_call", "call_id": "c", "action": {"type": "exec", "command": ["a"], "env": {"K": "v"}}},
                {"type": "custom_tool_call_output", "call_id": "c", "output": "o"},
            ],
            "tools": [{"type": "mcp", "server_label": "l", "server_url": "u", "headers": {"H": "v"}}],
        },
    ),
    (
        "https://generativelanguage.googleapis.com/v1beta/models/m:generateContent",
        {
            "contents": [
                {"role": "user", "parts": [{"text": "t"}, {"inlineData": {"mimeType": "text/plain", "data": "aGVsbG8="}}]},
                {"role": "model", "parts": [{"functionCall": {"name": "n", "args": {"a": "b"}}, "thoughtSignature": SEAL}]},
                {"role": "user", "parts": [{"functionResponse": {"name": "n", "response": {"output": "o", "n": 1}}}]},
            ],
            "systemInstruction": {"parts": [{"text": "s"}]}, "labels": {"k": "v"}, "cachedContent": "c",
            "tools": [{"functionDeclarations": [{"name": "n", "description": "d", "parameters": {"type": "OBJECT"}}]}],
        },
    ),
]  # fmt: skip


def planted(body: Json) -> Iterator[tuple[Path, Json]]:
    """Copies of a body, each with the canary at one more place; the place is for the message of a failure."""
    for path, value in places(body):
        if isinstance(value, str):
            yield path, put(body, path, f"see {CANARY} there")
            yield path, put(body, path, CANARY)
            if is_json(value):
                yield from (
                    (path, put(body, path, json.dumps(inner))) for _, inner in planted(json.loads(value))
                )
        elif isinstance(value, dict):
            for name in value:
                renamed = {(CANARY if n == name else n): v for n, v in value.items()}
                yield (*path, name), put(body, path, renamed)
        elif isinstance(value, (int, float)) and not isinstance(value, bool):
            yield path, put(body, path, NUMBER)


def is_json(text: str) -> bool:
    if text[:1] not in {"{", "["}:
        return False
    try:
        json.loads(text)
    except ValueError:
        return False  # long values of the captures are trimmed
    return True


def places(value: Json, at: Path = ()) -> Iterator[tuple[Path, Json]]:
    yield at, value
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for token, child in items:
        yield from places(child, (*at, token))


def put(body: Json, path: Path, value: Json) -> Any:
    if not path:
        return value
    changed = copy.deepcopy(body)
    parent: Any = changed
    for token in path[:-1]:
        parent = parent[token]
    parent[path[-1]] = value
    return changed


def sweep(adapter: ProviderAdapter, body: Json) -> tuple[int, int]:
    """(places read, places that may also be edited); asserts that nothing is missed or left behind."""
    seen = edited = 0
    for path, copy_of in planted(body):
        needle = CANARY if CANARY in json.dumps(copy_of) else str(NUMBER)
        hits = [
            (leaf, block)
            for block in adapter.blocks(copy_of)
            for leaf in walk.leaves(block, adapter.rules, LIMITS)
            if needle in leaf.text
        ]
        assert hits, path
        # what a call proves itself with is no finding
        own = path[-1:] and path[-1] in adapter.rules.credentials
        also_read = {
            leaf.path for leaf, _ in hits if leaf.role not in UNREAD
        }  # short files, and the words of others
        unread = [leaf for leaf, _ in hits if leaf.role in UNREAD and not own and leaf.path not in also_read]
        assert all(leaf.role is LeafRole.MEDIA and media.check(leaf.mime, leaf.text) for leaf in unread), path
        seen += 1
        if all(leaf.role in EDITABLE for leaf, _ in hits):
            edits = []
            for leaf, block in hits:
                at = leaf.text.index(needle)
                edits.append((leaf, block.path, (Edit(at, at + len(needle), "[X]"),)))
            result = splice.apply(json.dumps(copy_of), edits)
            jsontext.parse_text(result, LIMITS)
            assert needle not in result, path
            edited += 1
    return seen, edited


@pytest.mark.parametrize(
    ("url", "body"), BODIES, ids=lambda x: urlsplit(x).netloc if isinstance(x, str) else ""
)
def test_constructed_bodies(url: str, body: Json) -> None:
    parts = urlsplit(url)
    adapter = registry.find(ADAPTERS, parts.netloc, parts.path)
    assert adapter.id != "generic"
    seen, edited = sweep(adapter, body)
    assert seen > 50
    assert edited > 10


@pytest.mark.parametrize("file", VECTORS, ids=lambda file: file.stem)
def test_recorded_bodies(file: File) -> None:
    vector = json.loads(file.read_text())
    parts = urlsplit(vector["url"])
    sweep(registry.find(ADAPTERS, parts.netloc, parts.path), vector["body"])


@pytest.mark.skipif(not CAPTURES, reason="the captures do not lie beside this checkout")
def test_small_captures() -> None:
    seen = 0
    for file in CAPTURES:
        capture = json.loads(file.read_text())
        if isinstance(capture["body"], (dict, list)) and file.stat().st_size < 3000:
            parts = urlsplit(capture["url"])
            seen += sweep(registry.find(ADAPTERS, parts.netloc, parts.path), capture["body"])[0]
    assert seen > 500
