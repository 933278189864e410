"""Random credentials in hundreds of ways to write them down: languages, settings, commands, headers, logs, chats.

`vectors/detect/carriers*.json` hold the ways; `<value>` stands for the credential, `<snake>`, `<camel>` and the others for
its name in that style, and `admits` for which characters a value may have there. Values are drawn by a fixed seed: what is
tested is that a way of writing is read, whatever the credential is.
"""

from __future__ import annotations

import json
import random
import re
import string
from collections.abc import Callable
from pathlib import Path

import pytest

from gateway.context.findings import Category, ScanItem
from gateway.detect.engine import Engine, build

_VECTORS = Path(__file__).parents[2] / "vectors" / "detect"
CARRIERS = [
    carrier
    for name in ("carriers.json", "carriers_more.json", "carriers_plain.json")
    for carrier in json.loads((_VECTORS / name).read_text("utf-8"))
]
_ALNUM, _HEX = string.ascii_letters + string.digits, "0123456789abcdef"
_WORDS = [
    "harbor",
    "velvet",
    "copper",
    "lantern",
    "mango",
    "thistle",
    "quartz",
    "meadow",
    "falcon",
    "raven",
    "sorrel",
    "bison",
    "cobalt",
]
_ADMITS = {
    "token": re.compile(r"(?=.*\d)[A-Za-z0-9_-]{20,}"),
    "url": re.compile(r"[A-Za-z0-9_.~-]+"),
    "bare": re.compile(r"[A-Za-z0-9_@%+=:,./~^!*-]+"),
    "quoted": re.compile(r"[^\"\\$`]+"),
    "markup": re.compile(r"[^<>&\"]+"),
    "literal": re.compile(r"[^\"\\'`]+"),
}


def _text(rng: random.Random, alphabet: str, size: int) -> str:
    return "".join(rng.choice(alphabet) for _ in range(size))


CREDENTIALS: dict[str, tuple[tuple[str, ...], Callable[[random.Random], str]]] = {
    "hex key": (("api key", "encryption key", "master key"), lambda r: _text(r, _HEX, 32)),
    "base62 token": (("auth token", "refresh token", "api token"), lambda r: _text(r, _ALNUM, 40)),
    "base64url secret": (("client secret", "webhook secret"), lambda r: _text(r, _ALNUM + "-_", 43)),
    "lower secret": (("app secret", "session secret"), lambda r: _text(r, string.ascii_lowercase, 36)),
    "strong password": (
        ("db password", "admin password", "smtp password"),
        lambda r: f"{r.choice(_WORDS).capitalize()}!{r.choice(_WORDS)}{r.randint(100, 9999)}",
    ),
    "passphrase": (("db password", "root password"), lambda r: "-".join(r.sample(_WORDS, 4))),
}
_LEAST_FOUND = 0.97  # of all credentials of a kind


@pytest.fixture(scope="module")
def engine() -> Engine:
    return build()


def _written(carrier: dict[str, str], name: str, value: str) -> str:
    words = name.split()
    styles = {
        "snake": "_".join(words),
        "kebab": "-".join(words),
        "upper": "_".join(words).upper(),
        "camel": words[0] + "".join(map(str.capitalize, words[1:])),
        "pascal": "".join(map(str.capitalize, words)),
        "dotted": ".".join(words),
        "header": "-".join(map(str.capitalize, words)),
        "words": name,
    }
    text = carrier["text"]
    for style, written in styles.items():
        text = text.replace(f"<{style}>", written)
    return text.replace("<value>", value)


@pytest.mark.parametrize("kind", CREDENTIALS)
def test_a_credential_is_found_however_it_is_written(engine: Engine, kind: str) -> None:
    rng = random.Random(kind)
    names, draw = CREDENTIALS[kind]
    cases: list[tuple[str, str, str]] = []
    for carrier in CARRIERS:
        value = draw(rng)
        if _ADMITS[carrier["admits"]].fullmatch(value):
            cases.append((carrier["name"], value, _written(carrier, rng.choice(names), value)))
    results = engine.scan([ScanItem(text, "", "tool") for _, _, text in cases])
    missed = []
    for (name, value, text), result in zip(cases, results, strict=True):
        at = text.index(value)
        spans = [(f.start, f.end) for f in result.findings if f.category is Category.SECRET]
        if not any(start <= at and end >= at + len(value) for start, end in spans):
            missed.append(name)
    assert len(missed) <= (1 - _LEAST_FOUND) * len(cases), missed


@pytest.mark.parametrize(
    "value",
    ["${API_KEY}", "$(pass show app/key)", "<your-api-key>", "changeme", "xxxxxxxxxxxxxxxx", "process.env.API_KEY",
     "vault:secret/data/app#key", "your-key-goes-here", "must-not-be-empty", "REDACTED"],
)  # fmt: skip
def test_what_stands_for_a_credential_is_found_nowhere(engine: Engine, value: str) -> None:
    texts = [_written(carrier, "api key", value) for carrier in CARRIERS]
    results = engine.scan([ScanItem(text, "", "tool") for text in texts])
    found = [
        carrier["name"]
        for carrier, result in zip(CARRIERS, results, strict=True)
        if any(f.category is Category.SECRET for f in result.findings)
    ]
    assert found == []
