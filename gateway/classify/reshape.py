"""Another text in the place of an object's own, in the shape that the wire format asks for.

What the dialect itself defines stays (types, ids, names of tools); all else goes. A result of a tool stays a result
of that tool, so that calls and results still match; a picture becomes a text part.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from gateway.context.objects import Block, Json, ObjectKind, WalkRules

RESHAPED: Final = frozenset(
    {
        ObjectKind.SYSTEM,
        ObjectKind.TEXT,
        ObjectKind.TOOL_CALL,
        ObjectKind.TOOL_RESULT,
        ObjectKind.MEDIA,
        ObjectKind.DOCUMENT,
        ObjectKind.MEMORY,
    }
)
"""Kinds of objects that can have another text in their place."""

_PARTS: Final = frozenset({"content", "parts", "output"})
_WHOLE: Final = frozenset({ObjectKind.MEDIA, ObjectKind.DOCUMENT})
WITHHELD: Final = "withheld"
"""The member that holds the text where the wire format wants a JSON object, such as a call's arguments."""

type Rewrite = Callable[[str], str]


class _CannotBeError(Exception):
    """The object has no place for a text."""


def reshaped(block: Block, rules: WalkRules, rewrite: Rewrite) -> Json:
    """The block's value with every text of its own rewritten; None where its shape leaves no place for one."""
    if block.kind not in RESHAPED or block.holes or not isinstance(block.value, str | dict | list):
        return None
    if block.kind in _WHOLE and isinstance(block.value, dict):
        return _part(block.value, rewrite(""))
    try:
        made: Json = _Reshape(rules, rewrite).value(block.value, "content")
    except _CannotBeError:
        return None
    return made


class _Reshape:
    def __init__(self, rules: WalkRules, rewrite: Rewrite) -> None:
        self._rules = rules
        self._rewrite = rewrite

    def value(self, value: Any, name: str) -> Any:
        rules = self._rules
        if name in rules.free_form:
            return self.free(value)
        if isinstance(value, str):
            if name in rules.structural or name in rules.sealed:
                return value
            if name in rules.media or name in rules.references or name in rules.thinking:
                raise _CannotBeError
            return self._rewrite(value)
        if isinstance(value, list):
            text = self._rewrite(_text(value))
            return [_part(value[0], text) if value and isinstance(value[0], dict) else text]
        if isinstance(value, dict):
            return {key: self.value(inner, key) for key, inner in value.items() if self._stays(key, inner)}
        return value

    def _stays(self, key: str, inner: Any) -> bool:
        """Members that the dialect knows; a list that is no list of parts (citations, log probabilities) goes."""
        rules = self._rules
        if isinstance(inner, list) and key not in _PARTS and key not in rules.free_form:
            return False
        return key in rules.known_names or any(
            key in names for names in (rules.structural, rules.sealed, rules.media, rules.free_form)
        )

    def free(self, value: Any) -> Any:
        """The caller's own JSON: arguments and results of tools, as an object, a list or as JSON text."""
        if isinstance(value, str):
            held = _object(value)
            return self._rewrite(value) if held is None else json.dumps({WITHHELD: self._rewrite(value)})
        if isinstance(value, dict | list):
            text = self._rewrite(json.dumps(value, ensure_ascii=False))
            return {WITHHELD: text} if isinstance(value, dict) else [text]
        return None if value is None else self._rewrite(json.dumps(value))


def _object(text: str) -> Any:
    try:
        value = json.loads(text) if text.lstrip()[:1] == "{" else None
    except ValueError:
        return None
    return value


def _text(parts: Sequence[Any]) -> str:
    """What the parts of a list say, one after another."""
    said = [p if isinstance(p, str) else p.get("text") if isinstance(p, Mapping) else None for p in parts]
    return "\n".join(text for text in said if isinstance(text, str))


def _part(like: Mapping[str, Any], text: str) -> Json:
    """A text part where another part stood."""
    kind = like.get("type")
    if not isinstance(kind, str):
        return {"text": text}
    return {"type": "input_text" if kind.startswith("input_") else "text", "text": text}
