"""Which blocks are memory, which of them are writes, and what the guard makes of these."""

from __future__ import annotations

from typing import Any

import pytest

from gateway.classify.belonging import Asker
from gateway.classify.memory import remember, with_memory
from gateway.classify.objects import Claim, ContextObject, Scanned, chain, make
from gateway.classify.remembering import guard_writes, put_aside, writes
from gateway.context.objects import Block, Channel, Leaf, LeafRole, ObjectKind
from gateway.memory.wire import is_memory_tool, is_write, written_by
from gateway.providers.anthropic import AnthropicMessages
from gateway.providers.openai_responses import OpenAIResponses

NOW = "2026-05-03T09:43:12Z"


def kinds(body: dict[str, Any], adapter: Any = None) -> list[str]:
    return [str(b.kind) for b in with_memory((adapter or AnthropicMessages()).blocks(body))]


@pytest.mark.parametrize(
    "text",
    [
        "## Memory\n- ask Ann",
        "# Auto memory\nnotes",
        "<memory>\nask Ann\n</memory>",
        "<user_memories>ask Ann</user_memories>",
        "<system-reminder>\nAs you answer, you can use:\n# claudeMd\nContents of /srv/a/CLAUDE.md (project):\nx",
        "# AGENTS.md instructions for /srv/a\n\n<INSTRUCTIONS>\nrun make",
    ],
)
def test_forms_that_agents_use(text: str) -> None:
    assert kinds({"messages": [{"role": "user", "content": text}]}) == ["memory", "parameters"]
    assert kinds({"system": [{"type": "text", "text": text}], "messages": []})[0] == "memory"
    item = {"type": "message", "role": "developer", "content": [{"type": "input_text", "text": text}]}
    assert kinds({"input": [item]}, OpenAIResponses())[0] == "memory"


@pytest.mark.parametrize(
    "text",
    [
        "How much memory does it need?",
        "Read CLAUDE.md please",
        "def memory(): pass",
        "# Memories of a traveller" + " " * 3,
        "x" * 700 + "\n## Memory\n",
    ],
)
def test_talk_about_memory_is_no_memory(text: str) -> None:
    expected = "memory" if text.startswith("# Memories") else "text"  # a heading is taken at its word
    assert kinds({"messages": [{"role": "user", "content": text}]})[0] == expected


def call(name: str, arguments: dict[str, Any], result: str = "done") -> dict[str, Any]:
    use = {"type": "tool_use", "id": "t1", "name": name, "input": arguments}
    back = {"type": "tool_result", "tool_use_id": "t1", "content": result}
    return {"messages": [{"role": "assistant", "content": [use]}, {"role": "user", "content": [back]}]}


@pytest.mark.parametrize(
    ("name", "arguments", "writes_"),
    [
        ("memory", {"command": "view", "path": "/memories"}, False),
        ("memory", {"command": "create", "path": "/memories/a", "file_text": "x"}, True),
        ("memory", {"command": "str_replace", "path": "/memories/a"}, True),
        ("memory", {"command": "insert", "path": "/memories/a"}, True),
        ("memory", {"command": "delete", "path": "/memories/a"}, False),
        ("mcp__memory__create_entities", {"entities": []}, True),
        ("mcp__memory__add_observations", {"observations": []}, True),
        ("mcp__memory__search_nodes", {"query": "x"}, False),
        ("mcp__openmemory__add_memories", {"text": "x"}, True),
        ("archival_memory_insert", {"content": "x"}, True),
        ("save_memory", {"fact": "x"}, True),
        ("search_memories", {"query": "x"}, False),
    ],
)
def test_memory_tools_and_what_they_give_back(name: str, arguments: dict[str, Any], writes_: bool) -> None:
    body = call(name, arguments)
    assert kinds(body) == ["memory", "memory", "parameters"]
    first = make(with_memory(AnthropicMessages().blocks(body))[0])
    assert writes(first) is writes_
    assert is_write(name, arguments) is writes_


@pytest.mark.parametrize(
    "name", ["Read", "memoryless", "get_memory_usage", "Bash", "mcp__github__create_issue"]
)
def test_other_tools_are_none(name: str) -> None:
    assert not is_memory_tool(name)
    assert kinds(call(name, {})) == ["tool_call", "tool_result", "parameters"]


@pytest.mark.parametrize(
    ("method", "host", "path", "kind"),
    [
        ("POST", "api.anthropic.com", "/v1/memory_stores/ms_1/memories", "record"),
        ("GET", "api.anthropic.com", "/v1/memory_stores/ms_1/memories", ""),
        ("POST", "api.anthropic.com", "/v1/messages", ""),
        ("POST", "api.openai.com", "/v1/vector_stores", "record"),
        ("POST", "api.openai.com", "/v1/vector_stores/vs_1/files", "record"),
        ("POST", "eu.api.openai.com", "/v1/files", "record"),
        ("POST", "api.openai.com", "/v1/conversations/c_1/items", "record"),
        ("POST", "api.openai.com", "/v1/responses", ""),
        ("POST", "api.mem0.ai", "/v1/memories", "note"),
        ("POST", "api.getzep.com", "/api/v2/threads/t1/messages", "note"),
        ("PATCH", "api.letta.com", "/v1/blocks/b1", "note"),
        ("POST", "evil.test", "/v1/memories", ""),
    ],
)
def test_requests_that_write_to_memory(method: str, host: str, path: str, kind: str) -> None:
    assert written_by(method, host, path) == kind


def written(
    claims: tuple[Claim, ...] = (), provenance: str = "", channel: Channel = Channel.OTHER
) -> ContextObject:
    item = make(Block((), ObjectKind.PARAMETERS, channel, {"content": "The navbar lives in src/nav.tsx"}))
    remember([item], "record")
    item.leaves, item.fresh = [Leaf(("content",), "The navbar lives in src/nav.tsx", LeafRole.TEXT)], True
    item.scanned = Scanned(claims=claims, provenance=provenance)
    return item


def claim(project: str, evidence: str = "fingerprint") -> Claim:
    return Claim(0, LeafRole.TEXT, project, evidence, 900, ((0, 5),))


@pytest.mark.parametrize(
    ("project", "claims", "provenance", "expected"),
    [
        ("acme", (), "", []),
        ("acme", (claim("acme"),), "own", []),
        ("default", (), "", ["memory_unsure"]),
        ("acme", (claim("kestrel"),), "foreign", ["memory_ambiguous"]),
        ("acme", (claim("kestrel", "path"),), "foreign", ["memory_ambiguous"]),
        ("acme", (claim("kestrel"),), "linked", []),
    ],
)
def test_the_guard_of_a_write(
    project: str, claims: tuple[Claim, ...], provenance: str, expected: list[str]
) -> None:
    item = written(claims, provenance)
    for _ in range(2):  # the same answer for what is remembered
        guard_writes([item], Asker(project, 1, NOW), lambda i: i.leaves or [])
        assert [f.type for f in item.scanned.findings] == expected
    aside = put_aside([item], project)
    assert [a.text for a in aside] == ["The navbar lives in src/nav.tsx"] * len(expected)
    assert "navbar" not in repr(aside)


def test_nothing_is_guarded_where_projects_are_not_told_apart() -> None:
    item = written()
    guard_writes([item], Asker("default", 0, NOW), lambda i: i.leaves or [])
    assert item.scanned.findings == ()


def test_notes_in_a_prompt_do_not_make_the_conversation() -> None:
    body = {
        "system": [{"type": "text", "text": "## Memory\n- today"}],
        "messages": [{"role": "user", "content": "Hello."}, {"role": "user", "content": "## Memory\n- x"}],
    }
    objects = [make(b) for b in with_memory(AnthropicMessages().blocks(body))]
    indexes, _ = chain(objects)
    assert [objects[i].block.path for i in indexes] == [
        ("messages", 0, "content"),
        ("messages", 1, "content"),
    ]
