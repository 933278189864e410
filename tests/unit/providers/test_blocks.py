"""Blocks of every dialect: recorded bodies give known blocks, and any JSON at all is covered exactly once."""

import json
from pathlib import Path as File
from typing import Any
from urllib.parse import urlsplit

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gateway.classify.restore import at_path
from gateway.context import jsontext, pointer, splice, walk
from gateway.context.findings import Edit
from gateway.context.objects import Block, Json, LeafRole, Limits, ObjectKind, Path
from gateway.ports import ProviderAdapter
from gateway.providers import base, registry

HERE = File(__file__).parents[2]
VECTORS = sorted((HERE / "vectors" / "providers").glob("*-*.json"))
CAPTURES = sorted((HERE.parents[1] / "shared" / "data" / "captures").glob("*-*.json"))
ADAPTERS = registry.builtin()
LIMITS = Limits()


def leaf_paths(value: Json, at: Path = ()) -> list[Path]:
    items = (
        value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else None
    )
    return [at] if items is None else [p for token, child in items for p in leaf_paths(child, (*at, token))]


def covering(blocks: list[Block], path: Path) -> list[Block]:
    def inside(block: Block) -> bool:
        size = len(block.path)
        return path[:size] == block.path and not any(path[size:][: len(hole)] == hole for hole in block.holes)

    return [block for block in blocks if inside(block)]


def is_nothing(body: Json, path: Path) -> bool:
    is_role = path[-1] == "role" and base.text_at(body, *path) in base.ROLES
    return is_role or at_path(body, path) == ""


def check(adapter: ProviderAdapter, body: Json) -> list[Block]:
    blocks = adapter.blocks(body)
    assert blocks[-1].kind is ObjectKind.PARAMETERS
    assert blocks[-1].path == ()
    assert [b for b in blocks[:-1] if b.kind is ObjectKind.PARAMETERS] == []
    for path in leaf_paths(body):
        found = len(covering(blocks, path))
        # The role of a message of which nothing else is left stands in its blocks' channels; an empty text is nothing.
        assert found == 1 or (found == 0 and is_nothing(body, path)), pointer.to_pointer(path)
    for block in blocks:
        walk.leaves(block, adapter.rules, LIMITS)
    return blocks


@pytest.mark.parametrize("file", VECTORS, ids=lambda file: file.stem)
def test_recorded_bodies(file: File) -> None:
    vector = json.loads(file.read_text())
    url = urlsplit(vector["url"])
    adapter = registry.find(ADAPTERS, url.netloc, vector["url"].partition(url.netloc)[2])
    blocks = check(adapter, vector["body"])
    assert [[pointer.to_pointer(b.path), b.kind, b.channel] for b in blocks] == vector["blocks"]
    assert adapter.id == vector["dialect"]
    assert adapter.destination(url.netloc, url.path, vector["body"]) == (vector["provider"], vector["model"])


@pytest.mark.skipif(not CAPTURES, reason="the captures do not lie beside this checkout")
def test_all_captures_are_covered_and_every_leaf_can_be_edited_alone() -> None:
    for file in CAPTURES:
        capture = json.loads(file.read_text())
        body = capture["body"]
        if not isinstance(body, (dict, list)):
            continue
        url = urlsplit(capture["url"])
        adapter = registry.find(ADAPTERS, url.netloc, url.path)
        text = json.dumps(body)
        edits = [
            (leaf, block.path, (Edit(0, len(leaf.text), "[gone]"),))
            for block in check(adapter, body)
            for leaf in walk.leaves(block, adapter.rules, LIMITS)
            if leaf.role is LeafRole.TEXT
        ]
        result = splice.apply(text, edits)
        again = adapter.blocks(jsontext.parse_text(result, LIMITS))
        texts = [x for b in again for x in walk.leaves(b, adapter.rules, LIMITS) if x.role is LeafRole.TEXT]
        assert {x.text for x in texts} <= {"[gone]"}, file.name
        assert len(texts) == len(edits)


WORDS = sorted(
    {name for adapter in ADAPTERS for name in walk.known_names(adapter.rules)}
    & {
        "messages", "content", "role", "type", "text", "tools", "input", "system", "contents", "parts", "source", "data",
        "tool_calls", "function", "arguments", "request", "requests", "image_url", "url", "file", "signature", "thinking",
        "instructions", "item", "items", "session", "response", "prompt", "params", "functionCall", "inlineData", "documents",
    }
)  # fmt: skip
TYPES = [
    "text",
    "tool_use",
    "tool_result",
    "thinking",
    "image",
    "message",
    "function_call",
    "reasoning",
    "namespace",
    "user",
]
BODIES = st.recursive(
    st.one_of(
        st.none(),
        st.integers(),
        st.floats(),
        st.booleans(),
        st.sampled_from([*TYPES, "", "data:x;base64,AA=="]),
    ),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from([*WORDS, "zz"]), inner, max_size=4)
    ),
    max_leaves=25,
)


@pytest.mark.parametrize("adapter", ADAPTERS, ids=lambda adapter: adapter.id)
@given(body=BODIES)
@settings(max_examples=150)
def test_any_json_is_covered_and_nothing_raises(adapter: ProviderAdapter, body: Any) -> None:
    check(adapter, body)
    adapter.read_event("", body)
    adapter.read_event(
        "message", {"type": "content_block_delta", "delta": body, "choices": body, "candidates": body}
    )
    adapter.destination("api.example.org", "/v1/x", body)


def plain_prompt(adapter: ProviderAdapter, body: Json) -> set[tuple[str, str, str]]:
    return {(pointer.to_pointer(b.path), b.kind, b.channel) for b in adapter.blocks(body)[:-1]}


def test_unknown_parts_are_text_and_keep_their_names() -> None:
    body = {
        "messages": [
            {"role": "user", "content": [{"type": "some_future_block", "payload": {"a": ["needle"]}}]}
        ]
    }
    block = registry.find(ADAPTERS, "api.anthropic.com", "/v1/messages").blocks(body)[0]
    leaves = walk.leaves(block, ADAPTERS[0].rules, LIMITS)
    assert [(x.text, x.role) for x in leaves] == [
        ("some_future_block", LeafRole.STRUCTURAL),
        ("payload", LeafRole.STRUCTURAL_NAME),
        ("a", LeafRole.STRUCTURAL_NAME),
        ("needle", LeafRole.TEXT),
    ]


def test_documents_in_order_of_the_body() -> None:
    body = {"tools": [{"name": "t"}], "messages": [{"role": "user", "content": "hi"}], "system": "s"}
    blocks = ADAPTERS[0].blocks(body)
    assert [b.path for b in blocks] == [("tools", 0), ("messages", 0, "content"), ("system",), ()]
    assert plain_prompt(ADAPTERS[0], body) == {
        ("/tools/0", "tool_definition", "other"),
        ("/messages/0/content", "text", "user"),
        ("/system", "system", "system"),
    }
