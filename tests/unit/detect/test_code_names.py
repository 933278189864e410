"""Names beside names in programs: what stands where a value could stand, and is none."""

from __future__ import annotations

import json
import random
import string
from pathlib import Path

import pytest

from gateway.context.findings import Category, ScanItem
from gateway.detect import values
from gateway.detect.engine import Engine, build
from gateway.detect.keynames import KeyKind
from gateway.detect.values import Assigned, plausible

NAMES = json.loads((Path(__file__).parents[2] / "vectors" / "detect" / "code_names.json").read_text("utf-8"))


@pytest.fixture(scope="module")
def engine() -> Engine:
    return build()


@pytest.mark.parametrize("case", NAMES, ids=[case["kind"] for case in NAMES])
def test_a_name_is_no_value(engine: Engine, case: dict[str, str]) -> None:
    (scanned,) = engine.scan([ScanItem(case["text"])])
    assert [found.type for found in scanned.findings if found.category is Category.SECRET] == []


@pytest.mark.parametrize(
    "text",
    [
        "let s:netrw_passwd = 'Walnut-juniper19'",
        'setPassword("Walnut-juniper19")',
        "passwords = ['password', 'Walnut-juniper19']",
        "NL80211_SHARED_KEY, fK39xQmZ7vTn2RbLw8YsJc4H",
        "set STRIPE_KEY fK39xQmZ7vTn2RbL",
        "STRIPE_KEY,fK39xQmZ7vTn",
        'SECRET_KEY = "django-insecure-(x8v#2!m$k9q@w3e^r7t&y5u*i1o)p"',
    ],
)
def test_a_value_beside_such_a_name_is_found(engine: Engine, text: str) -> None:
    (scanned,) = engine.scan([ScanItem(text)])
    assert [found for found in scanned.findings if found.category is Category.SECRET]


@pytest.mark.parametrize("operator", ["=", ":", ",", ";", "|", "(", " "])
@pytest.mark.parametrize("kind", [kind for kind in KeyKind if kind is not KeyKind.NONE])
def test_a_value_too_short_to_be_looked_at_passes_no_test(
    monkeypatch: pytest.MonkeyPatch, kind: KeyKind, operator: str
) -> None:
    """What is answered by its length alone is what all the tests would say of it."""
    rng = random.Random(f"{kind} {operator}")
    given = [
        Assigned(key, kind, value, operator, quoted, tight=quoted, following="", ending="\n")
        for _ in range(300)
        for key in ("STRIPE_KEY", "x-key", "--deploy-key")
        for quoted in (True, False)
        for value in [
            "".join(rng.choices(string.ascii_letters + string.digits + "!-_+", k=rng.randint(4, 26)))
        ]
    ]
    answers = [plausible(each) for each in given]
    monkeypatch.setattr(values, "_SHORTEST", 0)
    assert [plausible(each) for each in given] == answers
