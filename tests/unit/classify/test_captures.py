"""Every recorded request, evaluated: what holds nothing leaves as it came, and a secret planted anywhere never leaves.

The captures lie beside the checkout; without them these tests are skipped. `make test` plants in every eleventh place,
the slow form in each.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path as File
from typing import Any
from urllib.parse import urlsplit

import pytest

from gateway.classify.objects import ScanCache
from gateway.context import encoding
from gateway.context.objects import Json, Limits, ObjectKind, Path
from gateway.errors import BodyError
from gateway.providers import registry
from tests.support.evaluation import ADAPTERS, Session, texts_of
from tests.unit.providers.test_dialects import PIXEL
from tests.unit.providers.test_sweep import is_json, places, put

HERE = File(__file__).parents[2]
CAPTURES = sorted((HERE.parents[1] / "shared" / "data" / "captures").glob("*.json"))
EXPECTED = HERE / "vectors" / "captures.json"
TOKEN = "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"
CODINGS = ((), ("gzip",), ("deflate",), ("br",), ("zstd",), ("gzip", "br"))
pytestmark = pytest.mark.skipif(not CAPTURES, reason="the captures do not lie beside this checkout")


def captured() -> Iterator[tuple[str, str, str, Any]]:
    """(file, host, target, body) of every capture that has a JSON body."""
    for file in CAPTURES:
        capture = json.loads(file.read_text())
        if isinstance(capture["body"], (dict, list)):
            url = urlsplit(capture["url"])
            # the pictures in the captures are only the beginnings of one
            body = json.loads(
                re.sub(r'"iVBORw[A-Za-z0-9+/=]*"', json.dumps(PIXEL), json.dumps(capture["body"]))
            )
            yield file.stem, url.netloc, capture["url"].partition(url.netloc)[2], body


def plants(body: Json) -> Iterator[tuple[str, Path, Json, int]]:
    """(what, place, a body with the secret there, characters that stood there)."""
    for path, value in places(body):
        if isinstance(value, str):
            yield "string", path, put(body, path, f"see {TOKEN} there"), len(value)
            for _, at, inner, size in plants(json.loads(value)) if is_json(value) else ():
                yield "nested", (*path, *at), put(body, path, json.dumps(inner)), size
        elif isinstance(value, dict):
            for name in value:
                renamed = {(f"x {TOKEN}" if n == name else n): v for n, v in value.items()}
                yield "name", (*path, name), put(body, path, renamed), len(name)
        elif isinstance(value, (int, float)) and not isinstance(value, bool):
            yield "number", path, put(body, path, TOKEN), len(str(value))


def is_content(host: str, target: str, body: Json, path: Path) -> bool:
    """Whether a place lies in a part that somebody said or a tool gave, not in names, options and definitions."""
    blocks = registry.find(ADAPTERS, host, target.partition("?")[0]).blocks(body)
    fixed = {ObjectKind.PARAMETERS, ObjectKind.TOOL_DEFINITION}
    return any(b.path and path[: len(b.path)] == b.path and b.kind not in fixed for b in blocks)


def sweep(step: int) -> tuple[int, Counter[str], Counter[str]]:
    """(plants, characters of content strings that can be rewritten or must be refused, places refused in them)."""
    cache, number = ScanCache(), 0
    characters: Counter[str] = Counter()
    refused: Counter[str] = Counter()
    for name, host, target, body in captured():
        for what, path, planted, size in plants(body):
            number += 1
            if number % step:
                continue
            codings = CODINGS[number // step % len(CODINGS)]
            sent = encoding.encode(json.dumps(planted, ensure_ascii=number % 2 == 0).encode(), codings)
            decoded = encoding.decode(sent, ", ".join(codings), Limits())
            content = what in {"string", "nested"} and is_content(host, target, body, path)
            try:
                result = Session(cache=cache).send(decoded.body, host=host, target=target).body
            except BodyError:
                result = None
            if result is not None:
                assert TOKEN not in "\n".join(texts_of(result)), (name, path)
                assert TOKEN.encode() not in result, (name, path)
            if content:
                characters["refused" if result is None else "rewritten"] += size
                if result is None:
                    refused["/".join("*" if isinstance(t, int) else t for t in path[-2:])] += 1
    return number // step, characters, refused


def test_recorded_bodies_are_what_they_are_known_to_be() -> None:
    """Golden: dialect, and objects by kind; a change here is a change of what the gateway sees."""
    seen = {}
    for name, host, target, body in captured():
        data = json.dumps(body).encode()
        result = Session().send(data, host=host, target=target)
        kinds = Counter(str(item.block.kind) for item in result.objects)
        adapter = registry.find(ADAPTERS, host, target.partition("?")[0])
        seen[name] = {"dialect": adapter.id, "kinds": dict(sorted(kinds.items()))}
        assert result.body == data, name
    assert seen == json.loads(EXPECTED.read_text())


def test_a_planted_secret_never_leaves() -> None:
    number, characters, _ = sweep(11)
    assert number > 500
    assert characters["rewritten"] > 0


@pytest.mark.slow
def test_a_secret_planted_anywhere_never_leaves() -> None:
    """And of what is said to models, measured in characters, less than a tenth must be refused: ids, types and roles."""
    number, characters, refused = sweep(1)
    assert number > 6000
    assert characters["refused"] < 0.1 * characters.total(), characters
    fixed = {name.rpartition("/")[2] for name in refused}
    assert fixed <= {
        "type", "role", "id", "name", "call_id", "tool_use_id",
        "scope", "ttl", "media_type", "mimeType", "mime_type", "data", "thoughtSignature",
    }, fixed  # fmt: skip
