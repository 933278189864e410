"""What every EvidenceStore must do, over memory, SQLite and the evidence writer."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path

import pytest

from gateway.contract import ContextDecisionReceiptV1
from gateway.errors import EvidenceError
from gateway.evidence import lineage
from gateway.evidence.entry import digest_of
from gateway.ports import Ending, EvidenceStore, Record
from gateway.store.memory import MemoryStore
from gateway.store.remote import RemoteEvidence
from gateway.store.sqlite import SqliteStore
from tests.support.evidence import Sample, TestClock, attempt, context_request, record, sample, signer
from tests.support.writer import writing

type Store = MemoryStore | SqliteStore | RemoteEvidence


@pytest.fixture(params=["memory", "sqlite", "writer"])
async def store(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Store]:
    if request.param == "writer":
        async with writing(tmp_path) as writer:
            yield (await writer.worker()).evidence
        return
    clock = TestClock()
    made: MemoryStore | SqliteStore = (
        MemoryStore(None, signer(), clock)
        if request.param == "memory"
        else SqliteStore(tmp_path / "egress.db", signer(), clock)
    )
    made.open()
    yield made
    await made.close()


async def conclude(store: EvidenceStore, of: Sample) -> None:
    assert of.admission is not None
    tried = attempt()
    await store.append(lineage.attempt_records(tried, of.admission), of.row)
    usage = {"input_tokens": 3}
    ending = Ending(response_complete=True, placeholders_restored=2, usage=usage)
    end = lineage.conclude(context_request(of.number), of.receipt, of.admission, [tried], ending)
    await store.append(end.records, replace(of.row, lineage=end.lineage.digest, receipt_state=end.state))


async def test_a_record_is_read_back_as_it_was_written(store: Store) -> None:
    made = sample(1, 40)
    await store.append(made.records, made.row)
    for written in made.records:
        assert await store.record(written.digest) == b"".join(written.parts)
    assert await store.record(digest_of(b"unknown")) is None


async def test_a_row_has_the_documented_shape(store: Store) -> None:
    made = sample(1)
    await store.append(made.records, made.row)
    await conclude(store, made)
    (row,), cursor = await store.rows({})
    assert cursor is None
    assert row["digest"] == made.row.receipt
    assert (row["project"], row["effect"], row["time"]) == ("default", "forwarded", made.row.time)
    assert row["receipt_state"] == "observed_model_egress"
    assert ContextDecisionReceiptV1.from_value(row["receipt"]) == made.receipt
    assert row["admission"]["decision_receipt"] == made.row.receipt
    assert [o["result"] for o in row["observations"]] == ["response_observed"]
    assert [a["counts"] for a in row["attempts"]] == [True]
    assert row["evaluation"]["evidence_level"] == "answered"
    assert row["evaluation"]["response"] == {
        "complete": True,
        "placeholders_restored": 2,
        "restore_withheld": 0,
        "usage": {"input_tokens": 3},
        "reason_codes": [],
    }
    kept = await store.record(row["lineage"])
    assert kept is not None
    assert json.loads(kept)["egress_observations"] == [digest_of(_canonical(row["observations"][0]))]


def _canonical(document: object) -> bytes:
    return json.dumps(document, sort_keys=True, separators=(",", ":")).encode()


async def test_a_refused_request_has_no_admission(store: Store) -> None:
    made = sample(1, refused=True)
    await store.append(made.records, made.row)
    (row,), _ = await store.rows({})
    assert (row["admission"], row["lineage"], row["observations"]) == (None, None, [])
    assert row["receipt_state"] == "rejected"


async def test_pages_are_newest_first_and_complete(store: Store) -> None:
    for number in range(7):
        made = sample(number, refused=True)
        await store.append(made.records, made.row)
    seen: list[str] = []
    cursor: str | None = ""
    pages = 0
    while cursor is not None:
        rows, cursor = await store.rows({"limit": 3, "after": cursor})
        seen += [row["request_id"] for row in rows]
        pages += 1
    assert seen == [f"req-{n}" for n in range(6, -1, -1)]
    assert pages == 3


async def test_a_later_row_replaces_the_earlier_and_keeps_its_place(store: Store) -> None:
    first, second = sample(1), sample(2)
    await store.append(first.records, first.row)
    await store.append(second.records, second.row)
    await conclude(store, first)
    rows, _ = await store.rows({})
    assert [(r["request_id"], r["receipt_state"]) for r in rows] == [
        ("req-2", "prepared"),
        ("req-1", "observed_model_egress"),
    ]


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ({"project": "acme"}, [2]),
        ({"project": "nobody"}, []),
        ({"effect": "refused"}, [3, 1]),
        ({"state": "prepared"}, [2]),
        ({"since": "2026-01-01T00:00:02.000000Z"}, [3, 2]),
        ({"until": "2026-01-01T00:00:02.000000Z"}, [2, 1]),
        ({"since": "2026-01-01T00:00:02Z", "until": "2026-01-01T01:00:02+01:00"}, [2]),
        ({"kind": "receipt", "limit": "1"}, [3]),
        ({"effect": "refused", "project": "default", "until": "2026-01-01T00:00:01.500000Z"}, [1]),
    ],
)
async def test_filters(store: Store, query: dict[str, str], expected: list[int]) -> None:
    for made in (sample(1, refused=True), sample(2, project="acme"), sample(3, refused=True)):
        await store.append(made.records, made.row)
    rows, _ = await store.rows(query)
    assert [row["request_id"] for row in rows] == [f"req-{n}" for n in expected]


async def test_a_request_is_found_by_the_digest_of_any_of_its_records(store: Store) -> None:
    first, second = sample(1), sample(2)
    for made in (first, second):
        await store.append(made.records, made.row)
    for digest in (first.row.receipt, first.row.admission, first.row.evaluation):
        rows, _ = await store.rows({"digest": digest})
        assert [row["request_id"] for row in rows] == ["req-1"]
    for unknown in (digest_of(b"unknown"), "sha256:", "x", "sha256:" + "A" * 64):
        assert await store.rows({"digest": unknown}) == ([], None)
        assert await store.record(unknown) is None


async def test_records_of_one_kind_are_listed_as_they_are(store: Store) -> None:
    made = sample(1, project="acme", refused=True)
    events = [record("boundary_event", _canonical({"n": n})) for n in range(3)]
    await store.append([events[0]])
    await store.append([*made.records, events[1]], made.row)
    await store.append([events[2]])
    listed, cursor = await store.rows({"kind": "boundary_event", "limit": 2})
    assert listed == [{"n": 2}, {"n": 1}]
    assert await store.rows({"kind": "boundary_event", "limit": 2, "after": cursor}) == ([{"n": 0}], None)
    assert (await store.rows({"kind": "boundary_event", "project": "acme"}))[0] == [{"n": 1}]
    assert (await store.rows({"kind": "boundary_event", "digest": events[0].digest}))[0] == [{"n": 0}]
    assert (await store.rows({"kind": "boundary_event", "since": "2027-01-01T00:00:00Z"}))[0] == []


@pytest.mark.parametrize(
    "query",
    [
        {"limit": 0},
        {"limit": 1001},
        {"limit": "x"},
        {"limit": True},
        {"after": "-1"},
        {"colour": "red"},
        {"project": 3},
        {"since": "yesterday"},
        {"until": "2026-01-01"},
        {"until": "2026-01-01T00:00:00"},
        {"since": "0001-01-01T00:00:00+23:00"},
    ],
)
async def test_a_query_that_makes_no_sense_is_refused(store: Store, query: dict[str, object]) -> None:
    with pytest.raises(EvidenceError) as caught:
        await store.rows(query)
    assert caught.value.code == "query.invalid"


async def test_a_record_that_is_not_its_digest_is_refused_and_nothing_is_kept(store: Store) -> None:
    made = sample(1)
    wrong = Record("event", digest_of(b"other"), (b"{}",))
    with pytest.raises(EvidenceError) as caught:
        await store.append([*made.records, wrong], made.row)
    assert caught.value.code == "evidence.digest"
    assert await store.rows({}) == ([], None)
    assert await store.record(made.row.receipt) is None


@pytest.mark.parametrize(
    ("changes", "code"),
    [
        ({"evaluation": "none"}, "evidence.digest"),
        ({"lineage": "sha256:" + "A" * 64}, "evidence.digest"),
        ({"project": "\ud800"}, "evidence.row"),
        ({"project": b"bytes"}, "evidence.row"),
    ],
)
async def test_a_row_that_cannot_be_kept_spoils_nothing(
    store: Store, changes: dict[str, str], code: str
) -> None:
    good, bad = sample(1), sample(2)
    results = await asyncio.gather(
        store.append(good.records, good.row),
        store.append(bad.records, replace(bad.row, **changes)),
        store.append([record("event", b"{}")]),
        return_exceptions=True,
    )
    assert [getattr(result, "code", "stored") for result in results] == ["stored", code, "stored"]
    assert [row["request_id"] for row in (await store.rows({}))[0]] == ["req-1"]


async def test_the_same_record_twice_is_one_record(store: Store) -> None:
    event = record("event", b'{"same":true}')
    await store.append([event])
    await store.append([event])
    assert await store.record(event.digest) == b'{"same":true}'
    assert (await store.rows({"kind": "event"}))[0] == [{"same": True}]


async def test_many_appends_at_once(store: Store) -> None:
    made = [sample(number, refused=True) for number in range(100)]
    await asyncio.gather(*(store.append(item.records, item.row) for item in made))
    rows, _ = await store.rows({"limit": 1000})
    assert {row["request_id"] for row in rows} == {f"req-{n}" for n in range(100)}


async def test_health_and_the_end(store: Store) -> None:
    assert await store.health() == ""
    await store.close()
    with pytest.raises(EvidenceError) as caught:
        await store.append([record("event", b"{}")])
    assert caught.value.code == "evidence.unavailable"
    assert await store.health() != ""
