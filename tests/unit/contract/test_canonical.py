"""Canonical JSON: byte for byte what the rule says, and nothing without a canonical form."""

from __future__ import annotations

import hashlib
import json
from datetime import UTC, datetime
from typing import Any

import pytest

from gateway.contract import ContextDispositionV1, canonical_json, digest
from gateway.errors import ContractError


def test_members_are_sorted_by_the_bytes_of_their_names_at_every_level() -> None:
    value = {"b": {"\U0001f600": 1, "\uffff": 2, "é": 3, "z": 4}, "a": [{"y": 1, "x": 2}], "B": 0}
    expected = '{"B":0,"a":[{"x":2,"y":1}],"b":{"z":4,"é":3,"\uffff":2,"\U0001f600":1}}'
    assert canonical_json(value) == expected.encode()


def test_characters_are_escaped_the_short_way() -> None:
    text = "".join(map(chr, range(0x20))) + '"/\\\x7f\u2028'
    expected = json.dumps(text, ensure_ascii=False).encode()
    assert canonical_json(text) == expected
    assert rb"\b\t\n\u000b\f\r" in expected
    assert b"\\/" not in expected


def test_enumerations_are_their_wire_strings() -> None:
    assert canonical_json([ContextDispositionV1.DENY]) == b'["deny"]'


@pytest.mark.parametrize("value", [2**64 - 1, -(2**63), 0, True, False, None, "", [], {}, ()])
def test_plain_values(value: Any) -> None:
    assert canonical_json(value) == json.dumps(value).encode()


@pytest.mark.parametrize(
    ("value", "code"),
    [
        (1.0, "bad_type"),
        ({"a": [float("nan")]}, "bad_type"),
        ({1: "a"}, "bad_type"),
        (b"bytes", "bad_type"),
        ({"a", "b"}, "bad_type"),
        (datetime(2026, 1, 1, tzinfo=UTC), "bad_type"),
        (2**64, "bounds_exceeded"),
        (-(2**63) - 1, "bounds_exceeded"),
        ("\ud800", "malformed_json"),
        ({"\udfff": 1}, "malformed_json"),
    ],
)
def test_what_has_no_canonical_form_is_refused(value: Any, code: str) -> None:
    with pytest.raises(ContractError) as refused:
        canonical_json(value)
    assert refused.value.code == code


def test_endless_nesting_is_refused() -> None:
    loop: list[Any] = []
    loop.append(loop)
    with pytest.raises(ContractError) as refused:
        canonical_json(loop)
    assert refused.value.code == "malformed_json"


def test_a_digest_is_plain_sha256() -> None:
    assert digest(b"abc") == "sha256:" + hashlib.sha256(b"abc").hexdigest()
