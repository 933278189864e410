"""What an approval is good for and what it is not, each through the real proxy: one case for each way to stretch it."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import apsw
import orjson
import pytest
import pytest_asyncio

from gateway.errors import VerificationError
from gateway.store.held import HeldObjects, unseal
from gateway.store.keys import Keyring
from tests.integration.test_review import RULES, WORDS, Control, layer, long, settings, tool
from tests.support.client import Reply
from tests.support.gateway import Bench, gateway

CHAT = {"host": "api.openai.com", "target": "/v1/chat/completions"}


pytestmark = pytest.mark.asyncio(loop_scope="module")


@dataclass(frozen=True)
class Place:
    bench: Bench
    folder: Path


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def place(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Place]:
    """One gateway for all: each case has words of its own."""
    folder = tmp_path_factory.mktemp("lines")
    async with gateway(folder, settings(folder, projects={"other": {}})) as running:
        yield Place(running, folder)


async def newest(control: Control, noun: str = "approvals") -> dict[str, Any]:
    _, page = await control("GET", f"/v1/{noun}")
    return dict(page["items"][0])


class Case:
    """An approved request, and the file that says so. `words` are what it says, `others` what nobody approved."""

    def __init__(self, place: Place, words: str, hold: str) -> None:
        self.bench, self.folder, self.hold = place.bench, place.folder, hold
        self.words, self.others = words, f"other {words}"

    def execute(self, sql: str, *values: Any) -> list[Any]:
        database = apsw.Connection(str(self.bench.state / "vault" / "held.db"))
        try:
            return list(database.execute(sql, values))
        finally:
            database.close()

    @property
    def statement(self) -> dict[str, Any]:
        ((data,),) = self.execute("SELECT statement FROM votes WHERE hold = ?", self.hold)
        return dict(orjson.loads(data))

    def restate(self, **changes: Any) -> None:
        """Another statement under the old signature."""
        changed = orjson.dumps({**self.statement, **changes}, option=orjson.OPT_SORT_KEYS)
        self.execute("UPDATE votes SET statement = ? WHERE hold = ?", changed, self.hold)


async def _nothing(case: Case) -> Reply:
    return await case.bench.send(long(case.words))


async def _expired(case: Case) -> Reply:
    case.bench.running.core.desk.clock = type("Later", (), {"now": lambda _: "2999-01-01T00:00:00.000000Z"})()
    return await case.bench.send(long(case.words))


async def _longer(case: Case) -> Reply:
    """Over, and given another end by whoever can write the file."""
    case.restate(expires="3999-01-01T00:00:00.000000Z")
    return await case.bench.send(long(case.words))


async def _other_words(case: Case) -> Reply:
    return await case.bench.send(long(case.others))


async def _other_project(case: Case) -> Reply:
    return await case.bench.send(long(case.words), user="other")


async def _other_provider(case: Case) -> Reply:
    return await case.bench.send({"model": "m", "messages": long(case.words)["messages"]}, **CHAT)


async def _other_policy(case: Case) -> Reply:
    more = '\n[[rule]]\nid = "one.more"\nwhy = "w"\nwhen = { kind = "media" }\nthen = { disposition = "deny", reason_codes = ["a.bcd"] }\n'
    layer(case.folder, RULES + more)
    assert (await case.bench.running.core.policy.reload()).changed
    return await case.bench.send(long(case.words))


async def _replayed(case: Case) -> Reply:
    """The genuine statement laid to another object that waits."""
    await case.bench.send(long(case.others))
    ((other,),) = case.execute("SELECT id FROM held ORDER BY seq DESC LIMIT 1")
    case.execute(
        "INSERT INTO votes SELECT ?, reviewer, statement, signature FROM votes WHERE hold = ?",
        other,
        case.hold,
    )
    case.execute("UPDATE held SET state = 'released' WHERE id = ?", other)
    return await case.bench.send(long(case.others))


async def _renamed(case: Case) -> Reply:
    """The whole entry moved to the id of another object."""
    await case.bench.send(long(case.others))
    ((other,),) = case.execute("SELECT id FROM held ORDER BY seq DESC LIMIT 1")
    case.execute("DELETE FROM held WHERE id = ?", other)
    case.execute("UPDATE held SET id = ? WHERE id = ?", other, case.hold)
    case.execute("UPDATE votes SET hold = ? WHERE hold = ?", other, case.hold)
    return await case.bench.send(long(case.others))


async def _another_reviewer(case: Case) -> Reply:
    case.execute("UPDATE votes SET reviewer = 'bob' WHERE hold = ?", case.hold)
    return await case.bench.send(long(case.words))


async def _unsigned(case: Case) -> Reply:
    case.execute("UPDATE votes SET signature = zeroblob(64) WHERE hold = ?", case.hold)
    return await case.bench.send(long(case.words))


async def _no_statement(case: Case) -> Reply:
    case.execute("DELETE FROM votes WHERE hold = ?", case.hold)
    return await case.bench.send(long(case.words))


async def _another_key(case: Case) -> Reply:
    """Signed by whoever has an installation of their own."""
    from gateway.app.review import PURPOSE

    key = Keyring(case.folder / "elsewhere").signing_key()
    body = orjson.dumps(case.statement, option=orjson.OPT_SORT_KEYS)
    case.execute(
        "UPDATE votes SET statement = ?, signature = ? WHERE hold = ?",
        body,
        key.sign(PURPOSE + body),
        case.hold,
    )
    return await case.bench.send(long(case.words))


@pytest.mark.parametrize(
    "stretch",
    [_expired, _longer, _other_words, _other_project, _other_provider, _other_policy, _replayed, _renamed, _another_reviewer,
     _unsigned, _no_statement, _another_key],
)  # fmt: skip
async def test_an_approval_is_good_for_nothing_else(place: Place, stretch: Any) -> None:
    bench, ann, words = place.bench, Control(place.bench), f"case{stretch.__name__} "
    clock = bench.running.core.desk.clock
    assert (await bench.send(long(words))).status == 400
    item = await newest(ann)
    assert (await ann("POST", f"/v1/approvals/{item['id']}/approve", {}))[0] == 200
    case = Case(place, words, item["id"])
    assert (await _nothing(case)).status == 200
    before = len(bench.arrived)
    try:
        reply = await stretch(case)
    finally:
        bench.running.core.desk.clock = clock

    assert reply.status == 400
    assert "approval.pending" in reply.body.decode()
    assert len(bench.arrived) == before


async def test_a_denial_stays_whatever_is_written_beside_it(place: Place) -> None:
    bench, ann, words = place.bench, Control(place.bench), "denied "
    await bench.send(long(words))
    item = await newest(ann)
    await ann("POST", f"/v1/approvals/{item['id']}/deny", {})
    case, before = Case(place, words, item["id"]), len(bench.arrived)
    case.restate(verdict="released")
    case.execute("UPDATE held SET state = 'released' WHERE id = ?", item["id"])
    reply = await bench.send(long(words))

    assert reply.status == 400
    assert len(bench.arrived) == before


async def test_what_was_decided_stands_signed_in_the_log_and_the_look_does(place: Place) -> None:
    bench, ann = place.bench, Control(place.bench)
    await bench.send(tool())
    item = await newest(ann, "quarantine")
    assert (await ann("GET", f"/v1/quarantine/{item['id']}/content"))[1]["content"] == WORDS
    await ann("POST", f"/v1/quarantine/{item['id']}/release", {})
    events, _ = await bench.running.core.egress.store.rows({"kind": "event", "limit": 1000})
    said = {event["event"]: event for event in events[::-1] if event.get("hold") == item["id"]}

    assert said["review.content"]["reviewer"] == "ann"
    released = said["quarantine.released"]
    assert {
        name: released[name] for name in ("hold", "digest", "destination", "policy", "project", "reviewer")
    } == {
        "hold": item["id"],
        "digest": item["digest"],
        "destination": item["destination"],
        "policy": item["policy"],
        "project": "default",
        "reviewer": "ann",
    }
    assert released["time"] < released["expires"]
    assert WORDS not in json.dumps(events)


async def test_the_file_is_useless_without_the_keys(place: Place) -> None:
    bench, folder = place.bench, place.folder
    await bench.send(tool("what nobody else may read"))
    item = await newest(Control(bench), "quarantine")
    stolen = folder / "stolen"
    stolen.mkdir(mode=0o700)
    for path in (bench.state / "vault").glob("held.db*"):
        (stolen / path.name).write_bytes(path.read_bytes())
        (stolen / path.name).chmod(0o600)
        assert b"nobody else may read" not in path.read_bytes()
    objects = HeldObjects(stolen / "held.db")
    try:
        (row,) = await objects.search("quarantine", item["id"], 5)
    finally:
        await objects.close()

    with pytest.raises(VerificationError):
        unseal(row, Keyring(folder / "nowhere").vault_key("default"))
    content = orjson.loads(unseal(row, bench.running.core.keys.vault_key("default")))["content"]
    assert content == "what nobody else may read"
