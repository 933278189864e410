"""Quarantine and approval, end to end: hold, look, release with a signed record, and the next turn carries it."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import apsw
import httpx
import orjson
import pytest

from gateway.app.review import PURPOSE
from gateway.errors import VerificationError
from gateway.evidence.sign import verifies
from gateway.ports import Reviewer
from gateway.store.held import unseal
from tests.support.gateway import Bench, gateway
from tests.support.waiting import eventually

WORDS = "the merger is called Nightjar"
RULES = """
[[rule]]
id = "held.tool"
why = "w"
when = { kind = "tool_result" }
then = { disposition = "quarantine", reason_codes = ["custom.held"] }

[[rule]]
id = "held.user"
why = "w"
when = { kind = "text", channel = "user", bytes_min = 200 }
then = { disposition = "allow_with_approval", reason_codes = ["custom.approval"] }
"""


def layer(folder: Path, rules: str = RULES) -> str:
    """A second bundle with these rules; gives its folder."""
    path = folder / "layer"
    (path / "rules").mkdir(parents=True, exist_ok=True)
    (path / "bundle.toml").write_text('name = "layer"\nversion = "1.0.0"\ndescription = "d"\n')
    (path / "rules" / "r.toml").write_text(rules)
    return str(path)


def settings(folder: Path, **more: Any) -> dict[str, Any]:
    for name in ("ann", "bob", "eve"):
        (folder / f"{name}.token").write_text(f"{name}-{'t' * 40}\n")
    return {
        "policy": {"bundles": ["policies/default", layer(folder)], "poll_s": 0},
        "reviewers": {
            "ann": {
                "token_file": str(folder / "ann.token"),
                "roles": ["view", "content", "release", "approve"],
            },
            "bob": {"token_file": str(folder / "bob.token"), "principals": ["unknown"]},
            "eve": {"token_file": str(folder / "eve.token"), "roles": ["view"]},
        },
        **more,
    }


@pytest.fixture
async def bench(tmp_path: Path) -> AsyncIterator[Bench]:
    async with gateway(tmp_path, settings(tmp_path)) as running:
        yield running


class Control:
    """The control port, as somebody."""

    def __init__(self, bench: Bench, who: str = "ann") -> None:
        self._url = f"http://127.0.0.1:{bench.running.control.port}"
        self._headers = {"authorization": f"Bearer {who}-{'t' * 40}"}

    async def __call__(self, method: str, path: str, body: Any = None) -> tuple[int, Any]:
        async with httpx.AsyncClient(base_url=self._url, headers=self._headers) as client:
            answer = await client.request(method, path, **({"json": body} if body is not None else {}))
            return answer.status_code, answer.json()


def tool(text: str = WORDS, *later: Any) -> dict[str, Any]:
    return {
        "model": "claude-x",
        "max_tokens": 5,
        "messages": [
            {"role": "user", "content": "run"},
            {"role": "assistant", "content": [{"type": "tool_use", "id": "t1", "name": "Bash", "input": {}}]},
            {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "t1", "content": text}]},
            *later,
        ],
    }


async def held(control: Control, noun: str = "quarantine") -> dict[str, Any]:
    _, page = await control("GET", f"/v1/{noun}")
    (item,) = page["items"]
    return dict(item)


async def test_what_is_quarantined_is_stubbed_sealed_released_and_then_carried(bench: Bench) -> None:
    ann = Control(bench)
    first = await bench.send(tool())
    item = await held(ann)
    content = await ann("GET", f"/v1/quarantine/{item['id']}/content")
    status, released = await ann("POST", f"/v1/quarantine/{item['id']}/release", {})
    second = await bench.send(tool(WORDS, {"role": "assistant", "content": "ok"}))
    rows = await bench.rows()

    assert (first.status, second.status) == (200, 200)
    stub = json.loads(bench.arrived[0].body)["messages"][2]["content"][0]
    assert stub["tool_use_id"] == "t1"
    assert item["id"].partition(".")[0] in stub["content"]
    assert WORDS in json.loads(bench.arrived[1].body)["messages"][2]["content"][0]["content"]
    assert (item["state"], released["state"], status) == ("held", "released", 200)
    assert content[1]["content"] == WORDS
    assert item["object_kind"] == "tool_result"
    assert WORDS not in json.dumps(item)
    assert [row["effect"] for row in rows] == ["forwarded", "rewritten"]
    assert rows[1]["receipt"]["security"]["quarantined_objects"] == 1
    assert "quarantine.released" in rows[0]["evaluation"]["reason_codes"]
    events, _ = await bench.running.core.egress.store.rows({"kind": "event"})
    said = [event.get("event") for event in events]
    assert "quarantine.released" in said
    assert "review.content" in said
    assert not any(WORDS.encode() in data for data in bench.written().values())
    vault = b"".join(path.read_bytes() for path in (bench.state / "vault").rglob("*") if path.is_file())
    assert WORDS.encode() not in vault


async def test_a_resend_leaves_byte_for_byte_as_before(bench: Bench) -> None:
    await bench.send(tool())
    await bench.send(tool(WORDS, {"role": "assistant", "content": "ok"}))
    one, two = (bytes(arrived.body) for arrived in bench.arrived)

    assert two.startswith(one[:-2])


async def test_who_may_not_decide_cannot(bench: Bench) -> None:
    await bench.send(tool())
    item = await held(Control(bench))
    place = f"/v1/quarantine/{item['id']}"

    assert (await Control(bench, "eve")("POST", f"{place}/release", {}))[0] == 403
    assert (await Control(bench, "eve")("GET", f"{place}/content"))[0] == 403
    status, body = await Control(bench, "bob")("POST", f"{place}/release", {})
    assert (status, body["error"]["code"]) == (403, "review.own_request")
    assert (await Control(bench, "mallory")("POST", f"{place}/release", {}))[0] == 401
    assert (await Control(bench)("POST", f"{place}/release"))[0] == 400
    assert (await Control(bench)("POST", f"{place}/explode", {}))[0] == 404
    assert (await Control(bench)("POST", "/v1/quarantine/q-0000/release", {}))[0] == 404
    assert (await held(Control(bench)))["state"] == "held"


async def test_a_discarded_object_stays_stubbed_and_its_content_is_gone(bench: Bench) -> None:
    ann = Control(bench)
    await bench.send(tool())
    item = await held(ann)
    await ann("POST", f"/v1/quarantine/{item['id']}/discard", {})
    reply = await bench.send(tool())
    status, body = await ann("GET", f"/v1/quarantine/{item['id']}/content")

    assert reply.status == 200
    assert WORDS.encode() not in bytes(bench.arrived[1].body)
    assert (status, body["error"]["code"]) == (503, "vault.sealed")
    assert (await ann("POST", f"/v1/quarantine/{item['id']}/release", {}))[0] == 409


async def test_a_release_is_of_one_object_destination_and_policy(bench: Bench, tmp_path: Path) -> None:
    ann = Control(bench)
    await bench.send(tool())
    item = await held(ann)
    await ann("POST", f"/v1/quarantine/{item['id']}/release", {})
    other = await bench.send(tool(WORDS + "!"))
    elsewhere = {
        "model": "m",
        "messages": [{"role": "tool", "tool_call_id": "t1", "content": WORDS}],
    }
    await bench.send(elsewhere, host="api.openai.com", target="/v1/chat/completions")
    layer(tmp_path, RULES + '\n[[rule]]\nid = "one.more"\nwhy = "w"\nwhen = { kind = "media" }\nthen = { disposition = "deny", reason_codes = ["a.bcd"] }\n')  # fmt: skip
    assert (await bench.running.core.policy.reload()).changed
    await bench.send(tool())

    assert other.status == 200
    for arrived in bench.arrived[1:]:
        assert WORDS.encode() not in bytes(arrived.body)


async def test_forged_moved_and_expired_releases_count_for_nothing(bench: Bench) -> None:
    ann, desk = Control(bench), bench.running.core.desk
    await bench.send(tool())
    await bench.send(tool("other words"))
    page = (await ann("GET", "/v1/quarantine"))[1]["items"]
    one, two = page[1]["id"], page[0]["id"]
    await ann("POST", f"/v1/quarantine/{one}/release", {})
    database = apsw.Connection(str(bench.state / "vault" / "held.db"))
    genuine = next(iter(database.execute("SELECT statement, signature FROM votes WHERE hold = ?", (one,))))
    public = bench.running.core.keys.signing_key().public_key
    assert verifies(public, bytes(genuine[1]), PURPOSE + bytes(genuine[0]))

    database.execute("UPDATE held SET state = 'released' WHERE id = ?", (two,))
    assert await desk.reviews("default", [two]) == {}
    database.execute(
        "INSERT INTO votes VALUES (?, 'ann', ?, ?)", (two, *genuine)
    )  # replayed for another object
    database.execute("UPDATE held SET state = 'released' WHERE id = ?", (two,))
    assert await desk.reviews("default", [two]) == {}
    forged = orjson.dumps({**orjson.loads(genuine[0]), "hold": two})
    database.execute("INSERT INTO votes VALUES (?, 'ann', ?, ?)", (two, forged, genuine[1]))
    database.execute("UPDATE held SET state = 'released' WHERE id = ?", (two,))
    assert await desk.reviews("default", [two]) == {}
    assert await desk.reviews("other-project", [one]) == {}
    assert await desk.reviews("default", [one]) == {one: "released"}
    desk.hours = 0
    desk.clock = type("Later", (), {"now": lambda _: "2999-01-01T00:00:00.000000Z"})()
    assert await desk.reviews("default", [one]) == {}
    database.close()


async def test_a_sealed_object_opens_only_as_itself(bench: Bench) -> None:
    desk, keys = bench.running.core.desk, bench.running.core.keys
    await bench.send(tool())
    (row,) = await desk.objects.search("quarantine", "", 5)
    key = keys.vault_key("default")
    from dataclasses import replace

    assert orjson.loads(unseal(row, key))["content"] == WORDS
    for moved in (
        replace(row, id="q-other.0000"),
        replace(row, project="other"),
        replace(row, facts={**row.facts, "policy": "sha256:" + "0" * 64}),
        replace(row, sealed=row.sealed[:-1] + b"\0" if row.sealed else None),
    ):
        with pytest.raises(VerificationError):
            unseal(moved, key)
    with pytest.raises(VerificationError):
        unseal(row, keys.vault_key("other"))


def long(text: str = "word ") -> dict[str, Any]:
    return {"model": "claude-x", "max_tokens": 5, "messages": [{"role": "user", "content": text * 60}]}


async def test_what_waits_for_approval_is_refused_natively_and_passes_once_approved(bench: Bench) -> None:
    ann = Control(bench)
    waiting = await bench.send(long())
    item = await held(ann, "approvals")
    (row,) = await bench.rows()
    await ann("POST", f"/v1/approvals/{item['id']}/approve", {})
    passed = await bench.send(long())

    assert waiting.status == 400
    assert "approval.pending" in waiting.body.decode()
    assert item["id"] in waiting.body.decode()
    assert json.loads(waiting.body)["type"] == "error"
    assert waiting.header("x-should-retry") == "false"
    assert row["effect"] == "held"
    assert passed.status == 200
    assert len(bench.arrived) == 1
    assert "approval.granted" in (await bench.rows())[0]["evaluation"]["reason_codes"]


async def test_a_denied_approval_says_so(bench: Bench) -> None:
    ann = Control(bench)
    await bench.send(long())
    item = await held(ann, "approvals")
    await ann("POST", f"/v1/approvals/{item['id']}/deny", {})
    again = await bench.send(long())

    assert again.status == 400
    assert "approval.denied" in again.body.decode()
    assert bench.arrived == []


async def test_a_request_can_wait_for_its_approval(tmp_path: Path) -> None:
    document = settings(tmp_path, limits={"approval_wait_ms": 20_000})
    async with gateway(tmp_path, document) as bench:
        ann = Control(bench)
        sent = asyncio.ensure_future(bench.send(long()))
        _, waiting = await eventually(lambda: ann("GET", "/v1/approvals"), lambda said: said[1]["items"])
        items = waiting["items"]
        assert bench.arrived == []
        await ann("POST", f"/v1/approvals/{items[0]['id']}/approve", {})
        reply = await sent

    assert reply.status == 200


async def test_a_wait_that_is_over_is_a_refusal(tmp_path: Path) -> None:
    document = settings(tmp_path, limits={"approval_wait_ms": 100})
    async with gateway(tmp_path, document) as bench:
        reply = await bench.send(long())

    assert reply.status == 400
    assert "approval.pending" in reply.body.decode()


async def test_four_eyes_need_two_people(tmp_path: Path) -> None:
    document = settings(tmp_path, review={"reviewers_needed": 2})
    document["reviewers"]["bob"]["principals"] = []
    async with gateway(tmp_path, document) as bench:
        ann, bob = Control(bench), Control(bench, "bob")
        await bench.send(tool())
        item = await held(ann)
        states = [
            (await who("POST", f"/v1/quarantine/{item['id']}/release", {}))[1]["state"]
            for who in (ann, ann, bob)
        ]
        await bench.send(tool())

    assert states == ["held", "held", "released"]
    assert WORDS.encode() in bytes(bench.arrived[-1].body)


async def test_without_reviewers_the_operator_decides_and_with_them_not(bench: Bench, tmp_path: Path) -> None:
    await bench.send(tool())
    item = await held(Control(bench))
    token = (bench.state / "control.token").read_text().strip()
    async with httpx.AsyncClient(headers={"authorization": f"Bearer {token}"}) as client:
        url = f"http://127.0.0.1:{bench.running.control.port}/v1/quarantine/{item['id']}/release"
        refused = await client.post(url, json={})

    assert refused.status_code == 403
    desk = bench.running.core.desk
    everything = Reviewer("operator", frozenset({"view", "release"}))
    assert (await desk.decide("quarantine", item["id"], "release", everything))["state"] == "released"
