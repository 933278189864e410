"""The table of contract §10.2, row by row, and what closes a request that a crash left open."""

from __future__ import annotations

import json
from typing import Any

import pytest

from gateway.contract import ContextDecisionLineageV1, EgressTransportObservationV1
from gateway.errors import ContractError
from gateway.evidence import lineage
from gateway.evidence.entry import digest_of
from gateway.ports import Attempt, Ending
from tests.support.evidence import admission, attempt, context_request, decisions, receipt, sample

UNSENT: dict[str, Any] = {"written_bytes": 0, "body_complete": False, "written_digest": digest_of(b"")}
PARTLY: dict[str, Any] = {"written_bytes": 5, "body_complete": False, "written_digest": digest_of(b"the e")}
SILENT: dict[str, Any] = {"http_status": None, "failure": "other"}

TABLE = {
    # event: (attempt, counts, handed off, state)
    "connect failure": (
        attempt(http_status=None, failure="connect", level="not_sent", **UNSENT),
        False,
        False,
        "prepared",
    ),
    "reset in the body": (attempt(**SILENT, level="maybe", **PARTLY), False, False, "prepared"),
    "timeout before the head": (
        attempt(http_status=None, failure="timeout", level="handed_over"),
        False,
        True,
        "handed_off",
    ),
    "reset after the body": (attempt(**SILENT, level="handed_over"), False, True, "handed_off"),
    "answered 200": (attempt(), True, True, "observed_model_egress"),
    "answered 500": (attempt(http_status=500), True, True, "observed_model_egress"),
    "early answer": (attempt(http_status=413, **PARTLY), False, True, "handed_off"),
    "another peer": (attempt(peer_verified=False), False, False, "prepared"),
    "other bytes": (attempt(written_digest=digest_of(b"other")), False, False, "prepared"),
    "too many bytes": (attempt(written_bytes=99, body_complete=False), False, False, "prepared"),
    "web socket": (attempt(transport="websocket", http_status=None), True, True, "observed_model_egress"),
}
RECEIPT = receipt(1, decisions(2))
ADMISSION = admission(RECEIPT)


@pytest.mark.parametrize("event", TABLE)
def test_the_table(event: str) -> None:
    tried, counts, handed_off, state = TABLE[event]
    proof = lineage.prove(tried, ADMISSION)
    assert (proof.counts, proof.handed_off) == (counts, handed_off)
    assert proof.alarm == (event in {"other bytes", "too many bytes"})
    end = lineage.conclude(context_request(1), RECEIPT, ADMISSION, [tried])
    assert end.state == state
    made = ContextDecisionLineageV1.from_json(b"".join(end.lineage.parts))
    made.validate_for(RECEIPT)
    assert (len(made.egress_observations), made.egress_admission) == (
        int(counts),
        ADMISSION.canonical_digest(),
    )


@pytest.mark.parametrize("event", TABLE)
def test_what_is_stored_of_an_attempt(event: str) -> None:
    tried, counts, handed_off, _ = TABLE[event]
    *seen, told = lineage.attempt_records(tried, ADMISSION)
    document = json.loads(b"".join(told.parts))
    assert (document["counts"], document["handed_off"], document["level"]) == (
        counts,
        handed_off,
        tried.level,
    )
    assert tried.written_digest not in b"".join(told.parts).decode()  # it could be that of a short piece
    if document["alarm"]:
        assert seen == []  # other bytes than the admitted ones: no observation
        assert document["observation"] is None
        return
    (observed,) = seen
    assert document["observation"] == observed.digest
    EgressTransportObservationV1.from_json(b"".join(observed.parts)).validate_for(ADMISSION)


def test_one_counted_attempt_of_several_suffices() -> None:
    tries = [TABLE["connect failure"][0], attempt(2, http_status=None, failure="timeout"), attempt(3)]
    end = lineage.conclude(context_request(1), RECEIPT, ADMISSION, tries)
    made = ContextDecisionLineageV1.from_json(b"".join(end.lineage.parts))
    (listed,) = made.egress_observations
    assert listed == lineage.observation(tries[2], ADMISSION.canonical_digest()).canonical_digest()


def test_an_observation_that_was_not_stored_counts_for_nothing() -> None:
    end = lineage.conclude(context_request(1), RECEIPT, ADMISSION, [attempt()], stored=())
    assert end.state == "handed_off"
    again = lineage.conclude(context_request(1), RECEIPT, ADMISSION, [attempt(), attempt(2)], stored={2})
    assert again.state == "observed_model_egress"


def test_a_mixed_delivery_is_partial_and_lists_what_was_seen() -> None:
    mixed = receipt(1, [*decisions(1), *decisions(1, "deny", 5)])
    end = lineage.conclude(context_request(1), mixed, admission(mixed), [attempt()])
    assert end.state == "partial"
    assert len(ContextDecisionLineageV1.from_json(b"".join(end.lineage.parts)).egress_observations) == 1


def test_a_refused_request_is_rejected_without_admission() -> None:
    refused = sample(1, refused=True).receipt
    end = lineage.conclude(context_request(1), refused, None)
    assert (end.state, end.records) == ("rejected", [end.lineage])
    assert ContextDecisionLineageV1.from_json(b"".join(end.lineage.parts)).egress_admission is None


def test_the_ending_is_a_record_of_its_own() -> None:
    ending = Ending(response_complete=False, client_gone=True, placeholders_restored=2, restore_withheld=1)
    end = lineage.conclude(context_request(1), RECEIPT, ADMISSION, [attempt()], ending)
    assert end.response is not None
    document = json.loads(b"".join(end.response.parts))
    assert document["receipt"] == RECEIPT.canonical_digest()
    assert document["client_gone"] is True
    assert document["response"] == {
        "complete": False,
        "placeholders_restored": 2,
        "restore_withheld": 1,
        "usage": None,
    }


def test_an_attempt_that_contradicts_itself_is_refused() -> None:
    with pytest.raises(ContractError):
        lineage.observation(attempt(http_status=None), ADMISSION.canonical_digest())
    with pytest.raises(ContractError):
        lineage.observation(attempt(33), ADMISSION.canonical_digest())


def close(tries: list[Attempt], events_only: bool = False, mixed: bool = False) -> str:
    made = sample(1)
    decided = receipt(1, [*decisions(1), *decisions(1, "deny", 5)]) if mixed else made.receipt
    admitted = admission(decided)
    records = [r for tried in tries for r in lineage.attempt_records(tried, admitted)]
    stored = [json.loads(b"".join(r.parts)) for r in records if not events_only or r.kind == "observation"]
    lines, row = lineage.close_after_crash(made.row, decided.to_json(), admitted.to_json(), stored)
    written = ContextDecisionLineageV1.from_json(b"".join(lines.parts))
    written.validate_for(decided)
    assert written.egress_observations == ()
    assert (row.lineage, row.receipt_state) == (lines.digest, written.receipt_state)
    return row.receipt_state


@pytest.mark.parametrize("event", TABLE)
def test_after_a_crash_never_more_than_handed_off(event: str) -> None:
    tried, _, handed_off, _ = TABLE[event]
    assert close([tried]) == ("handed_off" if handed_off else "prepared")


def test_after_a_crash_observations_alone_prove_a_head_and_no_more() -> None:
    assert close([]) == "prepared"
    assert close([attempt()], events_only=True) == "handed_off"
    assert close([attempt(http_status=None, failure="timeout")], events_only=True) == "prepared"
    assert close([attempt()], mixed=True) == "partial"


@pytest.mark.parametrize(("allowed", "state"), [(True, "handed_off"), (False, "partial")])
def test_after_a_crash_a_source_that_was_not_to_be_seen_is_not_a_clean_hand_off(
    allowed: bool, state: str
) -> None:
    """In shadow enforcement such content leaves, and the decisions alone do not say that it was another's."""
    made = sample(1)
    assert made.admission is not None
    crossing = {"event_type": "search", "target_project_hash": "other", "allowed": allowed}
    stored = [json.loads(b"".join(r.parts)) for r in lineage.attempt_records(attempt(), made.admission)]
    lines, row = lineage.close_after_crash(
        made.row, made.receipt.to_json(), made.admission.to_json(), [*stored, crossing]
    )
    assert row.receipt_state == state
    written = ContextDecisionLineageV1.from_json(b"".join(lines.parts))
    written.validate_for(made.receipt)
    assert [str(c.validity) for c in written.candidates] == ([] if allowed else ["revoked"])


def test_records_that_are_not_what_they_should_be_are_refused() -> None:
    made = sample(1)
    with pytest.raises(ContractError):
        lineage.close_after_crash(made.row, b"{}", b"{}", [])
