"""JSON as text: strict reading, and where each value stands in the bytes that were sent.

Everything here works on RFC 8259 texts with the standard library's C scanner, so that reading costs
microseconds a kilobyte and a value that nobody edits is never written again.
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Iterator, Sequence
from itertools import chain
from json.decoder import scanstring  # type: ignore[attr-defined]  # the C scanner, not in the stubs
from typing import Any, Final, override

import orjson

from gateway.context.objects import Json, Limits, Path
from gateway.errors import BodyError

# Possessive, so that a string that never ends is given up after one pass over it.
_STRING: Final = re.compile(r'"[^"\\]*+(?:\\.[^"\\]*+)*+"', re.DOTALL)
_WHOLE: Final = re.compile(r'(?:[^"]++|"[^"\\]*+(?:\\.[^"\\]*+)*+")*+', re.DOTALL)
_COUNTED: Final = (
    1 << 18
)  # characters that are counted at once: no expression holds other threads up for longer
_EMPTY: Final = re.compile(r"\[[ \t\r\n]*\]|\{[ \t\r\n]*\}")
_SPACE: Final = re.compile(r"[ \t\r\n]*")
_ESCAPE: Final = re.compile(
    r"\\(?:u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}|u[0-9a-fA-F]{4}|.)", re.DOTALL
)
_EXACT_FLOAT: Final = 16  # characters: 15 digits and a point, which a double tells apart


class LongFloat(float):
    """A number whose literal says more than a double holds; `raw` is the literal."""

    __slots__ = ("raw",)
    raw: str

    def __new__(cls, raw: str) -> LongFloat:
        """Read the literal as a double and keep it."""
        number = super().__new__(cls, raw)
        number.raw = raw
        return number

    @override
    def __repr__(self) -> str:
        return self.raw

    @override
    def __reduce__(self) -> tuple[type[LongFloat], tuple[str]]:
        return LongFloat, (self.raw,)


def _float(raw: str) -> float:
    return float(raw) if len(raw) <= _EXACT_FLOAT and "e" not in raw and "E" not in raw else LongFloat(raw)


def _members(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    members = dict(pairs)
    if len(members) != len(pairs):
        raise BodyError("body.duplicate_member")
    return members


def _constant(_: str) -> None:
    raise BodyError("body.malformed")  # NaN and the infinities are JavaScript, not JSON


_strict: Final = json.JSONDecoder(
    object_pairs_hook=_members, parse_float=_float, parse_constant=_constant
).decode
_skip: Final = json.JSONDecoder().scan_once  # type: ignore[attr-defined]  # value and end at an offset, in C


def decode(data: bytes) -> str:
    """The text of a JSON body: strict UTF-8 (RFC 8259 §8.1) without a mark; or BodyError body.not_utf8."""
    try:
        return str(data, "utf-8")
    except UnicodeDecodeError:
        pass  # raised below, so that the error does not hold on to the body
    raise BodyError("body.not_utf8")


def parse(data: bytes, limits: Limits) -> Json:
    """Read a body strictly.

    Lone surrogate escapes survive (agents cut text inside an emoji). Raises BodyError with one of
    body.not_utf8, body.malformed, body.duplicate_member, body.too_deep, body.too_many_nodes, and nothing
    else.
    """
    return parse_text(decode(data), limits)


def parse_text(text: str, limits: Limits) -> Json:
    """Read one JSON text strictly, as `parse` does."""
    # a value takes two characters at least, so that only long texts can hold too many
    most = limits.max_nodes
    if len(text) // 2 >= most and _most(text) >= most and _nodes(text) > most:
        raise BodyError("body.too_many_nodes")
    code = "body.malformed"
    try:
        value: Json = _strict(text)
    except RecursionError:
        code = "body.too_deep"
    except ValueError:  # bad syntax, or an integer of more digits than the interpreter converts
        pass
    else:
        if _deeper(value, limits.max_depth):
            raise BodyError("body.too_deep")
        return value
    raise BodyError(code)


def _nodes(text: str) -> int:
    """How many values a JSON text holds, counted without building them; at least those before a string without end."""
    total, at, open_ = 1, 0, ""
    while at < len(text):
        whole = _WHOLE.match(text, at, at + _COUNTED)
        end = at if whole is None else whole.end()
        if end == at:  # here begins a string that is longer than what is counted at once
            long = _STRING.match(text, at)
            if long is None:
                break
            bare, end = open_ + "0", long.end()
        else:
            bare = open_ + _STRING.sub("0", text[at:end])
        bare = bare.rstrip(" \t\r\n")
        open_ = (
            bare[-1:] if bare.endswith(("[", "{")) else ""
        )  # it may be empty: that is seen in what follows
        total += _opened(bare[: len(bare) - len(open_)])
        at = end
    return total + len(open_)


def _opened(bare: str) -> int:
    return _most(bare) - len(_EMPTY.findall(bare))


def _most(text: str) -> int:
    """Every comma and bracket, also those in strings: never fewer than the values after the first."""
    return text.count(",") + text.count("[") + text.count("{")


def _deeper(value: Json, depth: int) -> bool:
    level: list[Any] = [value] if isinstance(value, (dict, list)) else []
    for _ in range(depth):
        if not level:
            return False
        children = chain.from_iterable(c.values() if type(c) is dict else c for c in level)
        level = [c for c in children if type(c) is dict or type(c) is list]
    return bool(level)


def _rare(value: object) -> Any:
    if isinstance(value, LongFloat):
        return ["number", value.raw]
    raise TypeError


def _without_long(value: Json) -> Json:
    if isinstance(value, dict):
        return {name: _without_long(member) for name, member in value.items()}
    if isinstance(value, list):
        return [_without_long(element) for element in value]
    return ["number", value.raw] if isinstance(value, LongFloat) else value


def canonical(value: Json) -> bytes:
    """Sorted, compact bytes of a value, for digests only: equal values give equal bytes.

    Numbers that a double cannot hold count by their literal. Lone surrogates are written as UTF-8 would
    write them.
    """
    try:
        return orjson.dumps(value, _rare, orjson.OPT_SORT_KEYS)
    except (TypeError, orjson.JSONEncodeError):
        # lone surrogates and integers beyond 64 bits: rare, and the standard library takes them
        text = json.dumps(_without_long(value), sort_keys=True, ensure_ascii=False, separators=(",", ":"))
        return text.encode("utf-8", "surrogatepass")


# -- where values stand --------------------------------------------------------------------------------------

type _Trie = dict[str | int | None, Any]  # token -> deeper trie; None -> the path that ends here
type _Span = tuple[int, int]


def locate(text: str, paths: Collection[Path]) -> dict[Path, _Span]:
    """Half-open character spans of the raw values (quotes included) at those of `paths` that are there.

    `text` must have been read by `parse`. One pass; siblings are skipped in C. Recurses once a path token.
    """
    return {path: (start, end) for path, _, start, end in _places(text, paths)}


def locate_names(text: str, paths: Collection[Path]) -> dict[Path, _Span]:
    """Half-open spans of the member-name tokens that end the paths; array elements have none."""
    return {path: name for path, name, _, _ in _places(text, paths) if name is not None}


def _places(text: str, paths: Collection[Path]) -> list[tuple[Path, _Span | None, int, int]]:
    trie: _Trie = {}
    for path in paths:
        node = trie
        for token in path:
            node = node.setdefault(token, {})
        node[None] = path
    search = _Search(text, len(set(paths)))
    if search.left:
        search.value(search.space(0), trie, None)
    return search.found


class _Search:
    """One pass over a text; `left` counts paths still to be found: at zero nothing more is read."""

    def __init__(self, text: str, left: int) -> None:
        self.text = text
        self.left = left
        self.found: list[tuple[Path, _Span | None, int, int]] = []

    def space(self, at: int) -> int:
        match = _SPACE.match(self.text, at)
        return at if match is None else match.end()

    def value(self, at: int, node: _Trie, name: _Span | None) -> int:
        """Visit the value that begins at `at`; gives its end."""
        opener = self.text[at]
        if opener == "{" and len(node) > (None in node):
            end = self.members(at, node)
        elif opener == "[" and len(node) > (None in node):
            end = self.elements(at, node)
        else:
            end = self.skip(at)
        if None in node and end >= 0:
            self.found.append((node[None], name, at, end))
            self.left -= 1
        return end

    def skip(self, at: int) -> int:
        end: int = scanstring(self.text, at + 1)[1] if self.text[at] == '"' else _skip(self.text, at)[1]
        return end

    def members(self, at: int, node: _Trie) -> int:
        text = self.text
        at = self.space(at + 1)
        while text[at] != "}":
            if text[at] == ",":
                at = self.space(at + 1)
            name, end = scanstring(text, at + 1)
            value = self.space(self.space(end) + 1)
            child = node.get(name)
            at = self.skip(value) if child is None else self.value(value, child, (at, end))
            if not self.left and None not in node:
                return at
            at = self.space(at)
        return at + 1

    def elements(self, at: int, node: _Trie) -> int:
        text = self.text
        at = self.space(at + 1)
        index = 0
        while text[at] != "]":
            if text[at] == ",":
                at = self.space(at + 1)
            child = node.get(index)
            at = self.skip(at) if child is None else self.value(at, child, None)
            if not self.left and None not in node:
                return at
            at = self.space(at)
            index += 1
        return at + 1


def raw_offsets(raw: str, offsets: Sequence[int]) -> list[int]:
    """Offsets in a raw JSON string token (quotes included) of ascending offsets in the text it holds.

    An escape is one character, an escaped surrogate pair is one character. Raises ValueError outside the
    text.
    """
    if "\\" not in raw:
        mapped = [offset + 1 for offset in offsets]
        if mapped and not 1 <= mapped[0] <= mapped[-1] <= len(raw) - 1:
            raise ValueError("offset outside the string")
        return mapped
    return list(_through_escapes(raw, offsets))


def _through_escapes(raw: str, offsets: Sequence[int]) -> Iterator[int]:
    escapes = _ESCAPE.finditer(raw)
    escape = next(escapes, None)
    shift = 1  # raw offset minus text offset, before the next escape
    previous = 0
    for offset in offsets:
        if offset < previous:
            raise ValueError("offsets must ascend from zero")
        while escape is not None and offset + shift > escape.start():
            shift += escape.end() - escape.start() - 1
            escape = next(escapes, None)
        if offset + shift > len(raw) - 1:
            raise ValueError("offset outside the string")
        yield offset + shift
        previous = offset


def raw_span(raw: str, start: int, end: int) -> _Span:
    """The raw offsets of the text offsets `start..end`, as `raw_offsets` maps them."""
    first, last = raw_offsets(raw, (start, end))
    return first, last


def quote(text: str) -> str:
    """A JSON string token for `text`; escapes everything beyond ASCII only where UTF-8 cannot hold it."""
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:
        return json.dumps(text)
    return json.dumps(text, ensure_ascii=False)
