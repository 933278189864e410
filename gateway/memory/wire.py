"""Memory on the wire: requests that write to a provider's or a service's memory, and tools that keep or read memory.

A table of facts. What becomes of a write is decided by the guard and the policy; what is not in the table is not called
memory, and its content is still looked up and judged as any other.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import lru_cache
from typing import Any, Final

_WRITING: Final = frozenset({"POST", "PUT", "PATCH"})

# host pattern, path pattern (lower case, without query), memory type
_APIS: Final = tuple(
    (re.compile(host), re.compile(path), kind)
    for host, path, kind in (
        (r"api\.anthropic\.com", r"/v1/memory_stores/[^/]+/memories(?:/.*)?", "record"),
        (r"(?:[a-z0-9-]+\.)?api\.openai\.com", r"/v1/vector_stores(?:/[^/]+/(?:files|file_batches))?", "record"),
        (r"(?:[a-z0-9-]+\.)?api\.openai\.com", r"/v1/(?:files|uploads(?:/[^/]+/parts)?)", "record"),
        (r"(?:[a-z0-9-]+\.)?api\.openai\.com", r"/v1/conversations(?:/[^/]+/items)?", "record"),
        (r"api\.mem0\.ai", r"/v[0-9]+/memories(?:/.*)?", "note"),
        (r"api\.getzep\.com", r"/api/v[0-9]+/(?:sessions|threads|graph|users|memory)(?:[/-].*)?", "note"),
        (r"(?:api|app)\.letta\.com", r"/v1/(?:agents/[^/]+/(?:archival-memory|core-memory/.*)|blocks.*)", "note"),
    )
)  # fmt: skip

_TOOL: Final = re.compile(
    r"(?:.*(?:__|[./:]))?(?:memory|memories"
    r"|(?:add|create|save|store|write|update|delete|search|read|get|list|recall)_?(?:agent_?)?memor(?:y|ies)"
    r"|memor(?:y|ies)_?(?:add|create|save|store|write|update|delete|search|read|get|list|insert|replace|append|tool)"
    r"|archival_memory_(?:insert|search)|core_memory_(?:append|replace)|remember|recall)",
    re.IGNORECASE,
)
_SERVER: Final = re.compile(r"(?:mcp__)?[a-z0-9-]*memory[a-z0-9-]*(?:__|[./:]).+", re.IGNORECASE)
_WRITES: Final = re.compile(
    r"(?:^|[^a-z])(?:add|create|save|store|write|update|insert|replace|append|remember)(?:$|[^a-z])",
    re.IGNORECASE,
)
_COMMANDS: Final = frozenset(
    {"create", "str_replace", "insert", "rename", "add", "write", "append", "update"}
)
"""Commands of the Anthropic memory tool that change what is kept, and those of tools made after it."""


def written_by(method: str, host: str, path: str) -> str:
    """The type of memory that a request writes to; empty where it writes to none that is known here.

    `host` is in lower case, `path` normalised and without query.
    """
    if method.upper() not in _WRITING:
        return ""
    return next((kind for h, p, kind in _APIS if h.fullmatch(host) and p.fullmatch(path)), "")


@lru_cache(maxsize=4096)
def is_memory_tool(name: str) -> bool:
    """Whether a tool's name, after its server's where one is named, is one by which agents keep or read memory."""
    return _TOOL.fullmatch(name) is not None or _SERVER.fullmatch(name) is not None


def is_write(name: str, arguments: object) -> bool:
    """Whether a call of a memory tool writes: by its `command` where it has one, else by its name."""
    command = arguments.get("command") if isinstance(arguments, Mapping) else None
    if isinstance(command, str):
        return command in _COMMANDS
    tool = re.split(r"__|[./:]", name)[-1]
    return _WRITES.search(f" {tool} ") is not None


def arguments_of(value: Any) -> object:
    """The arguments of a tool call where they are an object; text is left to the reader of its leaves."""
    if not isinstance(value, Mapping):
        return None
    function = value.get("function") or value.get("functionCall")
    for holder in (value, function):
        if isinstance(holder, Mapping):
            for member in ("input", "arguments", "args"):
                if member in holder:
                    return holder[member]
    return None
