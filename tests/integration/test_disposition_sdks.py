"""Each of the eight dispositions with official SDKs: what the provider got, what the client saw, receipt, lineage, resend.

Every rule is about results of tools and is chosen by the model that is asked, so that requests differ in nothing else.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from dataclasses import dataclass
from typing import Any, Protocol

import anthropic
import openai
import pytest
import pytest_asyncio

from gateway.cli.environment import PROXY, ROOTS
from gateway.context import jsontext
from gateway.ports import Reviewer
from tests.support.gateway import Bench, gateway
from tests.support.pki import make
from tests.support.provider import Arrived, Provider

pytestmark = pytest.mark.asyncio(loop_scope="module")

DOMAIN = "northwind-traders.org"


def mail(sdk: Sdk, name: str) -> str:
    """An address of its own for each case: what is masked in one conversation is masked in all of its project."""
    return f"alice.{sdk.name}.{name.replace('_', '.')}@{DOMAIN}"


def result(sdk: Sdk, name: str) -> str:
    """What the tool found."""
    lines = (f"line number {n} of the report on {name} by {sdk.name}\n" for n in range(40))
    return f"first line, ask {mail(sdk, name)}\n" + "".join(lines) + "last line\n"


ANN = Reviewer("ann", frozenset({"view", "release", "approve"}))
THEN = {
    "allow": 'disposition = "allow", reason_codes = ["case.allow"]',
    "allow_minimized": 'disposition = "allow_minimized", transformations = ["selection"], '
    'parameters = { minimiser = "head_tail", head_lines = 2, tail_lines = 1 }, reason_codes = ["case.minimized"]',
    "allow_redacted": 'disposition = "allow_redacted", mask = { type = "email" }, reason_codes = ["case.redacted"]',
    "allow_summary_only": 'disposition = "allow_summary_only", parameters = { summariser = "log_templates" }, '
    'reason_codes = ["case.summary"]',
    "allow_local_model_only": 'disposition = "allow_local_model_only", parameters = { reroute = "local" }, '
    'reason_codes = ["case.local"]',
    "allow_with_approval": 'disposition = "allow_with_approval", reason_codes = ["case.approval"]',
    "quarantine": 'disposition = "quarantine", reason_codes = ["case.quarantine"]',
    "deny": 'disposition = "deny", reason_codes = ["case.deny"]',
}
OUTCOMES = {
    "allow": "allow",
    "allow_minimized": "transform",
    "allow_redacted": "redact",
    "allow_summary_only": "transform",
    "allow_local_model_only": "allow",
    "allow_with_approval": "deny",
    "quarantine": "deny",
    "deny": "deny",
}


class Sdk(Protocol):
    name: str
    refusal: type[Exception]

    def ask(self, model: str, *, turns: int) -> str:
        """The text of the answer to a conversation with one result of a tool, and more after it."""
        ...


class Chat:
    name = "chat"
    refusal = openai.BadRequestError

    def ask(self, model: str, *, turns: int) -> str:
        call = {"id": "call_1", "type": "function", "function": {"name": "report", "arguments": "{}"}}
        later = [{"role": "assistant", "content": "ok"}, {"role": "user", "content": "and?"}] * (turns - 1)
        messages: list[Any] = [
            {"role": "user", "content": f"read the report on {model}"},
            {"role": "assistant", "content": None, "tool_calls": [call]},
            {"role": "tool", "tool_call_id": "call_1", "content": result(self, model)},
            *later,
        ]
        with openai.OpenAI(api_key="sk-dummy") as client:
            answer = client.chat.completions.create(model=model, messages=messages)
        return answer.choices[0].message.content or ""


class Messages:
    name = "messages"
    refusal = anthropic.BadRequestError

    def ask(self, model: str, *, turns: int) -> str:
        later = [{"role": "assistant", "content": "ok"}, {"role": "user", "content": "and?"}] * (turns - 1)
        messages: list[Any] = [
            {"role": "user", "content": f"read the report on {model}"},
            {
                "role": "assistant",
                "content": [{"type": "tool_use", "id": "toolu_1", "name": "report", "input": {}}],
            },
            {
                "role": "user",
                "content": [
                    {"type": "tool_result", "tool_use_id": "toolu_1", "content": result(self, model)}
                ],
            },
            *later,
        ]
        with anthropic.Anthropic(api_key="sk-ant-dummy") as client:
            answer = client.messages.create(model=model, messages=messages, max_tokens=64)
        return "".join(block.text for block in answer.content if block.type == "text")


SDKS: dict[str, Sdk] = {"chat": Chat(), "messages": Messages()}


@dataclass(frozen=True)
class Place:
    bench: Bench
    local: Provider

    async def rows(self, count: int) -> list[tuple[dict[str, Any], dict[str, Any]]]:
        """The latest requests, oldest first: the row, and its object that is a tool's result."""
        rows = (await self.bench.rows(limit=count))[::-1]
        return [
            (row, next(o for o in row["evaluation"]["objects"] if o["kind"] == "tool_result")) for row in rows
        ]

    async def lineage(self, row: dict[str, Any]) -> dict[str, Any]:
        record = await self.bench.running.core.egress.store.record(row["lineage"])
        return dict(json.loads(record or b""))


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def place(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Place]:
    folder = tmp_path_factory.mktemp("dispositions")
    rules = [
        f'[[rule]]\nid = "case.{name}"\nwhy = "w"\nwhen = {{ kind = "tool_result", model = "{name}" }}\nthen = {{ {then} }}\n'
        for name, then in THEN.items()
    ]
    rules.append(
        '[[rule]]\nid = "case.there"\nwhy = "w"\nwhen = { kind = "tool_result", provider = "local" }\n'
        f"then = {{ {THEN['allow_local_model_only']} }}\n"
    )
    layer = folder / "layer"
    (layer / "rules").mkdir(parents=True)
    (layer / "bundle.toml").write_text('name = "cases"\nversion = "1.0.0"\ndescription = "d"\n')
    (layer / "rules" / "r.toml").write_text("\n".join(rules))
    other = Provider(make(folder / "local", "localhost"))
    await other.start(plain=True)
    document = {
        # alone: what the packaged bundle does with a mail address must not hide what these rules do
        "policy": {"bundles": [str(layer)], "poll_s": 0},
        "local_models": {
            "local": {
                "url": f"http://127.0.0.1:{other.port}/v1",
                "model": "qwen3",
                "dialects": ["openai_chat", "anthropic"],
            }
        },
    }
    try:
        async with gateway(folder, document) as bench:
            yield Place(bench, other)
    finally:
        await other.stop()


@pytest.fixture(autouse=True)
def _fresh(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in PROXY:
        monkeypatch.setenv(name, f"http://127.0.0.1:{place.bench.port}")
    for name in ROOTS:
        monkeypatch.setenv(name, str(place.bench.state / "ca-bundle.pem"))
    for name in ("NO_PROXY", "no_proxy", "ALL_PROXY", "all_proxy"):
        monkeypatch.delenv(name, raising=False)
    place.bench.arrived.clear()
    place.local.arrived.clear()


def result_in(arrived: Arrived) -> str:
    """The text that stands for the tool's result in a request."""
    message = json.loads(bytes(arrived.body))["messages"][2]
    content = message["content"]
    return str(content if isinstance(content, str) else content[0]["content"])


def messages_of(arrived: Arrived) -> tuple[str, str]:
    """What stands before the list of messages, and the list without its end."""
    text = bytes(arrived.body).decode()
    start, end = jsontext.locate(text, {("messages",)})["messages",]
    return text[:start], text[start : end - 1]


def is_continued(one: Arrived, two: Arrived) -> bool:
    """Whether a later turn repeats an earlier one byte for byte before it goes on."""
    (before, said), (again, more) = messages_of(one), messages_of(two)
    return before == again and more.startswith(said) and len(more) > len(said)


async def said(sdk: Sdk, model: str, *, turns: int) -> str:
    """What the SDK was answered, in a thread of its own: gateway and provider run on this loop."""
    return await asyncio.to_thread(sdk.ask, model, turns=turns)


async def check(place: Place, name: str, row: dict[str, Any], item: dict[str, Any], outcome: str) -> None:
    """What receipt, evaluation record and lineage say of a request that left."""
    receipt, lineage = row["receipt"], await place.lineage(row)
    at = row["evaluation"]["objects"].index(item)

    assert (item["disposition"], receipt["decisions"][at]["disposition"]) == (name, name)
    assert receipt["outcome"] == "delivered"
    assert lineage["decision_receipt"] == row["digest"]
    assert lineage["outcomes"][at]["outcome"] == outcome
    assert len(lineage["egress_observations"]) == len(row["observations"]) == 1
    assert lineage["receipt_state"] == ("partial" if outcome == "deny" else "observed_model_egress")
    for document in (receipt, row["evaluation"], lineage):
        assert DOMAIN not in json.dumps(document)


@pytest.mark.parametrize("sdk", SDKS.values(), ids=SDKS.keys())
@pytest.mark.parametrize("name", ["allow", "allow_minimized", "allow_redacted", "allow_summary_only"])
async def test_what_is_delivered_is_the_same_on_every_turn(place: Place, sdk: Sdk, name: str) -> None:
    answers = [await said(sdk, name, turns=turns) for turns in (1, 1, 2, 3)]
    rows = await place.rows(4)
    arrived = place.bench.arrived
    sent = result_in(arrived[0])

    assert all(answers)
    assert {result_in(each) for each in arrived} == {sent}
    assert bytes(arrived[0].body) == bytes(arrived[1].body)
    assert is_continued(arrived[1], arrived[2])
    assert is_continued(arrived[2], arrived[3])
    for row, item in rows:
        await check(place, name, row, item, OUTCOMES[name])
        assert row["effect"] == ("forwarded" if name == "allow" else "rewritten")
    if name == "allow":
        assert sent == result(sdk, name)
    elif name == "allow_minimized":
        lines = result(sdk, name).splitlines()
        assert sent.splitlines() == [*lines[:2], "[39 lines cut by the egress gateway]", lines[-1]]
    elif name == "allow_redacted":
        assert DOMAIN not in sent
        assert sent.partition("\n")[2] == result(sdk, name).partition("\n")[2]
        assert mail(sdk, name) in answers[0]  # the model echoed the placeholder, which came back as the value
    else:
        assert sent.startswith("[extract by the egress gateway")
        assert "northwind" not in sent


@pytest.mark.parametrize("sdk", SDKS.values(), ids=SDKS.keys())
async def test_what_may_go_to_local_models_only_goes_to_one(place: Place, sdk: Sdk) -> None:
    answers = [await said(sdk, "allow_local_model_only", turns=turns) for turns in (1, 2)]
    rows = await place.rows(2)

    assert all(answers)
    assert place.bench.arrived == []
    assert result_in(place.local.arrived[0]) == result(sdk, "allow_local_model_only")
    assert is_continued(*place.local.arrived)
    for row, item in rows:
        await check(place, "allow_local_model_only", row, item, "allow")
        assert (row["effect"], row["receipt"]["destination"]["locality"]) == ("rewritten", "local")


@pytest.mark.parametrize("sdk", SDKS.values(), ids=SDKS.keys())
async def test_what_is_quarantined_is_stubbed_until_it_is_released(place: Place, sdk: Sdk) -> None:
    answers = [await said(sdk, "quarantine", turns=turns) for turns in (1, 2)]
    desk = place.bench.running.core.desk
    held, _ = await desk.rows("quarantine", {}, ANN)
    stub = result_in(place.bench.arrived[0])
    item = next(each for each in held if each["id"].partition(".")[0] in stub)
    await desk.decide("quarantine", item["id"], "release", ANN)
    answers += [await said(sdk, "quarantine", turns=turns) for turns in (2, 3)]
    rows = await place.rows(4)
    one, two, three, four = place.bench.arrived
    text = result(sdk, "quarantine")

    assert all(answers)
    assert DOMAIN not in stub
    assert (result_in(two), result_in(three), result_in(four)) == (stub, text, text)
    assert is_continued(one, two)
    assert is_continued(three, four)
    for row, found in rows[:2]:
        await check(place, "quarantine", row, found, "deny")
        assert row["receipt"]["security"]["quarantined_objects"] == 1
    for row, found in rows[2:]:
        await check(place, "allow", row, found, "allow")
        assert "quarantine.released" in found["reason_codes"]


@pytest.mark.parametrize("sdk", SDKS.values(), ids=SDKS.keys())
async def test_what_needs_approval_is_refused_and_passes_once_approved(place: Place, sdk: Sdk) -> None:
    with pytest.raises(sdk.refusal) as raised:
        await said(sdk, "allow_with_approval", turns=1)
    desk = place.bench.running.core.desk
    held, _ = await desk.rows("approval", {}, ANN)
    item = next(each for each in held if each["id"] in str(raised.value))
    waiting = await place.rows(1)
    arrived = len(place.bench.arrived)
    await desk.decide("approval", item["id"], "approve", ANN)
    answers = [await said(sdk, "allow_with_approval", turns=turns) for turns in (1, 2)]
    rows = await place.rows(2)

    assert arrived == 0
    assert "approval.pending" in str(raised.value)
    assert waiting[0][0]["effect"] == "held"
    assert waiting[0][0]["receipt"]["outcome"] == "failed"  # other objects were permitted
    assert (await place.lineage(waiting[0][0]))["receipt_state"] == "rejected"
    assert all(answers)
    assert {result_in(each) for each in place.bench.arrived} == {result(sdk, "allow_with_approval")}
    assert is_continued(*place.bench.arrived)
    for row, found in rows:
        await check(place, "allow", row, found, "allow")
        assert "approval.granted" in found["reason_codes"]


@pytest.mark.parametrize("sdk", SDKS.values(), ids=SDKS.keys())
async def test_what_is_denied_is_the_sdks_own_exception_after_one_attempt(place: Place, sdk: Sdk) -> None:
    with pytest.raises(sdk.refusal) as raised:
        await said(sdk, "deny", turns=1)
    ((row, item),) = await place.rows(1)
    lineage = await place.lineage(row)
    later = await said(sdk, "deny", turns=2)
    again = await said(sdk, "deny", turns=3)
    one, two = place.bench.arrived

    assert "case.deny" in str(raised.value)
    assert row["digest"] in str(raised.value)
    assert DOMAIN not in str(raised.value)
    assert (row["effect"], item["disposition"]) == ("refused", "deny")
    assert row["receipt"]["security"]["blocked_objects"] == 1
    assert "final_context" not in row["receipt"]
    assert lineage["receipt_state"] == "rejected"
    assert lineage["outcomes"][row["evaluation"]["objects"].index(item)]["outcome"] == "deny"
    # Once the conversation has gone on, what was denied is withheld in its place, in the same words on every turn.
    assert later
    assert again
    assert DOMAIN not in result_in(one)
    assert result_in(one) == result_in(two)
    assert is_continued(one, two)
