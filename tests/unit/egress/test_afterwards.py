"""What is stored of a request after it left, and together with what: an attempt alone, or with the ending."""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import Sequence
from typing import Any

import orjson
import pytest

from gateway.egress import afterwards
from gateway.egress.afterwards import Afterwards
from gateway.egress.exchange import Exchange
from gateway.errors import EvidenceError
from gateway.ports import Ending, Record, RequestRow
from tests.support.evidence import attempt, sample

ENDED = Ending(response_complete=True, usage={"output_tokens": 7})


class Store:
    """Keeps appends in memory; `refuses` is a kind of record that it does not take."""

    def __init__(self, refuses: str = "") -> None:
        self.refuses = refuses
        self.appended: list[list[Record]] = []
        self.rows: list[RequestRow | None] = []

    async def append(self, records: Sequence[Record], row: RequestRow | None = None) -> None:
        await asyncio.sleep(0)
        if any(record.kind == self.refuses for record in records):
            raise EvidenceError("evidence.unavailable", "the disk is full")
        self.appended.append(list(records))
        self.rows.append(row)


class Told:
    """A meter and a gate."""

    def __init__(self) -> None:
        self.codes: list[str] = []
        self.tokens: list[Any] = []
        self.faults: list[str] = []
        self.breaks: Exception | None = None  # what counting raises

    def fault(self, error: BaseException) -> None:
        self.faults.append(type(error).__name__)

    def failed_closed(self, code: str) -> None:
        self.codes.append(code)

    def concluded(self, ending: Ending) -> None:
        pass

    async def spent(self, project: str, principal: str, usage: Any) -> None:
        if self.breaks is not None:
            raise self.breaks
        self.tokens.append((project, principal, usage))


class Half(Afterwards):
    """The second half of the use case by itself, with one open exchange `r`."""

    def __init__(self, store: Store) -> None:
        self.store: Any = store
        self.told = Told()
        self.meter: Any = self.told
        self.gate: Any = self.told
        made = sample(1)
        request = {"request_id": "req-1", "principal": {"kind": "person", "id": "alice"}, "route": "proxy"}
        request["destination"] = orjson.loads(made.receipt.to_json())["destination"]
        exchange = Exchange(made.row, request, "delivered", (), held_back=False, admission=made.admission)
        self._open = OrderedDict({"r": exchange})

    def lineage(self) -> Any:
        """The lineage that was stored."""
        (found,) = (r for batch in self.store.appended for r in batch if r.kind == "lineage")
        return orjson.loads(b"".join(found.parts))


def kinds(store: Store) -> list[list[str]]:
    return [[record.kind for record in batch] for batch in store.appended]


async def test_a_short_answer_is_stored_with_its_attempt_in_one_append() -> None:
    half = Half(store := Store())
    observing = asyncio.ensure_future(half.observe("r", attempt()))
    await asyncio.sleep(0)
    await half.conclude("r", ENDED)
    await observing
    assert kinds(store) == [["observation", "event", "lineage", "event"]]
    assert half.lineage()["egress_observations"] == [store.appended[0][0].digest]
    assert half.lineage()["receipt_state"] == "observed_model_egress"
    assert half.told.tokens == [("default", "alice", {"output_tokens": 7})]


async def test_an_attempt_does_not_wait_for_a_long_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(afterwards, "PATIENCE_S", 0.001)
    half = Half(store := Store())
    await half.observe("r", attempt())
    assert kinds(store) == [["observation", "event"]]
    await half.conclude("r", ENDED)
    assert kinds(store)[1:] == [["lineage", "event"]]
    assert half.lineage()["egress_observations"] == [store.appended[0][0].digest]


async def test_an_ending_waits_for_the_append_of_its_attempt_that_is_under_way(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(afterwards, "PATIENCE_S", 0)
    half = Half(store := Store())
    observing = asyncio.ensure_future(half.observe("r", attempt()))
    while not half._open["r"].waiting or not half._open["r"].waiting[0]._over.done():
        await asyncio.sleep(0)
    await half.conclude("r", ENDED)
    await observing
    assert kinds(store) == [["observation", "event"], ["lineage", "event"]]
    assert half.lineage()["receipt_state"] == "observed_model_egress"


@pytest.mark.parametrize("patience", [0.0, 5.0])
async def test_an_attempt_that_cannot_be_stored_counts_for_nothing(
    monkeypatch: pytest.MonkeyPatch, patience: float
) -> None:
    monkeypatch.setattr(afterwards, "PATIENCE_S", patience)
    half = Half(store := Store(refuses="observation"))
    observing = asyncio.ensure_future(half.observe("r", attempt()))
    await asyncio.sleep(0.01)
    await half.conclude("r", ENDED)
    await observing
    assert kinds(store) == [["lineage", "event"]]
    assert half.lineage()["receipt_state"] == "handed_off"
    assert "egress_observations" not in half.lineage()
    assert half.told.codes == ["evidence.unavailable"]


async def test_an_ending_that_cannot_be_stored_is_counted_and_spends_all_the_same() -> None:
    half = Half(store := Store(refuses="lineage"))
    observing = asyncio.ensure_future(half.observe("r", attempt()))
    await asyncio.sleep(0)
    await half.conclude("r", ENDED)
    await observing
    assert store.appended == []
    assert half.told.codes == ["evidence.unavailable"] * 2
    assert len(half.told.tokens) == 1


@pytest.mark.parametrize("breaks", [EvidenceError("budget.unavailable", "held"), OSError("no file")])
async def test_the_lineage_is_written_where_tokens_cannot_be_counted(breaks: Exception) -> None:
    half = Half(Store())
    half.told.breaks = breaks
    observing = asyncio.ensure_future(half.observe("r", attempt()))
    await asyncio.sleep(0)
    await half.conclude("r", ENDED)
    await observing
    assert half.lineage()["receipt_state"] == "observed_model_egress"
    assert len(half.told.codes) + len(half.told.faults) == 1


@pytest.mark.parametrize("turns", range(8))
async def test_an_ending_waits_for_no_attempt_that_was_cancelled(
    monkeypatch: pytest.MonkeyPatch, turns: int
) -> None:
    monkeypatch.setattr(afterwards, "PATIENCE_S", 0)
    half = Half(store := Store())
    observing = asyncio.ensure_future(half.observe("r", attempt()))
    for _ in range(turns):
        await asyncio.sleep(0)
    observing.cancel()
    await asyncio.gather(observing, return_exceptions=True)
    await asyncio.wait_for(half.conclude("r", ENDED), 5)
    stored = {record.digest for batch in store.appended for record in batch}
    assert set(half.lineage().get("egress_observations", ())) <= stored
