"""Which of OpenAI's encodings the token ids of a request are in, by its model (as OpenAI's tiktoken maps them)."""

from __future__ import annotations

import re
from typing import Any, Final

_ENCODINGS: Final = tuple(
    (re.compile(pattern), name)
    for pattern, name in (
        (r"text-embedding-(?:3-(?:small|large)|ada-002)", "cl100k_base"),
        (r"(?:davinci|babbage)-002|gpt-3\.5-turbo(?:-.*)?|gpt-35-turbo(?:-.*)?", "cl100k_base"),
        (r"gpt-4(?:-(?:\d{4}|turbo|32k|vision)(?:-.*)?)?", "cl100k_base"),
        (r"(?:chat)?gpt-(?:4o|4\.\d|5|5\.\d+|6)(?:-.*)?|o[134](?:-.*)?", "o200k_base"),
    )
)

ENCODINGS: Final = frozenset(name for _, name in _ENCODINGS)
"""The names that `encoding_of` can give."""


def encoding_of(model: str) -> str:
    """The encoding's name; empty where it is not known. A provider's prefix (`openai/`) is left out."""
    bare = model.rpartition("/")[2].lower()
    return next((name for pattern, name in _ENCODINGS if pattern.fullmatch(bare)), "")


def lists_of(value: Any) -> list[list[int]] | None:
    """The lists of token ids in the value of an input: one, or one of them each element; None for anything else."""
    if not isinstance(value, list) or not value:
        return None
    lists = value if isinstance(value[0], list) else [value]
    whole = all(isinstance(ids, list) and all(type(i) is int for i in ids) for ids in lists)
    return lists if whole else None
