"""Every recorded request, evaluated: what holds nothing leaves as it came, and a secret planted anywhere never leaves.

The captures lie beside the checkout; without them these tests are skipped. `make test` plants in every eleventh place,
`make test-captures` in each, under each coding.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path as File
from typing import Any
from urllib.parse import urlsplit

import pytest

from gateway.classify.objects import ScanCache
from gateway.context import encoding
from gateway.context.objects import Json, Limits, ObjectKind, Path
from gateway.detect.engine import build
from gateway.errors import BodyError
from gateway.providers import registry
from tests.support.evaluation import ADAPTERS, Session, texts_of
from tests.unit.providers.test_dialects import PIXEL
from tests.unit.providers.test_sweep import is_json, places, put

HERE = File(__file__).parents[2]
CAPTURES = sorted((HERE.parents[1] / "shared" / "data" / "captures").glob("*.json"))
EXPECTED = HERE / "vectors" / "captures.json"
DETECTOR = build()
TOKEN = "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"
REFUSED = json.loads((HERE / "vectors" / "refused.json").read_text())
"""Names of the places whose values are refused and never rewritten; docs/coverage.md lists them."""
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


@dataclass
class Swept:
    """What became of the plants: how many, characters of content by fate, and the names of places that were refused."""

    number: int = 0
    characters: Counter[str] = field(default_factory=Counter)
    refused: Counter[str] = field(default_factory=Counter)


def sweep(step: int) -> Swept:
    """Plant in every `step`th place; with a step of 1 each plant is sent in each coding, else in one of them."""
    cache, swept = ScanCache(), Swept()
    number = 0
    for name, host, target, body in captured():
        for what, path, planted, size in plants(body):
            number += 1
            if number % step:
                continue
            data = json.dumps(planted, ensure_ascii=number % 2 == 0).encode()
            for codings in CODINGS if step == 1 else (CODINGS[number // step % len(CODINGS)],):
                assert decoded(data, codings) == data, (name, path, codings)
            try:
                result = Session(cache=cache).send(data, host=host, target=target).body
            except BodyError:
                result = None
            if result is not None:
                assert TOKEN not in "\n".join(texts_of(result)), (name, path)
                assert TOKEN.encode() not in result, (name, path)
            swept.number += 1
            if what in {"string", "nested"} and is_content(host, target, body, path):
                swept.characters["refused" if result is None else "rewritten"] += size
            if result is None and what != "name":
                swept.refused[label(path)] += 1
    return swept


def decoded(data: bytes, codings: tuple[str, ...]) -> bytes:
    """A body as it is read after it came in these codings, declared, and undeclared where they can be known."""
    sent = encoding.encode(data, codings)
    if codings and "br" not in codings:
        assert encoding.decode(sent, "", Limits()).codings == codings
    return encoding.decode(sent, ", ".join(codings), Limits()).body


def label(path: Path) -> str:
    """The nearest member name of a place, with `[]` for the elements of its array."""
    name = next((t for t in reversed(path) if isinstance(t, str)), "")
    return f"{name}[]" if isinstance(path[-1], int) else name


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
    swept = sweep(11)
    assert swept.number > 500
    assert swept.characters["rewritten"] > 0
    assert set(swept.refused) <= set(REFUSED)


@pytest.mark.slow
def test_a_secret_planted_anywhere_never_leaves() -> None:
    """And of what is said to models, measured in characters, less than a tenth must be refused: ids, types and roles."""
    swept = sweep(1)
    assert swept.number > 6000
    assert swept.characters["refused"] < 0.1 * swept.characters.total(), swept.characters
    assert sorted(swept.refused) == REFUSED


@pytest.mark.parametrize("file", CAPTURES, ids=lambda file: file.stem)
def test_what_surrounds_a_recorded_request_is_no_reason_to_refuse_it(file: File) -> None:
    """Its own target and headers: upgrades and requests without a body too."""
    capture = json.loads(file.read_text())
    url = urlsplit(capture["url"])
    headers = [(name.encode(), value.encode()) for name, value in capture.get("headers", ())]
    result = Session(detector=DETECTOR).send(
        b"", host=url.netloc, target=capture["url"].partition(url.netloc)[2], headers=headers, content_type=""
    )
    assert result.body == b"", result.reason_codes
