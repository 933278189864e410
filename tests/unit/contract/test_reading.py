"""The strict reader: one document, no member twice, integers only, and no word of what was read in an error."""

from __future__ import annotations

import json

import pytest

from gateway.contract import (
    ContextDecisionReceiptV1,
    ContextDecisionV1,
    ContextDispositionV1,
    EngineEgressRequestV1,
    PrincipalV1,
)
from gateway.contract.reading import read_json
from gateway.errors import ContractError
from tests.support.contract_fixtures import decision, digest_of, receipt

GOOD = b'{"kind":"person","id":"user-1"}'


def _code(data: bytes | str) -> str:
    with pytest.raises(ContractError) as refused:
        PrincipalV1.from_json(data)
    return refused.value.code


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"null2",
        GOOD + b"{}",
        GOOD + b",",
        b"\xef\xbb\xbf" + GOOD,
        GOOD.decode().encode("utf-16"),
        GOOD.decode().encode("utf-32-be"),
        b'{"kind":"person","id":"\xff"}',
        b'{"kind":"person","id":"\xed\xa0\x80"}',
        b'{"kind":"person","id":"a\nb"}',
        b'{"kind":"person","id":NaN}',
        b'{"kind":"person","id":Infinity}',
        b'{"kind":"person","id":-Infinity}',
        b"{'kind':'person'}",
        b'{"kind":"person",}',
        b"[" * 100_000,
        b'{"id":' * 100_000,
        b'{"id":' + b"9" * 5000 + b"}",
    ],
)
def test_anything_but_one_json_document_is_malformed(data: bytes) -> None:
    assert _code(data) == "malformed_json"


@pytest.mark.parametrize("data", [b"null", b"[]", b'"person"', b"1", b"true", b"[" + GOOD + b"]"])
def test_a_document_that_is_no_object_has_the_wrong_type(data: bytes) -> None:
    assert _code(data) == "bad_type"


def test_a_lone_surrogate_is_no_text() -> None:
    assert _code(b'{"kind":"person","id":"\\ud800"}') == "malformed_json"
    assert _code(b'{"kind":"person","id":"\\uDE00\\uD83D"}') == "malformed_json"
    assert _code(b'{"kind":"person","\\ud800":1}') == "malformed_json"
    pair = PrincipalV1.from_json(b'{"kind":"person","id":"\\ud83d\\uDE00"}')
    assert pair.to_json() == '{"id":"\U0001f600","kind":"person"}'.encode()


def test_a_providers_body_holds_no_lone_surrogate_either() -> None:
    with pytest.raises(ContractError) as refused:
        EngineEgressRequestV1.from_json(
            b'{"schema_version":1,"provider":"p","upstream_base":"u","body":{"a":["\\udfff"]}}'
        )
    assert refused.value.code == "malformed_json"


def test_text_is_read_as_well_as_bytes() -> None:
    assert PrincipalV1.from_json(GOOD.decode()) == PrincipalV1.from_json(GOOD)


def test_a_member_twice_is_refused_even_with_the_same_value() -> None:
    assert _code(b'{"kind":"person","id":"user-1","id":"user-1"}') == "duplicate_member"


def test_an_escaped_name_is_the_same_member() -> None:
    assert _code(b'{"kind":"person","id":"user-1","\\u0069d":"user-1"}') == "duplicate_member"


def test_members_are_refused_twice_at_every_level() -> None:
    data = receipt([decision(ContextDispositionV1.ALLOW, "a")]).to_json()
    objects = [i for i, byte in enumerate(data) if byte == ord("{") and data[i + 1] == ord('"')]
    assert len(objects) >= 6
    for start in objects:
        name = data[start + 1 : data.index(b":", start)]
        twice = data[: start + 1] + name + b":null," + data[start + 1 :]
        with pytest.raises(ContractError) as refused:
            ContextDecisionReceiptV1.from_json(twice)
        assert refused.value.code == "duplicate_member"


@pytest.mark.parametrize("number", ["10.0", "1e1", "-0", "10E0", "0.5"])
def test_a_number_that_is_no_plain_integer_is_refused(number: str) -> None:
    data = receipt().to_json().replace(b'"duration_us":10', f'"duration_us":{number}'.encode())
    with pytest.raises(ContractError) as refused:
        ContextDecisionReceiptV1.from_json(data)
    assert refused.value.code == "bad_type"


def test_a_providers_body_may_hold_any_finite_number() -> None:
    text = '{"schema_version":1,"provider":"p","upstream_base":"u","body":{"t":0.70,"z":-0,"e":1e3}}'
    assert EngineEgressRequestV1.from_json(text).body == {"t": 0.7, "z": 0, "e": 1000.0}
    for number in ("NaN", "1e999", "-1e999"):
        with pytest.raises(ContractError) as refused:
            EngineEgressRequestV1.from_json(text.replace("0.70", number))
        assert refused.value.code == "malformed_json"


def test_a_providers_body_gives_the_envelope_no_floats() -> None:
    text = '{"schema_version":1.0,"provider":"p","upstream_base":"u","body":{}}'
    with pytest.raises(ContractError) as refused:
        EngineEgressRequestV1.from_json(text)
    assert refused.value.code == "bad_type"


def test_an_explicit_null_changes_neither_value_nor_digest() -> None:
    plain = receipt([decision(ContextDispositionV1.ALLOW, "a")])
    with_nulls = {**json.loads(plain.to_json()), "task": None, "policy": None, "object_digest": None}
    shuffled = json.dumps(dict(reversed(with_nulls.items())), indent=3)
    assert ContextDecisionReceiptV1.from_json(shuffled).canonical_digest() == plain.canonical_digest()


def test_the_pointer_says_where_in_our_own_words_only() -> None:
    value = json.loads(receipt([decision(ContextDispositionV1.DENY, "a")]).to_json())
    value["decisions"][0]["hunter2"] = 1
    with pytest.raises(ContractError) as refused:
        ContextDecisionReceiptV1.from_json(json.dumps(value))
    assert refused.value.pointer == "/decisions/0"
    assert "hunter2" not in str(refused.value)


@pytest.mark.parametrize(
    "data",
    [
        b'{"object":"hunter2","disposition":"hunter2","reason_codes":["hunter2!"]}',
        b'{"hunter2":{"hunter2":1}}',
        b'{"hunter2":1,"hunter2":2}',
        b'{"hunter2',
        b'{"object":"hunter2\xff"}',
    ],
)
def test_no_error_quotes_what_was_read(data: bytes) -> None:
    with pytest.raises(ContractError) as refused:
        ContextDecisionV1.from_json(data)
    error = refused.value
    assert "hunter2" not in repr((str(error), error.args, error.pointer, error.hint))
    assert error.__cause__ is None
    assert error.__suppress_context__ or error.__context__ is None


def test_read_json_gives_plain_values() -> None:
    assert read_json(b'{"a":[1,true,null,"x"]}') == {"a": [1, True, None, "x"]}


def test_the_32_mebibyte_bound_holds_for_a_hosts_request() -> None:
    head = b'{"schema_version":1,"provider":"p","upstream_base":"u","body":{"x":"'
    room = 32 * 1024 * 1024 - len(head) - len(b'"}}')
    assert EngineEgressRequestV1.from_json(head + b"a" * room + b'"}}').provider == "p"
    with pytest.raises(ContractError) as refused:
        EngineEgressRequestV1.from_json(head + b"a" * (room + 1) + b'"}}')
    assert refused.value.code == "bounds_exceeded"


def test_stored_bytes_must_have_the_digest_they_are_stored_under() -> None:
    stored = receipt([decision(ContextDispositionV1.ALLOW, "a")])
    data = stored.to_json()
    assert ContextDecisionReceiptV1.from_stored(data, stored.canonical_digest()) == stored
    with pytest.raises(ContractError) as refused:
        ContextDecisionReceiptV1.from_stored(data, digest_of("0"))
    assert refused.value.code == "tampered"
