"""The Ownership adapter: what it knows outlives crashes, follows indexes, expires, and is told apart by evidence."""

from __future__ import annotations

import asyncio
import itertools
from dataclasses import dataclass
from pathlib import Path

import pytest

from gateway.app.ownership import Fingerprints, canary
from gateway.app.projects import ProjectFacts
from gateway.boundary import BoundaryPolicy, FactPrivacy, FingerprintIndex
from gateway.contract import CrossProjectEventV1
from gateway.ports import OwnedText, Peer, Reach
from gateway.store.fingerprints import FingerprintFiles, IndexedFile
from tests.support.waiting import eventually

KEY = b"k" * 32
TEXT = """
def settle_open_positions(ledger, fee_schedule):
    outstanding = ledger.positions_with_state("open")
    for position in outstanding:
        rate = fee_schedule.rate_for(position.counterparty)
"""
PROJECTS = {
    "a": ProjectFacts("a", "hash-a", "blue", FactPrivacy.LINKED_PROJECTS, frozenset({"hash-b"}), ("/srv/a",)),
    "b": ProjectFacts("b", "hash-b", "blue", FactPrivacy.TEAM, roots=("/srv/a-b",)),
    "c": ProjectFacts("c", "hash-c", "green"),
    "default": ProjectFacts("default", "hash-default"),
}


@dataclass
class Day:
    """A clock that stands still."""

    text: str = "2026-05-03T09:43:12Z"

    def now(self) -> str:
        return self.text


def ownership(folder: Path, day: Day | None = None, **policy: bool) -> Fingerprints:
    return Fingerprints(
        files=FingerprintFiles(folder / "projects", KEY),
        key=KEY,
        projects=PROJECTS,
        policy=BoundaryPolicy(**policy),
        role_allows=lambda roles: "admin" in roles,
        now=(day or Day()).now,
        seen_days=30,
    )


def seen(text: str = TEXT) -> list[OwnedText]:
    return [OwnedText(text, "tool_result", "tool")]


async def owners(known: Fingerprints, text: str = TEXT) -> list[str]:
    (claims,) = await known.claims([text])
    return [c.project for c in claims if c.evidence == "fingerprint"]


async def test_what_was_seen_is_known_after_a_crash(tmp_path: Path) -> None:
    one = ownership(tmp_path)
    await one.learn("a", seen())  # no close: the process just ends
    two = ownership(tmp_path)
    two.load()
    assert await owners(two) == ["a"]
    one.close()


async def test_a_torn_end_costs_only_itself(tmp_path: Path) -> None:
    one = ownership(tmp_path)
    await one.learn("a", seen())
    one.close()
    (path,) = (tmp_path / "projects").glob("seen-*")
    with path.open("ab") as file:
        file.write(path.read_bytes()[:-3])
    two = ownership(tmp_path)
    two.load()
    assert await owners(two) == ["a"]


async def test_what_two_projects_send_is_nobodys_also_after_a_restart(tmp_path: Path) -> None:
    one = ownership(tmp_path)
    await one.learn("a", seen())
    await one.learn("c", seen())
    assert await owners(one) == []
    one.close()
    two = ownership(tmp_path)
    two.load()
    assert await owners(two) == []


async def test_what_is_no_longer_seen_expires_and_what_is_stays(tmp_path: Path) -> None:
    day = Day("2026-05-01T00:00:00Z")
    known = ownership(tmp_path, day)
    other = "The settlement of the Brightwater account is due on the fourteenth of March, says the ledger."
    await known.learn("a", seen())
    await known.learn("a", seen(other))
    day.text = "2026-05-20T00:00:00Z"
    await known.learn("a", seen())
    day.text = "2026-06-05T00:00:00Z"
    known.load()
    assert await owners(known) == ["a"]
    assert await owners(known, other) == []
    known.close()


def write_index(folder: Path, project: str, text: str) -> None:
    prints = FingerprintIndex(KEY).prints(text).tobytes()
    FingerprintFiles(folder / "projects", KEY).write_index(
        project, [IndexedFile(b"p" * 16, 1, len(text), b"d" * 16, prints)]
    )


async def test_a_running_gateway_follows_a_new_index(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("gateway.app.ownership.LOOK_EVERY_S", 0.01)
    faults: list[Exception] = []
    known = ownership(tmp_path)
    known.load()
    await known.learn("c", seen())
    before = known.revision
    keeper = asyncio.ensure_future(known.keep(faults.append))
    write_index(tmp_path, "a", TEXT)
    await eventually(lambda: known.revision > before)
    keeper.cancel()
    (claims,) = await known.claims([TEXT])

    assert faults == []
    assert [(c.project, c.sources) for c in claims] == [("a", ((b"d" * 16).hex(),))]
    known.close()


async def test_a_damaged_index_is_told_and_the_old_one_stays(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("gateway.app.ownership.LOOK_EVERY_S", 0.01)
    write_index(tmp_path, "a", TEXT)
    known = ownership(tmp_path)
    known.load()
    (tmp_path / "projects" / "a.index").write_bytes(b"nonsense")
    faults: list[Exception] = []
    keeper = asyncio.ensure_future(known.keep(faults.append))
    await eventually(lambda: faults)
    keeper.cancel()
    assert await owners(known) == ["a"]


async def test_nobody_owns_what_comes_without_a_project(tmp_path: Path) -> None:
    known = ownership(tmp_path)
    await known.learn("default", seen())
    await known.learn("stranger", seen())
    assert len(known.index) == 0


async def test_a_canary_marks_everything_around_it(tmp_path: Path) -> None:
    known = ownership(tmp_path)
    text = f"totals\n# {canary(KEY, 'a')}\n17 4 8"
    (claims,) = await known.claims([text])
    assert [(c.project, c.evidence, c.spans) for c in claims] == [("a", "canary", ((0, len(text)),))]
    assert canary(KEY, "a") != canary(KEY, "b")
    assert await known.claims(["egc-" + "a" * 26]) == [()]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Working directory: /srv/a", [("a", "cwd")]),
        ("cat /srv/a/x.py", [("a", "path")]),
        ("cat /srv/a-b/x.py", [("b", "path")]),
        ("cat /srv/a-bc/x.py and /srv/abc", []),
        ("project: b", [("b", "tag")]),
    ],
)
async def test_mentions_are_whole_components(
    tmp_path: Path, text: str, expected: list[tuple[str, str]]
) -> None:
    (claims,) = await ownership(tmp_path).claims([text])
    assert [(c.project, c.evidence) for c in claims] == expected


def _cases() -> list[tuple[str, str, bool, bool, str]]:
    flags = (False, True)
    return [
        (asking, owner, role, policy, event)
        for asking, owner in itertools.product("abc", "abc")
        for role, policy in itertools.product(flags, flags)
        for event in ("search", "recall", "import")
    ]


@pytest.mark.parametrize(("asking", "owner", "role", "policy", "event"), _cases())
def test_the_truth_table_of_the_rule(
    tmp_path: Path, asking: str, owner: str, role: bool, policy: bool, event: str
) -> None:
    """contract.md §9.4 with privacy and links of PROJECTS: b may see a's by link, a may see b's by team, c none."""
    known = ownership(tmp_path, cross_project_search=policy)
    peer = Peer(asking, roles=("admin",) if role else (), team=PROJECTS[asking].team)
    (ruling,) = known.rule(peer, [Reach(owner, event, 3)], "2026-05-03T09:43:12Z")

    open_ = role and policy and event == "search" and (asking, owner) in {("b", "a"), ("a", "b")}
    assert ruling.allowed is (asking == owner or open_)
    if asking == owner:
        assert ruling.audit == b""
        return
    told = CrossProjectEventV1.from_json(ruling.audit)
    source, target = (owner, asking) if event == "import" else (asking, owner)
    assert (told.source_project_hash, told.target_project_hash) == (f"hash-{source}", f"hash-{target}")
    assert (told.allowed, told.facts_accessed, str(told.event_type)) == (ruling.allowed, 3, event)


def test_no_audit_where_the_policy_keeps_none_or_nothing_was_reached(tmp_path: Path) -> None:
    reach = Reach("a", "search", 3)
    assert (
        ownership(tmp_path, audit_cross_access=False)
        .rule(Peer("c"), [reach], "2026-05-03T09:43:12Z")[0]
        .audit
        == b""
    )
    (named,) = ownership(tmp_path).rule(Peer("c"), [Reach("a", "search", 0)], "2026-05-03T09:43:12Z")
    assert (named.allowed, named.audit) == (False, b"")


@pytest.mark.parametrize("peer", ["default", "stranger"])
def test_whoever_has_no_project_sees_nothing(tmp_path: Path, peer: str) -> None:
    known = ownership(tmp_path, cross_project_search=True)
    (ruling,) = known.rule(Peer(peer, roles=("admin",), team="blue"), [Reach("b", "search", 1)], Day().now())
    assert ruling.allowed is False


def shared(folder: Path) -> Fingerprints:
    """One of several processes over the same files, as a worker has it."""
    made = ownership(folder)
    made.shared = True
    made.load()
    return made


async def test_what_another_process_learns_is_known_at_once(tmp_path: Path) -> None:
    one, two = shared(tmp_path), shared(tmp_path)
    assert await owners(two) == []
    await one.learn("a", seen())
    assert await owners(two) == ["a"]
    late = shared(tmp_path)
    assert await owners(late) == ["a"]
    await two.learn("c", seen())
    for each in (one, two, late):
        assert await owners(each) == []
        each.close()


async def test_a_record_that_is_not_all_there_is_read_when_it_is(tmp_path: Path) -> None:
    one, two = shared(tmp_path), shared(tmp_path)
    await one.learn(
        "a", seen("Quite another text, which is long enough to be somebody's own and nobody else's.")
    )
    one.close()
    (path,) = (tmp_path / "projects").glob("seen-*")
    record = path.read_bytes()
    other = ownership(tmp_path / "other")
    await other.learn("a", seen())
    other.close()
    (whole,) = (tmp_path / "other" / "projects").glob("seen-*")
    path.write_bytes(record + whole.read_bytes()[:-5])
    assert await owners(two) == []
    path.write_bytes(record + whole.read_bytes())
    assert await owners(two) == ["a"]
    two.close()
