"""What stands right beside a value: escapes, colours, diff marks, letters. The value is found, and nothing of them."""

from __future__ import annotations

from functools import cache

import pytest

from gateway.context.findings import Category, ScanItem
from gateway.detect.engine import Engine, build

VALUES = {
    "github": "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",  # a published dummy; its checksum holds
    "stripe": "sk_live_T7wgEWJ0lgItdnJ3b6O1uMdF",
    "aws": "AKIAJYNZX3RQ7FEHQ5WT",
    "google": "AIzaSyB7x9Qk2LmN4pR8tVwXyZ1aC3dE5fG6hJk",
    "card": "4000 0058 2318 9676",
    "ssn": "319-30-9023",
    "iban": "DE44500105175407324931",
    "mail": "oskar.lindqvist@nordhavn-klinik.se",
}
BESIDE = (
    "\x1b[32m{}\x1b[0m", "x \x1b[38;5;208m{}\x1b[39m", "\x1b[01;31m\x1b[K{}\x1b[m\x1b[K", "\x1b[1m{}\x1b(B\x1b[m",
    "\x1b]8;;https://ci.example/1\x1b\\{}\x1b]8;;\x1b\\", r"\x1b[32m{}\x1b[0m", r"\033[0;31m{}\033[0m", r"\e[31m{}\e[0m",
    r"\u001b[32m{}\u001b[0m", "^[[32m{}^[[0m",
    r"a\n{}\nb", r"a\t{}", r"a\r\n{}\r\n", r"a\\n{}\\n", r"a\u0020{}", r"a\x20{}",
    "@@ -1 +1 @@\n-{}\n", "@@ -1 +1 @@\n+{}\n", "-{}", "+{}", "\t{}", "    12\t{}", "12→{}", '"{}"', "<b>{}</b>", "**{}**",
)  # fmt: skip
GLUED = ("token{}", "X{}", "7{}", "my_{}", "k=3D{}")
GLUED_VALUES = ("github", "stripe")


@cache
def engine() -> Engine:
    return build()


def found(text: str) -> set[str]:
    """The secrets and personal data in a text, as they stand in it."""
    (result,) = engine().scan([ScanItem(text)])
    data = [f for f in result.findings if f.category in {Category.SECRET, Category.PII}]
    return {text[f.start : f.end] for f in data}


@pytest.mark.parametrize("kind", sorted(VALUES))
def test_a_value_is_found_without_what_stands_beside_it(kind: str) -> None:
    value = VALUES[kind]
    wrong = {
        beside: got
        for beside in BESIDE
        if (got := found(beside.format(value))) not in ({value}, {f"+{value}"})
    }
    assert not wrong


@pytest.mark.parametrize("kind", GLUED_VALUES)
def test_tokens_that_are_known_by_themselves_need_no_edge(kind: str) -> None:
    value = VALUES[kind]
    assert [beside for beside in GLUED if found(beside.format(value)) != {value}] == []


def test_a_token_is_found_through_the_colours_inside_it() -> None:
    value = VALUES["github"]
    marked = f"\x1b[01;31m\x1b[K{value[:4]}\x1b[m\x1b[K{value[4:]}"
    assert any(value[4:] in text for text in found(f"config.py:3:{marked}\n"))
    struck = "".join(f"{char}\x08{char}" for char in value)
    assert found(f"NAME\n       {struck} - a key\n") == {struck[2:]}
    key = "\x1b[36mDB_PASSWORD\x1b[0m=\x1b[33mTr0ub4dor.3x9\x1b[0m"
    assert found(key) == {"Tr0ub4dor.3x9"}


@pytest.mark.parametrize(
    "text",
    [
        r'"\n@pytest.mark.slow\ndef test_x(): ..."', "\x1b[32m@contextlib.contextmanager\x1b[0m", "disk_live_migration_of_all_volumes",
        "def unlock(password=\x1b[36mNone\x1b[0m): \x1b[32mpassword_ptr\x1b[0m = password",
        "\x1b[32m✓\x1b[39m src/app.test.ts \x1b[2m(12 tests)\x1b[22m\x1b[90m 34\x1b[2mms\x1b[22m\x1b[39m", r"x\n20251114103055\n",
    ],
)  # fmt: skip
def test_what_only_looks_like_one_is_left_alone(text: str) -> None:
    assert not found(text)
