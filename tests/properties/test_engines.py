"""Both pattern engines against `re`: every trigger of every rule at every alignment, and the whole detector on texts.

`re` is the meaning of an expression; Hyperscan and google-re2 must find the same places. Where `../shared` is there, the
detector is compared on its corpus too.
"""

from __future__ import annotations

import json
import random
import re
from collections.abc import Iterator, Sequence
from functools import cache
from pathlib import Path

import pytest

from gateway.context.findings import ScanItem
from gateway.detect.data import document
from gateway.detect.engine import Engine, build
from gateway.detect.matcher import HyperscanMatcher, Matcher, Re2Matcher, Trigger

CORPUS = Path(__file__).parents[3] / "shared" / "data" / "corpus"
SEED = 20261130


@cache
def engines() -> tuple[Engine, Engine]:
    return build(engine="hyperscan"), build(engine="re2")


def padded() -> Iterator[bytes]:
    """Every example of every rule after random bytes of every length from 0 to 64, in many pieces."""
    rng = random.Random(SEED)
    for row in engines()[0].types():
        example = row.example.encode("latin-1", "replace")[:400]
        yield b" ".join(
            rng.randbytes(size).replace(b"\n", b" ") + example for size in rng.sample(range(65), 3)
        )


def ends(trigger: Trigger, data: bytes) -> set[int]:
    """Where `re` says that a trigger of fixed length ends."""
    pattern = re.compile(trigger.expression.encode("latin-1"), re.IGNORECASE if trigger.caseless else 0)
    found, at = set(), 0
    while (match := pattern.search(data, at)) is not None:
        found.add(match.end())
        at = match.start() + 1
    return found


@pytest.mark.parametrize("kind", [HyperscanMatcher, Re2Matcher])
def test_every_trigger_of_every_rule_means_what_re_means(kind: type[Matcher]) -> None:
    data = b"\n".join(padded())
    compared = 0
    for plan, _ in engines()[0].databases:
        fixed = [trigger for trigger in plan.triggers if trigger.length]
        if not fixed:
            continue  # views: only some end of a match is asked for
        text = data.translate(_SHAPES) if plan.shape else data
        hits: dict[int, set[int]] = {}
        for number, end in kind(fixed).scan(text):  # type: ignore[call-arg]
            hits.setdefault(number, set()).add(end)
        for number, trigger in enumerate(fixed):
            assert hits.get(number, set()) == ends(trigger, text), trigger.expression
            compared += 1
    assert compared > 1000


_SHAPES = bytes(
    48 if 48 <= c <= 57 else 65 if 65 <= c <= 90 else 97 if 97 <= c <= 122 else c for c in range(256)
)


def agree(texts: Sequence[str]) -> None:
    """Both engines give the same findings for every text; the message holds its number alone."""
    first, second = engines()
    for at in range(0, len(texts), 64):
        items = [ScanItem(text, "", "tool") for text in texts[at : at + 64]]
        for number, (a, b) in enumerate(zip(first.scan(items), second.scan(items), strict=True)):
            assert a == b, at + number


def test_both_engines_find_the_same_in_examples_forms_and_noise() -> None:
    rng = random.Random(SEED)
    rows = engines()[0].types()
    forms = [
        text for form in document("forms.toml")["form"] for text in (*form["positive"], *form["negative"])
    ]
    noise = [
        "".join(
            rng.choice("abcDEF019 =:\"'_-./\\%&\n\tpasswordtokenkeyé€") for _ in range(rng.randrange(400))
        )
        for _ in range(300)
    ]
    pads = ("", "x = ", "\n  12\t")
    agree([rng.choice(pads) + row.example + rng.choice(pads) for row in rows] + forms + noise)


@pytest.mark.skipif(not CORPUS.exists(), reason="the corpus is not beside this checkout")
def test_both_engines_find_the_same_in_the_corpus() -> None:
    texts = [
        json.loads(line)["text"]
        for path in sorted(CORPUS.glob("*.jsonl"))
        for line in path.read_text("utf-8").splitlines()
    ]
    agree(texts)
