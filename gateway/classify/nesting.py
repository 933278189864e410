"""How deep in nested JSON strings a place in a text lies, so that a value put there is escaped as often."""

from __future__ import annotations

import json

_MAX_DEPTH = 4


def escaped(value: str, depth: int) -> str:
    """A value as it is written inside `depth` nested JSON strings."""
    for _ in range(depth):
        value = json.dumps(value, ensure_ascii=False)[1:-1]
    return value


def opens_json(text: str) -> bool:
    """Whether a text begins as a JSON object or array does."""
    return text.lstrip()[:1] in ("{", "[")


def escape_depth(prefix: str, *, declared: bool = True) -> int:
    """How many nested JSON strings are open at the end of a piece of JSON text; at most four are looked at.

    A string counts as JSON itself when it begins with a brace or bracket and is JSON up to its end. `declared`: the
    outermost text is known to be JSON, also where the model made a mistake in it.
    """
    depth = 0
    while depth < _MAX_DEPTH:
        start = _open_string(prefix)
        if start < 0 and declared and not depth:
            start = _open_quote(prefix)
        if start < 0:
            break
        depth += 1
        prefix = _decoded(prefix[start:])
        if not opens_json(prefix):
            break
    return depth


def _open_string(text: str) -> int:
    """Where the content of a string begins that is open at the end of strict JSON; -1 where none is."""
    try:
        json.loads(text, strict=False)
    except json.JSONDecodeError as error:
        return error.pos + 1 if error.msg.startswith("Unterminated string") else -1
    except (ValueError, RecursionError):
        return -1
    return -1


def _open_quote(text: str) -> int:
    """The same by counting quotes, for JSON with mistakes in it."""
    at, start = 0, -1
    while (at := text.find('"', at)) >= 0:
        if start < 0:
            start = at + 1
        else:
            back = at - 1
            while back >= start and text[back] == "\\":
                back -= 1
            if (at - back) % 2 == 1:  # an even number of backslashes: the quote closes the string
                start = -1
        at += 1
    return start


def _decoded(raw: str) -> str:
    """The text of an unfinished JSON string; an escape that is cut at the end is left out."""
    for cut in range(7):
        try:
            return str(json.loads(f'"{raw[: len(raw) - cut]}"', strict=False))
        except ValueError:
            continue
    return ""
