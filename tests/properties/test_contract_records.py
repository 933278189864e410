"""Every record survives its own bytes, and no single mutation of them does (issue "contracts and evidence", 2)."""

from __future__ import annotations

import copy
import json
import re
from collections.abc import Iterator
from typing import Any

import jsonschema  # type: ignore[import-untyped]
import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from gateway.contract import ERROR_CODES, canonical_json
from gateway.contract.record import Record
from gateway.contract.schemas import records, schema_text
from gateway.errors import ContractError
from tests.support.contract_strategies import RECORDS

each_record = pytest.mark.parametrize("record", RECORDS, ids=lambda r: r.__name__)
a_few = settings(
    max_examples=12,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.filter_too_much],
)


def test_every_public_record_has_a_strategy() -> None:
    assert set(RECORDS) == set(records().values())


@each_record
@a_few
@given(data=st.data())
def test_a_record_survives_its_own_bytes(record: type[Record], data: st.DataObject) -> None:
    made = data.draw(RECORDS[record])
    written = made.to_json()
    read = record.from_json(written)
    assert read == made
    assert read.to_json() == written
    assert record.from_value(json.loads(written)) == made
    assert record.from_stored(written, made.canonical_digest()) == made
    if not record.carries_foreign_json:
        assert canonical_json(json.loads(written)) == written


@each_record
@a_few
@given(data=st.data())
def test_a_schema_accepts_what_the_model_writes(record: type[Record], data: st.DataObject) -> None:
    written = json.loads(data.draw(RECORDS[record]).to_json())
    jsonschema.Draft202012Validator(json.loads(schema_text(record))).validate(written)


@each_record
@a_few
@given(data=st.data())
def test_order_space_and_nulls_do_not_change_a_digest(record: type[Record], data: st.DataObject) -> None:
    made = data.draw(RECORDS[record])
    value = json.loads(made.to_json())
    for name, field in record.model_fields.items():
        if field.default is None:
            value.setdefault(name, None)
    names = data.draw(st.permutations(sorted(value)))
    text = json.dumps({name: value[name] for name in names}, indent=2)
    assert record.from_json(text).canonical_digest() == made.canonical_digest()


# -- one mutation at a time ---------------------------------------------------------------------------------------

OPEN = {"body", "usage"}  # members that hold maps with names of others: nothing in them is closed


def _places(value: Any, path: tuple[str | int, ...] = ()) -> Iterator[tuple[str | int, ...]]:
    yield path
    if isinstance(value, dict):
        for name, item in value.items():
            if name not in OPEN:
                yield from _places(item, (*path, name))
    elif isinstance(value, list):
        for index, item in enumerate(value):
            yield from _places(item, (*path, index))


def _at(value: Any, path: tuple[str | int, ...]) -> Any:
    for token in path:
        value = value[token]
    return value


def _mutants(value: Any) -> Iterator[tuple[Any, str]]:
    """Values of another type or out of every grammar, none of which can stand where `value` stands."""
    if isinstance(value, bool):
        yield from ((int(value), "bad_type"), (str(value).lower(), "bad_type"))
    elif isinstance(value, int):
        yield from (
            (float(value), "bad_type"),
            (str(value), "bad_type"),
            (True, "bad_type"),
            (-1, "bounds_exceeded|unsupported_schema_version"),
            (2**64, "bounds_exceeded|unsupported_schema_version"),
        )
    elif isinstance(value, str):
        text = "bad_.*|unknown_value|egress_body"
        yield from ((7, "bad_type|unknown_value"), ([value], "bad_type|unknown_value"), (value + "\n", text))
    elif isinstance(value, list):
        yield from (
            (None, "bad_type"),
            ({}, "bad_type"),
            ("x", "bad_type"),
            ([*value, None], "bad_type|bounds_exceeded|unknown_value"),
        )
    elif isinstance(value, dict):
        yield from (([], "bad_type"), ({**value, "hunter2": 1}, "unknown_field"), ("x", "bad_type"))


def _put(value: Any, path: tuple[str | int, ...], mutant: Any) -> Any:
    if not path:
        return mutant
    changed = copy.deepcopy(value)
    _at(changed, path[:-1])[path[-1]] = mutant
    return changed


@each_record
@a_few
@given(data=st.data())
def test_any_value_out_of_its_grammar_is_refused(record: type[Record], data: st.DataObject) -> None:
    value = json.loads(data.draw(RECORDS[record]).to_json())
    path = data.draw(st.sampled_from(list(_places(value))))
    mutant, codes = data.draw(st.sampled_from(list(_mutants(_at(value, path)))))
    # Texts of an engine's envelope and refusals are free of all grammar but their length.
    assume(not (isinstance(mutant, str) and path and path[-1] in {"refusal", "provider", "upstream_base"}))
    with pytest.raises(ContractError) as refused:
        record.from_json(json.dumps(_put(value, path, mutant)))
    assert refused.value.code in ERROR_CODES
    assert "hunter2" not in str(refused.value)
    assert re.fullmatch(codes, refused.value.code)


def _required(record: type[Record]) -> list[str]:
    return [name for name, field in record.model_fields.items() if field.is_required()]


@pytest.mark.parametrize(
    ("record", "member"),
    [pytest.param(r, m, id=f"{r.__name__}.{m}") for r in RECORDS for m in _required(r)],
)
@settings(max_examples=1, deadline=None)
@given(data=st.data())
def test_a_required_member_is_required(record: type[Record], member: str, data: st.DataObject) -> None:
    value = json.loads(data.draw(RECORDS[record]).to_json())
    del value[member]
    with pytest.raises(ContractError) as refused:
        record.from_json(json.dumps(value))
    assert refused.value.code == "missing_field"
    assert refused.value.pointer == f"/{member}"


@each_record
@a_few
@given(data=st.data())
def test_any_changed_byte_is_noticed_under_its_digest(record: type[Record], data: st.DataObject) -> None:
    made = data.draw(RECORDS[record])
    written = bytearray(made.to_json())
    index = data.draw(st.integers(0, len(written) - 1))
    written[index] ^= data.draw(st.integers(1, 255))
    with pytest.raises(ContractError) as refused:
        record.from_stored(bytes(written), made.canonical_digest())
    assert refused.value.code == "tampered"


@each_record
@a_few
@given(data=st.data())
def test_damaged_bytes_raise_nothing_but_contract_errors(record: type[Record], data: st.DataObject) -> None:
    written = bytearray(data.draw(RECORDS[record]).to_json())
    start = data.draw(st.integers(0, len(written)))
    written[start : start + data.draw(st.integers(0, 8))] = data.draw(st.binary(max_size=8))
    try:
        read = record.from_json(bytes(written))
    except ContractError as error:
        assert error.code in ERROR_CODES  # noqa: PT017  # some damage leaves another valid record
    else:
        assert record.from_json(read.to_json()) == read


@a_few
@given(data=st.data(), noise=st.binary(max_size=64))
def test_noise_raises_nothing_but_contract_errors(data: st.DataObject, noise: bytes) -> None:
    record = data.draw(st.sampled_from(list(RECORDS)))
    with pytest.raises(ContractError):
        record.from_json(b"\x00" + noise)
