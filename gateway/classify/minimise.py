"""The minimisers that are shipped: each takes parts out of a text and leaves a mark that a model understands.

head_tail     the first and last lines (`head_lines`, `tail_lines`), and the ends of very long lines (`line_chars`)
match_lines   lines that match `pattern` (RE2), with `before` and `after` lines around them
drop_fields   values of the JSON members named in `fields` (comma separated), at any depth; NDJSON line by line
deduplicate   runs of at least `min_lines` lines that stood in an earlier message already

They only ever remove: what several of them leave is what each of them would leave.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

import re2

from gateway.context import jsontext
from gateway.context.findings import Edit
from gateway.context.objects import Limits, Path
from gateway.errors import BodyError, PolicyError

_MAX_NUMBER: Final = 1_000_000
_LIMITS: Final = Limits()
_FIELD_MARK: Final = '"[cut by the egress gateway]"'


def mark(count: int, what: str = "line") -> str:
    """What stands in the place of what was cut."""
    return f"[{count} {what}{'' if count == 1 else 's'} cut by the egress gateway]"


def _numbers(parameters: Mapping[str, str], defaults: Mapping[str, int], *others: str) -> dict[str, int]:
    """The whole-number parameters with their defaults; PolicyError for a name or number that is none."""
    for name, value in parameters.items():
        if name in others:
            continue
        if name not in defaults:
            known = ", ".join((*defaults, *others))
            raise PolicyError("policy.invalid", f"parameter {name!r} is none of {known}")
        if not (value.isascii() and value.isdigit()) or int(value[:8]) > _MAX_NUMBER:
            raise PolicyError(
                "policy.invalid", f"parameter {name!r} must be a whole number up to {_MAX_NUMBER}"
            )
    return {name: int(parameters.get(name, default)) for name, default in defaults.items()}


def _lines(text: str) -> list[tuple[int, int]]:
    """Half-open spans of the lines, each with its line feed."""
    spans, start = [], 0
    while start < len(text):
        end = text.find("\n", start) + 1 or len(text)
        spans.append((start, end))
        start = end
    return spans


def _cut(text: str, spans: Sequence[tuple[int, int]], first: int, last: int) -> Edit:
    """Take out the lines `first` up to and without `last`; the line feed of the last one stays."""
    start, end = spans[first][0], spans[last - 1][1]
    tail = "\n" if text[end - 1] == "\n" else ""
    return Edit(start, end, mark(last - first) + tail)


class HeadTail:
    """Keep the head and the tail."""

    id = "head_tail"
    version = "1"
    defaults: Final = {"head_lines": 100, "tail_lines": 100, "line_chars": 4000}

    def check(self, parameters: Mapping[str, str]) -> None:
        """See ports.Minimiser."""
        _numbers(parameters, self.defaults)

    def cuts(self, text: str, earlier: Sequence[str], parameters: Mapping[str, str]) -> Sequence[Edit]:
        """See ports.Minimiser."""
        given = _numbers(parameters, self.defaults)
        spans = _lines(text)
        head, tail = given["head_lines"], max(len(spans) - given["tail_lines"], given["head_lines"])
        kept = [*spans[:head], *spans[tail:]]
        found = [_cut(text, spans, head, tail)] if tail > head and head < len(spans) else []
        return sorted([*found, *_long(kept, given["line_chars"])], key=lambda edit: edit.start)


def _long(spans: Sequence[tuple[int, int]], limit: int) -> Iterator[Edit]:
    """The middles of lines that are longer than the limit."""
    for start, end in spans:
        if end - start > limit:
            first, last = start + limit // 2, end - limit // 2
            yield Edit(first, last, mark(last - first, "character"))


class MatchLines:
    """Keep lines that match, and what stands around them."""

    id = "match_lines"
    version = "1"
    defaults: Final = {"before": 2, "after": 2}

    def check(self, parameters: Mapping[str, str]) -> None:
        """See ports.Minimiser."""
        _numbers(parameters, self.defaults, "pattern")
        self._pattern(parameters)

    def _pattern(self, parameters: Mapping[str, str]) -> Any:
        try:
            return re2.compile(parameters["pattern"])
        except KeyError:
            raise PolicyError("policy.invalid", "match_lines needs the parameter 'pattern'") from None
        except re2.error:
            raise PolicyError("policy.invalid", "parameter 'pattern' is no RE2 expression") from None

    def cuts(self, text: str, earlier: Sequence[str], parameters: Mapping[str, str]) -> Sequence[Edit]:
        """See ports.Minimiser."""
        given, pattern = _numbers(parameters, self.defaults, "pattern"), self._pattern(parameters)
        spans = _lines(text)
        kept: set[int] = set()
        for number, (start, end) in enumerate(spans):
            if pattern.search(text[start:end]):
                kept.update(range(number - given["before"], number + given["after"] + 1))
        return [_cut(text, spans, first, last) for first, last in _gaps(kept, len(spans))]


def _gaps(kept: set[int], count: int) -> Iterator[tuple[int, int]]:
    """Runs of numbers below `count` that are not kept."""
    start = 0
    for number in (*sorted(n for n in kept if 0 <= n < count), count):
        if number > start:
            yield start, number
        start = number + 1


class DropFields:
    """Drop the values of named JSON members. A text that is no JSON is cut whole: nothing could be told apart in it."""

    id = "drop_fields"
    version = "1"

    def check(self, parameters: Mapping[str, str]) -> None:
        """See ports.Minimiser."""
        _numbers(parameters, {}, "fields")
        if not self._fields(parameters):
            raise PolicyError("policy.invalid", "drop_fields needs the parameter 'fields'")

    @staticmethod
    def _fields(parameters: Mapping[str, str]) -> frozenset[str]:
        return frozenset(name.strip() for name in parameters.get("fields", "").split(",") if name.strip())

    def cuts(self, text: str, earlier: Sequence[str], parameters: Mapping[str, str]) -> Sequence[Edit]:
        """See ports.Minimiser."""
        fields = self._fields(parameters)
        whole = _dropped(text, 0, fields)
        if whole is not None:
            return whole
        found: list[Edit] = []
        for start, end in _lines(text):
            if text[start:end].strip():
                line = _dropped(text[start:end], start, fields)
                if line is None:
                    return [Edit(0, len(text), mark(len(text), "character"))]
                found += line
        return found


def _dropped(text: str, offset: int, fields: frozenset[str]) -> list[Edit] | None:
    """The cuts of one JSON text that begins at `offset`; None where it is no JSON container."""
    if text.lstrip()[:1] not in {"{", "["}:
        return None
    try:
        value = jsontext.parse_text(text, _LIMITS)
    except BodyError:
        return None
    places = jsontext.locate(text, list(_named(value, fields)))
    return [Edit(offset + a, offset + b, _FIELD_MARK) for a, b in sorted(places.values())]


def _named(value: Any, fields: frozenset[str]) -> Iterator[Path]:
    """Paths of the outermost members that are called so."""
    stack: list[tuple[Path, Any]] = [((), value)]
    while stack:
        path, node = stack.pop()
        members = node.items() if isinstance(node, dict) else enumerate(node)
        for token, inner in members:
            if isinstance(token, str) and token in fields:
                yield (*path, token)
            elif isinstance(inner, dict | list):
                stack.append(((*path, token), inner))


class Deduplicate:
    """Cut what the model has been given in an earlier message."""

    id = "deduplicate"
    version = "1"
    defaults: Final = {"min_lines": 8}

    def check(self, parameters: Mapping[str, str]) -> None:
        """See ports.Minimiser."""
        _numbers(parameters, self.defaults)

    def cuts(self, text: str, earlier: Sequence[str], parameters: Mapping[str, str]) -> Sequence[Edit]:
        """See ports.Minimiser."""
        size = max(_numbers(parameters, self.defaults)["min_lines"], 1)
        known = {window for other in earlier for window in _windows(other, size)}
        repeated: set[int] = set()
        for number, window in enumerate(_windows(text, size)):
            if window in known:
                repeated.update(range(number, number + size))
        spans = _lines(text)
        rest = set(range(len(spans))) - repeated
        return [_cut(text, spans, first, last) for first, last in _gaps(rest, len(spans))]


def _windows(text: str, size: int) -> Iterator[str]:
    """Every run of `size` lines, without white space at their ends."""
    lines = [text[start:end].rstrip() for start, end in _lines(text)]
    for number in range(len(lines) - size + 1):
        yield "\n".join(lines[number : number + size])
