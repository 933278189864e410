"""Fillers and sequences, against what they mean said plainly."""

import math
from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.context.findings import Category, ScanItem
from gateway.detect.checksums import digits, luhn
from gateway.detect.engine import build
from gateway.detect.entropy import bits, has_sequence
from gateway.detect.samples import is_repeated

FILLERS = "xX0*.-_#•"


@given(
    st.text(st.sampled_from("xX0*a.B1"), max_size=40)
    | st.builds("{}{}".format, st.text(max_size=6), st.just("x" * 20))
)
def test_a_filler_is_four_fifths_of_the_tail(value: str) -> None:
    tail = value[-20:] if len(value) > 28 else value[len(value) // 3 :]
    most = max((tail.count(filler) for filler in FILLERS), default=0)
    assert is_repeated(value) == (len(tail) >= 6 and most * 10 >= len(tail) * 8)


@pytest.mark.parametrize(
    ("value", "runs"), [("xxABCDEFGxx", True), ("Qwertyu1", True), ("abdcefg", False), ("", False)]
)
def test_what_runs_along_the_alphabet_or_the_keyboard(value: str, runs: bool) -> None:
    assert has_sequence(value) is runs


@given(st.text(min_size=1, max_size=700))
def test_bits_are_the_entropy_of_the_characters(value: str) -> None:
    size = len(value)
    shannon = -sum(n / size * math.log2(n / size) for n in Counter(value).values())
    assert bits(value) == pytest.approx(shannon, abs=1e-9)


@given(st.text(st.sampled_from("0123456789 -a٣"), max_size=24))
def test_luhn_doubles_every_second_digit_from_the_right(value: str) -> None:
    numbers = [int(c) for c in value if c in "0123456789"]
    assert digits(value) == numbers
    doubled = [sum(divmod(n * 2, 10)) if at % 2 else n for at, n in enumerate(reversed(numbers))]
    assert luhn(numbers) == (sum(doubled) % 10 == 0)


@pytest.mark.parametrize(
    "text",
    [
        '_HOST_PORT_PAT = ("^(%s|%s|%s)(?::0*?(|0|[1-9][0-9]{0,4}))?$")',
        "password = '[A-Za-z0-9]{8,}\\d+'",
        'api_key_token = r"(?P<kind>[a-z]{4})-Q7x9\\w+"',
        "INSERT INTO keymap (name, access_key) VALUES ('palette', 'Alt+Shift+L2')",
        "$PASSWORD = $CPAN::Config->{proxy_pass};",
        "content = \"password = 'abcdefghijklmnopqrstuvwxyz'\"",
        "const X509_SUBJECT_TOKEN = 'urn:openai:params:oauth:token-type:x509';",
        "('http', 'joe', 'password', 'proxy.example.com:3128')",
        "if strip_user_password:\n2026-11-09T21:07:46.344Z WARN [45114b] took=3ms",
        'password = "@int 99999"',
        'db_password = "@format {env[DB_PASSWORD]}"',
        '"hashed_token": "23cffb2fab1b0a62747863eba88cb9327e561f2f7a0c8661c0d9b83146cb8d45"',
        "Authorization: AWS4-HMAC-SHA256 Credential=mock_access_key/20220524/eu-west-1/s3/aws4_request, x",
        "urlsplit('Scheme://user@[0439:23af:2309::fae7:1234:2342:438e:192.0.2.146]/Path?Query')",
    ],
)
def test_what_only_looks_like_a_value(text: str) -> None:
    [result] = build().scan([ScanItem(text)])
    assert [f for f in result.findings if f.category is Category.SECRET] == []


@pytest.mark.parametrize(
    "text",
    [
        "the default of the customer.\n * If Checkout is used, see below",
        '"Account name": "Employee Contributions"',
        "ranges such as 900-70-0000 through 999-88-0000",
    ],
)
def test_what_only_looks_like_personal_data(text: str) -> None:
    [result] = build().scan([ScanItem(text)])
    assert [f for f in result.findings if f.category is Category.PII] == []
