"""Log entries: canonical, chained, read back strictly."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.errors import VerificationError
from gateway.evidence.entry import GENESIS, make_entry, read_entry, row_digest, row_document
from gateway.evidence.merkle import leaf_hash
from tests.support.evidence import record, sample

MADE = sample(1)
ENTRY = make_entry(7, "2026-01-01T00:00:00.000000Z", bytes(range(32)), MADE.records, MADE.row)


def test_the_documented_form() -> None:
    document = json.loads(ENTRY.body)
    assert document == {
        "v": 1,
        "seq": 7,
        "time": "2026-01-01T00:00:00.000000Z",
        "kind": "request",
        "prev": "sha256:" + bytes(range(32)).hex(),
        "records": [{"kind": r.kind, "digest": r.digest} for r in MADE.records],
        "request": "req-1",
        "row": row_digest(MADE.row),
    }
    assert json.dumps(document, sort_keys=True, separators=(",", ":")).encode() == ENTRY.body
    assert ENTRY.leaf == leaf_hash(ENTRY.body)


def test_entries_without_a_row_and_without_records() -> None:
    event = make_entry(0, "t", GENESIS, [record("event", b"{}")], None)
    assert "row" not in json.loads(event.body)
    assert event.kind == "event"
    assert make_entry(0, "t", GENESIS, [], MADE.row).kind == "row"
    assert make_entry(0, "t", GENESIS, MADE.records[2:], MADE.row).kind == "admission"


def test_it_is_read_back() -> None:
    for entry in (ENTRY, make_entry(0, "t", GENESIS, [], None)):
        assert read_entry(entry.body) == entry


def test_every_member_of_the_row_is_bound() -> None:
    digests = {row_digest(MADE.row)}
    for name in row_document(MADE.row):
        digests.add(row_digest(replace(MADE.row, **{name: "other"})))
    digests.add(row_digest(replace(MADE.row, admission=None)))
    assert len(digests) == len(row_document(MADE.row)) + 2


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"null",
        b"[]",
        b"{}",
        ENTRY.body + b" ",
        ENTRY.body.replace(b'"v":1', b'"v":2'),
        ENTRY.body.replace(b'"v":1', b'"v":1.0'),
        ENTRY.body.replace(b'"seq":7', b'"seq":"7"'),
        ENTRY.body.replace(b'"seq":7', b'"extra":1,"seq":7'),
        ENTRY.body.replace(b'"kind":"request"', b'"kind":"request","kind":"request"'),
        ENTRY.body.replace(b'"prev":"sha256:', b'"prev":"'),
        ENTRY.body.replace(b'"prev":"sha256:', b'"prev":"sha256:zz'),
        ENTRY.body.replace(b'"records":[', b'"records":[1,'),
        ENTRY.body.replace(b',"row":"sha256:', b',"wor":"sha256:'),
    ],
)
def test_anything_else_is_refused(body: bytes) -> None:
    assert body != ENTRY.body
    with pytest.raises(VerificationError):
        read_entry(body)


@given(st.binary(max_size=200) | st.text().map(str.encode))
def test_nothing_but_a_refusal_escapes(body: bytes) -> None:
    with pytest.raises(VerificationError):
        read_entry(body)
