"""Which blocks are memory: notes that an agent keeps for itself, or is given, from session to session.

Recognised by the forms that agents use, near the beginning of a block: a heading or an element that says so, the notes
files that are put into a prompt, and what memory tools are told and give back. Everything else keeps its kind; a
miss costs the name in the evidence and the stricter rule for recall, not the look-up of whose the text is.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any, Final

from gateway.classify.objects import ContextObject
from gateway.context.objects import Block, ObjectKind
from gateway.memory.wire import is_memory_tool

_HEAD: Final = 600  # characters of a text in which it must say so
_MARKS: Final = re.compile(
    r"^[ ]{0,3}#{1,4} ?(?:\w+ ){0,3}memor(?:y|ies)\b"
    r"|<(?:[a-z_-]{0,20}memor(?:y|ies)|claude_?md)\b[^>\n]{0,80}>"
    r"|^[ ]{0,3}#{1,4} ?(?:claudemd\b|(?:claude|agents|gemini|memory)\.md\b)"
    r"|\bcontents of \S{1,300}(?:claude|agents|gemini|memory)(?:\.local)?\.md\b",
    re.MULTILINE,
)
_WRITTEN: Final = frozenset(
    {ObjectKind.TEXT, ObjectKind.PARAMETERS, ObjectKind.FORM_PART, ObjectKind.DOCUMENT, ObjectKind.MEMORY}
)
KEPT_PURPOSES: Final = frozenset({"assistants", "user_data"})
"""Purposes for which OpenAI keeps a file so that models read it again; batches, training data and pictures are none."""
_CANDIDATES: Final = frozenset(
    {ObjectKind.TEXT, ObjectKind.SYSTEM, ObjectKind.TOOL_RESULT, ObjectKind.DOCUMENT}
)


def with_memory(blocks: Sequence[Block]) -> list[Block]:
    """The blocks, those that are memory by that kind."""
    calls = _memory_calls(blocks)
    return [replace(b, kind=ObjectKind.MEMORY) if _is_memory(b, calls) else b for b in blocks]


def remember(objects: Iterable[ContextObject], memory: str) -> None:
    """Mark what a request writes to a memory of this type; a file that is sent for something else is none."""
    objects = list(objects)
    purposes = _purposes(objects)
    if purposes and not purposes & KEPT_PURPOSES:
        return
    for item in objects:
        if item.block.kind in _WRITTEN:
            item.block, item.remembers = replace(item.block, kind=ObjectKind.MEMORY), memory


def _purposes(objects: Iterable[ContextObject]) -> set[str]:
    """What the fields of a form say that its file is for."""
    parts = (item for item in objects if item.block.kind is ObjectKind.FORM_PART)
    leaves = (leaf for item in parts for leaf in item.leaves or ())
    return {leaf.text.strip() for leaf in leaves if leaf.name == "purpose"}


def _is_memory(block: Block, calls: set[str]) -> bool:
    if block.kind is ObjectKind.TOOL_RESULT and calls and call_id(block.value) in calls:
        return True
    if block.kind is ObjectKind.TOOL_CALL:
        return is_memory_tool(tool_name(block.value))
    return block.kind in _CANDIDATES and any(_says_so(text) for text in _texts(block.value))


def _says_so(text: str) -> bool:
    head = text[:_HEAD].lower()
    return ("memor" in head or "claude" in head or ".md" in head) and _MARKS.search(head) is not None


def _texts(value: Any) -> Iterable[str]:
    """The texts of a block where dialects have them: itself, its `text` or `content`, or those of its parts."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for name in ("text", "content", "output"):
            inner = value.get(name)
            if isinstance(inner, str):
                yield inner
            elif isinstance(inner, list):
                for part in inner[:8]:
                    text = part.get("text") if isinstance(part, dict) else part
                    if isinstance(text, str):
                        yield text


def _memory_calls(blocks: Sequence[Block]) -> set[str]:
    """The ids of calls of memory tools, by which their results are known."""
    return {
        call_id(block.value)
        for block in blocks
        if block.kind is ObjectKind.TOOL_CALL and is_memory_tool(tool_name(block.value))
    } - {""}


def tool_name(value: Any) -> str:
    """The name of the tool that a call names, after its server where one is named."""
    if not isinstance(value, dict):
        return ""
    function = value.get("function") if isinstance(value.get("function"), dict) else value.get("functionCall")
    name = value.get("name") or (function.get("name") if isinstance(function, dict) else None)
    server = value.get("server_name") or value.get("server_label") or ""
    if not isinstance(name, str) or not isinstance(server, str):
        return ""
    return f"{server}__{name}" if server else name


def call_id(value: Any) -> str:
    """The id of a tool call, or of the call that a result belongs to; empty where the block holds none."""
    if isinstance(value, dict):
        for member in ("tool_use_id", "tool_call_id", "call_id", "id"):
            found = value.get(member)
            if isinstance(found, str):
                return found
    return ""
