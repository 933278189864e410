"""How many bytes of a body were not looked at: never fewer than there are.

What is opaque stands in JSON texts, and a text can be written in more than one way. Sealed values and media are ASCII
without escapes in practice, and then the count is exact; where somebody writes them otherwise, it is an upper bound.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Sequence
from typing import Final

from gateway.classify.objects import ContextObject
from gateway.context.objects import Leaf, ObjectKind

_ESCAPED_ASCII: Final = re.compile(rb"\\u00[2-7]")
_PERCENT: Final = 2  # bytes that `%xx` takes more than the byte itself
_UNICODE: Final = 5  # bytes that `\u00xx` takes more than the character itself


def written(leaf: Leaf) -> int:
    """Bytes that a leaf's text takes in its body, with every escape that JSON demands or writers commonly use."""
    text = leaf.text
    for _ in range(1 if leaf.outer is None else 2):  # a document inside a text is escaped twice
        text = json.dumps(text)[1:-1]
    return len(text)


def opaque_bytes(objects: Sequence[ContextObject], size: int, escapes: Callable[[], int]) -> int:
    """Bytes of a body of `size` that nothing looked into; `escapes` counts as `needless_escapes`, if there are any."""
    around = (ObjectKind.TARGET, ObjectKind.HEADER)
    found = sum(item.scanned.opaque_bytes for item in objects if item.block.kind not in around)
    return min(size, found + escapes()) if found else 0


def needless_escapes(body: bytes, *, form: bool = False) -> int:
    r"""Bytes that escapes take which `written` does not count: `\/`, and ASCII as `\u00xx`; in a form `%xx`."""
    if form:
        return _PERCENT * body.count(b"%")
    unicode = len(_ESCAPED_ASCII.findall(body)) if b"\\u00" in body else 0
    return body.count(b"\\/") + _UNICODE * unicode
