"""Long lists of what is looked for: honest ones are read to their end, and a budget ends what costs more than they do."""

from __future__ import annotations

import json
import random
import re
import string
from collections.abc import Callable, Iterator, Mapping
from itertools import cycle
from pathlib import Path

import pytest

from bench.detect_crafted import SLOW
from gateway.context.findings import Category, ScanItem, ScanResult
from gateway.detect import contact
from gateway.detect import engine as detector
from gateway.detect.checks import CHECKS
from gateway.detect.engine import Engine, build
from gateway.detect.rule import Rule
from gateway.detect.scope import Scope

_LISTS: Mapping[str, str] = json.loads(
    (Path(__file__).parents[2] / "vectors" / "detect" / "dense.json").read_text("utf-8")
)
"""A line of each common kind of list. `{word}`, `{digits:8}` and so on stand for what differs from line to line."""
_SLOT = re.compile(r"\{(\w+)(?::(\d+))?\}")
_SIZES = (10_000, 100_000)
_TRIES = 60
_BEYOND = 2500  # units
_LINES = 40  # of a list, which then repeats
# Whose lists hold so much in every line that reading them whole would cost what crafted texts may not: their rest is
# masked, and the result says so.
_COSTLY = frozenset(
    {
        "date-of-birth-wide",
        "in-pan",
        "it-codice-fiscale",
        "medical-record-number",
        "parameter-value-object",
        "passport-wide",
        "phone-labelled-wide",
        "prose-as-the-key",
        "prose-password-given",
        "prose-password-set",
        "tw-id",
    }
)
_ALPHABETS = {
    "digits": string.digits,
    "token": string.ascii_letters + string.digits,
    "capitals": string.ascii_uppercase + string.digits,
    "hex": "0123456789abcdef",
    "letters": string.ascii_lowercase,
}
_NAMES = [
    "anna",
    "bob",
    "carla",
    "dieter",
    "eva",
    "frank",
    "gina",
    "hugo",
    "ines",
    "jan",
    "karl",
    "lena",
    "marc",
    "nora",
    "otto",
    "paula",
]
_HOSTS = ["acme.io", "globex.de", "initech.com", "umbrella.fr", "hooli.net", "wayne.org"]
_KEYS = [
    "DB_PASSWORD",
    "API_KEY",
    "SECRET_KEY",
    "ACCESS_TOKEN",
    "AUTH_TOKEN",
    "SMTP_PASS",
    "CLIENT_SECRET",
    "JWT_SECRET",
]


@pytest.fixture(scope="module")
def engine() -> Engine:
    return build(engine="hyperscan")


def _slot(rng: random.Random, kind: str, size: int) -> str:
    chosen = {"name": _NAMES, "host": _HOSTS, "key": _KEYS}.get(kind)
    if chosen is not None:
        return rng.choice(chosen)
    if kind == "card":
        numbers = ("4" + "".join(rng.choices(string.digits, k=15)) for _ in iter(int, 1))
        return next(number for number in numbers if CHECKS["card"](number))
    if kind == "octet":
        return str(rng.randint(20, 99))
    return "".join(rng.choices(_ALPHABETS[kind], k=size))


def _lines(form: str, seed: int) -> Iterator[str]:
    rng = random.Random(seed)
    while True:
        yield _SLOT.sub(lambda slot: _slot(rng, slot[1], int(slot[2] or 8)), form)


def _of_size(lines: Iterator[str], size: int) -> str:
    parts: list[str] = []
    length = 0
    while length < size:
        parts.append(next(lines))
        length += len(parts[-1]) + 1
    return "\n".join(parts)


def _scan(engine: Engine, text: str) -> ScanResult:
    [result] = engine.scan([ScanItem(text)])
    return result


@pytest.mark.parametrize("size", _SIZES)
@pytest.mark.parametrize("kind", _LISTS)
def test_a_list_of_a_common_kind_is_read_to_its_end(engine: Engine, kind: str, size: int) -> None:
    assert _scan(engine, _of_size(_lines(_LISTS[kind], 7), size)).complete


def _varied(rng: random.Random, rule: Rule, example: str) -> str:
    """The example of a rule with other characters of the same kinds, where its validator allows that."""
    match = rule.pattern.search(example)
    if match is None:
        return example
    low, high = match.span(match.lastgroup) if match.lastgroup else match.span()
    kinds = (string.digits, string.ascii_uppercase, string.ascii_lowercase)
    for _ in range(_TRIES):
        changed = list(example[low:high])
        for at in rng.sample(range(len(changed)), min(4, len(changed))):
            changed[at] = rng.choice(next((kind for kind in kinds if changed[at] in kind), changed[at]))
        datum = "".join(changed)
        again = rule.pattern.search(example[:low] + datum + example[high:])
        if (
            again is not None
            and again.span() == match.span()
            and (not rule.check or CHECKS[rule.check](datum))
        ):
            return example[:low] + datum + example[high:]
    return example


def test_a_list_of_what_any_rule_finds_is_read_to_its_end(engine: Engine) -> None:
    cut = set()
    for rule in engine._rules:
        if rule.category is Category.PROMPT_INJECTION:
            continue
        rng = random.Random(rule.id)
        lines = cycle([_varied(rng, rule, rule.positive[0]) for _ in range(_LINES)])
        if not _scan(engine, _of_size(lines, _SIZES[0])).complete:
            cut.add(rule.id)
    assert cut <= _COSTLY


@pytest.mark.parametrize("name", SLOW)
def test_no_step_goes_far_beyond_the_budget(
    engine: Engine, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    """What is read at one place is bounded, so that work ends soon after the units that pay for it."""
    scopes: list[Scope] = []

    def kept(item: ScanItem, labelled: Callable[[str], bool]) -> Scope:
        scopes.append(make(item, labelled))
        return scopes[-1]

    make = detector._scope
    monkeypatch.setattr(detector, "_scope", kept)
    engine.scan([ScanItem((SLOW[name] * (100_000 // len(SLOW[name]) + 1))[:100_000])])
    assert scopes[0].budget.hits >= -_BEYOND


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("glpat-ABCDEFGH\nglpat-IJKLMNOP\nglpat-QRSTUVWX\n", 0),  # the next of a list does not go on
        ("ghp_zQWBuTSOoRi4A9spHcVY5nc\nnsDkxkJ0mLq17\n", 1),
    ],
)
def test_only_what_begins_otherwise_is_the_rest_of_a_word(engine: Engine, text: str, found: int) -> None:
    assert len(_scan(engine, text).findings) == found


@pytest.mark.parametrize("plus", [True, False])
def test_a_plain_telephone_number_is_what_the_library_reads(*, plus: bool) -> None:
    rng = random.Random(3)
    read = 0
    for _ in range(2000):
        digits = "".join(rng.choices(string.digits, k=rng.randint(6, 14)))
        plain = contact._plain_number(digits, plus=plus)
        if plain is not None:
            read += 1
            assert contact._parsed(f"+{digits}" if plus else digits, plus=plus) == plain
    assert read > 50
