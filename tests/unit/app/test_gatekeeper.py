"""The kill switch in every state of its file, and budgets over time."""

from __future__ import annotations

from pathlib import Path

import pytest

from gateway.app.gatekeeper import Gatekeeper, KillFile, Stopped
from gateway.config import parse
from gateway.config.settings import Budget
from gateway.ports import Peer

ALICE = Peer(project="acme", principal="alice")
BOB = Peer(project="acme", principal="bob")
OTHER = Peer(project="other", principal="alice")


class Clock:
    def __init__(self) -> None:
        self.seconds = 1000

    def now(self) -> str:
        return "2027-01-15T12:00:00.000000Z"

    def monotonic_us(self) -> int:
        return self.seconds * 1_000_000


@pytest.mark.parametrize(
    ("content", "alice", "other"),
    [
        (None, True, True),
        ("", False, False),
        ("{}", True, True),
        ('{"all": false}', True, True),
        ('{"all": null}', True, True),
        ('{"all": true}', False, False),
        ('{"all": 1}', False, False),
        ('{"projects": ["acme"]}', False, True),
        ('{"projects": null, "principals": ["alice"]}', False, False),
        ('{"projects": "acme"}', False, False),
        ('{"project": ["acme"]}', False, False),
        ("[]", False, False),
        ("not json", False, False),
    ],
)
def test_what_a_kill_file_stops(tmp_path: Path, content: str | None, alice: bool, other: bool) -> None:
    told: list[Stopped] = []
    gate = Gatekeeper(KillFile(tmp_path), (), Clock(), told.append)
    if content is not None:
        (tmp_path / "kill").write_text(content)

    assert (gate.admits(ALICE, 1) is None, gate.admits(OTHER, 1) is None) == (alice, other)
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


def budgets(folder: Path, **settings: object) -> tuple[Budget, ...]:
    config = parse(
        {"budgets": {"b": settings}, "projects": {"acme": {}, "other": {}}}, folder, {"HOME": str(folder)}
    )
    return tuple(config.budgets.values())


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
    gate = Gatekeeper(KillFile(tmp_path), budgets(tmp_path, **settings), Clock(), lambda _: None)

    assert [gate.admits(peer, 10) is None for peer in peers] == admitted


def test_a_window_ends_and_refused_requests_do_not_count(tmp_path: Path) -> None:
    clock = Clock()
    gate = Gatekeeper(KillFile(tmp_path), budgets(tmp_path, bytes=10, window_s=60), clock, lambda _: None)

    assert gate.admits(ALICE, 11) is not None
    assert gate.admits(ALICE, 10) is None
    assert gate.admits(ALICE, 1) is not None
    clock.seconds += 60
    assert gate.admits(ALICE, 10) is None
