"""The fallback engine: it looks for literals first, and must not miss what holds none."""

import re

import pytest

from gateway.detect.engine import build
from gateway.detect.matcher import HyperscanMatcher, Re2Matcher, Trigger, required_literal


@pytest.mark.parametrize(
    ("expression", "literal"),
    [
        ("ghp_[A-Za-z0-9]{6}", "ghp_"),
        ("[^A-Za-z]cookie[^A-Za-z]", "cookie"),
        ("ab?cde", "cde"),
        ("xab{2}cd", ""),
        ("abc|def", ""),
        ("(?:abc|abd)[0-9]", ""),
        ("(?-i:_PAT|_KEY)", ""),
        (r"[.]aws/\s\x41bc", ".aws/"),
        (r"\\u00[2-7]", r"\u00"),
        (r"\$2b\$", "$2b$"),
        ("[]x]abc[^]]de", "abc"),
        (r"ab[\]x]cdef", "cdef"),
    ],
)
def test_the_literal_that_every_match_holds(expression: str, literal: str) -> None:
    re.compile(expression)
    assert required_literal(expression) == literal


def test_every_literal_of_a_trigger_stands_in_what_it_matches() -> None:
    texts = "\n".join(row.example for row in build().types())
    for plan, _ in build().databases:
        for trigger in plan.triggers:
            literal = required_literal(trigger.expression)
            for match in re.finditer(trigger.expression, texts, re.IGNORECASE if trigger.caseless else 0):
                assert literal.lower() in match[0].lower()


def test_both_engines_find_literals_in_either_case_alternatives_and_classes() -> None:
    triggers = [
        Trigger("secret[0-9]", 7, caseless=True),
        Trigger("Key[0-9]", 4),
        Trigger("(?:ab|cd)[0-9]{3}", 0),
        Trigger("[a-f]{2}[0-9]{2}", 4),
    ]
    for data in (b"", b"nothing", b"xSeCrEt1 key1 Key2", b"ab123 cd456 ef78", b"SECRET9" * 3):
        assert Re2Matcher(triggers).scan(data) == HyperscanMatcher(triggers).scan(data)
