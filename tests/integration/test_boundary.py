"""Two projects behind one gateway: what is one's does not leave in the other's name, and every attempt is told."""

from __future__ import annotations

import functools
import json
import shutil
import ssl
from pathlib import Path
from typing import Any

import anthropic
import httpx
import pytest

from gateway.app import serve, wiring
from gateway.app.offline import InlineScanner
from gateway.app.projects import known_projects
from gateway.contract import ContextDecisionLineageV1, CrossProjectEventV1
from tests.support.gateway import Bench, gateway
from tests.support.provider import Answer
from tests.support.waiting import eventually
from tests.unit.classify.test_forms import FORM, form, part

ROOT = Path(__file__).resolve().parents[2]
FILE = '''
def settle_open_positions(ledger, fee_schedule):
    """Close every open position of the Brightwater ledger."""
    outstanding = ledger.positions_with_state("open")
    for position in outstanding:
        rate = fee_schedule.rate_for(position.counterparty)
        ledger.append(position.closed_at(rate, reason="cut-over"))
    if ledger.has_remaining(outstanding):
        raise SettlementIncomplete(ledger.name, len(outstanding))
    return ledger.balance_after_settlement()
'''
TELLTALE = ("settle_open_positions", "fee_schedule", "SettlementIncomplete", "Brightwater")
STUB = "text of another project"
SECRET = "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"


_build = functools.cache(wiring.build_detector)


class Here(InlineScanner):
    """A scanner without processes, which nothing here is about."""

    queued = 0

    async def start(self) -> None:
        """Nothing has to be started."""

    async def close(self) -> None:
        """Nothing runs."""


@pytest.fixture(autouse=True)
def one_detector(monkeypatch: pytest.MonkeyPatch) -> None:
    """Compile the detector once for all tests here: none of them is about starting it."""
    detector = _build()
    monkeypatch.setattr(wiring, "build_detector", lambda *_: detector)
    monkeypatch.setattr(serve, "scanner_of", lambda *_: Here(detector))


def tool_result(text: str, **more: Any) -> dict[str, Any]:
    """A request whose last message is what a tool gave back."""
    return {
        "model": "claude-x",
        "max_tokens": 5,
        "messages": [
            {"role": "user", "content": "Read the file."},
            {
                "role": "assistant",
                "content": [
                    {"type": "tool_use", "id": "toolu_1", "name": "Read", "input": {"path": "notes.py"}}
                ],
            },
            {
                "role": "user",
                "content": [{"type": "tool_result", "tool_use_id": "toolu_1", "content": text}],
            },
        ],
        **more,
    }


def said(text: str, system: str = "") -> dict[str, Any]:
    body: dict[str, Any] = {
        "model": "claude-x",
        "max_tokens": 5,
        "messages": [{"role": "user", "content": text}],
    }
    return {**body, "system": system} if system else body


def settings(folder: Path, **kestrel: Any) -> dict[str, Any]:
    """Two projects of two teams, and a principal of each role in both."""
    for name in ("kestrel", "zoo"):
        (folder / name).mkdir(exist_ok=True)
    return {
        "projects": {
            "kestrel": {"roots": [str(folder / "kestrel")], "team": "blue", **kestrel},
            "zoo": {"roots": [str(folder / "zoo")], "team": "blue"},
        },
        "principals": {
            "ada": {"roles": ["admin"], "projects": ["kestrel", "zoo"]},
            "dev": {"roles": ["developer"], "projects": ["kestrel", "zoo"]},
        },
    }


def open_bundle(folder: Path, **switches: str) -> str:
    """The default bundle with other switches in `[boundary]`."""
    target = folder / "bundle"
    shutil.copytree(ROOT / "policies" / "default", target)
    path = target / "bundle.toml"
    text = path.read_text()
    for name, value in switches.items():
        assert f"{name} = " in text
        text = "\n".join(f"{name} = {value}" if x.startswith(f"{name} =") else x for x in text.splitlines())
    path.write_text(text + "\n")
    shutil.rmtree(target / "tests")
    return str(target)


def hash_of(bench: Bench, name: str) -> str:
    return known_projects(bench.running.core.config)[0][name].hash


def sent(bench: Bench, index: int = -1) -> str:
    return bytes(bench.arrived[index].body).decode()


async def lineage_of(bench: Bench, row: dict[str, Any]) -> ContextDecisionLineageV1:
    record = await bench.running.core.egress.store.record(row["lineage"])
    assert record is not None
    return ContextDecisionLineageV1.from_json(record)


async def events(bench: Bench) -> list[dict[str, Any]]:
    found, _ = await bench.running.core.egress.store.rows({"kind": "boundary_event"})
    return found


async def test_a_file_of_one_project_is_stubbed_in_the_other_and_everything_says_so(tmp_path: Path) -> None:
    async with gateway(tmp_path, settings(tmp_path)) as bench:
        await bench.send(tool_result(FILE), user="kestrel")
        assert FILE in json.loads(sent(bench))["messages"][2]["content"][0]["content"]

        reply = await bench.send(tool_result(f"cat notes.py\n{FILE}\n$ "), user="zoo+dev")
        row, first = await bench.rows()
        kestrel, zoo = hash_of(bench, "kestrel"), hash_of(bench, "zoo")
        told, lineage = await events(bench), await lineage_of(bench, row)
        jsonl = (bench.state / "audit" / "cross-project.jsonl").read_bytes()

    assert reply.status == 200
    assert reply.header("x-egress-effect") == "rewritten"
    assert STUB in sent(bench)
    assert not [word for word in TELLTALE if word in sent(bench)]

    item = next(o for o in row["evaluation"]["objects"] if o["kind"] == "tool_result")
    assert item["provenance"] == "foreign"
    assert item["disposition"] == "allow_redacted"
    assert item["reason_codes"] == ["project.not_visible"]
    assert [f["type"] for f in item["findings"]] == ["cross_project"]
    assert row["receipt"]["security"]["redactions"] == 1

    (candidate,) = lineage.candidates
    assert candidate.source.id == f"project:{kestrel}"
    assert (str(candidate.acl_check), str(candidate.validity)) == ("rechecked", "revoked")
    assert row["receipt_state"] == "partial"
    assert first["receipt_state"] == "observed_model_egress"

    (event,) = told
    CrossProjectEventV1.from_value(event)
    assert event == {
        "timestamp": row["time"],
        "event_type": "search",
        "source_project_hash": zoo,
        "target_project_hash": kestrel,
        "tool": "model_egress",
        "action": "send",
        "facts_accessed": 1,
        "allowed": False,
        "policy_reason": "role denies allow_cross_project_search",
    }
    assert [json.loads(line) for line in jsonl.splitlines()] == [event]
    assert not [word for word in TELLTALE for name, data in bench.written().items() if word.encode() in data]


async def test_the_history_is_judged_again_in_every_turn(tmp_path: Path) -> None:
    """Turn two resends what turn one had: it is stubbed again, and it is another attempt."""
    async with gateway(tmp_path, settings(tmp_path)) as bench:
        await bench.send(tool_result(FILE), user="kestrel")
        for _ in range(2):
            await bench.send(tool_result(FILE), user="zoo")
            assert "settle_open_positions" not in sent(bench)
        assert len(await events(bench)) == 2


async def test_who_asks_is_looked_at_each_time(tmp_path: Path) -> None:
    """What an admin of the project was shown is not shown to its next developer, nor taken for the project's own."""
    bundle = open_bundle(tmp_path, cross_project_search="true")
    document = {**settings(tmp_path, linked_projects=["zoo"]), "policy": {"bundles": [bundle]}}
    async with gateway(tmp_path, document) as bench:
        await bench.send(tool_result(FILE), user="kestrel")
        await bench.send(tool_result(FILE), user="zoo+ada")
        assert "settle_open_positions" in sent(bench)
        await bench.send(tool_result(FILE), user="zoo+dev")
        assert "settle_open_positions" not in sent(bench)
        await bench.send(said(FILE), user="zoo+dev")
        assert "settle_open_positions" not in sent(bench)
        assert [event["allowed"] for event in await events(bench)] == [False, False, True]


@pytest.mark.parametrize(
    ("principal", "switch", "privacy", "visible"),
    [
        ("ada", "true", {"linked_projects": ["zoo"]}, True),
        ("ada", "true", {"privacy": "team"}, True),
        ("ada", "true", {}, False),
        ("ada", "false", {"linked_projects": ["zoo"]}, False),
        ("dev", "true", {"linked_projects": ["zoo"]}, False),
    ],
    ids=["linked", "team", "private", "policy closed", "role closed"],
)
async def test_only_role_policy_and_privacy_together_open(
    tmp_path: Path, principal: str, switch: str, privacy: dict[str, Any], visible: bool
) -> None:
    bundle = open_bundle(tmp_path, cross_project_search=switch)
    document = {**settings(tmp_path, **privacy), "policy": {"bundles": [bundle]}}
    async with gateway(tmp_path, document) as bench:
        await bench.send(tool_result(FILE), user="kestrel")
        await bench.send(tool_result(FILE), user=f"zoo+{principal}")
        (row, *_), (event,) = await bench.rows(), await events(bench)
        (candidate,) = (await lineage_of(bench, row)).candidates

    item = next(o for o in row["evaluation"]["objects"] if o["kind"] == "tool_result")
    assert ("settle_open_positions" in sent(bench)) is visible
    assert item["provenance"] == ("linked" if visible else "foreign")
    assert event["allowed"] is visible
    assert row["receipt_state"] == ("observed_model_egress" if visible else "partial")
    assert str(candidate.validity) == ("valid" if visible else "revoked")


async def test_a_link_opens_one_direction(tmp_path: Path) -> None:
    bundle = open_bundle(tmp_path, cross_project_search="true")
    document = {**settings(tmp_path, linked_projects=["zoo"]), "policy": {"bundles": [bundle]}}
    async with gateway(tmp_path, document) as bench:
        await bench.send(tool_result(FILE), user="zoo+ada")
        await bench.send(tool_result(FILE), user="kestrel+ada")
        assert "settle_open_positions" not in sent(bench)


async def test_another_team_sees_nothing(tmp_path: Path) -> None:
    bundle = open_bundle(tmp_path, cross_project_search="true")
    document = {**settings(tmp_path, privacy="team"), "policy": {"bundles": [bundle]}}
    document["projects"]["zoo"]["team"] = "green"
    async with gateway(tmp_path, document) as bench:
        await bench.send(tool_result(FILE), user="kestrel")
        await bench.send(tool_result(FILE), user="zoo+ada")
        assert "settle_open_positions" not in sent(bench)


async def test_requests_of_no_project_see_nothing_and_own_nothing(tmp_path: Path) -> None:
    async with gateway(tmp_path, settings(tmp_path)) as bench:
        await bench.send(tool_result(FILE))
        await bench.send(tool_result(FILE), user="kestrel")
        assert "settle_open_positions" in sent(bench)
        await bench.send(tool_result(f"once more\n{FILE}"))
        assert "settle_open_positions" not in sent(bench)


async def test_in_sovereign_mode_the_request_is_refused(tmp_path: Path) -> None:
    document = {**settings(tmp_path), "policy": {"mode": "sovereign"}}
    async with gateway(tmp_path, document) as bench:
        await bench.send(tool_result(FILE), user="kestrel")
        before = len(bench.arrived)
        reply = await bench.send(tool_result(FILE), user="zoo")
        (row, *_) = await bench.rows()

        assert reply.status == 400
        assert "project.not_visible" in reply.body.decode()
        assert len(bench.arrived) == before
        assert row["effect"] == "refused"
        assert len(await events(bench)) == 1


MEMORY = (
    "## Memory\nNotes kept from earlier sessions:\n- Project Kestrel: settlement engine for Brightwater, "
    "cut-over on 14 March, fee schedule in fees/brightwater_2027.csv\n- Always run make fmt."
)


async def test_a_memory_summary_in_the_system_prompt_is_caught_even_where_files_are_linked(
    tmp_path: Path,
) -> None:
    bundle = open_bundle(tmp_path, cross_project_search="true")
    document = {**settings(tmp_path, linked_projects=["zoo"]), "policy": {"bundles": [bundle]}}
    async with gateway(tmp_path, document) as bench:
        await bench.send(said("Continue.", MEMORY), user="kestrel+ada")
        assert "Brightwater" in sent(bench)
        await bench.send(said("Fix the navbar.", MEMORY), user="zoo+ada")
        (row, *_), (event,) = await bench.rows(), await events(bench)

    item = next(o for o in row["evaluation"]["objects"] if o["kind"] == "memory")
    assert "Brightwater" not in sent(bench)
    assert item["disposition"] == "allow_redacted"
    assert event["event_type"] == "recall"
    assert event["policy_reason"] == "recall never crosses projects"


async def test_what_was_learnt_outlives_a_restart(tmp_path: Path) -> None:
    async with gateway(tmp_path, settings(tmp_path)) as bench:
        await bench.send(tool_result(FILE), user="kestrel")
    (tmp_path / "again").mkdir()
    shutil.copytree(tmp_path / "state", tmp_path / "again" / "state")
    async with gateway(tmp_path / "again", settings(tmp_path)) as bench:
        await bench.send(tool_result(FILE), user="zoo")
        assert "settle_open_positions" not in sent(bench)


async def test_a_write_to_memory_with_anothers_text_is_refused_and_put_aside(tmp_path: Path) -> None:
    note = {"path": "/notes.md", "content": f"Remember this: {MEMORY} The key is {SECRET}"}
    store = "/v1/memory_stores/memstore_1/memories"
    async with gateway(tmp_path, settings(tmp_path)) as bench:
        await bench.send(said("Continue.", MEMORY), user="kestrel")
        before = len(bench.arrived)
        reply = await bench.send(note, target=store, user="zoo")
        (row, *_), (event,) = await bench.rows(), await events(bench)
        (waiting,) = bench.running.core.memory.queues.all()

        assert reply.status == 400
        assert "memory.ambiguous_project" in reply.body.decode()
        assert len(bench.arrived) == before
        assert {o["kind"] for o in row["evaluation"]["objects"]} >= {"memory"}
        assert (event["event_type"], event["allowed"]) == ("import", False)
        assert event["source_project_hash"] == hash_of(bench, "kestrel")
        assert (waiting.queue, waiting.record["candidate_project_id"]) == ("cleanup", "zoo")
        assert "Brightwater" in waiting.record["raw"]
        assert SECRET not in json.dumps(waiting.record)

        own = {"path": "/notes.md", "content": "The navbar lives in src/nav.tsx"}
        assert (await bench.send(own, target=store, user="zoo")).status == 200
        assert (await bench.send(own, target=store)).status == 400  # nobody's: it waits in the inbox
        assert sorted(q.queue for q in bench.running.core.memory.queues.all()) == ["cleanup", "inbox"]


@pytest.mark.parametrize(
    ("host", "target", "body"),
    [
        ("api.openai.com", "/v1/vector_stores", {"name": "notes", "description": MEMORY}),
        (
            "api.openai.com",
            "/v1/vector_stores/vs_1/files",
            {"file_id": "file-1", "attributes": {"note": MEMORY}},
        ),
        (
            "api.openai.com",
            "/v1/conversations/conv_1/items",
            {"items": [{"type": "message", "role": "user", "content": MEMORY}]},
        ),
        ("api.anthropic.com", "/v1/memory_stores/m/memories", {"path": "/a.md", "content": MEMORY}),
    ],
)
async def test_what_providers_keep_is_guarded_wherever_they_keep_it(
    tmp_path: Path, host: str, target: str, body: dict[str, Any]
) -> None:
    async with gateway(tmp_path, settings(tmp_path)) as bench:
        await bench.send(said("Continue.", MEMORY), user="kestrel")
        before = len(bench.arrived)
        reply = await bench.send(body, host=host, target=target, user="zoo")
        assert (reply.status, len(bench.arrived)) == (400, before)
        assert "memory.ambiguous_project" in reply.body.decode()
        (event,) = await events(bench)
        assert (event["event_type"], event["allowed"]) == ("import", False)
        (waiting,) = bench.running.core.memory.queues.all()
        assert (waiting.queue, waiting.record["candidate_project_id"]) == ("cleanup", "zoo")
        assert (await bench.send(body, host=host, target=target, user="kestrel")).status == 200


@pytest.mark.parametrize("purpose", ["assistants", "user_data"])
async def test_a_file_that_is_uploaded_to_be_read_again_is_guarded(tmp_path: Path, purpose: str) -> None:
    where: dict[str, Any] = {"host": "api.openai.com", "target": "/v1/files"}
    where["headers"] = [("content-type", FORM)]

    def upload(text: str, *purposes: str) -> bytes:
        return form(*(part(p, "purpose") for p in purposes), part(text, "file", "notes.md", "text/markdown"))

    async with gateway(tmp_path, settings(tmp_path)) as bench:
        await bench.send(said("Continue.", MEMORY), user="kestrel")
        before = len(bench.arrived)
        for purposes in ((purpose,), ("batch", purpose)):  # whatever else it is said to be for
            reply = await bench.send(upload(MEMORY, *purposes), user="zoo", **where)
            assert (reply.status, len(bench.arrived)) == (400, before)
            assert "memory.ambiguous_project" in reply.body.decode()
        (event, _) = await events(bench)
        assert (event["event_type"], event["allowed"]) == ("import", False)
        assert event["target_project_hash"] == hash_of(bench, "zoo")
        (waiting, _) = bench.running.core.memory.queues.all()
        assert (waiting.queue, waiting.record["candidate_project_id"]) == ("cleanup", "zoo")

        # Of nobody it waits in the inbox; the owner's own passes, byte for byte.
        assert (await bench.send(upload("The navbar lives in src/nav.tsx", purpose), **where)).status == 400
        assert (await bench.send(upload(MEMORY, purpose), user="kestrel", **where)).status == 200
        assert bytes(bench.arrived[-1].body) == upload(MEMORY, purpose)


async def test_a_file_for_something_else_is_no_memory_and_is_still_judged(tmp_path: Path) -> None:
    where: dict[str, Any] = {"host": "api.openai.com", "target": "/v1/files"}
    where["headers"] = [("content-type", FORM)]

    def upload(text: str) -> bytes:
        return form(part("vision", "purpose"), part(text, "file", "notes.txt", "text/plain"))

    async with gateway(tmp_path, settings(tmp_path)) as bench:
        await bench.send(said("Continue.", MEMORY), user="kestrel")
        own = await bench.send(upload("The navbar lives in src/nav.tsx"), **where)
        assert own.status == 200, own.body.decode()
        reply = await bench.send(upload(MEMORY), user="zoo", **where)
        assert reply.status == 200, reply.body
        assert "Brightwater" not in sent(bench)
        assert STUB in sent(bench)
        (event,) = await events(bench)
        assert (event["event_type"], event["allowed"]) == ("search", False)
        assert not bench.running.core.memory.queues.all()


MEMORY_SERVICES = [
    ("api.mem0.ai", "/v1/memories/", {"messages": [{"role": "user", "content": MEMORY}], "user_id": "u1"}),
    ("api.mem0.ai", "/v2/memories/m1", {"text": MEMORY}),
    (
        "api.getzep.com",
        "/api/v2/sessions/s1/memory",
        {"messages": [{"role_type": "user", "content": MEMORY}]},
    ),
    ("api.getzep.com", "/api/v2/threads/t1/messages", {"messages": [{"role": "user", "content": MEMORY}]}),
    ("api.getzep.com", "/api/v2/graph", {"data": MEMORY, "type": "text", "user_id": "u1"}),
    ("api.letta.com", "/v1/agents/agent-1/archival-memory", {"text": MEMORY}),
    ("api.letta.com", "/v1/agents/agent-1/core-memory/blocks/human", {"value": MEMORY}),
    ("api.letta.com", "/v1/blocks/", {"label": "human", "value": MEMORY}),
]


@pytest.mark.parametrize(("host", "target", "body"), MEMORY_SERVICES)
async def test_what_memory_services_keep_is_guarded_and_what_they_give_back_is_checked(
    tmp_path: Path, host: str, target: str, body: dict[str, Any]
) -> None:
    async with gateway(tmp_path, settings(tmp_path), hosts=(host,)) as bench:
        assert (await bench.send(body, host=host, target=target, user="kestrel")).status == 200
        assert "Brightwater" in sent(bench)
        before = len(bench.arrived)
        reply = await bench.send(body, host=host, target=target, user="zoo")
        assert (reply.status, len(bench.arrived)) == (400, before)
        assert "memory.ambiguous_project" in reply.body.decode()
        (event,) = await events(bench)
        assert (event["event_type"], event["allowed"]) == ("import", False)
        (waiting,) = bench.running.core.memory.queues.all()
        assert (waiting.queue, waiting.record["candidate_project_id"]) == ("cleanup", "zoo")

        # What the service gives zoo's agent goes on to a model as the result of a memory tool.
        read = tool_result(json.dumps({"results": [{"id": "m1", "memory": MEMORY}]}))
        read["messages"][1]["content"][0] |= {"name": "search_memories", "input": {"query": "settlement"}}
        assert (await bench.send(read, user="zoo")).status == 200
        assert "Brightwater" not in sent(bench)
        assert STUB in sent(bench)
        found = [(e["event_type"], e["allowed"]) for e in await events(bench)]
        assert sorted(found) == [("import", False), ("recall", False)]
        (row, *_) = await bench.rows()
        item = next(o for o in row["evaluation"]["objects"] if o["pointer"] == "/messages/2/content/0")
        assert (item["kind"], item["provenance"]) == ("memory", "foreign")


async def test_what_an_agent_keeps_with_its_memory_tool_is_told_and_read_back_through_the_rule(
    tmp_path: Path,
) -> None:
    def turn(command: str, text: str, result: str) -> dict[str, Any]:
        body = tool_result(result)
        use = {"command": command, "path": "/memories/a.md", "file_text": text}
        body["messages"][1]["content"][0] |= {"name": "memory", "input": use}
        return body

    async with gateway(tmp_path, settings(tmp_path)) as bench:
        await bench.send(said("Continue.", MEMORY), user="kestrel")
        await bench.send(turn("create", MEMORY, "File created"), user="zoo")
        (row, *_) = await bench.rows()
        written = next(o for o in row["evaluation"]["objects"] if o["pointer"] == "/messages/1/content/0")
        assert written["kind"] == "memory"
        assert {"memory.ambiguous_project", "project.not_visible"} <= set(written["reason_codes"])
        assert "Brightwater" not in sent(bench)

        await bench.send(turn("view", "", MEMORY), user="zoo")
        (row, *_) = await bench.rows()
        read = next(o for o in row["evaluation"]["objects"] if o["pointer"] == "/messages/2/content/0")
        assert (read["kind"], read["provenance"]) == ("memory", "foreign")
        assert "Brightwater" not in sent(bench)


def codex(cwd: str, *parts: tuple[str, str]) -> dict[str, Any]:
    """A request as Codex makes it: working directory first, then messages of roles."""
    context = f"<environment_context>\n<cwd>{cwd}</cwd>\n</environment_context>"
    return {
        "model": "gpt-x-codex",
        "instructions": "You are a coding agent.",
        "input": [
            {"type": "message", "role": role, "content": [{"type": "input_text", "text": text}]}
            for role, text in (("user", context), *parts)
        ],
    }


async def test_a_summary_of_one_clients_project_in_the_first_prompt_of_anothers(tmp_path: Path) -> None:
    """The shared case X01a: openai/codex#17496. The stub and the event are named; common lines are no finding."""
    note = MEMORY.splitlines()[2].removeprefix("- ")
    notes = "## Memory\nNotes kept from earlier sessions:\n"
    where: dict[str, Any] = {"host": "chatgpt.com", "target": "/backend-api/codex/responses"}
    async with gateway(tmp_path, settings(tmp_path)) as bench:
        first = codex("/home/dev/kestrel", ("user", f"Note: {note}. Always run make fmt."))
        await bench.send(first, user="kestrel", **where)
        mixed = codex("/home/dev/zoo", ("developer", MEMORY), ("user", "Fix the navbar."))
        await bench.send(mixed, user="zoo", **where)
        assert STUB in sent(bench)
        assert "Kestrel" not in sent(bench)
        own = f"{notes}- The navbar lives in src/nav.tsx\n- Always run make fmt."
        for user, cwd, text in (
            ("zoo", "/home/dev/zoo", own),
            ("kestrel", "/home/dev/kestrel", f"{notes}- {note}"),
        ):
            body = json.dumps(codex(cwd, ("developer", text))).encode()
            await bench.send(body, user=user, **where)
            assert bytes(bench.arrived[-1].body) == body
        (event,) = await events(bench)
        assert (event["event_type"], event["target_project_hash"]) == ("recall", hash_of(bench, "kestrel"))


async def test_a_placeholder_of_one_project_stays_text_in_another(tmp_path: Path) -> None:
    """The shared case X02a: what looks like a placeholder is not turned back, and that is told."""
    async with gateway(tmp_path, settings(tmp_path)) as bench:
        await bench.send(said(f"Token {SECRET} is for deploys."), user="kestrel")
        token = json.loads(sent(bench))["messages"][0]["content"].split()[1]
        bench.provider.script(Answer(pieces=(answer(f"Use {token} here."),)))
        reply = await bench.send(said("Hello there."), user="zoo")
        (row, *_) = await bench.rows()

    assert SECRET not in reply.body.decode()
    assert token in json.loads(reply.body)["content"][0]["text"]
    assert row["evaluation"]["response"]["restore_withheld"] == 1
    assert "placeholder.foreign" in json.dumps(row)


def answer(text: str) -> bytes:
    return json.dumps({"type": "message", "content": [{"type": "text", "text": text}]}).encode()


async def test_in_shadow_the_event_says_that_nothing_was_enforced(tmp_path: Path) -> None:
    document = {**settings(tmp_path), "policy": {"enforcement": "shadow"}}
    async with gateway(tmp_path, document) as bench:
        await bench.send(tool_result(FILE), user="kestrel")
        await bench.send(tool_result(FILE), user="zoo")
        (event,) = await events(bench)
    assert "settle_open_positions" in sent(bench)
    assert event["allowed"] is False
    assert event["policy_reason"].endswith("; not enforced")


async def test_the_official_sdk_behind_two_projects(tmp_path: Path) -> None:
    async with gateway(tmp_path, settings(tmp_path)) as bench:
        trust = ssl.create_default_context(cafile=str(bench.state / "ca.pem"))
        answers = {}
        for user in ("kestrel", "zoo"):
            proxy = f"http://{user}:@127.0.0.1:{bench.port}"
            async with anthropic.DefaultAsyncHttpxClient(proxy=proxy, verify=trust) as http:
                client = anthropic.AsyncAnthropic(api_key="client-key-for-tests", http_client=http)
                answers[user] = await client.messages.create(**tool_result(FILE))
        assert "settle_open_positions" in sent(bench, 0)
        assert not [word for word in TELLTALE if word in sent(bench, 1)]
        assert STUB in sent(bench, 1)
        assert answers["zoo"].role == "assistant"
        assert len(await events(bench)) == 1


async def test_the_control_port_shows_events_and_guards_memory(tmp_path: Path) -> None:
    async with gateway(tmp_path, settings(tmp_path)) as bench:
        await bench.send(said("Continue.", MEMORY), user="kestrel")
        await bench.send(tool_result(MEMORY), user="zoo")
        token = (bench.state / "control.token").read_text().strip()
        base = f"http://127.0.0.1:{bench.running.control.port}"
        async with httpx.AsyncClient(
            base_url=base, headers={"authorization": f"Bearer {token}"}, trust_env=False
        ) as control:
            shown = (await control.get("/v1/boundary/events")).json()["items"]
            projects = {p["name"]: p["hash"] for p in (await control.get("/v1/projects")).json()["items"]}
            record = {
                "raw_content": f"{MEMORY} {SECRET}",
                "candidate_project_id": "zoo",
                "memory_type": "summary",
                "source": "tool output",
                "timestamp": "2026-05-03T09:43:12Z",
                "confidence": 0.9,
            }
            judged = (await control.post("/v1/memory/guard", json=record)).json()
            own = (
                await control.post("/v1/memory/guard", json={**record, "candidate_project_id": "kestrel"})
            ).json()
            newest = await eventually(
                lambda: control.get("/v1/boundary/events?limit=1"), lambda said: said.json()["items"] != shown
            )
            told = newest.json()["items"]

    assert shown == [
        {
            **shown[0],
            "event_type": "recall",
            "source_project_hash": projects["zoo"],
            "target_project_hash": projects["kestrel"],
        }
    ]
    assert (judged["decision"], judged["destination"]) == ("reroute", "cleanup")
    assert SECRET not in json.dumps([judged, own])
    assert (own["decision"], own["normalized_record"]["redactions"]) == ("accept", 1)
    assert [e["event_type"] for e in told] == ["import"]
    log = (bench.state / "audit" / "cross-project.jsonl").read_bytes().splitlines()
    assert [json.loads(line)["event_type"] for line in log] == ["recall", "import"]
