"""What a conversation has sent binds it, over restarts and changes of policy, and no session is stuck for good."""

from __future__ import annotations

import base64
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from tests.integration.test_review import layer
from tests.support.gateway import Bench, gateway

MAIL = "alice.meyer@northwind-traders.org"
KEY = "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"
SIGNATURE = base64.b64encode(bytes(range(200))).decode()
LOOSE = """
[[exception]]
id = "mail-for-all"
owner = "ann@example.com"
reason = "ticket 1"
expires = 2099-01-01T00:00:00Z
rules = ["only.mail"]
"""
MASK = """
[[rule]]
id = "only.mail"
why = "w"
when = { type = "email" }
then = { disposition = "allow_redacted", reason_codes = ["pii.redacted"] }
"""
DENY_KEYS = """
[[rule]]
id = "keys.deny"
why = "w"
when = { category = "secret", confidence_min = 300 }
then = { disposition = "deny", reason_codes = ["secret.blocked"] }
"""
NOTHING = """
[[rule]]
id = "nothing"
why = "w"
when = { kind = "text" }
then = { disposition = "allow", reason_codes = ["nothing.said"] }
"""


def user(content: Any) -> dict[str, Any]:
    return {"role": "user", "content": content}


def answer(text: str, *, signed: bool = False, call: bool = False) -> dict[str, Any]:
    parts: list[dict[str, Any]] = [{"type": "text", "text": text}]
    if signed:
        parts.insert(0, {"type": "thinking", "thinking": "hm", "signature": SIGNATURE})
    if call:
        parts.append({"type": "tool_use", "id": "t1", "name": "Bash", "input": {}})
    return {"role": "assistant", "content": parts}


RESULT = user([{"type": "tool_result", "tool_use_id": "t1", "content": "done"}])


def ask(*messages: Any) -> dict[str, Any]:
    return {"model": "claude-x", "max_tokens": 5, "messages": list(messages)}


def alone(folder: Path, rules: str) -> dict[str, Any]:
    """A configuration with one bundle that has these rules and nothing else."""
    return {"policy": {"bundles": [layer(folder, rules)], "poll_s": 0}}


async def _told(folder: Path, rules: str, *requests: dict[str, Any]) -> list[tuple[int, bytes | None, str]]:
    """A gateway from its start to its end: of each request the status, what the provider got, and what was said."""
    found = []
    async with gateway(folder, alone(folder, rules)) as bench:
        for request in requests:
            before = len(bench.arrived)
            reply = await bench.send(request)
            sent = bytes(bench.arrived[-1].body) if len(bench.arrived) > before else None
            found.append((reply.status, sent, reply.body.decode()))
    return found


def prefix(body: bytes) -> bytes:
    """A body up to the end of its last message."""
    return body[: body.rindex(b"]")]


async def test_a_loosened_policy_does_not_reach_back_over_a_restart(tmp_path: Path) -> None:
    """Many objects later than eight, so that an anchor far back has to be found."""
    first = user(f"write to {MAIL}")
    more = [m for n in range(9) for m in (answer(f"a{n}"), user(f"u{n}"))]
    ((_, before, _),) = await _told(tmp_path, MASK, ask(first))
    ((_, after, _), (_, new, _)) = await _told(
        tmp_path, MASK + LOOSE, ask(first, *more), ask(user(f"another talk with {MAIL}"))
    )

    assert before is not None
    assert after is not None
    assert new is not None
    assert MAIL.encode() not in before + after
    assert after.startswith(prefix(before))
    assert MAIL.encode() in new


async def test_a_tightened_policy_applies_at_once_and_takes_signed_answers_with_it(tmp_path: Path) -> None:
    """Nothing was changed when it was sent, so that only what stands signed behind it tells that nothing may change."""
    talk = [user(f"write to {MAIL}"), answer("hi", signed=True), user("and?")]
    ((_, before, _),) = await _told(tmp_path, NOTHING, ask(*talk))
    ((status, after, _),) = await _told(tmp_path, MASK, ask(*talk, answer("so"), user("thanks")))

    assert before is not None
    assert MAIL.encode() in before
    assert status == 200
    assert after is not None
    assert MAIL.encode() not in after
    assert SIGNATURE.encode() not in after
    assert json.loads(after)["messages"][1]["content"] == [{"type": "text", "text": "hi"}]


async def test_a_tightened_policy_in_the_middle_of_a_turn_asks_for_a_new_conversation(tmp_path: Path) -> None:
    talk = [user(f"write to {MAIL}"), answer("hi", signed=True, call=True)]
    await _told(tmp_path, NOTHING, ask(talk[0]), ask(*talk, RESULT))
    (refused, anew) = await _told(
        tmp_path, MASK, ask(*talk, RESULT, answer("so"), RESULT), ask(user(f"write to {MAIL}"))
    )

    assert refused[:2] == (400, None)
    assert "conversation.signed_prefix" in refused[2]
    assert "message 1 of 5" in refused[2]
    assert "Start a new conversation" in refused[2]
    assert anew[0] == 200
    assert MAIL.encode() not in (anew[1] or b"")


@pytest.mark.parametrize("restart", [False, True])
async def test_a_refused_message_does_not_end_the_session(tmp_path: Path, restart: bool) -> None:
    """Refused while it is what the client says, however often; a stub once the client says something else."""
    bad, on = user(f"my key is {KEY}"), user("forget it")
    third = [answer("ok"), user("what now?")]
    turns = [ask(bad), ask(bad), ask(bad, on), ask(bad, on, *third)]
    if restart:
        told = [(await _told(tmp_path, DENY_KEYS, turn))[0] for turn in turns]
    else:
        told = await _told(tmp_path, DENY_KEYS, *turns)

    assert [status for status, _, _ in told] == [400, 400, 200, 200]
    assert [sent for _, sent, _ in told[:2]] == [None, None]
    assert "message 1 of 1" in told[0][2]
    assert "Go on with another message" in told[0][2]
    stubbed, later = (sent or b"" for _, sent, _ in told[2:])
    assert KEY.encode() not in stubbed + later
    assert b"Withheld by your organisation's egress gateway" in stubbed
    assert later.startswith(prefix(stubbed))


async def test_a_finding_in_history_that_the_gateway_never_saw_is_a_stub(tmp_path: Path) -> None:
    """A session that began elsewhere, or before the rule did: it goes on, and the records say what was withheld."""
    async with gateway(tmp_path, alone(tmp_path, DENY_KEYS)) as bench:
        reply = await bench.send(ask(user(f"my key is {KEY}"), answer("ok", signed=True), user("go on")))
        again = await bench.send(
            ask(user(f"my key is {KEY}"), answer("ok", signed=True), user("go on"), answer("x"), user("y"))
        )
        rows = await bench.rows()

    assert (reply.status, again.status) == (200, 200)
    first, second = (bytes(arrived.body) for arrived in bench.arrived)
    assert KEY.encode() not in first + second
    assert second.startswith(prefix(first))
    _check_evidence(rows)


def _check_evidence(rows: Sequence[dict[str, Any]]) -> None:
    for row in rows:
        withheld = [o for o in row["evaluation"]["objects"] if "history.withheld" in o["reason_codes"]]
        assert [o["disposition"] for o in withheld] == ["deny"]
        assert row["effect"] == "rewritten"
        assert row["receipt"]["security"]["blocked_objects"] == 1
        assert row["receipt"]["outcome"] == "delivered"
        assert row["receipt_state"] == "partial"


async def test_a_message_that_waits_for_a_person_does_not_end_the_session(tmp_path: Path) -> None:
    rule = MASK.replace("allow_redacted", "allow_with_approval")
    asked = user(f"write to {MAIL} please")
    async with gateway(tmp_path, alone(tmp_path, rule)) as bench:
        waiting = await bench.send(ask(asked))
        on = await bench.send(ask(asked, user("later then")))
        held = await _held(bench)

    assert (waiting.status, on.status) == (400, 200)
    assert "go on with another message" in waiting.body.decode()
    assert MAIL.encode() not in bytes(bench.arrived[0].body)
    assert held[0]["id"].encode() in bytes(bench.arrived[0].body)


async def _held(bench: Bench) -> list[dict[str, Any]]:
    from gateway.ports import Reviewer

    rows, _ = await bench.running.core.desk.rows("approval", {}, Reviewer("ann", frozenset({"view"})))
    return rows
