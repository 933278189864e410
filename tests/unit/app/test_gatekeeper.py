"""The kill switch in every state of its file, and budgets over time."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime, timedelta
from pathlib import Path

import apsw
import pytest

from gateway.app.budgeting import Budgets, budgets_of
from gateway.app.gatekeeper import Gatekeeper, KillFile, Stopped
from gateway.config import parse
from gateway.errors import SetupError
from gateway.ports import Peer, Refusal

ALICE = Peer(project="acme", principal="alice")
BOB = Peer(project="acme", principal="bob")
OTHER = Peer(project="other", principal="alice")


class Clock:
    """2027-01-15 at noon, at the beginning of a minute and of an hour, and what was added to it."""

    def __init__(self) -> None:
        self.seconds = 0

    def now(self) -> str:
        at = datetime(2027, 1, 15, 12, tzinfo=UTC) + timedelta(seconds=self.seconds)
        return at.strftime("%Y-%m-%dT%H:%M:%S.%fZ")

    def monotonic_us(self) -> int:
        return self.seconds * 1_000_000


def admits(gate: Gatekeeper, peer: Peer, size: int) -> Refusal | None:
    return asyncio.run(gate.admits(peer, size))


def spent(gate: Gatekeeper, project: str, principal: str, usage: dict[str, int]) -> None:
    asyncio.run(gate.spent(project, principal, usage))


@pytest.mark.parametrize(
    ("content", "alice", "other"),
    [
        (None, True, True),
        ("", False, False),
        ("{}", True, True),
        ('{"all": false}', True, True),
        ('{"all": null}', False, False),
        ('{"projects": []}', True, True),
        ('{"all": true}', False, False),
        ('{"all": 1}', False, False),
        ('{"projects": ["acme"]}', False, True),
        ('{"projects": [], "principals": ["alice"]}', False, False),
        ('{"projects": null, "principals": ["bob"]}', False, False),
        ('{"projects": "acme"}', False, False),
        ('{"project": ["acme"]}', False, False),
        ("[]", False, False),
        ("not json", False, False),
    ],
)
def test_what_a_kill_file_stops(tmp_path: Path, content: str | None, alice: bool, other: bool) -> None:
    told: list[Stopped] = []
    gate = Gatekeeper(KillFile(tmp_path), Budgets((), None, Clock()), told.append)
    if content is not None:
        (tmp_path / "kill").write_text(content)

    assert (admits(gate, ALICE, 1) is None, admits(gate, OTHER, 1) is None) == (alice, other)
    assert len(told) == (not (alice and other))


def test_a_kill_file_that_cannot_be_read_stops_everything(tmp_path: Path) -> None:
    (tmp_path / "kill").mkdir()

    assert KillFile(tmp_path).state() == Stopped(everything=True)


def test_turning_the_switch_for_some_and_for_all(tmp_path: Path) -> None:
    kill = KillFile(tmp_path)

    assert kill.turn(on=True, project="acme").projects == {"acme"}
    assert kill.turn(on=True, principal="bob") == Stopped(False, frozenset({"acme"}), frozenset({"bob"}))
    assert KillFile(tmp_path).state() == kill.state()
    assert kill.turn(on=False, project="acme").principals == {"bob"}
    assert kill.turn(on=True).everything
    assert not kill.turn(on=False)
    assert not (tmp_path / "kill").exists()


def gate_of(folder: Path, clock: Clock, **settings: object) -> Gatekeeper:
    """A gate with one budget, over the file of a state folder."""
    config = parse(
        {"state": {"dir": str(folder)}, "budgets": {"b": settings}, "projects": {"acme": {}, "other": {}}},
        folder,
        {"HOME": str(folder)},
    )
    return Gatekeeper(KillFile(folder), budgets_of(config, clock), lambda _: None)


@pytest.mark.parametrize(
    ("settings", "peers", "admitted"),
    [
        ({"requests": 1}, (ALICE, BOB, OTHER), [True, False, True]),
        ({"requests": 1, "per": "principal"}, (ALICE, BOB, OTHER, ALICE), [True, True, True, False]),
        ({"requests": 1, "per": "gateway"}, (ALICE, OTHER), [True, False]),
        ({"requests": 1, "projects": ["other"]}, (ALICE, ALICE, OTHER, OTHER), [True, True, True, False]),
        ({"requests": 1, "principals": ["bob"]}, (ALICE, ALICE, BOB, BOB), [True, True, True, False]),
        ({"bytes": 15}, (ALICE, BOB), [True, False]),
    ],
)
def test_who_shares_a_budget(
    tmp_path: Path, settings: dict[str, object], peers: tuple[Peer, ...], admitted: list[bool]
) -> None:
    gate = gate_of(tmp_path, Clock(), **settings)

    assert [admits(gate, peer, 10) is None for peer in peers] == admitted


def test_a_window_ends_and_refused_requests_do_not_count(tmp_path: Path) -> None:
    clock = Clock()
    gate = gate_of(tmp_path, clock, bytes=10, window_s=60)

    assert admits(gate, ALICE, 11) is not None
    assert admits(gate, ALICE, 10) is None
    assert admits(gate, ALICE, 1) is not None
    clock.seconds += 60
    assert admits(gate, ALICE, 10) is None


def test_what_was_used_outlives_a_restart_but_not_its_window(tmp_path: Path) -> None:
    clock = Clock()
    first = gate_of(tmp_path, clock, requests=2, window_s=3600)
    assert admits(first, ALICE, 1) is None
    first.budgets.close()
    clock.seconds += 1800
    second = gate_of(tmp_path, clock, requests=2, window_s=3600)
    assert [admits(second, ALICE, 1) is None for _ in range(2)] == [True, False]
    clock.seconds += 1800
    assert admits(second, ALICE, 1) is None


def test_two_processes_share_a_budget(tmp_path: Path) -> None:
    gates = [gate_of(tmp_path, Clock(), requests=3, window_s=3600) for _ in range(2)]

    assert [admits(gates[n % 2], ALICE, 1) is None for n in range(4)] == [True, True, True, False]


def test_tokens_are_known_afterwards_and_stop_the_next_request(tmp_path: Path) -> None:
    gate = gate_of(tmp_path, Clock(), tokens=100, window_s=3600, per="principal")
    assert admits(gate, ALICE, 1) is None
    spent(gate, "acme", "alice", {"input_tokens": 90, "output_tokens": 9, "cached_tokens": 80})
    assert admits(gate, ALICE, 1) is None
    spent(gate, "acme", "alice", {"output_tokens": 1})
    refused = admits(gate, ALICE, 1)

    assert refused is not None
    assert (refused.status, refused.reason_codes) == (400, ("budget.tokens",))
    assert admits(gate, BOB, 1) is None


def test_what_cannot_be_counted_does_not_go(tmp_path: Path) -> None:
    gate = gate_of(tmp_path, Clock(), requests=10, window_s=3600)
    gate.budgets.close()
    refused = admits(gate, ALICE, 1)

    assert refused is not None
    assert (refused.status, refused.reason_codes) == (503, ("budget.unavailable",))


def test_a_file_that_is_no_database_stops_the_start(tmp_path: Path) -> None:
    (tmp_path / "budgets.db").write_bytes(b"no database at all, but long enough to be looked at" * 50)
    with pytest.raises(SetupError) as caught:
        gate_of(tmp_path, Clock(), requests=1)
    assert caught.value.code == "budget.unavailable"


async def test_other_requests_go_on_while_a_process_holds_the_file(tmp_path: Path) -> None:
    gate = gate_of(tmp_path, Clock(), requests=10, window_s=3600)
    other = apsw.Connection(str(tmp_path / "budgets.db"))
    other.execute("BEGIN IMMEDIATE")
    waiting = asyncio.ensure_future(gate.admits(ALICE, 1))
    turns = 0
    while not waiting.done():
        await asyncio.sleep(0.01)
        turns += 1
    other.execute("COMMIT")
    refused, after = await waiting, await gate.admits(ALICE, 1)

    assert turns > 3  # the loop ran on: were it held, there would be one
    assert refused is not None
    assert (refused.status, refused.reason_codes) == (503, ("budget.unavailable",))
    assert after is None
    other.close()
    gate.budgets.close()
