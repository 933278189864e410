"""Verification over a log in memory: any single change is found, and where."""

from __future__ import annotations

import asyncio
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gateway.evidence.checkpoint import Checkpoint
from gateway.evidence.entry import make_entry
from gateway.evidence.merkle import root_of
from gateway.evidence.sign import handover, sign_entry
from gateway.evidence.verify import StoredEntry, verify_log
from gateway.ports import Record, RequestRow
from gateway.store.memory import MemoryStore, MemoryView
from tests.support.evidence import TestClock, record, sample, signer

KEY = signer().public_key
SIZE = 9


async def build() -> tuple[MemoryView, bytes]:
    store = MemoryStore(None, signer(), TestClock())
    for number in range(SIZE):
        made = sample(number % 6, refused=True)  # the last ones set rows of earlier requests again
        await store.append(made.records, replace(made.row, effect="held" if number > 5 else "refused"))
    return store.view(), store.published


VIEW, NOTE = asyncio.run(build())


def copy() -> MemoryView:
    return MemoryView(list(VIEW.log), dict(VIEW.records), dict(VIEW.rows), list(VIEW.notes))


def verdict(view: MemoryView, note: bytes | None = NOTE) -> tuple[int, str] | None:
    bad = verify_log(view, KEY, note).first_bad
    return None if bad is None else (bad.index, bad.kind)


def test_an_undamaged_log() -> None:
    report = verify_log(VIEW, KEY, NOTE)
    assert (report.ok, report.entries, report.not_yet_logged, report.torn) == (True, SIZE, 0, 0)


def test_an_empty_log() -> None:
    empty = MemoryStore(None, signer(), TestClock())
    report = verify_log(empty.view(), KEY, empty.published)
    assert (report.ok, report.entries) == (True, 0)


@settings(max_examples=150, deadline=None)
@given(st.integers(0, SIZE - 1), st.data())
def test_any_changed_byte_of_an_entry_is_named(index: int, data: st.DataObject) -> None:
    view = copy()
    entry = view.log[index]
    name = data.draw(st.sampled_from(["body", "leaf", "signature"]))
    before = getattr(entry, name)
    at = data.draw(st.integers(0, len(before) - 1))
    after = before[:at] + bytes([before[at] ^ data.draw(st.integers(1, 255))]) + before[at + 1 :]
    view.log[index] = replace(entry, **{name: after})
    assert verdict(view) == (index, "signature" if name == "signature" else "modified")


@given(st.sampled_from(sorted(VIEW.records)), st.booleans())
def test_a_changed_or_missing_record_is_named(name: str, gone: bool) -> None:
    view = copy()
    index = min(i for i, entry in enumerate(view.log) if name.encode() in entry.body)
    if gone:
        del view.records[name]
    else:
        view.records[name] += b" "
    assert verdict(view) == (index, "modified")


@given(st.integers(0, SIZE - 1))
def test_a_cut_is_truncation(size: int) -> None:
    view = copy()
    view.log, view.notes = view.log[:size], []
    view.rows = {
        name: (row, min(latest, max(i for i in range(size) if name.encode() in view.log[i].body)))
        for name, (row, latest) in view.rows.items()
        if any(name.encode() in entry.body for entry in view.log[:size])
    }
    found = verdict(view)
    assert found is not None
    assert found == (size, "truncated") or found[1] == "modified"  # a row of a cut entry shows first


@given(st.integers(0, SIZE - 2))
def test_a_missing_entry_is_named(index: int) -> None:
    view = copy()
    del view.log[index]
    assert verdict(view) == (index, "modified")


@given(
    st.sampled_from(sorted(VIEW.rows)),
    st.sampled_from(["effect", "project", "time", "provider", "receipt_state"]),
)
def test_a_changed_row_is_named_at_the_entry_that_set_it(name: str, column: str) -> None:
    view = copy()
    row, latest = view.rows[name]
    view.rows[name] = (replace(row, **{column: "other"}), latest)
    assert verdict(view) == (latest, "modified")


def rewrite(seed: int, *, signed: bool = True) -> tuple[MemoryView, bytes]:
    """The whole log written anew from entry 2 on, its chain intact, by someone with another key (or none)."""
    view, other = copy(), signer(seed)
    for index in range(2, SIZE):
        made = sample(index % 6, refused=True)
        entry = make_entry(
            index, "2030", view.log[index - 1].leaf, made.records, view.rows[made.row.request_id][0]
        )
        view.log[index] = StoredEntry(
            index, entry.leaf, entry.body, sign_entry(other, entry.leaf) if signed else None
        )
    root = root_of(entry.leaf for entry in view.log)
    view.notes = [Checkpoint(other.name, SIZE, root).sign(other)]
    return view, view.notes[0]


def test_a_log_written_anew_by_another_key_is_found() -> None:
    view, note = rewrite(2)
    assert verdict(view, note) == (2, "signature")


def test_a_log_written_anew_by_the_same_key_is_found_by_the_published_checkpoint() -> None:
    view, _ = rewrite(1)
    found = verdict(view)
    assert found is not None
    assert found[1] == "modified"


def test_an_unsigned_end_is_truncation() -> None:
    view = copy()
    view.log[-1] = replace(view.log[-1], signature=None)
    assert verdict(view) == (SIZE, "truncated")


@pytest.mark.parametrize("note", [None, b"", b"junk"])
def test_a_published_checkpoint_that_is_gone_or_none(note: bytes | None) -> None:
    assert verdict(copy(), note) == ((0, "signature") if note else (SIZE, "truncated"))


def test_a_checkpoint_of_another_root_names_what_it_alone_vouches_for() -> None:
    view = copy()
    good = Checkpoint("egress/test", 4, root_of(e.leaf for e in view.log[:4])).sign(signer())
    bad = Checkpoint("egress/test", 7, root_of(e.leaf for e in view.log[:6])).sign(signer())
    view.notes = [good, bad]
    assert verdict(view) == (4, "modified")
    view.notes = [good, Checkpoint("egress/test", 7, root_of(e.leaf for e in view.log[:7])).sign(signer(2))]
    assert verdict(view) == (6, "signature")


def test_entries_behind_the_last_checkpoint_are_counted_and_a_torn_one_is_called_so() -> None:
    view = copy()
    view.notes = []
    note = Checkpoint("egress/test", 5, root_of(e.leaf for e in view.log[:5])).sign(signer())
    report = verify_log(view, KEY, note)
    assert (report.ok, report.not_yet_logged) == (True, SIZE - 5)
    made = sample(50, refused=True)
    entry = make_entry(SIZE, "t", view.log[-1].leaf, made.records, None)
    view.log.append(StoredEntry(SIZE, entry.leaf, entry.body, sign_entry(signer(), entry.leaf)))
    report = verify_log(view, KEY, note)
    assert (report.torn, report.document()["first_bad"]) == (1, {"index": SIZE, "kind": "torn"})


# -- hand-over ----------------------------------------------------------------------------------------------------


def handed_over() -> tuple[MemoryView, bytes]:
    """A log whose key changes in the middle."""
    old, new = signer(1), signer(2)
    view = copy()
    note_of_old = view.notes[0]
    text = handover(old, new, "2026-01-01T00:00:00Z")
    append(view, 1, record("key_handover", text))
    append(view, 2, record("event", b"{}"))
    root = root_of(entry.leaf for entry in view.log)
    note = Checkpoint("egress/test", SIZE + 2, root).sign(new)
    view.notes = [note_of_old, note]
    return view, note


def append(view: MemoryView, seed: int, made: Record, row: RequestRow | None = None) -> None:
    entry = make_entry(len(view.log), "t", view.log[-1].leaf, [made], row)
    signature = sign_entry(signer(seed), entry.leaf)
    view.log.append(StoredEntry(len(view.log), entry.leaf, entry.body, signature))
    view.records[made.digest] = b"".join(made.parts)


@pytest.mark.parametrize("seed", [1, 2])
def test_a_log_whose_key_was_handed_over_verifies_with_either_key(seed: int) -> None:
    view, note = handed_over()
    assert verify_log(view, signer(seed).public_key, note).ok


def test_an_old_key_signs_nothing_after_its_hand_over() -> None:
    view, note = handed_over()
    last = view.log[-1]
    view.log[-1] = replace(last, signature=sign_entry(signer(1), last.leaf))
    bad = verify_log(view, signer(2).public_key, note).first_bad
    assert bad is not None
    assert (bad.index, bad.kind) == (SIZE + 1, "signature")
