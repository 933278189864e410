"""Turns of one conversation on alternating workers: whatever a single process would know, each of them knows.

The law: any distribution of a script's requests over two workers gives the bytes and refusals that one process gives.
"""

from __future__ import annotations

import asyncio
import base64
import itertools
import json
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import pytest

from gateway.app import wiring
from gateway.app.core import Core
from gateway.ports import Admitted, Reviewer
from tests.integration.test_boundary import FILE
from tests.integration.test_review import RULES, layer
from tests.integration.test_sticky import LOOSE, MASK
from tests.support.cores import Outcome, cores, request, turn
from tests.support.waiting import eventually

SECRET = "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"
PASSWORD = "Tr4verse-Lumen-88"
MAIL = "alice.meyer@northwind-traders.org"
SIGNATURE = base64.b64encode(bytes(range(200))).decode()


@pytest.fixture(scope="module", autouse=True)
def one_detector() -> Iterator[None]:
    """Compile the detector once for all tests here."""
    detector = wiring.build_detector()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(wiring, "build_detector", lambda *_: detector)
        yield


def user(text: str) -> dict[str, Any]:
    return {"role": "user", "content": text}


def said(text: str, *, signed: bool = False) -> dict[str, Any]:
    thinking = [{"type": "thinking", "thinking": "hm", "signature": SIGNATURE}] if signed else []
    return {"role": "assistant", "content": [*thinking, {"type": "text", "text": text}]}


def tool(text: str) -> dict[str, Any]:
    return {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "t1", "content": text}]}


type Script = list[tuple[str, list[Any]]]


def growing(*messages: Any) -> Script:
    """The turns of a conversation of project `a`: each holds all before it."""
    ends = [at for at, message in enumerate(messages, 1) if message["role"] == "user"]
    return [("a", list(messages[:end])) for end in ends]


SIGNED = (
    user(f"remember {PASSWORD} for me"), said("yes", signed=True), user("thanks"), said("ok"), user("and now?"),
)  # fmt: skip
SCRIPTS: dict[str, Script] = {
    "a value that only its context gives away comes back without it": growing(
        user(f"connect with password={PASSWORD} please"), said("ok"), user("go on"), said("ok"),
        user(f"it was {PASSWORD}, right?"), said("yes"), user(f"not {PASSWORD}x?"),
    ),
    "edits stay as they were": growing(
        user(f"mail {MAIL} about {SECRET}"), said("done"), user("again"), said("done"), user(f"and {MAIL}"),
    ),
    "a value of another conversation is masked here too": [
        ("a", [user(f"connect with password={PASSWORD} please")]),
        ("a", [user("something else")]),
        ("a", [user(f"tell me about {PASSWORD}")]),
        ("b", [user(f"tell me about {PASSWORD}")]),
        ("a", [user(f"and what of {PASSWORD}")]),
    ],
    "signed history holds what was sent before": [
        *growing(*SIGNED)[:2],
        ("a", [user(f"connect with password={PASSWORD} please")]),
        *growing(*SIGNED)[2:],
    ],
    "what a project sent is its own": [
        ("a", [user("read"), said("ok"), tool(FILE)]),
        ("b", [user("read"), said("ok"), tool(FILE)]),
        ("b", [user("read"), said("ok"), tool(FILE), said("ok"), user("go on")]),
        ("a", [user("read"), said("ok"), tool(FILE), said("ok"), user("go on")]),
    ],
}  # fmt: skip
PLANS = ((0, 1), (0, 1, 1, 0), (0, 0, 1), (1, 0))
"""Which worker takes which request, over and over."""


def projects(number: int) -> dict[str, str]:
    """The two projects of one run, which shares nothing with other runs."""
    return {"a": f"atlas-{number}", "b": f"borealis-{number}"}


async def play(workers: list[Core], script: Script, plan: tuple[int, ...], number: int) -> list[Outcome]:
    """A script's outcomes; every worker has met the projects before."""
    names = projects(number)
    for core, project in itertools.product(workers, names.values()):
        await turn(core, project, [user("hello")])
    outcomes = []
    for (project, messages), at in zip(script, itertools.cycle(plan), strict=False):
        # What two projects sent is nobody's: every line differs from one run to the next.
        own = json.loads(
            json.dumps(messages).replace("\\n", f" {'abcdefghijklmnopqrstuvwxyz'[number] * 9}\\n")
        )
        worker = workers[at % len(workers)]
        outcomes.append(await turn(worker, names[project], own, f"I saw {PASSWORD} and more"))
    return outcomes


@pytest.fixture(scope="module")
def runs(
    tmp_path_factory: pytest.TempPathFactory,
) -> dict[tuple[str, tuple[int, ...]], tuple[list[Outcome], ...]]:
    """Every script under every plan, by one process and by two workers."""
    folder, cases = tmp_path_factory.mktemp("runs"), list(itertools.product(SCRIPTS, PLANS))
    names = [name for number in range(len(cases)) for name in projects(number).values()]
    document = {"projects": {name: {} for name in names}}

    async def everything(count: int) -> list[list[Outcome]]:
        async with cores(folder / str(count), document, count) as workers:
            return [
                await play(workers, SCRIPTS[name], plan, number) for number, (name, plan) in enumerate(cases)
            ]

    return dict(
        zip(cases, zip(asyncio.run(everything(1)), asyncio.run(everything(2)), strict=True), strict=True)
    )


@pytest.mark.parametrize("plan", PLANS, ids=str)
@pytest.mark.parametrize("name", SCRIPTS)
def test_workers_do_what_one_process_does(runs: Any, name: str, plan: tuple[int, ...]) -> None:
    expected, found = runs[name, plan]
    assert found == expected


def test_the_scripts_show_something(runs: Any) -> None:
    """Each of them does what its name says, or the law above would hold for nothing."""
    bare, foreign, signed = (
        runs[name, PLANS[0]][0]
        for name in (
            "a value that only its context gives away comes back without it",
            "what a project sent is its own",
            "signed history holds what was sent before",
        )
    )
    assert all(PASSWORD not in outcome.body for outcome in bare)
    assert "fee_schedule" in foreign[0].body
    assert "fee_schedule" not in foreign[1].body
    assert SIGNATURE in signed[1].body
    assert SIGNATURE not in signed[-1].body


@pytest.fixture
async def pair(tmp_path: Path) -> AsyncIterator[list[Core]]:
    async with cores(tmp_path / "pair", {}, 2) as workers:
        yield workers


async def test_placeholders_are_restored_by_a_worker_that_never_saw_the_value(pair: list[Core]) -> None:
    one, two = pair
    first = await turn(one, "default", [user(f"use {SECRET}")])
    token = first.body.split("use ")[1].split('"')[0]
    history = [user(f"use {SECRET}"), said(f"with {token}"), user("again")]
    second = await turn(two, "default", history, answer=f"done with {token}")
    assert token in second.body
    assert SECRET not in second.body
    assert SECRET in second.answer


async def test_a_loosened_policy_reaches_back_on_no_worker(tmp_path: Path) -> None:
    document = {"policy": {"bundles": [layer(tmp_path, MASK)], "poll_s": 0}}
    talk = [user("hello"), said("hi"), user(f"write to {MAIL}"), said("done"), user("thanks")]
    async with cores(tmp_path / "pair", document, 2) as (one, two):
        await turn(one, "default", talk[:1])
        masked = await turn(two, "default", talk[:3])
        layer(tmp_path, MASK + LOOSE)
        for core in (one, two):
            assert (await core.policy.reload()).changed
        later = await turn(one, "default", talk)
        fresh = await turn(two, "default", [user(f"write to {MAIL}")])
    assert MAIL not in masked.body
    assert MAIL not in later.body
    assert MAIL in fresh.body


async def test_two_workers_that_mask_one_value_at_once_agree(pair: list[Core]) -> None:
    one, two = pair
    bodies = await asyncio.gather(
        *(turn(core, "default", [user(f"{n} use {SECRET}")]) for n, core in enumerate([one, two] * 5))
    )
    tokens = {outcome.body.split("use ")[1].split('"')[0] for outcome in bodies}
    assert len(tokens) == 1


async def test_a_release_on_the_control_port_lets_a_waiting_worker_go(tmp_path: Path) -> None:
    document = {
        "policy": {"bundles": ["policies/default", layer(tmp_path, RULES)], "poll_s": 0},
        "limits": {"approval_wait_ms": 30_000},
    }
    async with cores(tmp_path / "pair", document, 2) as (one, two):
        waiting = asyncio.ensure_future(turn(one, "default", [user("x" * 300)]))
        rows, _ = await eventually(
            lambda: two.desk.rows("approval", {}, Reviewer("ann", frozenset({"view"}))),
            lambda found: found[0],
        )
        await two.desk.decide(
            "approval", rows[0]["id"], "approve", Reviewer("ann", frozenset({"view", "approve"}))
        )
        outcome = await asyncio.wait_for(waiting, 10)
        held = await turn(one, "default", [user("a"), said("b"), tool("the merger")])
        released, _ = await two.desk.rows("quarantine", {}, Reviewer("ann", frozenset({"view"})))
        assert "the merger" not in held.body
        await two.desk.decide(
            "quarantine", released[0]["id"], "release", Reviewer("ann", frozenset({"view", "release"}))
        )
        let_go = await turn(one, "default", [user("a"), said("b"), tool("the merger"), said("c"), user("d")])
    assert outcome.status == 200
    assert "the merger" in let_go.body


async def test_budgets_are_counted_for_all_workers_together(tmp_path: Path) -> None:
    document = {"budgets": {"few": {"requests": 3, "window_s": 1_000_000}}}
    async with cores(tmp_path / "pair", document, 2) as workers:
        statuses = [(await turn(workers[n % 2], "default", [user(f"{n}")])).status for n in range(5)]
    assert statuses == [200, 200, 200, 400, 400]


async def test_the_kill_switch_stops_every_worker_at_once(pair: list[Core]) -> None:
    pair[0].kill.turn(on=True)
    assert [(await turn(core, "default", [user("hi")])).status for core in pair] == [503, 503]
    pair[1].kill.turn(on=False)
    assert [(await turn(core, "default", [user("hi")])).status for core in pair] == [200, 200]


async def test_a_forgotten_value_is_forgotten_by_every_worker(pair: list[Core]) -> None:
    from gateway.app.upkeep import vault_forget

    await turn(pair[0], "default", [user(f"password={PASSWORD}")])
    assert PASSWORD not in (await turn(pair[1], "default", [user(f"about {PASSWORD}")])).body
    await asyncio.to_thread(vault_forget, pair[0].config, "default", PASSWORD)
    for core in pair:
        assert PASSWORD in (await turn(core, "default", [user(f"now about {PASSWORD}")])).body


async def test_a_response_is_continued_on_another_workers_connection(pair: list[Core]) -> None:
    """The Responses API over WebSockets: a message names the response it builds on, and holds only what is new."""
    one, two = pair
    where = {"host": "api.openai.com", "target": "/v1/responses", "transport": "websocket"}

    def create(text: str, **more: Any) -> dict[str, Any]:
        return {"type": "response.create", "model": "m", "input": [user(text)], **more}

    first = request("default", create(f"use {SECRET}"), **where)
    admitted = await one.use_case.handle(first)
    assert isinstance(admitted, Admitted)
    token = admitted.body.decode().split("use ")[1].split('"')[0]
    talk = one.use_case.converse("api.openai.com", "/v1/responses", "default")
    assert talk is not None
    talk.sent(first.request_id, admitted)
    talk.told(b'{"type":"response.created","response":{"id":"resp_1"}}')
    talk.told(b'{"type":"response.completed","response":{"id":"resp_1","output":[]}}')
    await asyncio.sleep(0.05)
    second = request("default", create("again", previous_response_id="resp_1"), **where)
    verdict = await two.use_case.handle(second)
    assert isinstance(verdict, Admitted)
    other = two.use_case.converse("api.openai.com", "/v1/responses", "default")
    assert other is not None
    other.sent(second.request_id, verdict)
    delta = {"type": "response.completed", "response": {"id": "resp_2", "output": [
        {"type": "message", "content": [{"type": "output_text", "text": f"it is {token}"}]}
    ]}}  # fmt: skip
    told = b"".join(other.told(json.dumps(delta).encode()).messages).decode()
    assert SECRET in told


async def test_without_the_writer_every_request_is_refused_and_then_none(tmp_path: Path) -> None:
    async with cores(tmp_path / "pair", {}, 2) as workers:
        link = workers[0].stores.link
        assert link is not None
        keeping, link._link._keeping = link._link._keeping, None
        assert keeping is not None
        keeping.cancel()
        await asyncio.sleep(0.01)
        refused = await turn(workers[0], "default", [user("hi")])
        link.open()
        assert await link.ready(5)
        served = await turn(workers[0], "default", [user("hi")])
    assert refused.status == 503
    assert "evidence.unavailable" in refused.body
    assert served.status == 200
